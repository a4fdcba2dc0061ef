"""Joules from watts: for sources that show power and do not count.

Owns the integration and how far it may be off. What may be believed is `count`'s. Knows not where watts come from.

Between two figures power is taken to have changed evenly (`line`), or to have stayed at the earlier one until the later
came (`hold`: for sources that tell of every change). Nobody saw what it did in between: if it changed in one step at
any time, the joules are off by the change times the seconds over the root of 12, one standard deviation, and that is
what a reading says of itself, beside the sensor's own noise.
"""

from collections.abc import Callable
from math import hypot, isfinite
from typing import Final, Literal

from wattloom.energy.forecast import Unknown
from wattloom.metering.count import Count, Limits, seconds_asleep
from wattloom.metering.protocol import Sample

STEP: Final = 12.0**-0.5
"""Standard deviation of what is spread evenly over one."""
NOISE: Final = 0.02
"""Of a power sensor, where nobody says more: one relative standard deviation."""
LEAST_J: Final = 1e-6


class Integrated:
    """Cumulative joules from a power that is looked at now and then."""

    def __init__(
        self,
        limits: Limits,
        *,
        period_s: float = 0.0,
        between: Literal["line", "hold"] = "line",
        noise: float = NOISE,
        asleep: Callable[[], float] = seconds_asleep,
    ) -> None:
        self._count: Final = Count(limits, asleep)
        self._limits = limits
        self._period_s = period_s
        self._hold = between == "hold"
        self._noise = noise
        self._watts: float | None = None

    def read(self, now: float, watts: float, taken: float | None = None) -> Sample | Unknown:
        """The count, with the watts that the source shows at `now`. `taken`: when they were measured, if that was
        earlier; the count is then of that time."""
        time = now if taken is None else min(taken, now)
        refusal = self._count.refusal(now)
        if refusal is not None:
            return refusal
        last = self._count.last
        if last is not None and taken is not None and time <= last.time:
            return self._no_news(now, last)
        problem = self._unbelievable(watts)
        if problem:
            self._watts = None
            return self._count.break_off(time, problem)
        return self._take(time, watts)

    @property
    def last(self) -> Sample | None:
        return self._count.last

    def break_off(self, now: float, reason: str) -> Unknown:
        """What is drawn from the last reading on is not known, and will not be: the count begins anew with the next."""
        self._watts = None
        return self._count.break_off(now, reason)

    def _no_news(self, now: float, last: Sample) -> Sample | Unknown:
        age = now - last.time
        if age > self._limits.still_s:
            return Unknown(f"stale: the last figure is {age:.1f} s old")
        return last

    def _unbelievable(self, watts: float) -> str:
        if not isfinite(watts) or watts < 0.0:
            return f"the source shows {watts} W, which cannot be"
        if watts > self._limits.most_w:
            return f"the source shows {watts:.6g} W where at most {self._limits.most_w:.6g} W is possible"
        return ""

    def _take(self, time: float, watts: float) -> Sample | Unknown:
        before, seconds = self._watts, self._count.seconds(time)
        if before is None:  # nothing is known of the time before
            self._watts = watts
            if self._count.last is not None and seconds > 0.0:
                return self._count.break_off(time, "the power since the last reading is not known", self._open_j(watts))
            return self._count.rise(time, 0.0, self._open_j(watts))
        stale = self._count.still(time, watts != before)
        if stale is not None:
            return stale
        mean = before if self._hold else 0.5 * (before + watts)
        self._watts = watts
        return self._count.rise(time, mean * seconds, self._open_j(watts, before, seconds))

    def _open_j(self, watts: float, before: float | None = None, seconds: float = 0.0) -> float:
        """What one reading leaves open."""
        changed = 0.0 if before is None else abs(watts - before)
        noise_j = self._noise * watts * max(seconds, self._period_s)
        return max(hypot(changed * max(seconds, self._period_s) * STEP, noise_j), LEAST_J)
