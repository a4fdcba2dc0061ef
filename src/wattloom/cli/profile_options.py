"""Options that `profile cpu` and `profile gpu` share.

Owns their names and help, so that they are the same in both.
"""

from pathlib import Path
from typing import Final

import click

from wattloom.cli.options import SECONDS, F, NamedPath, Whole

FILE: Final = NamedPath(path_type=Path)


def how_long(command: F) -> F:
    """`--seconds` and `--settle`."""
    seconds = click.option(
        "--seconds",
        type=Whole(1, 86_400),
        default=10,
        show_default=True,
        metavar="N",
        help="Read each level for so long, after it has settled.",
    )
    settle = click.option(
        "--settle",
        type=SECONDS,
        default=60.0,
        show_default=True,
        metavar="N",
        help="Wait for power and temperature to come to rest for so many seconds at most. 0: do not wait.",
    )
    return seconds(settle(command))


def which_file(command: F) -> F:
    """`--output`, `--resume` and `--fresh`."""
    output = click.option(
        "--output", type=FILE, metavar="FILE", help="Write it there. Left out: its own place, where it is found again."
    )
    resume = click.option(
        "--resume/--fresh", default=True, help="Go on with what the file has (the default), or measure all of it anew."
    )
    return output(resume(command))
