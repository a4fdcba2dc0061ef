"""Reading a meter while a load runs: watts over a stretch of time, or why they are not known.

Owns the rhythm of reading. A failed reading, a broken count or too few readings make a stretch unknown, never zero.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import sqrt
from typing import Final

from wattloom.energy.forecast import Unknown
from wattloom.machines.profile_file import Power
from wattloom.metering.protocol import Meter, Sample, period_s
from wattloom.metering.readings import BROKE_OFF, goes_on
from wattloom.profiling.temperature import Thermometer

Clock = Callable[[], float]
Sleep = Callable[[float], None]
LEAST_INTERVALS: Final = 3
"""Fewer do not show a spread."""


class PowerRecorder:
    """Follows one meter, and the processor's temperature beside it."""

    def __init__(self, meter: Meter, thermometer: Thermometer, now: Clock, sleep: Sleep, every_s: float) -> None:
        self.now = now
        self.samples: list[Sample] = []
        self.celsius: list[tuple[float, float]] = []
        self.problem = ""
        """The last reading that failed since `restart`."""
        self._gaps: deque[float] = deque(maxlen=15)
        self._meter, self._thermometer = meter, thermometer
        self._sleep, self._every_s = sleep, every_s

    def restart(self) -> None:
        """A new stretch begins."""
        self.samples, self.celsius, self.problem = self.samples[-1:], [], ""

    def sample(self) -> None:
        """Read now."""
        now = self.now()
        found = self._meter.read(now)
        if isinstance(found, Unknown):
            self.problem = found.reason
        elif not self.samples or found.time > self.samples[-1].time:  # a slow source may have nothing new
            if self.samples:
                self._gaps.append(found.time - self.samples[-1].time)
            self.samples.append(found)
        degrees = self._thermometer.celsius()
        if degrees is not None:
            self.celsius.append((now, degrees))

    def wait(self, seconds: float | None = None) -> None:
        """Until the next reading is due, or for so long if that is sooner."""
        pause = self._every_s if seconds is None else min(self._every_s, seconds)
        self._sleep(max(pause, 0.0))

    @property
    def gap_s(self) -> float:
        """How far apart the meter's figures are: the median of the last ones; before there are any, what it says."""
        return sorted(self._gaps)[len(self._gaps) // 2] if self._gaps else period_s(self._meter)

    @property
    def watts(self) -> list[tuple[float, float]]:
        """(Time, watts) of each stretch between readings of one count."""
        return between(self.samples)

    @property
    def mean_celsius(self) -> float | None:
        return sum(degrees for _, degrees in self.celsius) / len(self.celsius) if self.celsius else None

    def power(self, begin: float, end: float) -> Power | Unknown:
        """What was drawn between two times. Unknown if any reading in it failed."""
        if self.problem:
            return Unknown(self.problem)
        return power_between(self.samples, begin, end)


def between(samples: Sequence[Sample]) -> list[tuple[float, float]]:
    """(Middle of the interval, watts) from reading to reading."""
    return [
        ((a.time + b.time) / 2.0, (b.joules - a.joules) / (b.time - a.time))
        for a, b in pairwise(samples)
        if goes_on(a, b) and b.time > a.time
    ]


def power_between(samples: Sequence[Sample], begin: float, end: float) -> Power | Unknown:
    """Mean and spread of the watts from readings of times that lie between the two."""
    inside = [sample for sample in samples if begin <= sample.time <= end]
    if not all(goes_on(a, b) for a, b in pairwise(inside)):
        return Unknown(BROKE_OFF)
    steps = between(inside)
    if len(steps) < LEAST_INTERVALS:
        count = "1 reading" if len(inside) == 1 else f"{len(inside)} readings"
        return Unknown(f"the meter gave {count} in {end - begin:.1f} s; {LEAST_INTERVALS + 1} are needed")
    first, last = inside[0], inside[-1]
    seconds = last.time - first.time
    mean = (last.joules - first.joules) / seconds
    spread = sqrt(sum((watts - mean) ** 2 for _, watts in steps) / (len(steps) - 1))
    return Power(watts=mean, spread_w=spread, intervals=len(steps), seconds=seconds)
