"""`wattloom attribute`: what each function drew of a whole machine's recorded power."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from wattloom.cli.options import SECONDS, WATTS, Finite, NamedPath, as_json
from wattloom.cli.printing import say

if TYPE_CHECKING:
    from wattloom.disaggregation.result import PowerAttribution

FILE = NamedPath(path_type=Path, dir_okay=False)
MOST_W: Final = 20_000.0
"""Machines that draw more than this are rare, readings in milliwatts are not."""


@click.command(short_help="Say what each function drew of a whole machine's recorded power.")
@click.option("--power", type=FILE, required=True, metavar="P.csv", help="Readings of the machine: time_s,watts.")
@click.option("--runs", type=FILE, required=True, metavar="R.csv", help="Who ran when: start_s,end_s,function.")
@click.option(
    "--mode",
    type=click.Choice(["marginal", "full"]),
    default="marginal",
    show_default=True,
    help="marginal: what leaving a function out would have saved. full: all that was drawn is shared out.",
)
@click.option(
    "--idle",
    type=click.Choice(["node", "pro-rata"]),
    help="Idle energy is nobody's (node), or shared by running seconds (pro-rata). Left out: node for marginal, "
    "pro-rata for full.",
)
@click.option("--idle-w", type=WATTS, metavar="W", help="Idle watts, if you know them: used as given.")
@click.option(
    "--lag",
    "lag_s",
    type=Finite(),
    metavar="S",
    help="Seconds that power's timestamps are behind activity, if known: to half a reading interval, since a reading "
    "may be named by its begin, middle or end.",
)
@click.option(
    "--package",
    type=FILE,
    metavar="C.csv",
    help="The CPU package's own readings: time_s,watts or time_s,joules (a counter). Then the CPU's part is found in "
    "these, and the rest in what the machine drew beyond them.",
)
@click.option("--node", metavar="N", help="Only calls with this in the column `node`.")
@click.option(
    "--every",
    "every_s",
    type=SECONDS,
    metavar="SECONDS",
    help="Show figures over time, too, in windows of so many seconds: each from what the meter had said until then.",
)
@as_json
def attribute(
    power: Path,
    runs: Path,
    mode: str,
    idle: str | None,
    idle_w: float | None,
    lag_s: float | None,
    package: Path | None,
    node: str | None,
    every_s: float | None,
    as_json: bool,
) -> None:
    """Say what each function drew, from the power of a whole machine (wall, BMC, PDU) and who ran when.

    Clocks may differ: the lag is found. Idle is found. Power may bend with load. Joules are modelled, and the figure
    after ± is one standard deviation of the mean. Functions + idle + unattributed = meter.

    \b
    Examples:
      wattloom attribute --power P.csv --runs R.csv
      wattloom attribute --power P.csv --runs R.csv --mode full --json
      wattloom attribute --power wall.csv --runs R.csv --package rapl.csv --idle-w 61
      wattloom attribute --power P.csv --runs R.csv --every 60
    """
    from wattloom import api
    from wattloom.cli.printing import print_json

    found = api.attribute(
        power, runs, mode, idle=idle, idle_w=idle_w, lag_s=lag_s, package=package, node=node, every_s=every_s
    )
    if as_json:
        print_json(found.to_json())
        return
    _print(found)
    if found.over_time is not None:
        from wattloom.cli.attribute_over_time import print_windows

        print_windows(found.over_time, found.gap_s)


def _print(found: "PowerAttribution") -> None:
    from wattloom.cli.figures import joules
    from wattloom.cli.printing import console, literal, table

    numbers = ("calls", "per call", "per second", "in all", "share")
    made = table("function", *numbers, numbers=numbers)
    for each in sorted(found.functions, key=lambda one: -one.joules):
        cells = [f"{each.calls:,}", joules(each.joules_per_call, each.spread), f"{each.watts:.1f} W"]
        made.add_row(literal(each.function), *cells, joules(each.joules, None), _share(each.joules, found))
    made.add_row("idle", "", "", f"{found.idle_w:.1f} W", joules(found.idle_j, None), _share(found.idle_j, found))
    left = joules(found.unattributed_j, None)
    made.add_row("unattributed", "", "", "", left, _share(found.unattributed_j, found))
    made.add_row("meter", "", "", "", joules(found.meter_j, None), "")
    out = console()
    out.print(made)
    for sentence in _sentences(found):
        say(sentence)
    for warning in found.warnings:
        say(f"warning: {warning}", err=True)


def _share(joules: float, found: "PowerAttribution") -> str:
    return f"{100 * joules / found.meter_j:.1f}%" if found.meter_j else ""


def _sentences(found: "PowerAttribution") -> list[str]:
    """What a reader must know to judge the figures."""
    said = [
        f"{found.mode.capitalize()} joules, modelled. Power is {found.lag_s:.1f} s behind activity and a mean over "
        f"{max(found.window_s, 0.1):.1f} s; curve: {found.curve}; {100 * found.explained:.0f}% of its ups and downs "
        f"explained."
    ]
    if found.mode == "marginal":
        said.append("Marginal joules need not add up: what functions share is in unattributed.")
    if found.gap_s:
        said.append(f"{found.gap_s:.0f} s without readings are left out.")
    if found.missed:
        are = "reading is" if found.missed == 1 else "readings are"
        said.append(f"{found.missed:,} {are} missing in between: power is taken to go on evenly there.")
    if found.cores is not None:
        said.append(f"Calls took longer when there were more than about {found.cores:.0f}: they shared the cores.")
    return said + _doubts(found)


def _doubts(found: "PowerAttribution") -> list[str]:
    """What looks wrong, or could not be known."""
    said = []
    if found.outside:
        said.append(f"{found.outside:,} calls lie outside of the metered time and are left out: are both in seconds?")
    if found.meter_j > MOST_W * found.seconds:
        said.append("So much power is unusual for one machine: if the readings are milliwatts, divide them by 1000.")
    instant = [each.function for each in found.functions if not each.seconds_per_call]
    if instant:
        said.append(f"Calls that end when they begin show nothing: {', '.join(instant)}.")
    unsure = [each.function for each in found.functions if each.spread > 0.3 * abs(each.joules_per_call)]
    if unsure:
        said.append(f"Not well told apart: {', '.join(unsure)}. More readings, or runs without each other, would help.")
    return said
