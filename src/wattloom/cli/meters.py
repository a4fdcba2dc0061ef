"""`wattloom meters`: what `wattloom meter list` was called before. Works on, and is not listed."""

import click

from wattloom.cli.meter_list import list_

meters = click.Command("meters", callback=list_.callback, params=list_.params, help=list_.help, hidden=True)
