"""HSC's Algorithm 1 (H4): the node whose curve rises least for the cores asked.

Owns that rule. It looks at watts alone: how long the task runs, there or with its neighbours, does not count.
"""

from typing import ClassVar, Final

from wattloom.cluster.fit import Terms
from wattloom.cluster.site import Site
from wattloom.errors import PolicyError
from wattloom.policies.protocol import RankingPolicy
from wattloom.prediction.outlook import Outlook
from wattloom.units import MILLI
from wattloom.workload.shape import Shape

MICROWATTS: Final = 6
"""Digits that count: on a straight curve all steps are equal, whatever the last bits of a float say."""


class MarginalEnergy(RankingPolicy):
    """Least additional watts."""

    name = "marginal-energy"
    summary = "least additional watts by the node's power curve (HSC's Algorithm 1)"
    measure = "W"
    options: ClassVar[dict[str, str]] = {
        "tdp": "keep a node within its TDP, where its curve is of the CPU package (true or false; default false)",
        "guarantee": "share of the requested CPU that is guaranteed; 0.8 is HSC's 80% rule (default 1)",
    }
    needs_power = True

    def __init__(self, tdp: bool = False, guarantee: float = 1.0) -> None:
        if not 0.0 <= guarantee <= 1.0:
            raise PolicyError("guarantee", f"must be between 0 and 1, not {guarantee}")
        self.terms = Terms(guarantee=guarantee, tdp=tdp)

    def cost(self, shape: Shape, site: Site, outlook: Outlook) -> float:
        if site.demand + shape.cpu <= site.cls.cpu:
            return round(outlook.watts, MICROWATTS)
        full = site.cls.cpu
        machine = site.cls.machine
        return round((machine.watts(full) - machine.watts(max(0, full - MILLI))) * shape.cpu / MILLI, MICROWATTS)

    def tie(self, shape: Shape, site: Site, outlook: Outlook) -> float:
        """Among equals the fullest, so that others stay empty."""
        return -site.demand
