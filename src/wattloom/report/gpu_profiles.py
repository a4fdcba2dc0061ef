"""The picture of a GPU's profile: watts and work over the share of its utilisation.

Owns what is drawn; the figures come from the room `profiling`. Uses no global state of matplotlib's.
"""

from pathlib import Path

from wattloom.profiling.gpu_file import GpuProfile
from wattloom.report.palette import BEST, REFERENCE, Theme
from wattloom.report.profiles import LAYOUT, save  # first: it says what to install where there is no matplotlib

from matplotlib.axes import Axes  # isort: skip
from matplotlib.figure import Figure  # isort: skip


def gpu_picture(profile: GpuProfile, path: Path) -> Path:
    """Draw one profile into a file; its ending says which form."""
    return save(path, lambda theme: _painted(profile, theme))


def _painted(profile: GpuProfile, theme: Theme) -> Figure:
    made = Figure(figsize=(10.0, 4.4), layout=LAYOUT)
    left, right = made.subplots(1, 2)
    known = [(each.share, each.power.watts, each.power.spread_w) for each in profile.points if each.power is not None]
    shares, watts, spreads = ([row[column] for row in known] for column in range(3))
    left.errorbar(shares, watts, yerr=spreads, color=theme.pick(BEST), marker="o", markersize=5, capsize=3)
    work = [(each.share, each.ops_per_s) for each in profile.points if each.ops_per_s is not None]
    right.plot([share for share, _ in work], [done for _, done in work], color=theme.pick(REFERENCE), marker="s")
    _limit(left, profile.device.limit_w, theme)
    _axes(left, "watts", f"Power of the card ({profile.meter.provenance})")
    _axes(right, "work per second", "Throughput")
    if not work:
        right.clear()
        right.set_axis_off()
        right.annotate("the load does not say what it did", (0.5, 0.5), xycoords="axes fraction", ha="center")
    made.suptitle(f"{profile.name}, meter {profile.meter.name}, {profile.began[:10]}", x=0.01, ha="left", fontsize=11)
    return made


def _limit(axes: Axes, limit_w: float | None, theme: Theme) -> None:
    if limit_w is not None:
        axes.axhline(limit_w, color=theme.pick(REFERENCE), linestyle="--", linewidth=1.0)
        axes.annotate("power limit", (1.0, limit_w), va="bottom")


def _axes(axes: Axes, unit: str, title: str) -> None:
    axes.set_xlabel("share of utilisation, percent")
    axes.set_ylabel(unit)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlim(0.0, 105.0)
    axes.set_ylim(bottom=0.0)
