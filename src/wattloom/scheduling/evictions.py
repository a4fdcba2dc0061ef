"""Evictions: running tasks that give up their place for something better, and have not failed.

Owns who may be asked to, and the asking. The task goes back to the queue when the backend reports that it has stopped.
"""

from typing import Final

from wattloom.cluster.reasons import Reason
from wattloom.scheduling.instructions import Evict
from wattloom.scheduling.leases import Leases
from wattloom.scheduling.state import Stage, TaskRecord
from wattloom.scheduling.turn import Turn


class Evictions:
    """Asks backends to stop tasks."""

    def __init__(self, turn: Turn, leases: Leases, can: bool) -> None:
        self._turn: Final = turn
        self._leases: Final = leases
        self._can: Final = can
        """Whether the backend can stop a task so that it may run again."""

    def problem(self, record: TaskRecord) -> str:
        """Why it cannot be evicted; empty: it can."""
        has = record.allocation
        if not self._can:
            return "the backend cannot evict tasks"
        if has is None or not has.taken or record.stage not in (Stage.PLACED, Stage.RUNNING):
            return f"{record.name} does not run"
        if has.target is not None:
            return f"{record.name} is being moved"
        if has.lease is not None and has.lease.behind:
            return f"others follow on the share of {record.name}"
        if has.started and not record.task.idempotent:
            return f"{record.name} has begun and must not run twice"
        return ""

    def evict(self, record: TaskRecord) -> None:
        """Only one that can be. Undo: the backend says that it could not."""
        has = record.holding
        if has.lease is not None:
            self._leases.close(has.lease)
        record.enter(Stage.EVICTING)
        self._turn.out.append(Evict(record.name, has.attempt, has.node.name, Reason.EVICTED))
