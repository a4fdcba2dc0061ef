"""One task that wants a place, as a policy is asked about it.

Owns the question. Where the task is in its life is the engine's business.
"""

from wattloom.workload.shape import Shape
from wattloom.workload.task import Task


class Ask:
    """One task that wants a place."""

    __slots__ = ("attempt", "shape", "submitted", "task")

    def __init__(self, task: Task, shape: Shape, submitted: float, attempt: int) -> None:
        self.task = task
        self.shape = shape
        self.submitted = submitted
        self.attempt = attempt
        """How often it has been placed."""
