"""What the dispatcher wants of whoever knows about joules.

Owns the protocol. Metered accounting reads a real meter; virtual accounting models the draw of virtual nodes.
"""

from typing import Final, Protocol

from wattloom.energy.used import Used
from wattloom.local.frames import EndFrame
from wattloom.local.future import Reading
from wattloom.local.job import HostWorker, Job
from wattloom.scheduling.events import UsageArrived

Told = list[tuple[UsageArrived, dict[str, Used], dict[str, float]]]
"""What the engine is to be told, the figures of functions in it, and the watts of each call that still runs and has run
for at least `COVERED` of the time."""
COVERED: Final = 0.5
"""Of a stretch that was measured: a call that ran for less of it is not measured yet."""


class Accounting(Protocol):
    """Joules for calls. Used by the dispatcher's thread alone."""

    due: float | None
    """When it wants to be read next; None: nothing runs."""

    def begin(self, now: float) -> None:
        """From now on joules are counted."""

    def worker_started(self, worker: HostWorker) -> None: ...

    def worker_gone(self, worker: HostWorker, now: float) -> None:
        """It has died, or ended. Its calls are still with it."""

    def busy(self, worker: HostWorker, now: float) -> None:
        """It was given something to do."""

    def ended(self, worker: HostWorker, job: Job, end: EndFrame, now: float, finished: bool) -> None:
        """A call of its came to an end, and is not with it any more. `finished`: with a result."""

    def node_mode(self, node: str, mode: str, now: float) -> None:
        """A node sleeps (`asleep`), wakes up (`waking`), or is up (`awake`)."""

    def read(self, now: float, busy: list[HostWorker]) -> Told:
        """Hand out what is known."""

    def ask(self, reading: Reading) -> None:
        """Somebody wants to know now."""

    def close(self) -> None:
        """It is not read any more."""
