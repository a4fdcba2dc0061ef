"""`wattloom profile gpu`: what a GPU draws at each share of its utilisation; and how such a profile is shown.

Owns the command and its words. `profile show` hands files of this kind over to here.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, cast

import click

from wattloom.cli.options import as_json
from wattloom.cli.printing import say
from wattloom.cli.profile_options import how_long, which_file

if TYPE_CHECKING:
    from rich.table import Table

    from wattloom.profiling.gpu_file import GpuPoint, GpuProfile

BAR: Final = 40
FIGURES: Final = ("share", "watts", "of full", "utilisation", "work/s", "J per work", "°C")
NEEDLESS: Final = ("°C", "of full", "utilisation")
"""Columns that a narrow terminal goes without, the first of them first; --json has them all."""
OF: Final = {
    "time": "the time in which all multiprocessors work",
    "units": "the multiprocessors, which work all the time",
    "command": "whatever the load's command makes of it",
}


@click.command(short_help="Load a GPU share by share, and read its power.")
@click.option("--device", default="", metavar="D", help="Its number or uuid. Left out: the first.")
@click.option(
    "--shares",
    default="10-100/10",
    show_default=True,
    metavar="S",
    help="Shares in percent, as 10,50,100 or 10-100/10.",
)
@click.option(
    "--load",
    metavar="COMMAND",
    help="A command that loads the GPU until it is ended; {share} is the percentage. It sees this GPU only, as "
    "number 0; {uuid} is its name, {device} its number among all. "
    "Numbers that it prints, a line each, are the work it has done. Left out: a kernel of our own (NVIDIA).",
)
@click.option(
    "--by",
    type=click.Choice(["time", "units"]),
    default="time",
    show_default=True,
    help="What our own kernel takes a share of: the time, or the multiprocessors.",
)
@how_long
@click.option("--meter", default="", metavar="M", help="nvml or amdsmi. Left out: the first that works.")
@which_file
@as_json
def gpu(
    device: str,
    shares: str,
    load: str | None,
    by: str,
    seconds: int,
    settle: float,
    meter: str,
    output: Path | None,
    resume: bool,
    as_json: bool,
) -> None:
    """Load a GPU to 10, 20, ... 100% and read its power at each share.

    The file is written after every share; after an interruption the same command goes on where it stopped. Leave the
    GPU alone meanwhile: what other processes do on it is noted beside each share.

    \b
    Examples:
      wattloom profile gpu
      wattloom profile gpu --by units --shares 25,50,75,100
      wattloom profile gpu --load 'python burn.py --percent {share}' --device 1
    """
    from time import monotonic

    from wattloom.cli.profile_bar import progress_of_steps
    from wattloom.profiling.bench import Terms
    from wattloom.profiling.gpu import GpuProfileRequest, device_meter, gpu_profile_path, profile_gpu, the_device
    from wattloom.profiling.gpu_command import BUILT_IN
    from wattloom.profiling.storing import date

    chosen = device_meter(meter)
    which = the_device(chosen, device, monotonic())
    terms = Terms(seconds=float(seconds), settle_s=settle)
    kind = cast(Literal["time", "units"], by)
    request = GpuProfileRequest(shares, BUILT_IN if load is None else load, kind, output, not resume, terms)
    path = gpu_profile_path(which) if output is None else output
    with progress_of_steps(path) as tell:
        made = profile_gpu(request, chosen, which, date, tell)
    show_gpu(made, path, as_json)


def shown_if_gpu(path: Path, plot: Path | None, as_json: bool) -> bool:
    """Show a file if it is the profile of a GPU. False: it is not one, or cannot be read."""
    from wattloom.machines.own_profile import profile_bytes
    from wattloom.profiling.gpu import read_gpu_profile
    from wattloom.profiling.gpu_file import is_gpu_profile

    if not path.is_file() or not is_gpu_profile(profile_bytes(path)):
        return False
    made = read_gpu_profile(path)
    if plot is not None:
        from wattloom.report.gpu_profiles import gpu_picture

        say(f"Drawn: {gpu_picture(made, plot)}", err=True)
    show_gpu(made, path, as_json)
    return True


def show_gpu(profile: "GpuProfile", path: Path, as_json: bool) -> None:
    """Table, chart and sentences, or JSON."""
    import msgspec

    from wattloom.cli.printing import console, fullest, literal, print_json

    if as_json:
        print_json({"path": str(path), "profile": msgspec.to_builtins(profile)})
        return
    out = console()
    remarks = list(dict.fromkeys(filter(None, map(_remark, profile.points))))
    numbered = {"": "", **{each: f"({number})" for number, each in enumerate(remarks, 1)}}
    made = [_table(profile), *(_table(profile, NEEDLESS[:count], numbered) for count in range(len(NEEDLESS) + 1))]
    at = fullest(made, out)
    out.print(made[at])
    below = [f"{numbered[each]} {each}" for each in remarks] if at else []
    for line in (*below, *_chart(profile), "", *_sentences(profile, path)):
        out.print(literal(line), soft_wrap=line.startswith(" "))


def _table(profile: "GpuProfile", without: tuple[str, ...] = (), numbered: dict[str, str] | None = None) -> "Table":
    """`without` some columns, and with numbers in place of remarks, where the terminal is narrow."""
    from wattloom.cli.printing import literal, table

    numbers = tuple(name for name in FIGURES if name not in without)
    limit = "" if profile.device.limit_w is None else f", limit {profile.device.limit_w:.0f} W"
    made = table(*numbers, "", title=literal(f"{profile.name}{limit}; {profile.began[:16]}"), numbers=numbers)
    full = max((point.power.watts for point in profile.points if point.power is not None), default=0.0)
    for point in profile.points:
        cells = dict(zip(FIGURES, _cells(point, full), strict=True))
        remark = _remark(point)
        made.add_row(*(cells[name] for name in numbers), literal(remark if numbered is None else numbered[remark]))
    return made


def _cells(point: "GpuPoint", full: float) -> list[str]:
    from wattloom.report.figures import figure

    power, work = point.power, point.ops_per_s
    watts = "unknown" if power is None else f"{figure(power.watts)} ± {figure(power.spread_w)}"
    return [
        f"{point.share}%" if point.share else "idle",
        watts,
        "" if power is None or full <= 0.0 else f"{100.0 * power.watts / full:.0f}%",
        "" if point.utilisation is None else f"{100.0 * point.utilisation:.0f}%",
        "" if work is None else figure(work),
        "" if power is None or not work else figure(power.watts / work),
        "" if point.temperature_c is None else f"{point.temperature_c:.0f}",
    ]


def _remark(point: "GpuPoint") -> str:
    from wattloom.profiling.gpu_bench import OTHERS

    words = [point.problem] if point.problem else []
    if point.others > OTHERS:
        words.append(f"disturbed: others used {100.0 * point.others:.0f}%")
    if not point.settled:
        words.append("had not settled")
    return "; ".join(words)


def _chart(profile: "GpuProfile") -> list[str]:
    from wattloom.report.figures import figure

    known = [(point.share, point.power.watts) for point in profile.points if point.power is not None]
    most = max((watts for _, watts in known), default=0.0)
    if most <= 0.0:
        return []
    bars = [f"  {share:>4}% {'█' * round(BAR * watts / most):<{BAR}} {figure(watts)}" for share, watts in known]
    return ["", "watts over share", *bars]


def _sentences(profile: "GpuProfile", path: Path) -> list[str]:
    from wattloom.report.figures import figure

    meter = profile.meter
    how = "its own energy counter" if meter.source == "counter" else "its power, integrated"
    found = [
        f"File: {path}",
        f"Watts are of the whole card, {meter.provenance}, by meter {meter.name} ({how}); ± is one standard deviation "
        "from reading to reading. The machine around it is not in them.",
        f"A share is of {OF[profile.method.by]}.",
    ]
    if profile.idle is not None:
        found.append(f"Idle: {figure(profile.idle.watts)} W.")
    half = _saturates(profile)
    if half is not None:
        found.append(f"From {half}% on it draws more than nine tenths of its active power at the full share.")
    if profile.device.note:
        found.append(f"Note: {profile.device.note}.")
    if not profile.finished:
        found.append("It is not complete: `wattloom profile gpu` goes on with it.")
    return found


def _saturates(profile: "GpuProfile") -> int | None:
    """The share from which on more work adds little power, as HSC found at 45%. None: not known."""
    full, idle = profile.at(100), profile.idle
    if full is None or full.power is None or idle is None:
        return None
    enough = idle.watts + 0.9 * (full.power.watts - idle.watts)
    for point in profile.points:
        if point.share and point.power is not None and point.power.watts >= enough:
            return point.share
    return None
