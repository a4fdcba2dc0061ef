"""What commands print: JSON for programs, tables and sentences for people.

Owns the terminal's width and the look of tables, and that nothing which was printed makes a terminal do something: what
names, messages and logs hold of control characters is shown as escapes, to terminals and to pipes, which often end at
one. All commands print through here. rich is loaded only here and only for people.
"""

import os
import re
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDTH_OF_A_FILE: Final = 160
"""Where there is no terminal to ask and COLUMNS is not set."""


CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that move the cursor, change colours or directions, or are none; all but tabs and ends of lines."""
COLOURS: Final = re.compile("(\x1b\\[[0-9;]{0,20}m)")
PLAIN: Final = "\x1b[0m"
NEWLINE: Final = "\n"


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """A sentence, or some lines."""
    click.echo(cleaned(text), err=err, nl=nl)


def cleaned(text: str) -> str:
    """Text that a terminal only shows."""
    return CONTROLS.sub(_visibly, text)


def print_json(value: Any) -> None:
    """Indented, keys in the order given, numbers in full."""
    import msgspec

    say_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def say_json(text: str, *, err: bool = False) -> None:
    """What is JSON already."""
    click.echo(safe_json(text).encode(), err=err)  # bytes: JSON is UTF-8 in every terminal


def safe_json(text: str) -> str:
    """JSON escapes by itself what is below 32; the others stand in strings only, where they may be escaped too."""
    return CONTROLS.sub(lambda control: f"\\u{ord(control[0]):04x}", text)


def say_output(text: str) -> None:
    """What a task has printed: to a terminal with its colours, to a file or a pipe as it was."""
    if sys.stdout.isatty():
        parts = COLOURS.split(text.replace("\r\n", "\n"))
        shown = "".join(part if COLOURS.fullmatch(part) else cleaned(part) for part in parts)
        text = f"{shown.removesuffix(NEWLINE)}{PLAIN}{NEWLINE}" if len(parts) > 1 else shown
    click.echo(text, nl=not text.endswith(NEWLINE), color=True)  # or click would take colours out


def _visibly(control: re.Match[str]) -> str:
    return control[0].encode("unicode_escape").decode()


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
    """Text that may be anybody's: rich would take brackets for markup, and a terminal other characters for orders."""
    from rich.markup import escape

    return escape(cleaned(text))


def cell(text: str) -> str:
    """The same for a cell of a table, which a name must not make look like two rows."""
    return literal(text.replace("\n", "\\n").replace("\t", " "))


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
