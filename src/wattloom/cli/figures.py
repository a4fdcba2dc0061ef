"""Seconds and joules of calls, for people: from microseconds to hours, from microjoules on.

Owns the choice of units. Figures of whole clusters are in `report.figures`.
"""

from typing import Final

MINUTE_S: Final = 60.0
HOUR_S: Final = 3600.0


def seconds(value: float | None) -> str:
    """A run time in few digits; empty: not known."""
    if value is None:
        return ""
    if value >= HOUR_S:
        return f"{int(value // HOUR_S)} h {int(value % HOUR_S // MINUTE_S):02d} min"
    if value >= 10 * MINUTE_S:
        return f"{value / MINUTE_S:.1f} min"
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{_three(value / scale)} {unit}"
    return f"{_three(value / 1e-6)} µs"


def joules(value: float | None, spread: float | None, provenance: str = "") -> str:
    """With its spread, if known, and with a letter for where it comes from; empty: not known."""
    from wattloom.energy.measured import Energy
    from wattloom.units import Joules

    if value is None:
        return ""
    shown = str(Energy(Joules(value), Joules(spread or 0.0), "estimated")).removesuffix(" (estimated)")
    if spread is None:
        shown = shown.partition(" ±")[0]
    return f"{shown} ({provenance})" if provenance else shown


def percent(change: float | None) -> str:
    """A change with its sign; empty: not known."""
    return "" if change is None else f"{change:+.0%}"


def _three(figure: float) -> str:
    return f"{figure:.{2 if figure < 10 else 1 if figure < 100 else 0}f}"
