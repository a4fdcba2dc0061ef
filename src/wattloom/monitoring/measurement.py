"""What a stretch of time cost somebody on this machine: a block of code, or a command with its children.

Owns the sums over the intervals between good readings. The time and the CPU seconds are handed in; the meter is read.
"""

from math import hypot, inf
from pathlib import Path
from typing import Final

import msgspec

from wattloom.attribution.looks import Look, Looks
from wattloom.attribution.pricing import Pricing, interval_of
from wattloom.attribution.sharing import uncertainty
from wattloom.energy.forecast import Unknown
from wattloom.energy.grains import to_grain
from wattloom.energy.measured import Energy
from wattloom.machines.profile import MachineProfile
from wattloom.metering.proc import TICK_S, busy_seconds
from wattloom.metering.protocol import Meter, Quantity
from wattloom.metering.readings import NOT_BUSY, Closed, Readings, Silent
from wattloom.units import Joules

PROC: Final = Path("/proc")
BLOCK: Final = "block"
"""Whose price it is."""
LATE_S: Final = 0.05
"""A reading that is older than the end by no more than this is of the end: clocks are not read at the same moment."""
NOT_READ: Final = "the meter had not been read when it began"
NO_NEWS: Final = "the meter has no figure as late as the end: its source is too slow for so short a time"


class Measured(msgspec.Struct, frozen=True):
    """What was measured. The machine's joules are those between the readings around the block."""

    seconds: float
    cpu_s: float
    """CPU seconds, of all threads and children."""
    energy: Energy | Unknown
    """Joules above idle that were this block's own."""
    machine_j: float
    """All that the meter counted."""
    idle_j: float
    """What the machine would have drawn with nothing to do."""
    others_j: float
    """Everybody else's."""
    unknown_s: float
    """Time for which the meter has no good reading."""
    meter: str
    quantity: Quantity

    @property
    def too_short(self) -> bool:
        """For this meter to tell: the spread is larger than the joules."""
        return isinstance(self.energy, Energy) and self.energy.spread > self.energy.joules

    @property
    def watts(self) -> float | None:
        """Mean power of the block's own joules."""
        known = isinstance(self.energy, Energy) and self.seconds > 0.0
        return self.energy.joules / self.seconds if known else None  # type: ignore[union-attr]


