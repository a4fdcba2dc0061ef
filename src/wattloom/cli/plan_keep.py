"""`wattloom plan keep`: a plan put where logs and policies find it by its digest.

Owns the command.
"""

from pathlib import Path

import click

from wattloom.cli.options import LOG_FILE, as_json


@click.command(short_help="Keep a plan where it is found by its digest.")
@click.argument("file", type=LOG_FILE)
@as_json
def keep(file: Path, as_json: bool) -> None:
    """Keep a plan where it is found by its digest.

    A log names the plans that its decisions were made by, and `--policy planned:plan=DIGEST` a plan, by digest. Who has
    a log of another machine keeps its plan first; then the log replays to the same decisions.

    \b
    Examples:
      wattloom plan keep plan.json
    """
    from wattloom.cli.printing import print_json, say
    from wattloom.planning.plan_file import read_plan
    from wattloom.planning.plan_store import keep_plan, plans_folder

    digest = keep_plan(read_plan(file))
    if as_json:
        print_json({"digest": digest, "folder": str(plans_folder())})
    else:
        say(f"Kept as {digest}: --policy planned:plan={digest}")
