"""`wattloom functions`: what each function costs here."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wattloom.cli.options import as_json, journal_option, say_unreadable
from wattloom.cli.printing import say

if TYPE_CHECKING:
    from rich.table import Table

    from wattloom.attribution.idle_policy import IdlePolicy
    from wattloom.history.queries import FunctionInfo


@click.command(short_help="Say what each function costs here.")
@journal_option
@click.option(
    "--idle",
    type=click.Choice(["node", "pro-rata", "reserved"]),
    default="node",
    show_default=True,
    help="Who bears the machine's idle joules: the machine, or the functions by their joules or the cores they asked "
    "for.",
)
@as_json
def functions(journal: Path | None, idle: "IdlePolicy", as_json: bool) -> None:
    """Say what each function has cost on this machine; the one that used most joules first.

    Time and energy are those of one call: the mean, and after ± the standard deviation from call to call. The trend is
    how much more, or less, the last tenth of the calls took than all; it needs 20 calls.

    Joules are those above idle. With --idle, what the calls bear of the machine's idle joules is shown beside them, of
    the time in which calls ran.

    \b
    Examples:
      wattloom functions
      wattloom functions --idle pro-rata
      wattloom functions --journal work.journal --json
    """
    import msgspec

    from wattloom.cli.figures import legend
    from wattloom.cli.printing import console, fullest, print_json
    from wattloom.history.queries import functions as costs

    found = costs(journal, idle=idle)
    if journal is None:
        say_unreadable()
    if as_json:
        print_json([msgspec.to_builtins(each) for each in found])
        return
    if not found:
        say("No function was called here yet.")
        return
    out = console()
    shared = idle != "node"
    made = [_table(found, *columns, shared) for columns in ((True, True), (False, True), (False, False))]
    at = fullest(made, out)
    out.print(made[at])
    if at > 0:
        out.print(legend(each.provenance for each in found), style="dim")


def _table(found: "list[FunctionInfo]", full: bool, trends: bool, shared: bool) -> "Table":
    from wattloom.cli.figures import joules, marked, percent, seconds_with
    from wattloom.cli.printing import cell, table

    names = ("calls", "failed", "time", "energy", *(("total", "trend s", "trend J") if trends else ()))
    names += ("idle",) if shared else ()
    made = table("function", *names, *(("joules are", "machine") if full else ()), numbers=names)
    for each in found:
        cells = [each.function, f"{each.calls:,}", f"{each.calls - each.finished:,}"]
        energy = joules(each.mean_j, each.spread_j)
        cells += [seconds_with(each.mean_s, each.spread_s), energy if full else marked(energy, each.provenance)]
        if trends:
            cells += [joules(None if each.mean_j is None else each.joules, None)]
            cells += [percent(each.trend_s), percent(each.trend_j)]
        cells += [joules(each.idle_j, None)] if shared else []
        cells += [each.provenance, ", ".join(each.machines)] if full else []
        made.add_row(*map(cell, cells))
    return made