class BlockAccount:
    """Adds up intervals. Say `begin`, then `sample` every now and then, then `end`."""

    def __init__(self, meter: Meter, profile: MachineProfile, *, proc: Path = PROC) -> None:
        self.meter: Final = meter
        self._proc: Final = proc
        self._pricing: Final = Pricing(meter, profile)
        self._looks: Final[Looks[str]] = Looks()
        self._threads = profile.threads
        self._began, self._cpu_began = 0.0, 0.0
        self._readings: Final = Readings(meter, most_waiting_s=inf)
        self._busy_s: float | None = None
        self._cpu_s = 0.0
        self._joules = self._doubt = self._variance = 0.0
        self._late_s = 0.0
        self._free_s = self._free_j = 0.0
        self._machine_j = self._idle_j = 0.0
        self._unknown_s = 0.0
        self._problem = ""
        self._waiting = ""
        self._asked = -inf

    @property
    def waiting(self) -> str:
        """What is wrong with the meter now. Empty: nothing."""
        return self._waiting

    def begin(self, now: float, cpu_s: float) -> None:
        self._began, self._cpu_began, self._cpu_s = now, cpu_s, cpu_s
        self.sample(now, cpu_s)

    def sample(self, now: float, cpu_s: float) -> bool:
        """Read the meter; whether there was a new reading. `cpu_s` counts from any beginning and never falls."""
        self._put_by(now, cpu_s)
        found = self._readings.look(self._asked)
        if isinstance(found, Silent):
            self._waiting = found.reason
            return False
        if isinstance(found, Closed):
            self._close(found)
        else:
            self._skip(found.lost_s, found.reason or self._waiting or NOT_READ)
        self._waiting = ""
        return True

    def _put_by(self, now: float, cpu_s: float) -> None:
        """Keep what was used until the meter says what it cost."""
        begin, busy, before = self._asked, busy_seconds(self._proc), self._busy_s
        self._asked = max(now, begin)  # the end of a block is told when later readings have been waited for
        self._busy_s = busy
        rise = max(busy - before, 0.0) if busy is not None and before is not None else 0.0
        if begin > -inf:
            self._looks.add(Look(begin, self._asked, {BLOCK: max(cpu_s - self._cpu_s, 0.0)}, rise))
        self._cpu_s = max(cpu_s, self._cpu_s)

    def end(self, now: float, cpu_s: float) -> Measured:
        """All of it. Say `sample` until a reading is not older than the end, where the source is slow."""
        self.sample(now, cpu_s)
        last = self._readings.last
        open_s = now - (self._began if last is None else last.time)
        if self._waiting or last is None or open_s > LATE_S:
            self._skip(open_s, self._waiting or NO_NEWS)
        late_j = self._claim_late()
        joules = self._joules + late_j
        spread = hypot(self._doubt + self.meter.model_error * late_j, self._variance**0.5)
        seconds = now - self._began
        machine_j, idle_j = to_grain(self._machine_j), to_grain(self._idle_j)
        known = min(to_grain(joules), machine_j - idle_j)
        return Measured(
            seconds,
            cpu_s - self._cpu_began,
            self._unknown(seconds) or Energy(Joules(known), Joules(spread), self.meter.provenance),
            machine_j,
            idle_j,
            machine_j - idle_j - known,
            self._unknown_s,
            self.meter.name,
            self.meter.quantity,
        )

    def read_until(self, time: float) -> bool:
        """Whether the last good reading is of this time or later."""
        last = self._readings.last
        return last is not None and last.time >= time

    # -- intervals ------------------------------------------------------------------------------------------------

    def _skip(self, seconds: float, reason: str) -> None:
        """Time whose joules nobody knows."""
        lost_s = sum(self._looks.take_until(self._asked).used.values())
        self._pricing.forget_last()
        if seconds > 0.0 or lost_s > 0.0:
            self._unknown_s += max(seconds, 0.0)
            self._problem = self._problem or reason

    def _close(self, closed: Closed) -> None:
        if closed.busy_s is None and self._busy_s is None:
            self._skip(closed.seconds, NOT_BUSY)
            return
        ran = self._looks.take_until(closed.reading.time)
        busy_s = ran.busy_s if closed.busy_s is None else closed.busy_s
        used = ran.used.get(BLOCK, 0.0)
        # Children that the kernel did not show while they ran come all at once, at their end.
        late = max(used - max(closed.seconds * self._threads, busy_s) - TICK_S, 0.0)
        self._late_s += late
        self._charge(closed, used - late, busy_s)

    def _charge(self, closed: Closed, used: float, busy_s: float) -> None:
        interval = interval_of(closed, busy_s, used)
        interval.ran = interval.paid = {BLOCK: used}
        prices = self._pricing.prices(interval)
        whole, price = prices.ordinary, prices.of(BLOCK)
        variance, doubt = uncertainty(used, price)
        self._joules += used * price.joules
        self._variance += variance
        self._doubt += doubt
        self._free_s += max(whole.busy_s - used, 0.0)
        self._free_j += max(whole.active_j - used * price.joules, 0.0)
        self._machine_j += closed.joules
        self._idle_j += whole.idle_j

    def _claim_late(self) -> float:
        """Joules of CPU time that showed late, out of what nobody else is known to have used."""
        if self._late_s <= 0.0 or self._free_s <= 0.0:
            return 0.0
        return self._free_j * min(self._late_s / self._free_s, 1.0)

    def _unknown(self, seconds: float) -> Unknown | None:
        if not self._problem:
            return None
        return Unknown(f"{self._unknown_s:.1f} of {seconds:.1f} s have no reading: {self._problem}")
