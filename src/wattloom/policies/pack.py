"""Filling nodes up: the fullest node that still has room.

Owns that rule. It keeps nodes empty that could sleep, and knows nothing of what the full ones draw.
"""

from wattloom.cluster.site import Site
from wattloom.policies.protocol import RankingPolicy
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.workload.shape import Shape


class Pack(RankingPolicy):
    """Fullest first."""

    name = "pack"
    summary = "the fullest node that still has room"

    def cost(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> float:
        """Share of the CPU that is not given out yet."""
        return 1.0 - site.allocated / max(1, site.cls.cpu)

    def tie(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> float:
        """Among equals the one with the least memory left."""
        return 1.0 - site.memory / max(1, site.cls.memory)
