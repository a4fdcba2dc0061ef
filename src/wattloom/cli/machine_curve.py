"""`wattloom machines curve`: the power curve of a machine nobody has measured, or learned from recorded samples; and
`wattloom machines match`: what this machine's own was taken from, and how sure that is."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from wattloom.cli.options import LOG_FILE, WATTS, Finite, as_json
from wattloom.report.figures import figure

if TYPE_CHECKING:
    from wattloom.machines.curve_estimate import Curve
    from wattloom.machines.power_from_cpu import FittedCurve

NEAREST: Final = {
    "same processor": "the shape is that of machines with the same processor",
    "same family": "the shape is that of machines with processors of the same family",
    "newer than all": "no machine with such a processor was learned from: the shape follows the latest of its line",
    "no processor": "the processor is not known: the shape is that of servers in general, so the spread is wide",
}
"""What the model had to go by, in words."""


def _points(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[float, float], ...]:
    """`50=310`: watts at a load in percent."""
    return tuple(_point(value) for value in values)


def _point(value: str) -> tuple[float, float]:
    load, sign, watts = value.partition("=")
    try:
        if not sign:
            raise ValueError
        return float(load.strip().removesuffix("%")), float(watts.strip().removesuffix("W"))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not LOAD=WATTS, such as 50=310 (the load in percent)") from None


@click.command(short_help="Tell watts at 0, 10 ... 100% load from idle and full draw.")
@click.option("--idle", type=WATTS, metavar="W", help="Watts at the plug, idle.")
@click.option("--max", "full", type=WATTS, metavar="W", help="Watts at the plug, at full load.")
@click.option("--cpu", metavar="NAME", help="The processor, as /proc/cpuinfo or a data sheet writes it.")
@click.option("--year", type=Finite(), metavar="Y", help="When the machine came; left out: when its processor did.")
@click.option("--maker", metavar="NAME", help="Who made the machine, such as Dell, HPE, Lenovo or Fujitsu.")
@click.option(
    "--point", "points", callback=_points, multiple=True, metavar="LOAD=W", help="Watts known at LOAD percent."
)
@click.option(
    "--samples",
    type=LOG_FILE,
    metavar="FILE",
    help="Learn from a recorded run instead: a file of time_s,cpu_cores,watts.",
)
@as_json
def curve(
    idle: float | None,
    full: float | None,
    cpu: str | None,
    year: float | None,
    maker: str | None,
    points: tuple[tuple[float, float], ...],
    samples: Path | None,
    as_json: bool,
) -> None:
    """Tell the power curve of a machine from little: watts at the plug at 0, 10 ... 100% load, with spread.

    LOAD is percent of the machine's throughput, 0 to 100: half load is 50, not 0.5. The curve goes through idle, max
    and every point. Without --idle or --max they are taken from published results with the same processor, per package.

    \b
    Examples:
      wattloom machines curve --idle 95 --max 560 --cpu "AMD EPYC 9654" --year 2023
      wattloom machines curve --idle 95 --max 560 --point 10=190 --point 50=330 --json
      wattloom machines curve --cpu "Xeon Platinum 8380"
      wattloom machines curve --samples run.csv
    """
    from wattloom import api
    from wattloom.cli.printing import print_json

    if samples is not None:
        if points or any(value is not None for value in (idle, full, cpu, year, maker)):
            raise click.UsageError("--samples learns everything from the file: leave the other options out")
        fitted = api.machine_curve_from_samples(samples)
        print_json(msgspec.to_builtins(fitted)) if as_json else _print_fitted(fitted)
        return
    found = api.machine_curve(idle, full, cpu=cpu, year=year, maker=maker, points=points)
    print_json(msgspec.to_builtins(found)) if as_json else _print(found)


def _print(found: "Curve") -> None:
    from wattloom.cli.printing import cleaned, console, table

    shown = table(
        "load %", "watts", "spread", "90% from", "to", numbers=("load %", "watts", "spread", "90% from", "to")
    )
    for row in zip(found.loads, found.watts, found.spread, found.low, found.high, strict=True):
        shown.add_row(str(row[0]), *(figure(value) for value in row[1:]))
    out = console()
    out.print(shown)
    out.print(f"{found.provenance}, watts at the plug; {NEAREST[found.nearness]}", style="dim", markup=False)
    for line in found.assumed:
        out.print(cleaned(f"assumed: {line}"), style="dim", markup=False)
    for line in found.unused:
        out.print(cleaned(line), markup=False)


def _print_fitted(found: "FittedCurve") -> None:
    from wattloom.cli.printing import console, table

    shown = table("cores in use", "watts", "spread", numbers=("cores in use", "watts", "spread"))
    for row in zip(found.cores, found.watts, found.spread, strict=True):
        shown.add_row(*(figure(value) for value in row))
    out = console()
    out.print(shown)
    out.print(
        f"{found.samples} samples; off by {figure(found.mean_error_w)} W on average in stretches not learned from",
        style="dim",
        markup=False,
    )


@click.command(short_help="Say which curve this machine got, and why.")
@as_json
def match(as_json: bool) -> None:
    """Say what this machine's power curve comes from as long as nobody has measured it, and its spread.

    \b
    Examples:
      wattloom machines match
      wattloom machines match --json
    """
    from wattloom import api
    from wattloom.cli.printing import cleaned, console, print_json

    found = api.machine_match()
    if as_json:
        print_json(msgspec.to_builtins(found))
        return
    out = console()
    size = f"{found.threads} vCPUs" if found.virtual else f"{found.cores} cores, {found.threads} threads"
    out.print(cleaned(f"{found.machine}: {size}"), markup=False, highlight=False)
    watts = f"{figure(found.idle_w)} W idle, {figure(found.full_w)} W at full load"
    out.print(f"{watts} ({found.quantity}, {found.provenance})", markup=False, highlight=False)
    out.print(cleaned(f"by {found.by}: {found.source}"), markup=False, highlight=False)
    out.print(
        f"spread above idle: {100 * found.spread:.0f}%; of one function's joules: {100 * found.error:.0f}%",
        markup=False,
        highlight=False,
    )
