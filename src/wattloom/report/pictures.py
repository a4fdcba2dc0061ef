"""The pictures of a report: power over time, energy and makespan, waiting times; each for light and for dark paper.

Owns what is drawn. It uses no global state of matplotlib's, and the same comparison gives the same bytes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Final

import msgspec

from wattloom.errors import MissingExtra
from wattloom.report.figures import figure, short
from wattloom.report.palette import BEST, OTHERS, PARTS, REFERENCE, THEMES, Theme
from wattloom.report.series import binned, share_started
from wattloom.simulation.comparison import Comparison, Row
from wattloom.units import MEGA

try:
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, PercentFormatter
except ImportError as missing:
    raise MissingExtra("the report", "report") from missing

__all__ = ["Axes", "Figure", "Picture", "draw", "empty_figure", "png"]

WIDTH_IN: Final = 10.0
DPI: Final = 150


class Picture(msgspec.Struct, frozen=True):
    """A drawn figure, and the words for those who do not see it."""

    name: str
    title: str
    caption: str
    alt: str
    light: bytes
    dark: bytes


def draw(comparison: Comparison) -> list[Picture]:
    """All pictures of a comparison."""
    return [
        Picture("power", "Power over time", *_power_words(comparison), *_both(_power, comparison)),
        Picture("energy", "Energy and makespan", *_energy_words(comparison), *_both(_energy, comparison)),
        Picture("waiting", "Waiting times", *_waiting_words(comparison), *_both(_waiting, comparison)),
    ]


# -- words -------------------------------------------------------------------------------------------------------------


def _power_words(comparison: Comparison) -> tuple[str, str]:
    which = "" if len(comparison.seeds) == 1 else f" The run shown is that of seed {comparison.seeds[0]}."
    caption = (
        "Watts of the whole cluster against seconds. A line ends with its policy's last task; the area below it is the "
        f"energy, given beside each name with the highest draw. Best and reference are thick.{which}"
    )
    means = (
        f"{row.policy} {figure(_mean_watts(row))} W, at most {figure(row.peak_w)} W, until {figure(row.makespan_s)} s"
        for row in _order(comparison)
    )
    return caption, f"Line chart of the cluster's power over time. Mean power: {'; '.join(means)}."


def _energy_words(comparison: Comparison) -> tuple[str, str]:
    spread = "" if len(comparison.seeds) == 1 else " Whiskers are one standard deviation over the seeds."
    caption = (
        "Watt-hours by what they were spent on, best first, the time to the end of the last task, and both multiplied. "
        f"Idle is the floor of every node that is awake, active is what work adds to it.{spread}"
    )
    bars = (
        f"{row.policy} {figure(_watt_hours(row))} Wh in {figure(row.makespan_s)} s, "
        f"{figure(row.energy_delay_js / MEGA)} MJ·s"
        for row in _order(comparison)
    )
    return caption, f"Bar chart of energy, stacked by part, of makespan and of energy x delay. {'; '.join(bars)}."


def _waiting_words(comparison: Comparison) -> tuple[str, str]:
    seeds = "" if len(comparison.seeds) == 1 else " Tasks of all seeds together."
    caption = (
        "Share of the started tasks that had started within so many seconds of their submission. "
        f"Beside each name: the time within which 95% had started. Lines at the top edge hide each other.{seeds}"
    )
    waits = (f"{row.policy} {figure(row.wait_s.p95)} s" for row in _order(comparison))
    return caption, f"Cumulative distribution of waiting times. 95% of tasks started within: {'; '.join(waits)}."


def _mean_watts(row: Row) -> float:
    return row.energy.total / row.makespan_s if row.makespan_s > 0.0 else 0.0


def _watt_hours(row: Row) -> float:
    return row.energy.watt_hours()["total"]


# -- drawing -----------------------------------------------------------------------------------------------------------


def _both(paint: Callable[[Comparison, Theme], Figure], comparison: Comparison) -> tuple[bytes, bytes]:
    light, dark = (png(lambda theme: paint(comparison, theme), theme) for theme in THEMES)
    return light, dark


def png(paint: Callable[[Theme], Figure], theme: Theme) -> bytes:
    """A painted figure as a file."""
    with _settings(theme):
        made = paint(theme)
        file = BytesIO()
        made.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


@contextmanager
def _settings(theme: Theme) -> Iterator[None]:
    """matplotlib's defaults with the theme's colours, whatever the user's own settings are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(theme.settings)
        yield


def empty_figure(height_in: float) -> Figure:
    """As wide as all pictures are."""
    return Figure(figsize=(WIDTH_IN, height_in), dpi=DPI, layout="constrained")


def _order(comparison: Comparison) -> list[Row]:
    return comparison.by_energy


def _line_style(comparison: Comparison, row: Row, theme: Theme) -> dict[str, Any]:
    """Best and reference stand out; the others differ in colour and dash."""
    if row is comparison.best:
        return {"color": theme.pick(BEST), "linewidth": 2.6, "zorder": 4}
    if row.policy == comparison.reference:
        return {"color": theme.pick(REFERENCE), "linewidth": 2.0, "zorder": 3}
    plain = [other for other in _order(comparison) if other is not comparison.best]
    plain = [other for other in plain if other.policy != comparison.reference]
    number = plain.index(row)
    dash = ("-", "--", "-.", ":")[number // len(OTHERS) % 4]
    return {"color": theme.pick(OTHERS[number % len(OTHERS)]), "linewidth": 1.2, "linestyle": dash, "zorder": 2}


def _label(comparison: Comparison, row: Row) -> str:
    role = " (best)" if row is comparison.best else " (reference)" if row.policy == comparison.reference else ""
    return f"{short(row.policy)}{role}"


def _thousands(axis: Any) -> None:
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _legend(axes: Axes) -> None:
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, handlelength=2.4, borderaxespad=0.2)


