"""Options that several commands share, and what the shell completes for them.

Owns their names, help and completion, so that they are the same everywhere.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])


def scenario_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Built-in scenarios, then files."""
    from wattloom.simulation.scenario import builtin_names

    names = [CompletionItem(name) for name in builtin_names() if name.startswith(incomplete)]
    return [*names, CompletionItem(incomplete, type="file")]


def policy_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Installed policies; after a comma, once more."""
    from wattloom.policies.listing import policies

    before, comma, last = incomplete.rpartition(",")
    return [
        CompletionItem(f"{before}{comma}{policy.name}", help=policy.summary)
        for policy in policies()
        if policy.name.startswith(last)
    ]


def as_json(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else, to stdout.")(command)


def scenario_argument(command: F) -> F:
    return click.argument("scenario", shell_complete=scenario_names)(command)


LOG_FILE: Final = click.Path(path_type=Path)
