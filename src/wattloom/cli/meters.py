"""`wattloom meters`: where joules can come from on this machine."""

from typing import TYPE_CHECKING

import click

from wattloom.cli.options import as_json

if TYPE_CHECKING:
    from wattloom.metering.choosing import MeterInfo


@click.command(short_help="List the meters, and whether they work here.")
@as_json
def meters(as_json: bool) -> None:
    """List the installed meters, whether each works here, and if not what is missing.

    The best that works is used unless another is named: measured before modelled before estimated.

    \b
    Examples:
      wattloom meters
      wattloom run --meter estimate -- make
    """
    import msgspec

    from wattloom.cli.printing import console, literal, print_json, table
    from wattloom.metering.choosing import choose_meter
    from wattloom.metering.choosing import meters as installed
    from wattloom.metering.this_machine import this_machine

    here = this_machine()
    found, used = installed(here), choose_meter(here).name
    if as_json:
        print_json([msgspec.to_builtins(each) | {"used": each.name == used} for each in found])
        return
    made = table("meter", "what it is", "joules are", "of the", "works here")
    for each in found:
        made.add_row(*map(literal, _cells(each, used)), style="green" if each.name == used else None)
    out = console()
    out.print(made)
    out.print(literal(f"This machine: {here.name}, {here.cores} cores, {here.threads} threads."), style="dim")


def _cells(each: "MeterInfo", used: str) -> list[str]:
    works = "yes, and is used" if each.name == used else "yes"
    of = {"wall": "whole machine", "package": "processor and memory"}.get(each.quantity or "", "")
    return [each.name, each.summary, each.provenance or "", of, f"no: {each.problem}" if each.problem else works]
