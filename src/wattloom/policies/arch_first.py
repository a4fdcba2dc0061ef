"""One instruction set before the others.

Owns that rule: while a node of the wanted architecture has room it is taken, the emptiest first; then the others. The
ISA study's x86-first and ARM-first (I5) fill a server with functions, each with all its calls; this one decides task by
task, so a function's tasks may run on both.
"""

from typing import ClassVar, Final

from wattloom.cluster.site import Site
from wattloom.errors import PolicyError
from wattloom.policies.protocol import RankingPolicy
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.workload.shape import Shape

ARCHITECTURES: Final = ("x86_64", "aarch64")
LATER: Final = 2.0
"""More than any share of a node."""


class ArchFirst(RankingPolicy):
    """Nodes of one architecture first."""

    name = "arch-first"
    summary = (
        "nodes of one architecture first, the emptiest of them first; task by task, where the ISA study's x86-first "
        "and ARM-first place whole functions"
    )
    options: ClassVar[dict[str, str]] = {
        "first": f"the architecture to fill first ({' or '.join(ARCHITECTURES)}; default {ARCHITECTURES[0]})"
    }

    def __init__(self, first: str = ARCHITECTURES[0]) -> None:
        if first not in ARCHITECTURES:
            raise PolicyError("first", f"must be {' or '.join(ARCHITECTURES)}, not {first!r}")
        self.first = first

    def cost(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> float:
        """Share of the CPU that is given out, and a penalty for the other architectures."""
        used = site.allocated / max(1, site.cls.cpu)
        return used if site.cls.machine.profile.arch == self.first else LATER + used

    def tie(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> float:
        """Among equals the one with the most memory left."""
        return site.memory / max(1, site.cls.memory)
