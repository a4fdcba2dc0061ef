"""What earlier runs left unfinished: the tasks that were accepted and have no end in the log.

Owns the way from a run's rows to its unfinished tasks with their payloads. What becomes of them is the
backend's to say.
"""

from typing import Final

import msgspec

from wattloom.errors import LogError
from wattloom.history.records import Walk
from wattloom.history.stored_log import rows_of
from wattloom.history.task_history import RunHistory, TaskHistory
from wattloom.journal import errors
from wattloom.journal.payloads import Call, KeptFunction, Unfinished
from wattloom.journal.store import Store

LOG: Final = "log"
CALLS: Final = msgspec.msgpack.Decoder(list[Call])


def unfinished_of(store: Store, run: int, boot: str = "") -> list[Unfinished]:
    """In order of submission. `boot` says which start of the machine this is. Raises JournalCorrupt at a row that is
    not as it was written: nobody knows then what was accepted, what had begun and what ended."""
    then = store.boot_of(run)
    history = _history(store, run)
    calls = _calls(store, run, history)
    functions: dict[str, KeptFunction | None] = {}
    for digest in {call.function for call in calls.values()}:
        functions[digest] = store.function(digest)
    try:
        return [
            _unfinished(run, then == boot, task, history, calls.get(task.task), functions)
            for task in history.open.values()
        ]
    except msgspec.MsgspecError as problem:
        raise errors.damaged(store.path, run, LOG, "?", f"has a task that cannot be read: {problem}") from problem


def _history(store: Store, run: int) -> RunHistory:
    walk = Walk(str(store.path))
    history = RunHistory(walk, ended=False)
    expected = rows_of(run)[0]
    for row, records in store.log_of(run):
        expected += 1
        if row != expected:
            raise errors.damaged(store.path, run, LOG, expected, "is missing")
        try:
            walk.take(records.splitlines())
        except LogError as problem:
            raise errors.damaged(store.path, run, LOG, row, problem.problem) from problem
    return history


def _calls(store: Store, run: int, history: RunHistory) -> dict[str, Call]:
    """Payloads of the tasks that have not ended."""
    found: dict[str, Call] = {}
    for row, body in store.payloads_of(run):
        try:
            found.update((call.task, call) for call in CALLS.decode(body) if call.task in history.open)
        except (msgspec.MsgspecError, ValueError) as problem:
            raise errors.damaged(store.path, run, "payloads", row, f"cannot be read: {problem}") from problem
    return found


def _unfinished(
    run: int,
    same_boot: bool,
    task: TaskHistory,
    history: RunHistory,
    call: Call | None,
    functions: dict[str, KeptFunction | None],
) -> Unfinished:
    return Unfinished(
        run=run,
        task=task.submission(),
        definition=history.definition(task.function),
        attempt=task.attempt,
        place=task.place,
        share=task.share,
        same_boot=same_boot,
        node=task.node if task.on_node else "",
        started=task.on_node and task.started is not None,
        failures=task.failures,
        losses=task.losses,
        joules=task.joules,
        spread_j=task.spread_j,
        provenance=task.provenance,
        cancelled=task.cancelled,
        call=call,
        function=None if call is None else functions[call.function],
    )
