"""The one end of a task, and of those that cannot run without it.

Owns what becomes of a task that has left its node: it has ended, or it was lost and may run again.
"""

from typing import Final

from wattloom.cluster.reasons import Reason
from wattloom.scheduling.instructions import Conclude, Outcome
from wattloom.scheduling.ledger import Ledger
from wattloom.scheduling.placement import Placement
from wattloom.scheduling.reservations import Reservations
from wattloom.scheduling.state import Stage, TaskRecord
from wattloom.scheduling.task_graph import TaskGraph
from wattloom.scheduling.turn import Turn


class TaskEnds:
    """Ends tasks."""

    def __init__(
        self,
        turn: Turn,
        ledger: Ledger,
        reservations: Reservations,
        graph: TaskGraph,
        placement: Placement,
    ) -> None:
        self._turn: Final = turn
        self._ledger: Final = ledger
        self._reservations: Final = reservations
        self._graph: Final = graph
        self._placement: Final = placement

    def end(self, record: TaskRecord, outcome: Outcome, reason: Reason | None, message: str) -> None:
        """The one end of a task, and of those that cannot run without it."""
        self._end_one(record, outcome, reason, message)
        if record.name not in self._graph.dependents:
            return
        ended: list[tuple[str, Outcome]] = [(record.name, outcome)]
        while ended:
            task, outcome = ended.pop()
            for dependent in self._graph.ended(task):
                if dependent.stage != Stage.HELD_BACK:
                    continue
                if outcome != "finished":
                    note = f"{task} ended as {outcome}"
                    self._end_one(dependent, "rejected", Reason.DEPENDENCY_ENDED, note)
                    ended.append((dependent.name, "rejected"))
                elif not dependent.after:
                    self._placement.enqueue(dependent)

    def _end_one(self, record: TaskRecord, outcome: Outcome, reason: Reason | None, message: str) -> None:
        if record.stage == Stage.QUEUED:
            self._placement.dequeue(record)
        record.enter(Stage.ENDED)
        if self._reservations.held or self._reservations.first is not None:
            self._reservations.release(record)
        self._ledger.end(record, outcome)
        if reason is not None:
            self._turn.out.append(Conclude(record.name, outcome, reason, message))

    def lost(self, record: TaskRecord, message: str) -> None:
        """It is not running any more and nobody knows how far it came. It has left its node."""
        task = record.task
        if record.stage == Stage.CANCELLING:
            self.end(record, "cancelled", Reason.CANCELLED, message)
        elif record.stage == Stage.ASSIGNED:
            self._placement.enqueue(record)
        elif not task.idempotent:
            self.end(record, "unknown", Reason.OUTCOME_UNKNOWN, message)
        elif record.losses >= task.infrastructure_retries:
            self.end(record, "failed", Reason.RETRIES_EXHAUSTED, message)
        else:
            record.losses += 1
            self._placement.enqueue(record)
            self._placement.tell_waiting(record, Reason.NODE_LOST, None, message)
