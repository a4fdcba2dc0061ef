"""The thread that asks one source, at its own pace: as often as it has news, and no oftener than it and we can bear.

Owns the pace, the thread, what it found out last, and its end. Readers see `news`, which is replaced as a whole, so
that nobody waits for anybody. The thread knows nothing of the meter: when that is dropped, it ends.
"""

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Condition, Event, Thread, current_thread
from time import thread_time
from typing import Final

import msgspec

from wattloom.metering.proc import busy_seconds
from wattloom.metering.protocol import Sample
from wattloom.metering.source import EnergyCounter, Source, SourceProblem

SLOWEST_S: Final = 2.0
"""While somebody wants to know."""
DOZING_S: Final = 5.0
"""While nobody does, and after failures."""
OUR_SHARE: Final = 0.01
"""Of one core, for asking."""
ITS_SHARE: Final = 0.25
"""Of the time, in which the source is at work for us."""


class Pace:
    """The seconds to wait until the next question."""

    __slots__ = ("_cost_s", "_failures", "_least_s", "_wait_s", "bearable_s")

    def __init__(self, least_s: float) -> None:
        self._least_s = least_s
        self._wait_s = least_s
        self._cost_s = 0.0
        self._failures = 0
        self.bearable_s = least_s
        """What the last answers allow, by what they cost."""

    def answered(self, news: bool, took_s: float, cpu_s: float) -> None:
        """It answered. News: ask sooner; none: later. Both within what the answer has cost."""
        cost_s = max(cpu_s / OUR_SHARE, took_s * (1.0 - ITS_SHARE) / ITS_SHARE)
        # The first answer loads modules and opens connections, and a busy machine delays one now and then.
        self.bearable_s = max(self._least_s, min(cost_s, self._cost_s))
        self._cost_s = cost_s
        self._failures = 0
        slowest = max(SLOWEST_S, self.bearable_s)
        self._wait_s = min(max(self._wait_s * (0.5 if news else 1.25), self.bearable_s), slowest)

    def failed(self) -> None:
        """It did not: once is nothing, but if it goes on, give it time."""
        self._wait_s = min(self.bearable_s * 2.0**self._failures, max(DOZING_S, self.bearable_s))
        self._failures = min(self._failures + 1, 10)

    def wait_s(self, wanted: bool) -> float:
        return self._wait_s if wanted else max(DOZING_S, self._wait_s)


PROC: Final = Path("/proc")
WANTED_S: Final = 30.0
"""So long after the last reader came, the next is expected."""
GOODBYE_S: Final = 0.5
"""How long the program's end waits for leave to be taken."""
REMEMBERED: Final = 256
"""Moments whose CPU time is kept, for figures that turn out to be older than the answer."""


class News(msgspec.Struct, frozen=True):
    """What is known of the source now."""

    last: Sample | None = None
    """The last good reading, in the poller's time."""
    problem: str = ""
    """What was wrong with the last answer."""


class Poller:
    """Asks a source again and again. `epoch`: of its first reading."""

    def __init__(self, source: Source, clock: Callable[[], float], epoch: int = 0) -> None:
        self.news = News()
        self.pid: Final = os.getpid()
        self.busy_since: float | None = None
        """When the question was asked that has no answer yet."""
        self.period_s = source.least_s
        self._source = source
        self._clock = clock
        self._counter = EnergyCounter(source.limits, epoch)
        self._pace = Pace(source.least_s)
        self._busy: deque[tuple[float, float]] = deque(maxlen=REMEMBERED)
        self._looked = clock()
        self._answered: float | None = None
        self._wake = Event()
        self._turn = Condition()
        self._begun = self._done = 0
        self._ended = False
        self._thread = Thread(target=self._run, name=f"wattloom-{source.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def look(self, here: float) -> None:
        """Somebody reads: after a pause, ask at once."""
        dozing = here - self._looked > WANTED_S
        self._looked = here
        if dozing:
            self._wake.set()

    def refresh(self, timeout_s: float) -> bool:
        """Ask now and wait for the answer, good or bad."""
        with self._turn:
            wanted = self._begun + 1
            self._wake.set()
            return self._turn.wait_for(lambda: self._done >= wanted, timeout_s)

    def end(self) -> None:
        """Ask no more. A fork's child says nothing: its parent still asks."""
        if self.pid != os.getpid():
            return
        self._ended = True
        self._wake.set()
        if self._thread is not current_thread() and self.busy_since is None:
            self._thread.join(GOODBYE_S)

    # -- the thread's own --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            self._wake.clear()
            if self._ended:  # looked at after the mark is cleared, so that no end is missed
                break
            with self._turn:
                self._begun += 1
            self._ask()
            with self._turn:
                self._done = self._begun
                self._turn.notify_all()
            self._wake.wait(self._pace.wait_s(self._clock() - self._looked <= WANTED_S))
        self._source.close()

    def _ask(self) -> None:
        began, cpu = self._clock(), thread_time()
        self.busy_since = began
        try:
            problem = self._hear(began)
        except SourceProblem as found:
            problem = str(found)
        except Exception as found:  # the thread goes on; the text may hold anything, even secrets
            problem = f"{self._source.name} failed: {type(found).__name__}"
        before = self.news.last
        self.news = News(self._counter.last, problem)
        self.busy_since = None
        if problem:
            self._counter.fail()
            self._pace.failed()
        else:
            self._pace.answered(self.news.last is not before, self._clock() - began, thread_time() - cpu)

    def _hear(self, began: float) -> str:
        answers = self._source.ask()
        now = 0.5 * (began + self._clock())
        busy = busy_seconds(PROC)
        if busy is not None:
            self._busy.append((now, busy))
        waited = now - self._answered if self._answered is not None else self._pace.bearable_s
        self._answered = now
        before, problem = self._counter.last, ""
        for answer in answers:
            problem = self._counter.take(now, answer, waited)
        last = self._counter.last
        if last is not None and last is not before:
            self._note(last, before)
        return problem

    def _note(self, last: Sample, before: Sample | None) -> None:
        """The machine's CPU time belongs to the reading: it must be of the same moment."""
        if before is not None and before.epoch == last.epoch:
            self.period_s = max(last.time - before.time, self._pace.bearable_s)
        self._counter.last = msgspec.structs.replace(last, busy_s=self._busy_at(last.time))

    def _busy_at(self, time: float) -> float | None:
        """CPU seconds at a moment in the past, on the line between the two that are known."""
        later: tuple[float, float] | None = None
        for moment, busy in reversed(self._busy):
            if moment <= time:
                if later is None:
                    return busy
                return busy + (later[1] - busy) * (time - moment) / (later[0] - moment)
            later = moment, busy
        return later[1] if later is not None else None
