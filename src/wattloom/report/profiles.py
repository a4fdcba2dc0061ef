"""Pictures of profiles: what a machine draws and does at each level, and two machines side by side.

Owns what is drawn; the figures come from the room `profiling`. Uses no global state of matplotlib's.
"""

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Final

from wattloom.cluster.profile_file import CpuProfile
from wattloom.errors import InputError, MissingExtra
from wattloom.profiling.comparing import Comparison, Point, points
from wattloom.report.palette import BEST, OTHERS, REFERENCE, THEMES, Colour, Theme

try:
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
except ImportError as missing:
    raise MissingExtra("the picture", "report") from missing

COLOURS: Final = (BEST, REFERENCE, *OTHERS)
MARKERS: Final = "os^Dvp*X"
DPI: Final = 150
FORMATS: Final = ("png", "svg", "pdf")
OF: Final = {"wall": "the whole machine", "package": "the processor package"}
LAYOUT: Final = "constrained"
LEVELS: Final = "CPUs under load"


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
    for number, (stressor, setting) in enumerate(lines):
        label = f"{stressor}, {setting}" if setting else stressor
        look = _look(number, theme)
        found = points(profile, stressor, setting)
        _watts(left, found, label, look)
        _work(right, found, label, look)
    _smt_region(left, profile, theme)
    _smt_region(right, profile, theme)
    _axes(left, "watts", f"Power of {OF[profile.meter.quantity]} ({profile.meter.provenance})")
    _axes(right, "work per second, one CPU = 1", "Throughput")
    made.suptitle(_title(profile), x=0.01, ha="left", fontsize=11)
    _legend(left)
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
            _line(row[1], [(p.level, p.watts_added) for p in found], name, look)
            _line(row[2], [(p.ops_per_s, p.joules_per_op) for p in found], name, look)
        _axes(row[0], "watts", f"{each.stressor}: power")
        _axes(row[1], "watts", "Watts per core added")
        _axes(row[2], "joules", "Joules per unit of work", "work per second")
        if not each.same_work:
            row[2].clear()
            row[2].set_axis_off()
            row[2].annotate("work was counted by different tools", (0.5, 0.5), xycoords="axes fraction", ha="center")
        _legend(row[0])
    what = f"Watts of {OF[comparison.quantity]}" + (
        f" (converted: {comparison.converted})" if comparison.converted else ""
    )
    made.suptitle(f"{comparison.a} and {comparison.b}. {what}", x=0.01, ha="left", fontsize=11)
    return made


# -- lines -------------------------------------------------------------------------------------------------------------

Look = tuple[str, str]
"""Colour and marker: no meaning is carried by colour alone."""


def _look(number: int, theme: Theme) -> Look:
    colour: Colour = COLOURS[number % len(COLOURS)]
    return theme.pick(colour), MARKERS[number % len(MARKERS)]


def _watts(axes: Axes, found: Sequence[Point], label: str, look: Look) -> None:
    known = [(p.level, p.watts, p.spread_w or 0.0) for p in found if p.watts is not None]
    levels, watts, spreads = ([row[column] for row in known] for column in range(3))
    axes.errorbar(levels, watts, yerr=spreads, label=label, color=look[0], marker=look[1], markersize=5, capsize=3)


def _work(axes: Axes, found: Sequence[Point], label: str, look: Look) -> None:
    """Against one CPU's, so that stressors with different units share an axis."""
    one = next((p.ops_per_s for p in found if p.level == 1), None)
    if one:
        _line(axes, [(p.level, None if p.ops_per_s is None else p.ops_per_s / one) for p in found], label, look)


def _line(axes: Axes, pairs: Sequence[tuple[float | None, float | None]], label: str, look: Look) -> None:
    known = [(x, y) for x, y in pairs if x is not None and y is not None]
    axes.plot([x for x, _ in known], [y for _, y in known], label=label, color=look[0], marker=look[1], markersize=5)


def _axes(axes: Axes, unit: str, title: str, below: str = LEVELS) -> None:
    axes.set_xlabel(below)
    axes.set_ylabel(unit)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlim(left=0.0)
    if below != LEVELS:  # joules per unit of work differ by powers of ten from the first CPU to all
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        return
    if axes.dataLim.y0 >= 0.0:
        axes.set_ylim(bottom=0.0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=9))


def _legend(axes: Axes) -> None:
    axes.legend(frameon=False, loc="best")
