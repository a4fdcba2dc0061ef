"""The picture of function profiles: E and W of every function on every machine, against one machine's.

Owns what is drawn, as in the ISA study: performance and energy side by side, normalised, with spreads. The figures come
from the table. Uses no global state of matplotlib's.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from wattloom.errors import InputError
from wattloom.report.palette import BEST, OTHERS, REFERENCE, Theme
from wattloom.report.profiles import DECADE, LAYOUT, save  # first: it says what to install where there is no matplotlib
from wattloom.workload.function_profile import Figure as Value
from wattloom.workload.function_profile import FunctionProfile, FunctionProfiles

from matplotlib.axes import Axes  # isort: skip
from matplotlib.figure import Figure  # isort: skip

COLOURS: Final = (REFERENCE, BEST, *OTHERS)
HATCHES: Final = ("", "//", "\\\\", "..", "xx", "--", "++", "oo")
"""No meaning is carried by colour alone."""
INCHES: Final = 0.34
GROUP: Final = 0.8
"""Of the room of a function that its bars take."""
Read = Callable[[FunctionProfile], Value | None]


def function_picture(profiles: FunctionProfiles, path: Path, reference: str = "") -> Path:
    """Draw the table into a file, against the machine `reference`; left out: the first. With one machine its figures
    are drawn as they are."""
    if not profiles.rows:
        raise InputError("plot", "there are no function profiles to draw")
    if reference and reference not in profiles.machines:
        raise InputError("reference", f"{reference} has no profiles; there are {', '.join(profiles.machines)}")
    against = (reference or profiles.machines[0]) if len(profiles.machines) > 1 else ""
    return save(path, lambda theme: _painted(profiles, against, theme))


def _painted(profiles: FunctionProfiles, against: str, theme: Theme) -> Figure:
    functions = profiles.functions
    bars = len(functions) * len(profiles.machines)
    made = Figure(figsize=(11.0, 1.6 + INCHES * max(len(functions), 0.6 * bars)), layout=LAYOUT)
    left, right = made.subplots(1, 2, sharey=True)
    _panel(left, profiles, against, lambda row: row.per_core_s, theme)
    _panel(right, profiles, against, lambda row: row.joules, theme)
    left.set_yticks(range(len(functions)), [_short(name) for name in functions])
    left.set_ylim(len(functions) - 0.5, -0.5)
    _titles(left, "E: executions per second on a core")
    sure = ", ".join(sorted({row.provenance for row in profiles.rows if row.joules is not None})) or "not known"
    _titles(right, f"W: joules of an execution ({sure})")
    if against:
        made.legend(*left.get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=4)
    made.suptitle(f"Against {against}" if against else profiles.machines[0], x=0.01, ha="left", fontsize=11)
    return made


def _panel(axes: Axes, profiles: FunctionProfiles, against: str, read: Read, theme: Theme) -> None:
    machines = profiles.machines
    height = GROUP / len(machines)
    sizes: list[float] = []
    for number, machine in enumerate(machines):
        at = (number - (len(machines) - 1) / 2.0) * height
        shown = [_shown(profiles, function, machine, against, read) for function in profiles.functions]
        known = [(place + at, value) for place, value in enumerate(shown) if value is not None]
        sizes += [value.value for _, value in known]
        _bars(axes, known, height, number, machine, theme)
        for place, value in enumerate(shown):
            if value is None:
                axes.annotate(
                    "not known", (0.0, place + at), (3, 0), textcoords="offset points", va="center", fontsize=7
                )
    if sizes and max(sizes) > DECADE * min(sizes):
        axes.set_xscale("log")
    if against:
        axes.axvline(1.0, color=theme.quiet, linewidth=1.0, linestyle="--")


def _bars(axes: Axes, known: list[tuple[float, Value]], height: float, number: int, machine: str, theme: Theme) -> None:
    places, values = [place for place, _ in known], [value.value for _, value in known]
    colour, hatch = theme.pick(COLOURS[number % len(COLOURS)]), HATCHES[number % len(HATCHES)]
    axes.barh(places, values, height, color=colour, hatch=hatch, edgecolor=theme.paper, label=machine)
    reach = [[value.value - value.low for _, value in known], [value.high - value.value for _, value in known]]
    axes.errorbar(values, places, xerr=reach, fmt="none", ecolor=theme.ink, capsize=2, linewidth=1.0)


def _shown(profiles: FunctionProfiles, function: str, machine: str, against: str, read: Read) -> Value | None:
    """The figure, or its ratio to that of the reference: whose spread stands at its own bar."""
    row = profiles.by_pair.get((function, machine))
    value = None if row is None else read(row)
    if value is None or not against:
        return value
    other = profiles.by_pair.get((function, against))
    base = None if other is None else read(other)
    if base is None:
        return None
    return Value(value.value / base.value, value.low / base.value, value.high / base.value)


def _titles(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.grid(axis="y", visible=False)


def _short(name: str) -> str:
    return name if len(name) <= 32 else f"...{name[-29:]}"
