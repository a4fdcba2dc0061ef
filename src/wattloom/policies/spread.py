"""What kube-scheduler does by default: the node that is left emptiest and most evenly used.

Owns the scores of the two default plugins that look at resources, each with weight 1, in whole numbers as Kubernetes
computes them (0 to 100, fractions cut off):

- `NodeResourcesFit` with the strategy `LeastAllocated`: the mean over CPU and memory of what would be left free.
  A request of 0 counts as 100 millicores or 200 MiB.
- `NodeResourcesBalancedAllocation`: 1 minus the standard deviation of the fractions in use, which for two resources is
  half their difference. Not for tasks that request nothing.

The other default plugins tell nodes apart by taints, affinities, images and volumes, which are equal here. Where
Kubernetes draws a lot among equal scores, the node with the least in use goes first, then the name decides. And a site
does not know how many tasks it has: of those that request nothing only the incoming one counts with the defaults, and
with `ignore_requests` every core in demand counts as one task, which is exact for tasks of one core.
"""

from typing import ClassVar, Final

from wattloom.cluster.fit import Terms
from wattloom.cluster.site import Site
from wattloom.policies.protocol import RankingPolicy
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.units import MIB, MILLI
from wattloom.workload.shape import Shape

MOST: Final = 100
CPU_IF_NONE: Final = 100
MEMORY_IF_NONE: Final = 200 * MIB


class Spread(RankingPolicy):
    """Emptiest and most balanced first."""

    name = "spread"
    summary = "kube-scheduler's default scores: the emptiest and most evenly used node"
    measure = "points"
    options: ClassVar[dict[str, str]] = {
        "ignore_requests": "place as if tasks requested nothing: CPU is never full, and each task counts "
        "with the default request (true or false; default false)"
    }

    def __init__(self, ignore_requests: bool = False) -> None:
        self.ignore_requests = ignore_requests
        self.terms = Terms(guarantee=0.0) if ignore_requests else Terms()

    def cost(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> float:
        """Points, negative because more are better."""
        cls = site.cls
        if self.ignore_requests:
            tasks = site.demand + MILLI  # in thousandths
            return -least_allocated(tasks * CPU_IF_NONE // MILLI, cls.cpu, tasks * MEMORY_IF_NONE // MILLI, cls.memory)
        cpu, memory = site.allocated, site.memory
        points = least_allocated(
            cpu + (shape.cpu or CPU_IF_NONE), cls.cpu, memory + (shape.memory or MEMORY_IF_NONE), cls.memory
        )
        if shape.cpu or shape.memory:
            points += balanced_allocation(cpu + shape.cpu, cls.cpu, memory + shape.memory, cls.memory)
        return -points

    def tie(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> float:
        """Among equals the least used, to the last digit."""
        return site.demand / max(1, site.cls.cpu)


def least_allocated(cpu: int, cpu_of: int, memory: int, memory_of: int) -> int:
    """Mean score of what is left of each resource the node has at all."""
    scores = [_left(used, of) for used, of in ((cpu, cpu_of), (memory, memory_of)) if of]
    return sum(scores) // len(scores) if scores else 0


def _left(used: int, of: int) -> int:
    return 0 if used > of else (of - used) * MOST // of


def balanced_allocation(cpu: int, cpu_of: int, memory: int, memory_of: int) -> int:
    """Score of how close the fractions in use are to each other."""
    if not (cpu_of and memory_of):
        return MOST
    deviation = abs(min(1.0, cpu / cpu_of) - min(1.0, memory / memory_of)) / 2
    return int((1.0 - deviation) * MOST)
