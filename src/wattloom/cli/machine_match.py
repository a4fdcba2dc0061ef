"""`wattloom machines match`: what this machine's power curve was taken from, and how sure that is."""

import click
import msgspec

from wattloom.cli.options import as_json
from wattloom.report.figures import figure


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