def _power(comparison: Comparison, theme: Theme) -> Figure:
    made = empty_figure(4.4)
    axes = made.add_subplot()
    for row in _order(comparison):
        run = row.runs[0]
        times, watts = binned(run.power, run.makespan_s)
        style = _line_style(comparison, row, theme)
        drawn = f"{figure(run.energy.watt_hours()['total'])} Wh, peak {figure(run.peak_w)} W"
        name = f"{_label(comparison, row)}: {drawn}"
        axes.plot(times, watts, drawstyle="steps-post", label=name, **style)
        if times:
            axes.plot(times[-1], watts[-1], marker="o", markersize=4.0, color=style["color"], zorder=style["zorder"])
    axes.set_xlabel("seconds")
    axes.set_ylabel("watts, whole cluster")
    axes.set_ylim(bottom=0.0)
    axes.set_xlim(0.0, 1.02 * max(row.runs[0].makespan_s for row in comparison.rows) or 1.0)
    _thousands(axes.xaxis)
    _thousands(axes.yaxis)
    _legend(axes)
    return made


def _energy(comparison: Comparison, theme: Theme) -> Figure:
    rows = _order(comparison)
    made = empty_figure(1.5 + 0.42 * len(rows))
    left, middle, right = made.subplots(1, 3, sharey=True, width_ratios=[2.0, 1.0, 1.0])
    places = list(range(len(rows)))
    _energy_bars(left, comparison, rows, theme)
    _bars(middle, [row.makespan_s for row in rows], [row.makespan_s_spread for row in rows], "makespan, s", theme)
    products = [row.energy_delay_js / MEGA for row in rows]
    _bars(right, products, [row.energy_delay_js_spread / MEGA for row in rows], "energy x delay, MJ·s", theme)
    left.set_yticks(places, [_label(comparison, row) for row in rows])
    left.set_ylim(len(rows) - 0.4, -0.6)
    for name, row in zip(left.get_yticklabels(), rows, strict=True):
        name.set_fontweight("bold" if row is comparison.best else "normal")
    return made


def _energy_bars(axes: Axes, comparison: Comparison, rows: list[Row], theme: Theme) -> None:
    places = list(range(len(rows)))
    begin = [0.0] * len(rows)
    for part, colour in PARTS.items():
        widths = [row.energy.watt_hours()[part] for row in rows]
        axes.barh(places, widths, left=begin, height=0.68, color=theme.pick(colour), label=part)
        begin = [a + b for a, b in zip(begin, widths, strict=True)]
    spreads = [row.energy_wh_spread for row in rows]
    _whiskers(axes, begin, spreads, theme)
    most = max(end + spread for end, spread in zip(begin, spreads, strict=True)) or 1.0
    for place, (end, spread) in enumerate(zip(begin, spreads, strict=True)):
        axes.annotate(figure(end), (end + spread, place), (5, 0), textcoords="offset points", va="center")
    axes.set_xlim(0.0, most * 1.13)
    axes.set_xlabel("energy, Wh")
    axes.grid(visible=False, axis="y")
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(PARTS), frameon=False, handlelength=1.0)
    _thousands(axes.xaxis)


def _bars(axes: Axes, ends: list[float], spreads: list[float], name: str, theme: Theme) -> None:
    axes.barh(list(range(len(ends))), ends, height=0.68, color=theme.bar)
    _whiskers(axes, ends, spreads, theme)
    for place, (end, spread) in enumerate(zip(ends, spreads, strict=True)):
        axes.annotate(figure(end), (end + spread, place), (5, 0), textcoords="offset points", va="center")
    axes.set_xlim(0.0, (max(ends) or 1.0) * 1.25)
    axes.set_xlabel(name)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=3)
    _thousands(axes.xaxis)


def _whiskers(axes: Axes, ends: list[float], spreads: list[float], theme: Theme) -> None:
    if any(spreads):
        places = list(range(len(ends)))
        axes.errorbar(ends, places, xerr=spreads, fmt="none", ecolor=theme.ink, elinewidth=1.2, capsize=3)


def _waiting(comparison: Comparison, theme: Theme) -> Figure:
    made = empty_figure(4.0)
    axes = made.add_subplot()
    longest = max((wait for row in comparison.rows for run in row.runs for wait in run.waits), default=0.0)
    for row in _order(comparison):
        waits, shares = share_started([wait for run in row.runs for wait in run.waits], longest)
        style = _line_style(comparison, row, theme)
        name = f"{_label(comparison, row)}: {figure(row.wait_s.p95)} s"
        axes.plot(waits, shares, drawstyle="steps-post", label=name, **style)
    if longest <= 0.0:
        axes.annotate("No task had to wait, under any policy.", (0.5, 0.5), xycoords="axes fraction", ha="center")
    axes.set_xlabel("seconds from submission to start")
    axes.set_ylabel("tasks started")
    axes.set_ylim(0.0, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    _waiting_scale(axes, longest)
    _legend(axes)
    return made


def _waiting_scale(axes: Axes, longest: float) -> None:
    """Straight up to a minute or so; beyond, seconds and hours must both be legible."""
    if longest > 100.0:
        axes.set_xscale("symlog", linthresh=1.0, linscale=0.5)
    axes.set_xlim(0.0, longest * 1.02 if longest > 0.0 else 1.0)
    _thousands(axes.xaxis)
