"""Options that several commands share, and what the shell completes for them.

Owns their names, help and completion, so that they are the same everywhere.
"""

import os
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from wattloom.bounds import LONGEST_S
from wattloom.cli.printing import cleaned, say

F = TypeVar("F", bound=Callable[..., Any])

MOST_COMPLETED: Final = 50
LONGEST_SHOWN: Final = 60
SIZES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def scenario_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Built-in scenarios; if none begins like that, files. (Bash cannot have both.)"""
    return builtin_scenarios(ctx, param, incomplete) or [CompletionItem(incomplete, type="file")]


def builtin_scenarios(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from wattloom.simulation.scenario import builtin_names

    return [CompletionItem(name) for name in builtin_names() if name.startswith(incomplete)]


trust_policy = click.option(
    "--trust-policy",
    is_flag=True,
    help="Run the file of Python that the log names as its policy. Left out: such a log is refused.",
)


def policy_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Installed policies and, after a colon, their options; after a comma, once more. If there is none, files."""
    from wattloom.policies.listing import policies, separate

    before, comma, last = incomplete.rpartition(",")
    name, colon, option = last.partition(":")
    within = name if colon else (separate(before) or [""])[-1].partition(":")[0]
    names = [
        CompletionItem(f"{before}{comma}{policy.name}", help=policy.summary)
        for policy in policies()
        if not colon and policy.name.startswith(last)
    ]
    options = [
        CompletionItem(f"{before}{comma}{name}:{key}=" if colon else f"{before}{comma}{key}=")
        for policy in policies()
        if policy.name == within and (colon or ":" in before)
        for key in policy.options
        if key.startswith(option if colon else last)
    ]
    return [*names, *options] or [CompletionItem(incomplete, type="file")]


def sleep_option(command: F) -> F:
    return click.option(
        "--sleep/--no-sleep",
        default=None,
        help="Idle nodes sleep, or none does, whatever the policy. Left out: as each policy has it.",
    )(command)


def as_json(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else, to stdout.")(command)


def scenario_argument(command: F) -> F:
    return click.argument("scenario", shell_complete=scenario_names)(command)


class NamedPath(click.Path):
    """A path that says something: an empty one would be this folder."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if value == "":
            self.fail("must not be empty", param, ctx)
        return super().convert(value, param, ctx)


LOG_FILE: Final = NamedPath(path_type=Path)


class Finite(click.FloatRange):
    """A number that can be counted with: `nan` is within every range, and `inf` in all that have no end."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            float(value)
        except ValueError:
            self.fail(f"must be a number, not {_cut(value)}", param, ctx)
        found: float = super().convert(value, param, ctx)
        if not isfinite(found):
            self.fail(f"must be a finite number, not {value}", param, ctx)
        return found

    def _describe_range(self) -> str:
        """What the help shows; click has no words for a range without ends."""
        return "" if self.min is None and self.max is None else super()._describe_range()


class Whole(click.IntRange):
    """A whole number within a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            int(value)
        except ValueError:  # also of thousands of digits
            self.fail(f"must be a whole number{self._within()}, not {_cut(value)}", param, ctx)
        return super().convert(value, param, ctx)

    def _within(self) -> str:
        return f" from {self.min:,} to {self.max:,}" if self.min is not None and self.max is not None else ""


def _cut(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}..."


COUNT: Final = Whole(1, 1_000_000_000)
SECONDS: Final = Finite(min=0, max=LONGEST_S)
WATTS: Final = Finite(min=0, max=1e12)


# -- what was run here -------------------------------------------------------------------------------------------------


def task_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The last tasks of this user's journals."""
    from wattloom.errors import WattloomError
    from wattloom.history.queries import tasks

    try:
        found = tasks(limit=MOST_COMPLETED)
    except WattloomError:
        return []
    names = {each.task: each.function for each in reversed(found) if each.task.startswith(incomplete)}
    return [
        CompletionItem(name, help=" ".join(cleaned(function).split()))
        for name, function in reversed(names.items())
        if name.isprintable()
    ]


def function_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Functions of the last tasks."""
    from wattloom.errors import WattloomError
    from wattloom.history.queries import tasks

    try:
        found = sorted({each.function for each in tasks(limit=MOST_COMPLETED)})
    except WattloomError:
        return []
    return [CompletionItem(name) for name in found if name.startswith(incomplete) and name.isprintable()]


def journal_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Those of the state folder; if none begins like that, files."""
    from wattloom.settings import journals

    found = [
        CompletionItem(path.stem) for path in journals() if path.stem.startswith(incomplete) and path.stem.isprintable()
    ]
    return found or [CompletionItem(incomplete, type="file")]


def meter_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Installed meters, and the two words for all and none."""
    from importlib.metadata import entry_points

    names = ["auto", "off", *sorted(entry.name for entry in entry_points(group="wattloom.meters"))]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def journal_option(command: F) -> F:
    return click.option(
        "--journal",
        type=LOG_FILE,
        shell_complete=journal_names,
        metavar="J",
        help="This journal only: a file, or the name of one in the state folder. Left out: all journals of yours.",
    )(command)


def say_unreadable() -> None:
    """Journals that cannot be read are no reason to hide the others."""
    from wattloom.history.search import unreadable

    for path, problem in unreadable().items():
        say(f"warning: {path}: {problem}", err=True)


def size(text: str) -> int:
    """Bytes, as a number or with K, M, G or T behind it (powers of 1024): the type of an option."""
    plain = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = plain[-1:] if plain[-1:] in SIZES else ""
    try:
        return round(float(plain.removesuffix(unit)) * SIZES[unit])
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{text!r} is no size: give bytes, or a number with K, M, G or T, as in 512M"
        ) from None
