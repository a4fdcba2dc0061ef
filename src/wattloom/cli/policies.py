"""`wattloom policies`: what can be given to --policy."""

import click
import msgspec

from wattloom.cli.options import as_json
from wattloom.cli.printing import say


@click.command(short_help="List the policies and their options.")
@as_json
def policies(as_json: bool) -> None:
    """List the installed policies and their options.

    Options follow the name: marginal-energy:tdp=true,guarantee=0.8. A policy of your own needs no installation:
    --policy FILE.py:Class.

    \b
    Examples:
      wattloom policies
      wattloom policies --json
    """
    from wattloom import api
    from wattloom.cli.printing import print_json

    found = api.policies()
    if as_json:
        print_json([msgspec.to_builtins(policy) for policy in found])
        return
    from wattloom.cli.printing import console, literal, table

    shown = table("policy", "what it does", "options")
    for policy in found:
        options = "\n".join(f"{name}: {meaning}" for name, meaning in policy.options.items())
        shown.add_row(policy.name, literal(policy.summary), literal(options))
    console().print(shown)
    _say_unavailable()


def _say_unavailable() -> None:
    """Installed policies that cannot be loaded are no reason to hide the others."""
    from wattloom.policies.loading import unavailable

    for name, problem in unavailable().items():
        say(f"warning: {name}: {problem}", err=True)
