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
        return f"{in_words(self.joules, self.spread)} ({self.provenance})"


def in_words(joules: float, spread: float | None = None) -> str:
    """A figure, and after ± its spread in the same unit, which stands behind both: `1.37 ± 0.03 mJ`."""
    unit, scale = _unit(max(abs(joules), abs(spread or 0.0)))
    after = "" if spread is None else f" ± {_two(spread / scale)}"
    return f"{_three(joules / scale)}{after} {unit}"


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
    """What is too small to be shown is not shown as nothing."""
    if 0.0 < figure < 0.005:
        return "<0.01"
    return f"{figure:.{2 if abs(figure) < 1 else 1 if abs(figure) < 10 else 0}f}"
