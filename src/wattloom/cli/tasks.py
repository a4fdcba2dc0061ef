"""`wattloom tasks`: what was run here, the newest first; and `wattloom tasks prune`, which removes old runs."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from wattloom.cli.options import COUNT, Finite, as_json, function_names, journal_option, say_unreadable
from wattloom.cli.printing import say

if TYPE_CHECKING:
    from rich.table import Table

    from wattloom.history.queries import TaskInfo
    from wattloom.journal.retention import PruneInfo

STATES: Final = ("waiting", "placed", "running", "finished", "failed", "cancelled", "rejected", "unknown")
"""As in `history.listing`, which is loaded only when tasks are listed."""
STYLES: Final = {"failed": "red", "rejected": "red", "unknown": "yellow", "running": "green"}
LONGEST_MESSAGE: Final = 100
COUNTED: Final = 1000
"""So many tasks beyond those shown are counted: a journal can have millions."""
COLUMNS: Final = ("task", "function", "state", "node", "submitted", "time", "energy", "journal", "message")
SPARED: Final = ("node", "submitted")
"""What is left out where there is no room."""
BROKEN_LAST: Final = {"function": 10, "journal": 10, "message": 16}
"""What is broken before figures and names are."""


@click.group(invoke_without_command=True, short_help="List what was run here; remove old runs.")
@click.option(
    "--state", "states", type=click.Choice(STATES), multiple=True, help="Only tasks in this state. Repeatable."
)
@click.option("--function", shell_complete=function_names, metavar="F", help="Only calls of this function.")
@click.option("--limit", type=COUNT, default=20, show_default=True, metavar="N", help="The newest so many.")
@journal_option
@as_json
@click.pass_context
def tasks(
    ctx: click.Context, states: tuple[str, ...], function: str | None, limit: int, journal: Path | None, as_json: bool
) -> None:
    """List the tasks that were run on this machine, the newest first.

    Every call of an executor and every `wattloom run` is a task. Its name is what `wattloom why` and `wattloom logs`
    take. Joules are given with one standard deviation.

    \b
    Examples:
      wattloom tasks
      wattloom tasks --state failed --limit 5
      wattloom tasks --function app.resize --json
      wattloom tasks prune --older-than 7
    """
    if ctx.invoked_subcommand is not None:
        return
    import msgspec

    from wattloom.cli.printing import print_json
    from wattloom.history.queries import tasks as listed

    found = listed(journal, states=states, function=function, limit=limit + COUNTED)
    if journal is None:
        say_unreadable()
    if as_json:
        print_json([msgspec.to_builtins(task) for task in found[:limit]])
    elif found:
        _print(found[:limit])
        if len(found) > limit:
            say(_left_out(found, limit))
    else:
        say(_nothing(bool(states or function or journal)))


@tasks.command(short_help="Remove old runs from journals.")
@click.option(
    "--older-than",
    type=Finite(min=0),
    metavar="DAYS",
    help="Remove runs that ended longer ago. Left out: the setting retention_days.",
)
@click.option(
    "--larger-than",
    type=Finite(min=0),
    metavar="MB",
    help="Remove the oldest runs of a journal until it is no larger. Left out: the setting retention_megabytes.",
)
@click.option("--unfinished", is_flag=True, help="Remove runs with unfinished tasks too. They are forgotten then.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@journal_option
@as_json
def prune(
    older_than: float | None,
    larger_than: float | None,
    unfinished: bool,
    dry_run: bool,
    journal: Path | None,
    as_json: bool,
) -> None:
    """Remove old runs, with all their tasks, and give the room back to the disk.

    Journals in use are left alone, and so are runs with unfinished tasks, unless --unfinished is given. What was
    learned about functions stays.

    \b
    Examples:
      wattloom tasks prune --dry-run
      wattloom tasks prune --older-than 7
      wattloom tasks prune --older-than 0 --journal work.journal
      wattloom tasks prune --older-than 0 --unfinished --journal work.journal
    """
    import msgspec

    from wattloom.cli.printing import print_json
    from wattloom.journal.retention import prune as removed

    found = removed(
        journal, older_than_days=older_than, larger_than_mb=larger_than, unfinished=unfinished, dry_run=dry_run
    )
    if as_json:
        print_json([msgspec.to_builtins(each) for each in found])
        return
    for each in found:
        if each.runs or each.problem:
            say(_went(each, dry_run))
    if not any(each.runs for each in found):
        say(f"Nothing {'would go' if dry_run else 'was old or large enough to go'}.")


# -- how tasks look ----------------------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """How much of each task is shown."""

    words: bool
    """Whether its joules say in a word, not by a sign, what they are."""
    columns: tuple[str, ...]
    breaks: Mapping[str, int]
    """Columns that may be broken over lines, if so much of their width is left."""


def _shapes(found: "list[TaskInfo]") -> list[Shape]:
    """The fullest first. Whose a task is stands in all of them if there are several journals: each has a task 1-1."""
    unsaid = set() if any(task.message for task in found) else {"message"}
    unsaid |= set() if len({task.journal for task in found}) > 1 else {"journal"}
    shapes = [
        Shape(words, tuple(name for name in COLUMNS if name not in {*unsaid, *left_out}), {"message": 24})
        for words, left_out in ((True, ()), (False, ()), (False, ("node",)), (False, ("submitted",)), (False, SPARED))
    ]
    barest = shapes[-1].columns
    return [*shapes, Shape(False, barest, BROKEN_LAST), Shape(False, barest, dict.fromkeys(COLUMNS, 1))]


def _print(found: "list[TaskInfo]") -> None:
    """With as much of each task as the terminal is wide; what its joules are is said at every width."""
    from wattloom.cli.figures import legend
    from wattloom.cli.printing import console, fits

    out = console()
    shapes = _shapes(found)
    shape = next((each for each in shapes if fits(_table(found, each, broken=True), out)), shapes[-1])
    out.print(_table(found, shape))
    if not shape.words:
        out.print(legend(task.provenance for task in found), style="dim")


def _table(found: "list[TaskInfo]", shape: Shape, *, broken: bool = False) -> "Table":
    """`broken`: as narrow as what may be broken can become."""
    from wattloom.cli.printing import cell, table

    made = table(*shape.columns, numbers=("time", "energy"))
    for name, column in zip(shape.columns, made.columns, strict=True):
        column.no_wrap = name not in shape.breaks
    for task in found:
        cells = _cells(task, shape.words)
        cut = shape.breaks if broken else {}
        made.add_row(*(cell(cells[name][: cut.get(name)]) for name in shape.columns), style=STYLES.get(task.state))
    return made


def _cells(task: "TaskInfo", words: bool) -> dict[str, str]:
    from wattloom.cli.figures import joules, marked, seconds

    energy = joules(task.joules, task.spread_j, task.provenance if words else "")
    return {
        "task": task.task,
        "function": task.function,
        "state": task.state,
        "node": task.node,
        "submitted": when(task.submitted, task.run),
        "time": seconds(task.seconds),
        "energy": energy if words else marked(energy, task.provenance),
        "journal": Path(task.journal).stem,
        "message": _short(task.message),
    }


def _left_out(found: "list[TaskInfo]", limit: int) -> str:
    """What is said of tasks that are not shown; `found` are all, or as many as were asked for."""
    more = len(found) - limit
    number = f"over {COUNTED - 1:,}" if more >= COUNTED else f"{more:,}"
    return f"... and {number} more: --limit N lists the newest N."


def when(submitted: float, run: int) -> str:
    """Of today: the time; a log that is no journal has only its own seconds."""
    if not run:
        return f"{submitted:,.3f} s"
    try:
        at = datetime.fromtimestamp(submitted)
    except (OverflowError, OSError, ValueError):  # a damaged journal's: no date of any calendar
        return "unknown"
    return f"{at:%H:%M:%S}" if at.date() == datetime.now().date() else f"{at:%Y-%m-%d %H:%M}"


def _short(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE - 3]}..."


def _nothing(filtered: bool) -> str:
    if filtered:
        return "No such tasks."
    return "Nothing was run here yet. `wattloom run -- COMMAND` runs a command, wattloom.Executor calls functions."


def _went(each: "PruneInfo", dry_run: bool) -> str:
    if each.problem:
        return f"{each.journal}: left alone: {each.problem}"
    word = "run" if len(each.runs) == 1 else "runs"
    numbers = ", ".join(map(str, each.runs[:10])) + (", ..." if len(each.runs) > 10 else "")
    if dry_run:
        return f"{each.journal}: {len(each.runs):,} {word} would go ({numbers}), {_size(each.bytes)}"
    return f"{each.journal}: {len(each.runs):,} {word} removed ({numbers}), {_size(each.bytes)} freed"


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
