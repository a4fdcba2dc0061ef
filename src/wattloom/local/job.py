"""A call on its way through the dispatcher, and the future its caller holds.

Owns the two records. Everything else about a task is the engine's to know.
"""

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.energy.measured import Energy
from wattloom.units import Joules
from wattloom.workload.task import Task

if TYPE_CHECKING:
    from wattloom.local.workforce import WorkerProcess

METERED_WITHIN_S: Final = 10.0
"""So long `energy` waits for the meter."""


class TaskFuture(Future[Any]):
    """A future that also knows what the call cost."""

    _energy: tuple[float, float, Provenance] | Unknown | None = None
    _meter: Any = None
    """Whom to ask for a reading now."""

    _cancelled: Any = None
    """Whom to tell that it was cancelled."""

    def __init__(self, task: str) -> None:
        super().__init__()
        self.task_id: Final = task
        """Its name in the journal, for `wattloom why`, `tasks` and `logs`."""

    def cancel(self) -> bool:
        """As every future's: possible until the call is sent to a worker."""
        if not super().cancel():
            return False
        if self._cancelled is not None:
            self._cancelled(self.task_id)
        return True

    @property
    def energy(self) -> Energy | Unknown:
        """What the call cost: joules, their spread, and whether measured, modelled or estimated. Waits for its end, as
        `result` does."""
        if not self.done():
            self.exception()
        known = self._energy
        if known is None and self._meter is not None and not self.cancelled():
            self._meter(self)
            known = self._energy
        if known is None:
            return Unknown("the call was not metered")
        if isinstance(known, Unknown):
            return known
        return Energy(Joules(known[0]), Joules(known[1]), known[2])


class Job:
    """One call, as the dispatcher holds it."""

    __slots__ = (
        "args", "attempt", "blob", "chunk", "cpu", "digest", "error", "function", "future", "key", "number",
        "sent_at", "share", "spool", "started", "task", "timeout", "value", "worker",
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
        self.timeout: float | None = None
        self.cpu: float = 1.0
        """Cores it keeps busy."""
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


class Reading:
    """Somebody waits for the meter."""

    __slots__ = ("done", "future")

    def __init__(self, future: TaskFuture) -> None:
        self.future: Final = future
        self.done: Final = threading.Event()
