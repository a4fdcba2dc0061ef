"""Errors in words: what is wrong, what to do about it, and the exit code; and warnings of the library, a line each.

Owns the exit codes: 2 for what the user can put right, 1 for the rest, 130 after Ctrl-C, 70 for a defect of ours.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EPIPE
from typing import Final

import click

from wattloom.cli.printing import say
from wattloom.errors import InputError, LogError, MissingExtra, PolicyError, ScenarioError, WattloomError

BAD_INPUT: Final = 2
FAILED: Final = 1
INTERRUPTED: Final = 130
DEFECT: Final = 70
"""As `EX_SOFTWARE` of sysexits.h."""
TRACEBACK: Final = "WATTLOOM_TRACEBACK"
"""The variable that shows where a defect is."""
REPORT: Final = (
    "`wattloom --traceback ...` shows where; please report it with that, the command and the files it was given"
)
SETTINGS: Final = "the documentation's page reference/settings lists all settings and where they may stand"
"""They stand in files and variables, which the error names: no option is wrong."""
LONGEST: Final = 300
WORDS: Final = "wattloom.words"
"""Where the words behind `wattloom` are kept."""

WHAT_TO_DO: Final[dict[type[WattloomError], str]] = {
    ScenarioError: "`wattloom scenarios` lists the built-in ones, `wattloom scenarios show NAME` prints one, "
    "`wattloom scenarios schema` says which fields there are",
    PolicyError: "`wattloom policies` lists the policies and their options",
    LogError: "`wattloom tasks` shows what was run here; `wattloom simulate SCENARIO --log FILE` writes a log",
    InputError: "`{command} --help` says what each option takes",
}


@contextmanager
def failures_in_words(ctx: click.Context) -> Iterator[None]:
    """Whatever a user can cause ends in a sentence, not in a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        ctx.exit(INTERRUPTED)
    except WattloomError as problem:
        _say(str(problem), _what_to_do(problem).format(command=_typed(ctx)))
        ctx.exit(BAD_INPUT if isinstance(problem, InputError | MissingExtra) else FAILED)
    except OSError as problem:
        if problem.errno == EPIPE or problem.filename is None:
            raise
        _say(f"{problem.filename}: {problem.strerror}", "check the path and who may read or write it")
        ctx.exit(BAD_INPUT)


def output_lost(problem: OSError) -> int:
    """Say that a full disk, or the like, took no more output; the exit code.

    What is still unwritten goes nowhere, or Python would try again at its end.
    """
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    _say(f"{problem.filename or 'the output'}: cannot be written: {problem.strerror or problem}", "")
    return FAILED


def defect(problem: Exception) -> int:
    """Say that something went wrong that is not the user's fault; the exit code."""
    if os.environ.get(TRACEBACK):
        import traceback

        traceback.print_exception(problem)
    if isinstance(problem, MemoryError):
        _say("there is not enough memory for this", "give it less to do, or more memory")
        return FAILED
    words = " ".join(str(problem).split())[:LONGEST]
    _say(f"this is a defect of Wattloom: {type(problem).__name__}{': ' * bool(words)}{words}", REPORT)
    return DEFECT


def _what_to_do(problem: WattloomError) -> str:
    from wattloom.settings import SettingsError

    if isinstance(problem, SettingsError):
        return SETTINGS
    return next((words for kind, words in WHAT_TO_DO.items() if isinstance(problem, kind)), "")


def _typed(ctx: click.Context) -> str:
    """The command that was typed, with its subcommand."""
    words = [word for word in ctx.meta.get(WORDS, ()) if not word.startswith("-")]
    group = ctx.command
    path = ctx.command_path
    for word in words:
        if not isinstance(group, click.Group) or word not in group.list_commands(ctx):
            break
        path = f"{path} {word}"
        group = group.get_command(ctx, word) or group
    return path


def _say(problem: str, what_to_do: str) -> None:
    say(f"error: {problem}", err=True)
    if what_to_do:
        say(f"  try: {what_to_do}", err=True)


class _Said(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(f"{record.levelname.lower()}: {self.format(record)}", err=True)


@contextmanager
def warnings_in_words() -> Iterator[None]:
    """While a command runs, what the library warns of is said as the command's own words."""
    library, said = logging.getLogger("wattloom"), _Said(logging.WARNING)
    library.addHandler(said)
    try:
        yield
    finally:
        library.removeHandler(said)
