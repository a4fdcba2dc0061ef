"""The picture of real calls on this machine: what each function costs, and where the power went.

Owns what is drawn and said of such a run. Where its figures come from is the caller's to say.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from wattloom.energy.forecast import Provenance
from wattloom.report.palette import PARTS, THEMES, Colour, Theme
from wattloom.report.pictures import Axes, Figure, Picture, empty_figure, png

TASKS: Final = PARTS["active"]
IDLE: Final = PARTS["idle"]
REST: Final = Colour("#E69F00", "#E69F00")


class FunctionHere(msgspec.Struct, frozen=True):
    """Calls of one function."""

    name: str
    calls: int
    seconds: float
    """Of a call, on average."""
    joules: float
    """Of a call, on average."""
    spread_j: float
    """How far a call's figure may be off: one standard deviation."""
    varies_j: float
    """How much the figures of its calls differ: one standard deviation."""


class Reading(msgspec.Struct, frozen=True):
    """What the meter counted between two readings, as watts."""

    begin_s: float
    end_s: float
    tasks_w: float
    idle_w: float
    unattributed_w: float


class Here(msgspec.Struct, frozen=True):
    """Some functions, run for real."""

    machine: str
    provenance: Provenance
    source: str
    """Where the joules come from, in words."""
    functions: list[FunctionHere]
    readings: list[Reading]
    phases: list[tuple[str, float, float]]
    """Function, first submission and last end."""


def picture(here: Here) -> Picture:
    """Joules per call, and power over time."""
    light, dark = (png(lambda theme: _paint(here, theme), theme) for theme in THEMES)
    costs = "; ".join(f"{f.name} {_milli(f.joules)} ± {_milli(f.spread_j)} mJ" for f in here.functions)
    return Picture(
        "this-machine",
        f"On this machine: {sum(each.calls for each in here.functions)} calls, made for real",
        f"Above: joules per call; the bars say how far a figure may be off, one standard deviation. Below: the meter's "
        f"watts, split so that tasks + idle + unattributed = meter. The joules are {here.provenance}: {here.source}.",
        f"Bar chart of joules per call on {here.machine}: {costs}. Area chart of watts over time, split into tasks, "
        "idle and unattributed.",
        light,
        dark,
    )


def _paint(here: Here, theme: Theme) -> Figure:
    made = empty_figure(2.3 + 0.36 * len(here.functions) + 2.2)
    above, below = made.subplots(2, 1, height_ratios=[0.5 + 0.36 * len(here.functions), 2.6])
    _costs(above, here.functions, theme)
    _power(below, here, theme)
    above.set_title(f"What a call costs on {here.machine} (joules are {here.provenance})", loc="left", fontsize=11)
    return made


def _costs(axes: Axes, functions: Sequence[FunctionHere], theme: Theme) -> None:
    places = list(range(len(functions)))
    joules = [1000.0 * each.joules for each in functions]
    spreads = [1000.0 * each.spread_j for each in functions]
    axes.barh(places, joules, height=0.62, color=theme.pick(TASKS))
    axes.errorbar(joules, places, xerr=spreads, fmt="none", ecolor=theme.ink, elinewidth=1.2, capsize=3)
    for place, each in enumerate(functions):
        text = f"{_milli(each.joules)} ± {_milli(each.spread_j)} mJ in {1000 * each.seconds:.0f} ms"
        axes.annotate(text, (joules[place] + spreads[place], place), (6, 0), textcoords="offset points", va="center")
    axes.set_yticks(places, [each.name for each in functions])
    axes.set_ylim(len(functions) - 0.4, -0.6)
    axes.set_xlim(0.0, 1.35 * max([a + b for a, b in zip(joules, spreads, strict=True)], default=1.0) or 1.0)
    axes.set_xlabel("millijoules per call")
    axes.grid(visible=False, axis="y")


def _milli(joules: float) -> str:
    return f"{1000.0 * joules:,.{0 if joules >= 0.01 else 1}f}"


def _power(axes: Axes, here: Here, theme: Theme) -> None:
    readings = here.readings
    times = [each.begin_s for each in readings] + [readings[-1].end_s] if readings else []
    bottom = [0.0] * len(times)
    parts = (("idle", IDLE, "idle_w"), ("unattributed", REST, "unattributed_w"), ("tasks", TASKS, "tasks_w"))
    for label, colour, field in parts:
        watts = [getattr(each, field) for each in readings]
        top = [low + more for low, more in zip(bottom, [*watts, *watts[-1:]], strict=True)]
        axes.fill_between(times, bottom, top, step="post", color=theme.pick(colour), linewidth=0.0, label=label)
        bottom = top
    most = max(bottom, default=1.0)
    for name, begin, end in here.phases:
        axes.axvline(begin, color=theme.quiet, linewidth=0.8, linestyle=":")
        axes.annotate(name.replace("_", "\n"), ((begin + end) / 2, 1.06 * most), ha="center", va="bottom", fontsize=8)
    axes.set_ylim(0.0, 1.42 * most or 1.0)
    if times:
        axes.set_xlim(times[0], times[-1])
    axes.set_xlabel("seconds")
    axes.set_ylabel("watts")
    axes.legend(loc="center left", bbox_to_anchor=(1.005, 0.5), frameon=False, handlelength=1.0)
