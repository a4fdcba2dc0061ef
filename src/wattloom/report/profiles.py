"""Pictures of profiles: what a machine draws and does at each level, and two machines side by side.

Owns what is drawn; the figures come from the room `profiling`. Disturbed readings are hollow and no line goes through
them. Uses no global state of matplotlib's.
"""

from collections.abc import Callable, Sequence
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import Final

from wattloom.errors import InputError, MissingExtra
from wattloom.machines.profile_file import CpuProfile
from wattloom.profiling.comparing import Comparison, Point, points
from wattloom.report.palette import BEST, OTHERS, REFERENCE, THEMES, Colour, Theme

try:
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, MaxNLocator, NullFormatter
except ImportError as missing:
    raise MissingExtra("the picture", "report") from missing

COLOURS: Final = (BEST, REFERENCE, *OTHERS)
MARKERS: Final = "os^Dvp*X"
DPI: Final = 150
FORMATS: Final = ("png", "svg", "pdf")
OF: Final = {"wall": "the whole machine", "package": "the processor package"}
LAYOUT: Final = "constrained"
LEVELS: Final = "CPUs under load"
DISTURBED: Final = "disturbed, not used"
ROOM: Final = 0.04
"""Around the outermost markers, as a share of the axis: they must not be cut."""
DECADE: Final = 10.0
"""Figures that differ by less than this factor stand on an axis that is not logarithmic."""


def profile_picture(profile: CpuProfile, path: Path) -> Path:
    """Draw one profile into a file; its ending says which form."""
    return save(path, lambda theme: _profile(profile, theme))


def comparison_picture(comparison: Comparison, path: Path) -> Path:
    """Draw two machines side by side into a file."""
    return save(path, lambda theme: _comparison(comparison, theme))


def save(path: Path, paint: Callable[[Theme], Figure]) -> Path:
    """Paint into a file, whose ending says in which form. InputError if there is none like it."""
    form = path.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise InputError("plot", f"{path.name} must end in {', '.join('.' + each for each in FORMATS)}")
    theme, file = THEMES[0], BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(theme.settings)
        matplotlib.rcParams["svg.hashsalt"] = "wattloom"  # the same figures give the same bytes
        paint(theme).savefig(file, format=form, dpi=DPI, metadata={"Date": None} if form == "svg" else None)
    try:
        path.write_bytes(file.getvalue())
    except OSError as problem:
        raise InputError("plot", f"{path} cannot be written: {problem.strerror}") from problem
    return path


# -- one machine -------------------------------------------------------------------------------------------------------


def _profile(profile: CpuProfile, theme: Theme) -> Figure:
    made = Figure(figsize=(10.0, 4.4), layout=LAYOUT)
    left, right = made.subplots(1, 2)
    lines = [(stressor, setting) for stressor in profile.stressors for setting in profile.settings]
    unmeasured: list[str] = []
    for number, (stressor, setting) in enumerate(lines):
        label = f"{stressor}, {setting}" if setting else stressor
        look = _look(number, theme)
        found = points(profile, stressor, setting)
        _watts(left, found, label, look)
        if not _work(right, found, label, look):
            unmeasured.append(label)
    _smt_region(left, profile, theme)
    _smt_region(right, profile, theme)
    _axes(left, "watts", f"Power of {OF[profile.meter.quantity]} ({profile.meter.provenance})")
    _axes(right, "work per second, one CPU = 1", "Throughput")
    if unmeasured:
        words = f"not drawn: {', '.join(unmeasured)}\n(one CPU disturbed or not known)"
        right.annotate(words, (0.5, 0.97), xycoords="axes fraction", ha="center", va="top")
    made.suptitle(_title(profile), x=0.01, ha="left", fontsize=11)
    disturbed = any(map(profile.disturbed, profile.idle)) or any(map(profile.disturbed, profile.levels))
    _legend(left, disturbed, theme)
    return made


def _title(profile: CpuProfile) -> str:
    here = profile.machine
    kept = f"{here.cores} cores" + (f", {here.threads} threads" if here.threads > here.cores else "")
    return f"{profile.name}: {kept}, meter {profile.meter.name}, {profile.began[:10]}"


def _smt_region(axes: Axes, profile: CpuProfile, theme: Theme) -> None:
    cores, threads = profile.machine.cores, profile.machine.threads
    if threads > cores:
        axes.axvspan(cores, threads, color=theme.grid, alpha=0.7, zorder=0)
        axes.annotate("siblings", ((cores + threads) / 2, 0.02), xycoords=("data", "axes fraction"), ha="center")


# -- two machines ------------------------------------------------------------------------------------------------------


