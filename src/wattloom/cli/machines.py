"""`wattloom machines`: the catalogue, with the source of every curve. `curve` and `match` are about other machines."""

from typing import TYPE_CHECKING, Final

import click
import msgspec

from wattloom.cli.machine_curve import curve, match
from wattloom.cli.options import as_json
from wattloom.report.figures import figure

if TYPE_CHECKING:
    from rich.table import Table

    from wattloom.api import MachineInfo

WIDE: Final = 140
"""Columns from which a source beside each curve is legible."""


@click.group(invoke_without_command=True, short_help="List the machines of the catalogue; tell curves of others.")
@as_json
@click.pass_context
def machines(ctx: click.Context, as_json: bool) -> None:
    """List the machines a scenario can name, what they draw and where the figures come from.

    \b
    Examples:
      wattloom machines
      wattloom machines --json
      wattloom machines curve --idle 95 --max 560 --cpu "AMD EPYC 9654"
      wattloom machines match
    """
    from wattloom import api
    from wattloom.cli.printing import console, print_json

    if ctx.invoked_subcommand is not None:
        return
    found = api.machines()
    if as_json:
        print_json([msgspec.to_builtins(machine) for machine in found])
        return
    out = console()
    wide = out.width >= WIDE
    out.print(_table(found, wide))
    if not wide:
        out.print("Memory, speed and the source of each curve: a wider terminal or --json shows them.", style="dim")


machines.add_command(curve)
machines.add_command(match)


def _table(found: "list[MachineInfo]", wide: bool) -> "Table":
    from wattloom.cli.printing import literal, table

    names = ("machine", "arch", "cores", "threads", "idle W", "full W", "sleep W")
    more = ("memory GiB", "speed", "curve", "source") if wide else ()
    shown = table(*names, *more, numbers=(*names[2:], *more[:2]))
    for one in found:
        extra = (f"{one.memory_gib:g}", figure(one.speed), one.provenance, literal(one.source)) if wide else ()
        shown.add_row(one.name, one.arch, str(one.cores), str(one.threads), *_watts(one), *extra)
    return shown


def _watts(one: "MachineInfo") -> list[str]:
    known = ["unknown" if value is None else figure(value) for value in (one.idle_w, one.full_w)]
    return [*known, "cannot" if one.sleep_w is None else figure(one.sleep_w)]
