"""What each function drew over time, for people: one row for each window, one column for each of the larger functions.

Owns that table, and the sentence under it.
"""

from typing import TYPE_CHECKING, Final

from wattloom.cli.printing import say

if TYPE_CHECKING:
    from rich.table import Table

    from wattloom.disaggregation.power_window import PowerWindow

MOST_COLUMNS: Final = 6
"""Functions that get a column of their own, where the terminal is wide enough; the others are summed up."""
MEANING: Final = (
    "Each row knows only what the meter had said until then, as a service would: the first rows are less exact. "
    "Watts are of one running call (±: one standard deviation). Joules are shares of what was drawn, not marginal."
)


def print_windows(windows: "list[PowerWindow]", gap_s: float) -> None:
    from wattloom.cli.printing import console, fits

    out = console()
    drawn: dict[str, float] = {}
    for window in windows:
        for each in window.functions:
            drawn[each.function] = drawn.get(each.function, 0.0) + each.joules
    order = sorted(drawn, key=lambda name: -drawn[name])
    counts = range(min(MOST_COLUMNS, len(order)), 0, -1)
    made = [_table(windows, order[:count], len(order), doubt) for count in counts for doubt in (True, False)]
    out.print(next((each for each in made if fits(each, out)), made[-1] if made else ""))
    say(MEANING)
    if gap_s:
        say("Time without readings is in no row: what was drawn then is unknown.")


def _table(windows: "list[PowerWindow]", shown: list[str], functions: int, doubt: bool) -> "Table":
    """`doubt`: with spreads, if there is room."""
    from wattloom.cli.figures import joules
    from wattloom.cli.printing import cell, table

    left = functions - len(shown)
    others = [f"{left} other{'s' * (left > 1)}"] if left else []
    columns = ["seconds", "meter", "idle", *map(cell, shown), *others, "unattributed"]
    made = table(*columns, title="Over time", numbers=tuple(columns))
    first = windows[0].start_s
    for window in windows:
        rest = sum(each.joules for each in window.functions if each.function not in shown)
        made.add_row(
            f"{window.start_s - first:.0f}-{window.end_s - first:.0f}",
            joules(window.meter_j, None),
            _watts(window.idle_w, window.idle_spread_w if doubt else None),
            *(_drawn(window, name, doubt) for name in shown),
            *([joules(rest, None)] if others else []),
            joules(window.unattributed_j, None),
        )
    return made


def _drawn(window: "PowerWindow", name: str, doubt: bool) -> str:
    """Empty: it has not run yet."""
    from wattloom.cli.figures import joules

    found = window.of(name)
    if found is None:
        return ""
    return f"{joules(found.joules, None)}, {_watts(found.watts, found.spread if doubt else None)}"


def _watts(watts: float, spread: float | None) -> str:
    return f"{watts:.1f} W" if spread is None else f"{watts:.1f} ± {spread:.1f} W"
