"""A call on its way through the dispatcher, and the worker that has it.

Owns these two records, and what the next run of a journal has to know of a call beyond what the engine does. Everything
else about a task is the engine's to know, about a worker its host's.
"""

from collections import deque
from typing import Any, Final

import msgspec

from wattloom.energy.measured import Energy
from wattloom.local.future import TaskFuture
from wattloom.runtimes.function_file import is_function_file
from wattloom.scheduling.events import Past
from wattloom.scheduling.state import TaskRecord
from wattloom.workload.task import Task


class HostWorker:
    """One worker, as everybody sees it but its host."""

    def __init__(self, number: int, node: str, pid: int) -> None:
        self.number: Final = number
        self.node: Final = node
        self.pid: Final = pid
        """Its process, if that is one of this machine; else 0."""
        self.sent: Final[deque[Job]] = deque()
        """Calls it has, in order; the first is running."""
        self.ended_at: float = 0.0
        """When it last ended something."""


class Job:
    """One call, as the dispatcher holds it."""

    __slots__ = (
        "args", "attempt", "blob", "chunk", "content", "cpu", "cpu_s", "digest", "error", "function", "future", "key",
        "mark", "number", "past", "sent_at", "share", "spool", "started", "task", "timeout", "value", "variant",
        "worker",
    )  # fmt: skip

    def __init__(self, task: Task, future: TaskFuture, digest: str, blob: bytes, args: bytes, spool: str) -> None:
        self.task: Final = task
        self.future: TaskFuture = future
        self.function: Final = task.function
        self.digest: Final = digest
        self.blob: bytes = blob
        """The pickled function, or the file it is in; the journal has it too."""
        self.args: bytes = args
        self.content: str = ""
        """What kind of bytes these are (`runtime`); empty: pickled."""
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
        self.variant: str = ""
        """The build that the present placement decided on."""
        self.started: bool = False
        """Whether the engine was told that it runs."""
        self.worker: HostWorker | None = None
        self.sent_at: float = 0.0
        self.chunk: int = 0
        """Where the journal keeps its payload."""
        self.value: Any = None
        """The body of its result, to be unpacked when the journal knows of it."""
        self.error: BaseException | None = None
        """What its last attempt ended with."""

    @property
    def build(self) -> str:
        """What tells its function, in the build that was decided on, from others."""
        return f"{self.digest}/{self.variant}" if is_function_file(self.blob) else self.digest


def past_of(record: TaskRecord, past: Past, job: Job) -> Past:
    """With the joules of this life, and of those before."""
    joules, spread, provenance = None, None, ""
    if job.past is not None and job.past.joules is not None:
        joules, spread, provenance = job.past.joules, job.past.spread_j or 0.0, job.past.provenance
    known = job.future._known_energy()
    if isinstance(known, Energy):
        joules, spread = (joules or 0.0) + known.joules, (spread or 0.0) + known.spread
        provenance = known.provenance
    place, share = (job.number, job.share) if record.on_a_node else (0, 0)
    return msgspec.structs.replace(
        past, joules=joules, spread_j=spread, provenance=provenance, place=place, share=share
    )
