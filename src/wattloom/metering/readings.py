"""One meter's readings, one after the other, and the intervals between good ones.

Owns the rule that everybody follows who adds up joules, and there is no other: two good readings of one count close an
interval; a time without a reading stays open, and the next reading of the same count covers it; if the count broke off,
fell, or was silent for too long, the joules of that time will never be known. Has no clock: the time is handed in.
"""

from collections.abc import Callable
from math import hypot, inf, isfinite
from typing import Final

import msgspec
from msgspec.structs import replace

from wattloom.energy.forecast import Unknown
from wattloom.energy.grains import to_grain
from wattloom.metering.protocol import Meter, Sample
from wattloom.units import Joules, Watts

BROKE_OFF: Final = "the meter's count broke off"
NOT_BUSY: Final = "the kernel does not say how busy the CPUs are"
MOST_WAITING_S: Final = 600.0
"""After so long without a good reading the time is given up: memory is not for ever."""


class Closed(msgspec.Struct, frozen=True, gc=False):
    """An interval between two good readings of one count."""

    last: Sample
    reading: Sample

    @property
    def seconds(self) -> float:
        """More than none."""
        return self.reading.time - self.last.time

    @property
    def joules(self) -> Joules:
        """In whole grains, so that intervals add up to the count."""
        return Joules(to_grain(self.reading.joules) - to_grain(self.last.joules))

    @property
    def watts(self) -> Watts:
        """Mean power."""
        return Watts((self.reading.joules - self.last.joules) / self.seconds)

    @property
    def resolution_j(self) -> float:
        """What both readings leave open: one standard deviation."""
        return hypot(self.last.resolution_j, self.reading.resolution_j)

    @property
    def busy_s(self) -> float | None:
        """CPU seconds that were busy in it. None: the readings do not say."""
        begin, end = self.last.busy_s, self.reading.busy_s
        return None if begin is None or end is None else max(end - begin, 0.0)


class Begun(msgspec.Struct, frozen=True, gc=False):
    """A count begins with this reading: what was drawn since the last one, if there was one, nobody will know."""

    reading: Sample
    last: Sample | None
    reason: str
    """Why the count before broke off. Empty: there was none, and nothing was wrong."""
    lost_s: float = 0.0
    """The time whose joules nobody will know: since the last good reading, or since the first look."""


class GivenUp(msgspec.Struct, frozen=True, gc=False):
    """There was no reading for so long that this time's joules are taken for lost."""

    reason: str
    lost_s: float


class Silent(msgspec.Struct, frozen=True, gc=False):
    """No new reading: the interval stays open."""

    reason: str
    """What is wrong. Empty: nothing, a slow source has no news yet."""
    waited_s: float = 0.0
    """Since the interval began."""


Found = Closed | Begun | GivenUp | Silent


class Intervals:
    """Follows one count, told of every reading. `most_waiting_s`: how long one may be missing."""

    __slots__ = ("_most_waiting_s", "_since", "last")

    def __init__(self, most_waiting_s: float = MOST_WAITING_S) -> None:
        self.last: Sample | None = None
        """The last good one."""
        self._since: float | None = None
        """When the open interval began: with the last good reading, or the first look."""
        self._most_waiting_s: Final = most_waiting_s

    def take(self, answer: Sample | Unknown, now: float, reason: str = "") -> Found:
        """`reason`: why the count broke off, where the source has just said so."""
        since = self._since = now if self._since is None else self._since
        if isinstance(answer, Unknown):
            return self._wait(reason or answer.reason, now, now - since)
        last = self.last
        if last is not None and answer.epoch == last.epoch and answer.time <= last.time:
            return Silent("")
        self.last, self._since = answer, max(answer.time, since)
        if last is None or not goes_on(last, answer):
            why = reason or (BROKE_OFF if last is not None else "")
            return Begun(answer, last, why, max(answer.time - since, 0.0))
        return Closed(last, answer)

    def _wait(self, reason: str, now: float, waited_s: float) -> GivenUp | Silent:
        if waited_s <= self._most_waiting_s:
            return Silent(reason, max(waited_s, 0.0))
        self.last, self._since = None, now
        return GivenUp(reason, waited_s)

    @property
    def since(self) -> float:
        """When the open interval began. Nothing was looked at: the beginning of time."""
        return -inf if self._since is None else self._since

    def forget(self, now: float) -> float:
        """What was drawn up to now is lost, and the next reading begins a new count. How many seconds that were."""
        lost_s = 0.0 if self._since is None else max(now - self._since, 0.0)
        self.last, self._since = None, now if self._since is None else max(now, self._since)
        return lost_s


class Readings:
    """Reads a meter whenever it is told to, with times that rise. `busy`: CPU seconds that the machine was busy, for
    meters that do not know them; without such a figure the interval stays open."""

    def __init__(
        self, meter: Meter, busy: Callable[[], float | None] | None = None, most_waiting_s: float = MOST_WAITING_S
    ) -> None:
        self._meter: Final = meter
        self._busy: Final = busy
        self._intervals: Final = Intervals(most_waiting_s)

    @property
    def last(self) -> Sample | None:
        """The last good one."""
        return self._intervals.last

    def look(self, now: float) -> Found:
        answer, reason = asked(self._meter, now), ""
        if isinstance(answer, Unknown):
            # A count that broke off goes on from here: asked again at once, the meter says so, and less is lost.
            reason, answer = answer.reason, asked(self._meter, now)
        if isinstance(answer, Sample) and answer.busy_s is None and self._busy is not None:
            answer = self._with_busy(answer, self._busy())
        return self._intervals.take(answer, now, reason)

    @property
    def since(self) -> float:
        """When the open interval began."""
        return self._intervals.since

    def forget(self, now: float) -> float:
        """See `Intervals.forget`."""
        return self._intervals.forget(now)

    def _with_busy(self, answer: Sample, busy_s: float | None) -> Sample | Unknown:
        return Unknown(NOT_BUSY) if busy_s is None else replace(answer, busy_s=busy_s)


def goes_on(last: Sample, reading: Sample) -> bool:
    """Whether a reading continues the count of the last one: only then may they be subtracted."""
    return reading.epoch == last.epoch and reading.joules >= last.joules


def asked(meter: Meter, now: float) -> Sample | Unknown:
    """One reading. The meter may be anybody's: what it raises is no figure, nor is what is no number."""
    try:
        answer = meter.read(now)
    except Exception as problem:
        return Unknown(f"the meter {meter.name} failed: {type(problem).__name__}: {problem}")
    if isinstance(answer, Sample) and not all(map(isfinite, (answer.joules, answer.time, answer.resolution_j))):
        return Unknown(f"the meter {meter.name} gave what is no number")
    return answer
