"""One meter's readings, one after the other, and the intervals between good ones.

Owns the rule that everybody follows who adds up joules: two good readings of one count close an interval; a time
without a reading stays open, and the next reading of the same count covers it; if the count broke off, the joules of
that time will never be known. Has no clock: the time is handed in.
"""

from math import hypot, isfinite

import msgspec

from wattloom.energy.forecast import Unknown
from wattloom.metering.protocol import Meter, Sample

BROKE_OFF = "the meter's count broke off"


class Closed(msgspec.Struct, frozen=True, gc=False):
    """An interval between two good readings of one count."""

    last: Sample
    reading: Sample

    @property
    def seconds(self) -> float:
        """More than none."""
        return self.reading.time - self.last.time

    @property
    def resolution_j(self) -> float:
        """What both readings leave open: one standard deviation."""
        return hypot(self.last.resolution_j, self.reading.resolution_j)


class Begun(msgspec.Struct, frozen=True, gc=False):
    """A count begins with this reading: what was drawn since the last one, if there was one, nobody will know."""

    reading: Sample
    last: Sample | None
    reason: str
    """Why the count before broke off. Empty: there was none, and nothing was wrong."""


class Silent(msgspec.Struct, frozen=True, gc=False):
    """No new reading: the interval stays open."""

    reason: str
    """What is wrong. Empty: nothing, a slow source has no news yet."""


class Readings:
    """Reads a meter whenever it is told to, with times that rise."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self.last: Sample | None = None
        """The last good one."""

    def look(self, now: float) -> Closed | Begun | Silent:
        answer, reason = asked(self._meter, now), ""
        if isinstance(answer, Unknown):
            # A count that broke off goes on from here: asked again at once, the meter says so, and less is lost.
            reason, answer = answer.reason, asked(self._meter, now)
        if isinstance(answer, Unknown):
            return Silent(reason)
        last = self.last
        if last is not None and answer.epoch == last.epoch and answer.time <= last.time:
            return Silent("")
        self.last = answer
        if last is None or answer.epoch != last.epoch or answer.joules < last.joules:
            return Begun(answer, last, reason or (BROKE_OFF if last is not None else ""))
        return Closed(last, answer)

    def forget(self) -> None:
        """The next reading begins a new count."""
        self.last = None


def asked(meter: Meter, now: float) -> Sample | Unknown:
    """One reading. The meter may be anybody's: what it raises is no figure, nor is what is no number."""
    try:
        answer = meter.read(now)
    except Exception as problem:
        return Unknown(f"the meter {meter.name} failed: {type(problem).__name__}: {problem}")
    if isinstance(answer, Sample) and not all(map(isfinite, (answer.joules, answer.time, answer.resolution_j))):
        return Unknown(f"the meter {meter.name} gave what is no number")
    return answer
