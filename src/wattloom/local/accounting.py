"""What the dispatcher wants of whoever knows about joules, and how often a meter is read for it.

Owns the protocol and the arithmetic of the pace: as often as the meter has something to tell, and no oftener than we
can bear. Metered accounting reads a real meter; virtual accounting models the draw of virtual nodes. Knows no clock.
Unlike `metering.poller`'s pace, which asks a source for its news, this one is about who pays: an interval should be
short while calls come and go, and may be long while nothing changes.
"""

from collections import deque
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


USUAL_S: Final = 0.5
"""While calls come and go. In shorter intervals the meter's lag and steps weigh more; 0.25 s was no better on the rig
for calls of 2 and 200 ms, and better for those of 2 s, in single runs."""
SLOWEST_S: Final = 2.0
"""While nothing changes, or the meter has nothing new sooner."""
DEAREST_S: Final = 5.0
"""If a reading is so dear that even the slowest pace takes more than our share."""
OUR_SHARE: Final = 0.01
"""Of the time, for reading."""
SLOWER: Final = 1.5
REMEMBERED: Final = 8
"""Readings of which the cheapest counts: the first one loads modules, and a busy machine delays one now and then."""


class ReadingPace:
    """The seconds until the next reading."""

    __slots__ = ("_took_s", "_wait_s", "least_s", "usual_s")

    def __init__(self) -> None:
        self._took_s: Final[deque[float]] = deque([0.0], maxlen=REMEMBERED)
        self.least_s = USUAL_S
        """While calls wait for a figure that the meter did not have."""
        self.usual_s = USUAL_S
        """While calls come and go."""
        self._wait_s = USUAL_S

    def was_read(self, took_s: float, period_s: float = 0.0) -> None:
        """What a reading took, and how often the meter has a new figure."""
        self._took_s.append(took_s)
        self.least_s = max(USUAL_S, min(min(self._took_s) / OUR_SHARE, DEAREST_S))
        self.usual_s = max(self.least_s, min(period_s, SLOWEST_S))

    def next_s(self, changed: bool) -> float:
        """`changed`: whether calls began or ended since the last reading."""
        slower_s = self.usual_s if changed else min(self._wait_s * SLOWER, SLOWEST_S)
        self._wait_s = max(slower_s, self.usual_s)
        return self._wait_s
