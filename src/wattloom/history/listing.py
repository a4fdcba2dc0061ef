"""The tasks of a journal, or of a log, as rows: how each stands, where it ran, what it took.

Owns the rows and their states. How they are printed is the command's business.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal, get_args

import msgspec

from wattloom.history.log import Log, split_run
from wattloom.history.records import Walk
from wattloom.history.runs import Run, runs
from wattloom.history.stored_log import is_journal
from wattloom.history.task_history import RunHistory, TaskHistory

State = Literal["waiting", "placed", "running", "finished", "failed", "cancelled", "rejected", "unknown"]
STATES: tuple[State, ...] = get_args(State)

LEFT = "its program ended before it did; it is taken up again when the program is started again"


class Row(msgspec.Struct, frozen=True, gc=False):
    """One task. Times are unix times (of a log that is no journal: seconds of the log)."""

    run: int
    """0: the log is no journal."""
    task: str
    function: str
    state: State
    node: str
    attempts: int
    submitted: float
    started: float | None
    ended: float | None
    seconds: float | None
    joules: float | None
    spread_j: float | None
    """Standard deviation of the joules."""
    provenance: str
    message: str


def list_tasks(
    path: Path,
    *,
    run: int | None = None,
    states: Collection[str] = (),
    function: str | None = None,
    task: str | None = None,
    limit: int | None = None,
) -> list[Row]:
    """The newest first; all runs unless one is named. A task that a later run took over is listed there only."""
    found: list[Row] = []
    for number, began, over, taken_over, history in _folded(path, run):
        for each in reversed(history.by_task.values()):
            if limit is not None and len(found) >= limit:
                return found
            state = state_of(each)
            if (
                (states and state not in states)
                or (function is not None and each.function != function)
                or (task is not None and each.task != task)
                or (taken_over and each.outcome is None)
            ):
                continue
            found.append(_row(each, state, number, began, over))
    return found


def state_of(task: TaskHistory) -> State:
    if task.outcome is not None:
        return task.outcome
    if not task.on_node:
        return "waiting"
    return "placed" if task.started is None else "running"


def seconds_of(task: TaskHistory) -> float | None:
    """Run time of the last attempt, as reported, or else from its start to its end."""
    if task.seconds is not None:
        return task.seconds
    if task.started is None or task.ended is None:
        return None
    return task.ended - task.started


def _folded(path: Path, run: int | None) -> Iterator[tuple[int, float, bool, bool, RunHistory]]:
    """Number, beginning, whether it is over, whether a later run answers for it, and its tasks: the last run first."""
    file, named = (path, run) if run is not None else split_run(path)
    if not is_journal(file):
        yield 0, 0.0, False, False, _history(Log(file, named))
        return
    for each in reversed(runs(file)):
        if named is None or each.run == named:
            yield (
                each.run,
                each.began,
                _over(each),
                each.state == "taken over",
                _history(Log(file, each.run)),
            )
    if named is not None:
        Log(file, named)  # says that there is no such run, if there is none


def _history(log: Log) -> RunHistory:
    walk = Walk(log.name)
    history = RunHistory(walk)
    walk.take(log.lines())
    return history


def _over(run: Run) -> bool:
    return run.state != "running"


def _row(task: TaskHistory, state: State, run: int, began: float, over: bool) -> Row:
    waits = state == "waiting"
    started = None if waits else task.started
    return Row(
        run=run,
        task=task.task,
        function=task.function,
        state=state,
        node="" if waits else task.node,
        attempts=task.attempt,
        submitted=began + task.submitted,
        started=None if started is None else began + started,
        ended=None if task.ended is None else began + task.ended,
        seconds=seconds_of(task),
        joules=task.joules,
        spread_j=task.spread_j,
        provenance=task.provenance,
        message=LEFT if over and task.outcome is None else task.message,
    )
