"""What commands print: JSON for programs, tables and sentences for people.

Owns the terminal's width and the look of tables. rich is loaded only here and only for people.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDTH_OF_A_FILE: Final = 160
"""Where there is no terminal to ask and COLUMNS is not set."""


def print_json(value: Any) -> None:
    """Indented, keys in the order given, numbers in full."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))  # bytes: JSON is UTF-8 in every terminal


def stdout_kept_for_json(as_json: bool) -> AbstractContextManager[object]:
    """What a user's policy prints goes to stderr, where stdout is to hold JSON and nothing else."""
    return redirect_stdout(sys.stderr) if as_json else nullcontext()


def console() -> "Console":
    from rich.console import Console

    wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH_OF_A_FILE
    return Console(width=wide, highlight=False)


def table(*columns: str, title: str = "", numbers: tuple[str, ...] = ()) -> "Table":
    """An empty table; the columns named in `numbers` stand to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(title=title or None, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        number = column in numbers
        made.add_column(column, justify="right" if number else "left", no_wrap=number, overflow="fold")
    return made


def literal(text: str) -> str:
    """Text that may hold brackets, which rich would take for markup."""
    from rich.markup import escape

    return escape(text)


def fits(made: "Table", out: "Console") -> bool:
    """Whether a table can be shown without breaking words."""
    return out.measure(made, options=out.options.update(max_width=10_000)).maximum <= out.width


def fullest(made: "Sequence[Table]", out: "Console") -> int:
    """Which of several tables, the fullest first, is the first that fits. If none does, it is the last one, and that
    breaks its figures: rich would cut them, and a figure that was cut looks like another."""
    for at, each in enumerate(made):
        if fits(each, out):
            return at
    for column in made[-1].columns:
        column.no_wrap = False
    return len(made) - 1
