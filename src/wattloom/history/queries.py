"""What was run here, as journals tell it: tasks, what functions cost, what was printed.

Owns these questions over all journals of a user; the answers for one journal come from the modules beside it. Knows no
worker and no executor.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Final

import msgspec

from wattloom.attribution.idle_policy import IdlePolicy
from wattloom.errors import InputError
from wattloom.history.functions import FunctionCost, function_costs
from wattloom.history.listing import STATES, Row, list_tasks
from wattloom.history.log import split_run
from wattloom.history.runs import learned_in, output_of
from wattloom.history.search import Found, holding, wanted
from wattloom.history.stored_log import is_journal

LOOKED_THROUGH: Final = 1000
"""So many of a journal's last tasks are asked whether they printed something."""


class TaskInfo(Row, frozen=True):
    """One task, and where it is written down."""

    journal: str


class FunctionInfo(FunctionCost, frozen=True):
    """What a function costs here."""

    machines: tuple[str, ...] = ()


class LogInfo(msgspec.Struct, frozen=True):
    """What a task printed, and how it ended."""

    task: str
    function: str
    state: str
    message: str
    output: str
    """The last 64 KiB."""
    submitted: float
    run: int
    journal: str


def tasks(
    journal: str | Path | None = None,
    *,
    states: Collection[str] = (),
    function: str | None = None,
    limit: int | None = 20,
) -> list[TaskInfo]:
    """The last tasks, the newest first, of one journal or of all of this user. `limit` None: all there are."""
    unknown = sorted(set(states) - set(STATES))
    if unknown:
        raise InputError("states", f"there is no state {unknown[0]}; they are {', '.join(STATES)}")
    if limit is not None and limit < 1:
        raise InputError("limit", f"must be at least 1, not {limit}")
    found = [
        (row, str(split_run(path)[0]))
        for path in wanted(journal)
        for row in list_tasks(path, states=states, function=function, limit=limit)
    ]
    found.sort(key=lambda each: -each[0].submitted)  # stable: equal times stay as their journal has them
    return [TaskInfo(**msgspec.structs.asdict(row), journal=path) for row, path in found[:limit]]


def functions(journal: str | Path | None = None, *, idle: IdlePolicy = "node") -> list[FunctionInfo]:
    """What each function has cost, in one journal or all of this user; the one that used most joules first. `idle`: who
    bears the machine's idle joules (`node`: nobody)."""
    paths = wanted(journal)
    machines: dict[str, set[str]] = {}
    for file in {split_run(path)[0] for path in paths}:
        for function, machine in learned_in(file) if is_journal(file) else ():
            machines.setdefault(function, set()).add(machine)
    return [
        FunctionInfo(**msgspec.structs.asdict(cost), machines=tuple(sorted(machines.get(cost.function, ()))))
        for cost in function_costs(paths, idle)
    ]


def logs(task: str | None = None, journal: str | Path | None = None, *, limit: int = 20) -> list[LogInfo]:
    """What a task printed; without a task, the last ones that printed something. Raises InputError if there is no such
    task, or several journals have one of that name."""
    if task is not None:
        found = holding(task, journal)
        return [_log(found, _output(found) or b"")]
    printed: list[LogInfo] = []
    for path in wanted(journal):
        some = 0
        for row in list_tasks(path, limit=LOOKED_THROUGH):
            each = Found(split_run(path)[0], row)
            output = _output(each) if some < limit else None
            if output:
                some += 1
                printed.append(_log(each, output))
    return sorted(printed, key=lambda each: -each.submitted)[:limit]


def _output(found: Found) -> bytes | None:
    return output_of(found.journal, found.row.task, found.row.run) if found.row.run else None


def _log(found: Found, output: bytes) -> LogInfo:
    row = found.row
    text = output.decode(errors="replace")
    return LogInfo(row.task, row.function, row.state, row.message, text, row.submitted, row.run, str(found.journal))
