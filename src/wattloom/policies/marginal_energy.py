"""HSC's Algorithm 1 (H4): the node whose curve rises least for the cores asked.

Owns that rule, with both branches of the source as the default. Where cores are free a task costs what the curve rises
by. Where they are not, but watts are left of the TDP and 80% of what the task requests fits, it costs the last step of
the curve. Either way its watts are booked: what is booked on a node stays within its TDP (`fit.booked_watts`).

It looks at watts alone: how long the task runs, there or with its neighbours, does not count.
"""

from typing import ClassVar, Final

from wattloom.cluster.fit import Terms
from wattloom.cluster.site import Site
from wattloom.errors import PolicyError
from wattloom.machines.machine import PACKAGE_ERROR, PACKAGE_OF_IDLE, PACKAGE_OF_LOAD
from wattloom.policies.protocol import RankingPolicy
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.units import MILLI
from wattloom.workload.shape import Shape

MICROWATTS: Final = 6
"""Digits that count: on a straight curve all steps are equal, whatever the last bits of a float say."""


class MarginalEnergy(RankingPolicy):
    """Least additional watts."""

    name = "marginal-energy"
    summary = "least additional watts by the node's power curve, within its TDP (HSC's Algorithm 1)"
    measure = "W"
    options: ClassVar[dict[str, str]] = {
        "tdp": "keep the watts booked on a node within its TDP. Of a curve at the plug the CPU packages are taken to "
        f"have {PACKAGE_OF_IDLE:g} of idle and {PACKAGE_OF_LOAD:g} of the rest, ± {PACKAGE_ERROR:.0%}; a machine "
        "without a known TDP or curve is not bounded, and why says so (true or false; default true)",
        "guarantee": "share of the requested CPU that is set aside: 0.8 is HSC's 80% rule, 1 never gives out more "
        "cores than there are (default 0.8; on Kubernetes, and on this machine with max_workers, 1)",
    }
    in_full: ClassVar[dict[str, str]] = {"guarantee": "1"}
    needs_power = True

    def __init__(self, tdp: bool = True, guarantee: float = 0.8) -> None:
        if not 0.0 <= guarantee <= 1.0:
            raise PolicyError("guarantee", f"must be between 0 and 1, not {guarantee}")
        self.terms = Terms(guarantee=guarantee, tdp=tdp)

    def cost(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> float:
        if site.demand + shape.cpu <= site.cls.cpu:
            return round(estimate.watts, MICROWATTS)
        last_core = site.cls.machine.last_core_watts(site.cls.cpu)
        return round(last_core * shape.cpu / MILLI, MICROWATTS)

    def tie(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> float:
        """Among equals the fullest, so that others stay empty."""
        return -site.demand
