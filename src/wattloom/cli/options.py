"""Options that several commands share, and what the shell completes for them.

Owns their names, help and completion, so that they are the same everywhere.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])


def scenario_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Built-in scenarios; if none begins like that, files. (Bash cannot have both.)"""
    return builtin_scenarios(ctx, param, incomplete) or [CompletionItem(incomplete, type="file")]


def builtin_scenarios(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from wattloom.simulation.scenario import builtin_names

    return [CompletionItem(name) for name in builtin_names() if name.startswith(incomplete)]


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
