"""`wattloom meter`: where joules can come from on this machine; one module for each of its commands.

Owns the list of its commands, which are loaded when they are used.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Final

import click

COMMANDS: Final = ("list", "read", "export")
"""`wattloom.cli.meter_<name>` holds the command `<name>`; `list` is a word of Python's, so that one ends in `_`."""


class Meters(click.Group):
    """Commands in modules of their own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in COMMANDS if find_spec(f"wattloom.cli.meter_{name}") is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = import_module(f"wattloom.cli.meter_{cmd_name}")
        command = getattr(module, f"{cmd_name}_" if cmd_name == "list" else cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=Meters, short_help="List the meters, whether they work here; read one.")
def meter() -> None:
    """Find out where joules can come from on this machine.

    \b
    Examples:
      wattloom meter list
      wattloom meter read powercap --count 5
    """
