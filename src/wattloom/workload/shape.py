"""Shapes: tasks that no placement can tell apart.

Two tasks of one shape fit the same nodes at the same forecast, so whatever is computed for one holds for all. Owns
the shape and its numbers in the engine's whole units.
"""

from typing import Final

from wattloom.units import MILLI, millicores
from wattloom.workload.function import Function, Variant
from wattloom.workload.requirements import Requirements


class Shape:
    """A class of equal tasks."""

    __slots__ = (
        "cpu",
        "devices",
        "energy_weight",
        "function",
        "index",
        "live",
        "memory",
        "plain",
        "requirements",
        "resources",
        "size",
        "variants",
        "waits",
    )

    def __init__(
        self,
        index: int,
        function: Function,
        requirements: Requirements,
        energy_weight: float,
        waits: bool,
        size: int = 0,
    ) -> None:
        self.index: Final = index
        self.live: int = 0
        """Tasks of this shape that have not ended."""
        self.function: Final = function
        self.requirements: Final = requirements
        self.energy_weight: Final = energy_weight
        self.waits: Final = waits
        """Whether its tasks may be held back for a cheaper place."""
        self.size: Final = size
        """Class of its tasks' size, where that says how long they take; 0: it does not."""
        self.cpu: Final = millicores(requirements.cpu)
        self.memory: Final = requirements.memory
        self.variants: Final[tuple[Variant, ...]] = function.variants
        self.devices: Final[dict[str, dict[str, int]]] = {
            variant.name: _device_shares(requirements, variant) for variant in function.variants
        }
        """Thousandths of a device by variant and kind."""
        self.resources: Final = requirements.resources
        """Counted amounts beside CPU and memory."""
        self.plain: Final = not any(self.devices.values())
        """Whether no build of it needs a device."""

    def __repr__(self) -> str:
        return f"<Shape {self.index} {self.function.name} {self.requirements}>"


def _device_shares(requirements: Requirements, variant: Variant) -> dict[str, int]:
    shares: dict[str, int] = {}
    for kind, amount in (*requirements.devices, *variant.devices):
        shares[kind] = max(shares.get(kind, 0), round(amount * MILLI))
    return shares
