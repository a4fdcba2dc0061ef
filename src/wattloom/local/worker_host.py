"""What the dispatcher wants of whoever has workers: the one seam between instructions and processes.

Owns the two protocols. `worker_pool` is the host of this machine; an agent on another machine, or another engine, is a
second implementation (`wattloom.testing.worker_host_conformance` says what it must do). Knows no process, no socket.

A host decides neither which call goes where nor what an end means: it makes calls on nodes, and says what became of
each. Everything here is done by one thread; only `wake` may come from others.
"""

from collections.abc import Sequence
from typing import Protocol

from wattloom.local.frames import EndFrame
from wattloom.local.job import HostWorker, Job
from wattloom.local.nodes import LocalNode


class WorkerListener(Protocol):
    """Who is told what workers do. A call that was sent has exactly one of `ended`, `returned` and `lost`."""

    def is_wanted(self, job: Job) -> bool:
        """Asked right before a call is sent. If it is not, it stays unsent, and will be taken back."""

    def begun(self, job: Job) -> None:
        """It is certain that it runs. Not said of short calls."""

    def ended(self, worker: HostWorker, job: Job, end: EndFrame) -> None:
        """It came to its end, and its worker does not have it any more."""

    def returned(self, job: Job) -> None:
        """It was not begun, for certain, and will not be: it can go elsewhere."""

    def overran(self, job: Job) -> None:
        """It ran longer than its timeout, and is cut off: it will be lost."""

    def lost(self, job: Job, how: str) -> None:
        """It had begun, or may have, and nobody will hear of its end."""

    def worker_started(self, worker: HostWorker) -> None:
        """Before it has any calls."""

    def worker_busy(self, worker: HostWorker) -> None:
        """It was given something to do, and can begin."""

    def worker_gone(self, worker: HostWorker) -> None:
        """It has died, or ended. The calls it had are still with it; what became of them is said next."""


class WorkerHost(Protocol):
    """Whoever has workers, on one node or several."""

    due: float | None
    """When it wants `look_after`; None: nothing runs, and nobody is idle."""

    @property
    def nodes(self) -> Sequence[LocalNode]:
        """What can be used: its capacity. They neither come nor go."""

    @property
    def has_unsent(self) -> bool:
        """Whether `send` has something to do."""

    def begin(self, listener: WorkerListener) -> None:
        """Who is to be told. Before anything else."""

    # -- calls

    def place(self, job: Job, node: str, behind: Job | None) -> None:
        """Find it a worker on this node; or the one of the call it is `behind`, which is to make it next. Nothing of it
        begins before `send`. Raises OSError or WattloomError: there is no worker now, and may be later."""

    def send(self, now: float) -> None:
        """What was placed is in the journal: have it made."""

    def take_back(self, job: Job, now: float) -> bool:
        """Whether it had not been sent: then it is nobody's any more, and nothing is said of it."""

    def cut_off(self, job: Job, why: str) -> None:
        """End a call that was sent, with all it started. That it is lost will be heard; or that it had ended."""

    # -- what workers say

    def wait(self, seconds: float | None) -> None:
        """Until there is something to hear, somebody wakes it, or so long. None: however long that is."""

    def wake(self) -> None:
        """End a wait, or the next one. From any thread."""

    def hear(self, now: float) -> None:
        """Tell the listener what has come. Raises ExecutorLost, InitializerFailed: there will be no workers."""

    def look_after(self, now: float) -> None:
        """Time has passed: calls behind a slow one are returned, those beyond their time cut off, idle workers end."""

    def busy(self) -> list[HostWorker]:
        """Workers that make calls now."""

    # -- the end

    def turn_over(self) -> None:
        """The journal has begun another run; calls go on as they are."""

    def let_go(self) -> None:
        """In a forked child, which must not keep the parent's workers alive."""

    def close(self, *, forget: bool) -> None:
        """End all workers. Without `forget`: a later run has to be able to find out what had begun."""
