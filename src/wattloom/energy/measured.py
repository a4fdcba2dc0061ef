"""The joules of something that has happened.

Owns the one type and how it reads. Where there is no figure the answer is `wattloom.energy.forecast.Unknown`.
"""

import msgspec

from wattloom.energy.forecast import Provenance
from wattloom.units import Joules


class Energy(msgspec.Struct, frozen=True, gc=False):
    """What a call cost, how sure that is, and where the figure comes from."""

    joules: Joules
    spread: Joules
    """One standard deviation."""
    provenance: Provenance

    def __str__(self) -> str:
        unit, scale = _unit(max(abs(self.joules), abs(self.spread)))
        return f"{_three(self.joules / scale)} {unit} ± {_two(self.spread / scale)} ({self.provenance})"


def _unit(joules: float) -> tuple[str, float]:
    """The unit in which the figure has few digits before the point."""
    for unit, scale in (("MJ", 1e6), ("kJ", 1e3), ("J", 1.0), ("mJ", 1e-3)):
        if joules >= scale:
            return unit, scale
    return ("µJ", 1e-6) if joules > 0.0 else ("J", 1.0)


def _three(figure: float) -> str:
    """Three digits that mean something."""
    return f"{figure:.{2 if abs(figure) < 10 else 1 if abs(figure) < 100 else 0}f}"


def _two(figure: float) -> str:
    return f"{figure:.{2 if abs(figure) < 1 else 1 if abs(figure) < 10 else 0}f}"
