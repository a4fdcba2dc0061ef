"""One meter, read now and then: watts since the last good reading, and what is wrong if there are none.

Owns what is shown of them; the rule of intervals is `readings`'. Has no clock: the time is handed in.
"""

from math import hypot, inf, sqrt

import msgspec

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.machines.curves import FUNCTIONS_DIFFER
from wattloom.metering.protocol import Meter, Quantity, zones
from wattloom.metering.readings import Closed, Intervals, Silent, asked


class Reading(msgspec.Struct, frozen=True):
    """What a meter said, and what that means since the last time it said something."""

    time_s: float
    """Since the first reading. A slow source's figures are of earlier."""
    meter: str
    provenance: Provenance
    quantity: Quantity
    joules: float | None
    """Since the first good reading of this epoch. None: not known, and `problem` says why."""
    watts: float | None
    """Since the last good reading. None: this is the first one, or there is nothing new."""
    spread_w: float | None
    """One standard deviation, from what the two readings leave open and, if it is not measured, from the model's."""
    epoch: int | None
    """Another than before: the count broke off, and nothing is known of the time in between."""
    zones: dict[str, float] = {}
    """Watts of the parts that the meter sees. They overlap: a package holds its cores."""
    problem: str = ""


def level_error(provenance: Provenance, model_error: float) -> float:
    """How far the whole machine's joules may be off, beside what readings leave open: one relative standard deviation.

    A meter's error is that of single functions, of which some draw more and some less; in the whole they even out, and
    what is left is the error of the curve or model."""
    return 0.0 if provenance == "measured" else sqrt(max(model_error**2 - FUNCTIONS_DIFFER**2, 0.0))


class Live:
    """Reads a meter and remembers the last good reading."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._began: float | None = None
        self._first_j = 0.0
        self._intervals = Intervals(inf)
        self._zones: dict[str, float] = {}

    def read(self, now: float) -> Reading:
        """To be called with times that rise."""
        self._began = now if self._began is None else self._began
        answer = asked(self._meter, now)
        if isinstance(answer, Unknown):
            return self._reading(now, problem=answer.reason)
        found = self._intervals.take(answer, now)
        if isinstance(found, Silent):
            return self._reading(now, answer.joules - self._first_j, epoch=answer.epoch)
        before, self._zones = self._zones, {zone.name: zone.joules for zone in zones(self._meter)}
        if isinstance(found, Closed):
            return self._since(now, found, before)
        self._first_j = answer.joules
        return self._reading(now, 0.0, epoch=answer.epoch)

    def _since(self, now: float, closed: Closed, before: dict[str, float]) -> Reading:
        seconds, reading = closed.seconds, closed.reading
        watts = closed.watts
        error = level_error(self._meter.provenance, self._meter.model_error)
        spread = hypot(closed.resolution_j / seconds, error * watts)
        parts = {name: (value - before[name]) / seconds for name, value in self._zones.items() if name in before}
        return self._reading(now, reading.joules - self._first_j, watts, spread, reading.epoch, parts)

    def _reading(
        self,
        now: float,
        joules: float | None = None,
        watts: float | None = None,
        spread_w: float | None = None,
        epoch: int | None = None,
        parts: dict[str, float] | None = None,
        problem: str = "",
    ) -> Reading:
        meter, time_s = self._meter, now - (self._began or 0.0)
        return Reading(
            time_s, meter.name, meter.provenance, meter.quantity, joules, watts, spread_w, epoch, parts or {}, problem
        )
