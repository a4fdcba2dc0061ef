"""A call on its way through the dispatcher.

Owns the record. Everything else about a task is the engine's to know.
"""

from typing import TYPE_CHECKING, Any, Final

from wattloom.local.future import TaskFuture
from wattloom.scheduling.events import Past
from wattloom.workload.task import Task

if TYPE_CHECKING:
    from wattloom.local.workforce import WorkerProcess


class Job:
    """One call, as the dispatcher holds it."""

    __slots__ = (
        "args", "attempt", "blob", "chunk", "cpu", "cpu_s", "digest", "error", "function", "future", "key", "mark",
        "number", "past", "sent_at", "share", "spool", "started", "task", "timeout", "value", "worker",
    )  # fmt: skip

    def __init__(self, task: Task, future: TaskFuture, digest: str, blob: bytes, args: bytes, spool: str) -> None:
        self.task: Final = task
        self.future: TaskFuture = future
        self.function: Final = task.function
        self.digest: Final = digest
        self.blob: bytes = blob
        """The pickled function, until the journal has it."""
        self.args: bytes = args
        self.spool: str = spool
        """The spool file of its large arguments."""
        self.key: str = ""
        self.mark: bytes = b""
        """Of its arguments, if it has a key and they can be compared; else empty."""
        self.timeout: float | None = None
        self.past: Past | None = None
        """What earlier runs have seen of it."""
        self.cpu: float = 1.0
        """Cores it keeps busy."""
        self.cpu_s: float | None = None
        """CPU time it used, if it pays by that."""
        self.attempt: int = 0
        self.number: int = 0
        """Of the present placement."""
        self.share: int = 0
        """The placement by which the share was taken that it runs on."""
        self.started: bool = False
        """Whether the engine was told that it runs."""
        self.worker: WorkerProcess | None = None
        self.sent_at: float = 0.0
        self.chunk: int = 0
        """Where the journal keeps its payload."""
        self.value: Any = None
        """The body of its result, to be unpacked when the journal knows of it."""
        self.error: BaseException | None = None
        """What its last attempt ended with."""
