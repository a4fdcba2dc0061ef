"""What can become of a call that did not come back with a result of its own.

Owns these errors. What the function itself raised is passed on as it is.
"""

from concurrent.futures import BrokenExecutor
from typing import Final

from wattloom.errors import WattloomError, clean
from wattloom.runtimes.raised import Raised, RemoteTraceback, with_its_traceback

__all__ = [
    "CannotSend", "ExecutorLost", "InitializerFailed", "OutcomeUnknown", "RemoteError", "RemoteTraceback", "TaskError",
    "TaskRejected", "TaskTimeout", "WorkerLost", "in_words", "with_its_traceback",
]  # fmt: skip

LONGEST: Final = 500
"""Letters of a message that are kept."""


class TaskError(WattloomError):
    """The call ended without a result, and not by its own exception."""

    def __init__(self, task: str, message: str) -> None:
        super().__init__(message)
        self.task = task

    def __reduce__(self) -> tuple[object, ...]:
        """So that a call which waited for another can hand it to its caller."""
        return type(self), (self.task, str(self))


class OutcomeUnknown(TaskError):
    """It had begun and nobody saw its end; it is not marked idempotent, so it was not run again."""


class WorkerLost(TaskError):
    """Its worker died more often than the call may be run again."""


class TaskTimeout(TaskError, TimeoutError):
    """It ran longer than its `timeout`; its worker was stopped."""


class TaskRejected(TaskError):
    """It can never be run: what it came after failed, or no node is big enough."""


class CannotSend(TaskError, TypeError):
    """Something in the call cannot be sent to another process."""


class RemoteError(TaskError):
    """A function of another runtime than Python's has failed: what it threw there, in words."""

    def __init__(self, task: str, told: Raised) -> None:
        super().__init__(task, f"{told.type}: {told.message}" if told.message else told.type)
        self.type: Final = told.type
        """What was thrown, as its language calls it."""
        self.said: Final = told.message
        self.runtime: Final = told.runtime
        self.exit_code: Final = told.exit_code
        """Of a process that has ended instead of answering; else None."""
        self.traceback: Final = told.traceback
        self.__cause__ = RemoteTraceback(told.traceback or f"{self} ({told.runtime})")

    def __reduce__(self) -> tuple[object, ...]:
        told = Raised(self.type, self.said, self.traceback, self.runtime, self.exit_code)
        return RemoteError, (self.task, told)


class InitializerFailed(BrokenExecutor, WattloomError):
    """The executor's `initializer` raised in a worker: nothing can be run."""


class ExecutorLost(BrokenExecutor, WattloomError):
    """The dispatcher has stopped: its journal cannot be written, or it failed."""


def in_words(problem: BaseException) -> str:
    """One line on somebody else's exception, whatever it does when it is asked."""
    try:
        lines = str(problem).splitlines()
    except Exception:
        lines = ["(what it says cannot be read)"]
    return clean(f"{type(problem).__name__}: {lines[0] if lines else ''}"[:LONGEST])
