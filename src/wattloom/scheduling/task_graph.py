"""The graph of tasks: who comes after whom.

Owns who still waits for whom. What becomes of a task whose last predecessor has ended is the engine's to say.
"""

from typing import Final

from wattloom.scheduling.instructions import Outcome
from wattloom.scheduling.ledger import Ledger
from wattloom.scheduling.state import TaskRecord


class TaskGraph:
    """Edges between tasks that are here."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger: Final = ledger
        self.dependents: Final[dict[str, list[TaskRecord]]] = {}
        """By task that has not ended: those that come after it."""
        ledger.view.graph.tasks = ledger.tasks
        ledger.view.graph.edges = self.dependents

    def enter(self, record: TaskRecord) -> tuple[str, Outcome] | None:
        """Note what the task waits for. The answer: one that has ended without finishing, so that it waits in vain."""
        record.after = set()
        self._ledger.view.graph_revision += 1
        for other in dict.fromkeys(record.task.after):
            outcome = self._ledger.ended.get(other)
            if outcome is None:
                record.after.add(other)
                self.dependents.setdefault(other, []).append(record)
            elif outcome != "finished":
                return other, outcome
        return None

    def ended(self, task: str) -> list[TaskRecord]:
        """Those that came after it; they do not wait for it any more."""
        dependents = self.dependents.pop(task, [])
        self._ledger.view.graph_revision += 1
        for dependent in dependents:
            dependent.after.discard(task)
        return dependents
