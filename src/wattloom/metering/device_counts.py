"""The joules of one device, followed from reading to reading.

Owns which way of counting a device has, and that its count begins anew when that changes or when the device was lost.
What may be believed of a single reading is `count`'s. Knows no driver: it is handed raw figures and the time.
"""

from typing import Final

import msgspec

from wattloom.energy.forecast import Unknown
from wattloom.metering.count import Limits
from wattloom.metering.counters import Counters, Raw
from wattloom.metering.devices import Source
from wattloom.metering.integrated import Integrated
from wattloom.metering.protocol import Sample

LIMITS: Final = Limits(most_w=3000.0, still_s=60.0)
"""More than any single device draws; and one that is on always draws something, so its counter rises."""
POWER_LIMITS: Final = Limits(most_w=3000.0, gap_s=10.0)
"""A counter counts on while nobody looks; power that was not read for longer than this is lost."""
NOISE: Final = 0.05
"""NVIDIA's word for its power readings: within 5%."""


class Spent(msgspec.Struct, frozen=True):
    """What a device says of its energy: a counter, or its power."""

    source: Source
    raw: float
    """Steps of the counter, or watts."""
    unit_j: float = 1e-3
    """Joules of one step."""
    period_s: float = 0.0
    """How often the device brings its counter up to date, or over how long it averages its power."""


class DeviceCount:
    """Counts one device. The joules of good readings never fall, and a break in the count is another epoch."""

    __slots__ = ("_began_epoch", "_began_j", "_follower", "_last", "source")

    def __init__(self) -> None:
        self.source: Source = "counter"
        self._follower: Counters[str] | Integrated | None = None
        self._began_j = 0.0
        self._began_epoch = 0
        """What was counted by followers before this one, and epochs that are over."""
        self._last: Sample | None = None

    @property
    def joules(self) -> float:
        """As of the last good reading."""
        return self._last.joules if self._last is not None else 0.0

    @property
    def epoch(self) -> int:
        return self._last.epoch if self._last is not None else self._began_epoch

    def read(self, now: float, spent: Spent) -> Sample | Unknown:
        if self._last is not None and now < self._last.time:
            return Unknown(f"asked for {now} after {self._last.time}: time went backwards")
        if spent.source != self.source:
            self.begin_again()
        self.source = spent.source
        answer = self._followed(now, spent)
        if isinstance(answer, Unknown):
            return answer
        joules, epoch = self._began_j + answer.joules, self._began_epoch + answer.epoch
        self._last = Sample(now, joules, answer.resolution_j, epoch=epoch)
        return self._last

    def begin_again(self) -> None:
        """The device was lost, reset, or is counted in another way: what it drew meanwhile is not known."""
        if self._follower is not None and self._last is not None:
            self._began_j = self._last.joules
            self._began_epoch = self._last.epoch + 1
        self._follower = None

    def _followed(self, now: float, spent: Spent) -> Sample | Unknown:
        if spent.source == "power":
            return self._by_power(spent).read(now, spent.raw)
        counters = self._by_counter(spent)
        return counters.refusal(now) or counters.read(now, {"energy": Raw(int(spent.raw))})

    def _by_counter(self, spent: Spent) -> Counters[str]:
        if not isinstance(self._follower, Counters):
            self._follower = Counters(LIMITS, joules=spent.unit_j, update_s=spent.period_s)
        return self._follower

    def _by_power(self, spent: Spent) -> Integrated:
        if not isinstance(self._follower, Integrated):
            self._follower = Integrated(POWER_LIMITS, period_s=spent.period_s, noise=NOISE)
        return self._follower