def _comparison(comparison: Comparison, theme: Theme) -> Figure:
    rows = len(comparison.stressors)
    made = Figure(figsize=(11.0, 1.0 + 3.3 * rows), layout=LAYOUT)
    for row, each in zip(made.subplots(rows, 3, squeeze=False), comparison.stressors, strict=True):
        for name, found, number in ((comparison.a, each.a, 0), (comparison.b, each.b, 1)):
            look = _look(number, theme)
            _watts(row[0], found, name, look)
            _line(row[1], [(p.level, p.watts_added, p.disturbed) for p in found], name, look)
            _line(row[2], [(p.ops_per_s, p.joules_per_op, p.disturbed) for p in found], name, look)
        _axes(row[0], "watts", f"{each.stressor}: power")
        _axes(row[1], "watts", "Watts per core added")
        _axes(row[2], "joules", "Joules per unit of work", "work per second")
        if not each.same_work:
            row[2].clear()
            row[2].set_axis_off()
            row[2].annotate("work was counted by different tools", (0.5, 0.5), xycoords="axes fraction", ha="center")
        _legend(row[0], any(p.disturbed for p in (*each.a, *each.b)), theme)
    made.suptitle(_title_of_two(comparison), x=0.01, ha="left", fontsize=11)
    return made


def _title_of_two(comparison: Comparison) -> str:
    of_a, of_b = comparison.provenance
    sure = of_a if of_a == of_b else f"{of_a} and {of_b}"
    converted = f" (converted: {comparison.converted})" if comparison.converted else ""
    return f"{comparison.a} and {comparison.b}\nWatts of {OF[comparison.quantity]}, {sure}{converted}"


# -- lines -------------------------------------------------------------------------------------------------------------

Look = tuple[str, str]
"""Colour and marker: no meaning is carried by colour alone."""


def _look(number: int, theme: Theme) -> Look:
    colour: Colour = COLOURS[number % len(COLOURS)]
    return theme.pick(colour), MARKERS[number % len(MARKERS)]


def _watts(axes: Axes, found: Sequence[Point], label: str, look: Look) -> None:
    _line(axes, [(p.level, p.watts, p.disturbed) for p in found], label, look)
    known = [(p.level, p.watts, p.spread_w or 0.0) for p in found if p.watts is not None]
    levels, watts, spreads = ([row[column] for row in known] for column in range(3))
    axes.errorbar(levels, watts, yerr=spreads, fmt="none", ecolor=look[0], capsize=3)


def _work(axes: Axes, found: Sequence[Point], label: str, look: Look) -> bool:
    """Against one CPU's, so that stressors with different units share an axis. False: that is not known."""
    one = next((p.ops_per_s for p in found if p.level == 1 and not p.disturbed), None)
    if not one:
        return False
    shares = [(p.level, None if p.ops_per_s is None else p.ops_per_s / one, p.disturbed) for p in found]
    _line(axes, shares, label, look)
    return True


def _line(axes: Axes, marks: Sequence[tuple[float | None, float | None, bool]], label: str, look: Look) -> None:
    """A line through what is undisturbed, and hollow markers for the rest."""
    colour, marker = look
    known = [(x, y, disturbed) for x, y, disturbed in marks if x is not None and y is not None]
    sound, hollow = ([(x, y) for x, y, disturbed in known if disturbed is which] for which in (False, True))
    axes.plot([x for x, _ in sound], [y for _, y in sound], label=label, color=colour, marker=marker, markersize=5)
    if hollow:
        xs, ys = [x for x, _ in hollow], [y for _, y in hollow]
        axes.plot(xs, ys, color=colour, marker=marker, markersize=6, markerfacecolor="none", linestyle="none")


def _axes(axes: Axes, unit: str, title: str, below: str = LEVELS) -> None:
    axes.set_xlabel(below)
    axes.set_ylabel(unit)
    axes.set_title(title, loc="left", fontsize=10)
    if not isfinite(axes.dataLim.y1):
        _nothing(axes)
        return
    axes.set_xlim(-ROOM * axes.dataLim.x1, (1.0 + ROOM) * axes.dataLim.x1)
    if below == LEVELS:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=9))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axes.yaxis.set_major_formatter(EngFormatter(unit="J"))
        if _spans_decades(axes):
            _logarithmic(axes)
            return
    if axes.dataLim.y0 >= 0.0 < axes.dataLim.y1:
        axes.set_ylim(0.0, (1.0 + ROOM) * axes.dataLim.y1)


def _nothing(axes: Axes) -> None:
    """No figures: an empty axis would look like zero."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.annotate("not known:\nreadings disturbed or failed", (0.5, 0.5), xycoords="axes fraction", ha="center")


def _spans_decades(axes: Axes) -> bool:
    """Joules per unit of work may differ by powers of ten from the first CPU to all."""
    low, high = float(axes.dataLim.y0), float(axes.dataLim.y1)
    return low > 0.0 and isfinite(high) and high >= DECADE * low


def _logarithmic(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(EngFormatter(unit="J"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _legend(axes: Axes, disturbed: bool, theme: Theme) -> None:
    handles, _ = axes.get_legend_handles_labels()
    if disturbed:
        hollow = Line2D([], [], color=theme.quiet, marker="o", markersize=6, markerfacecolor="none", linestyle="none")
        hollow.set_label(DISTURBED)
        handles.append(hollow)
    axes.legend(handles=handles, frameon=False, loc="best")
