"""Seconds and joules of calls, for people: from microseconds to hours, from microjoules on.

Owns the choice of units. Figures of whole clusters are in `report.figures`.
"""

from collections.abc import Iterable
from typing import Final

MARKS: Final = {"measured": "●", "modelled": "◐", "estimated": "○"}
"""The surest first."""
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
    """With its spread, if known, and with the word for where it comes from; empty: not known."""
    from wattloom.energy.measured import in_words

    if value is None:
        return ""
    shown = in_words(value, spread)
    return f"{shown} ({provenance})" if provenance else shown


def marked(shown: str, provenance: str) -> str:
    """A figure with a sign for where it comes from, where there is no room for the word; `legend` says what it means.
    Of several, that of the least sure one."""
    known = [mark for word, mark in MARKS.items() if word in provenance]
    return f"{shown} {known[-1]}" if shown and known else shown


def legend(provenances: Iterable[str]) -> str:
    """What the signs mean that stand for these; empty: there are none."""
    there = ", ".join(provenances)
    return "  ".join(f"{mark} {word}" for word, mark in MARKS.items() if word in there)


def seconds_with(mean: float | None, deviation: float | None) -> str:
    """A mean run time and, after ±, how far it varies: in the same unit, unless one of them is far smaller."""
    if mean is None or deviation is None:
        return seconds(mean)
    if mean >= 10 * MINUTE_S or mean <= 0.0 or not 1e-3 <= deviation / mean <= 1e3:
        return f"{seconds(mean)} ± {seconds(deviation)}"
    scale, unit = next((pair for pair in ((1.0, "s"), (1e-3, "ms")) if mean >= pair[0]), (1e-6, "µs"))
    return f"{_three(mean / scale)} ± {_three(deviation / scale)} {unit}"


def percent(change: float | None) -> str:
    """A change with its sign; empty: not known."""
    return "" if change is None else f"{change:+.0%}"


def _three(figure: float) -> str:
    return f"{figure:.{2 if figure < 10 else 1 if figure < 100 else 0}f}"
