"""What can become of a call that did not come back with a result of its own.

Owns these errors. What the function itself raised is passed on as it is.
"""

from concurrent.futures import BrokenExecutor

from wattloom.errors import WattloomError


class TaskError(WattloomError):
    """The call ended without a result, and not by its own exception."""

    def __init__(self, task: str, message: str) -> None:
        super().__init__(message)
        self.task = task


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


class InitializerFailed(BrokenExecutor, WattloomError):
    """The executor's `initializer` raised in a worker: nothing can be run."""


class ExecutorLost(BrokenExecutor, WattloomError):
    """The dispatcher has stopped: its journal cannot be written, or it failed."""


class RemoteTraceback(Exception):
    """Where the exception was raised, in the worker."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'
