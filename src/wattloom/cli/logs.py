"""`wattloom logs`: what a task printed."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from wattloom.cli.options import COUNT, as_json, journal_option, say_unreadable, task_names
from wattloom.cli.printing import say, say_output

if TYPE_CHECKING:
    from wattloom.history.queries import LogInfo

LONGEST_LINE: Final = 60


@click.command(short_help="Print what a task printed.")
@click.argument("task", required=False, shell_complete=task_names)
@journal_option
@click.option(
    "--limit",
    type=COUNT,
    default=20,
    show_default=True,
    metavar="N",
    help="Without a task: list the newest so many.",
)
@as_json
def logs(task: str | None, journal: Path | None, limit: int, as_json: bool) -> None:
    """Print what TASK printed, the last 64 KiB of it, and after it, on stderr, the error it ended with.

    To a file or a pipe it goes as it was; a terminal gets its colours, and all other control characters as escapes.

    Without TASK: list the last tasks that printed something. `wattloom tasks` lists all.

    \b
    Examples:
      wattloom logs
      wattloom logs 12-7
      wattloom logs 12-7 --journal work.journal
    """
    import msgspec

    from wattloom.cli.printing import print_json
    from wattloom.history.queries import logs as printed

    found = printed(task, journal, limit=limit)
    if as_json:
        shown = [msgspec.to_builtins(each) for each in found]
        print_json(shown if task is None else shown[0])
    elif task is not None:
        _print_one(found[0])
    else:
        if journal is None:
            say_unreadable()
        _print_list(found)


def _print_one(found: "LogInfo") -> None:
    if found.output:
        say_output(found.output)
    if found.message:
        say(f"[wattloom] {found.task} {found.state}: {found.message}", err=True)
    elif not found.output:
        say(f"[wattloom] {found.task} {found.state}; it printed nothing", err=True)


def _print_list(found: "list[LogInfo]") -> None:
    from wattloom.cli.printing import cell, console, table
    from wattloom.cli.tasks import when

    if not found:
        say("No task here has printed anything.")
        return
    several = len({each.journal for each in found}) > 1
    made = table("task", "function", "state", "submitted", *(["journal"] if several else []), "last line")
    for each in found:
        cells = [each.task, each.function, each.state, when(each.submitted, each.run)]
        cells += [*([Path(each.journal).stem] if several else []), _last_line(each.output)]
        made.add_row(*map(cell, cells))
    console().print(made)


def _last_line(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    return last if len(last) <= LONGEST_LINE else f"{last[: LONGEST_LINE - 3]}..."
