"""`wattloom meter list`: every installed meter, whether it works here, and if not what is missing."""

from textwrap import fill
from typing import TYPE_CHECKING, Final

import click

from wattloom.cli.options import as_json
from wattloom.cli.printing import say

if TYPE_CHECKING:
    from wattloom.metering.choosing import MeterInfo

OF: Final = {"wall": "machine", "package": "package", "device": "devices", "share": "guest"}


@click.command(name="list", short_help="List the meters, and whether they work here.")
@as_json
def list_(as_json: bool) -> None:
    """List the installed meters, whether each works here, and if not what is missing and how to allow it.

    The best that works is used unless another is named: measured before modelled before estimated; then those with
    fresh figures before slow ones, and the whole machine (at the plug) before the package. Meters of devices are used
    beside it. In the list, `machine` is what the whole machine draws, `package` the processors with their memory.

    \b
    Examples:
      wattloom meter list
      wattloom meter list --json
      wattloom run --meter estimate -- make
    """
    import msgspec

    from wattloom.cli.printing import print_json
    from wattloom.machines.this_machine import this_machine
    from wattloom.metering.choosing import meters

    here = this_machine()
    found = meters(here)
    if as_json:
        print_json([msgspec.to_builtins(each) for each in found])
        return
    _show(found)
    say(f"This machine: {here.name}, {here.cores} cores, {here.threads} threads.")


def _show(found: "list[MeterInfo]") -> None:
    from wattloom.cli.printing import cell, console, table

    problems = [each for each in found if each.problem]
    made = table("meter", "what it is", "of the", "joules are", "works here")
    for each in found:
        works = f"no ({problems.index(each) + 1})" if each.problem else _works(each)
        cells = (each.name, each.summary, OF.get(each.quantity or "", ""), each.provenance or "", works)
        made.add_row(*map(cell, cells), style="green" if each.used else None)
    out = console()
    out.print(made)
    for number, each in enumerate(problems, 1):
        say(_hint(number, each, min(out.width, 120)))


def _works(each: "MeterInfo") -> str:
    if each.used:
        return "yes, and is used"
    slow = f", every {each.period_s:g} s" if each.period_s else ""
    if each.quantity == "device":
        return f"yes, beside it{slow}"
    return f"{'if named' if each.only_named else 'yes'}{slow}"


def _hint(number: int, each: "MeterInfo", width: int) -> str:
    """Sentences are broken where the terminal ends; what is to be copied is not."""
    front = f"({number}) "
    indent = " " * len(front)
    what = fill(f"{front}{each.name}: {each.problem}", width, subsequent_indent=indent, break_long_words=False)
    marks = ["" if line.startswith(" ") else "- " for line in each.allow.splitlines()]
    how = [f"{indent}{mark}{line}" for mark, line in zip(marks, each.allow.splitlines(), strict=True)]
    return "\n".join([what, *how])


meters = click.Command("meters", callback=list_.callback, params=list_.params, help=list_.help, hidden=True)
"""What `wattloom meter list` was called before. Works on, and is not listed."""
