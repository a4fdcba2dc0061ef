"""First come, first fit: the first node by name that has room.

Owns that rule: every site costs the same, so the name decides.
"""

from wattloom.cluster.site import Site
from wattloom.policies.protocol import RankingPolicy
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.workload.shape import Shape


class Fifo(RankingPolicy):
    """First node by name."""

    name = "fifo"
    summary = "the first node by name that has room"

    def cost(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> float:
        return 0.0
