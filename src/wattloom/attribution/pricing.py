"""What a CPU second cost in an interval: of ordinary work, and of each function as far as it is known to differ.

Owns what is learned from intervals: the idle watts, and what functions draw. Knows workers, and no files or clocks.
"""

from math import hypot
from typing import Final

import msgspec
from msgspec.structs import replace

from wattloom.attribution.idle import IdleDraw
from wattloom.attribution.intensities import OTHERS, OWN, Intensities
from wattloom.attribution.sharing import Price, Prices, per_cpu_second, price_of
from wattloom.attribution.worker import Worker
from wattloom.cluster.profile import MachineProfile
from wattloom.metering.proc import TICK_S
from wattloom.metering.protocol import Meter

LAG_S: Final = 0.01
"""How much later than the work a meter may show it: what was drawn before counts for so much of an interval."""
BEYOND: Final = 2.0
"""A relative error larger than this says no more than this."""
SAME_FUNCTION: Final = 0.02
"""How far calls of one function are from each other, whatever is learned of it."""


class Interval(msgspec.Struct):
    """What the meter counted in some time, and who ran in it."""

    seconds: float = 0.0
    meter_j: float = 0.0
    spread_j: float = 0.0
    """Of the count, by the meter's resolution and its lag."""
    busy_s: float = 0.0
    own_s: float = 0.0
    """CPU seconds of this process."""
    ran_s: float = 0.0
    """CPU seconds that are known of single processes."""
    cpu: dict[str, float] = {}
    """By function, of ourselves and of others: who really ran, by the workers' clocks."""

    @property
    def free_s(self) -> float:
        """Busy, and of no process that is known."""
        return max(self.busy_s - self.ran_s, 0.0)


class Pricing:
    """Sets the prices of intervals, one after another."""

    def __init__(self, meter: Meter, profile: MachineProfile) -> None:
        self._error = meter.model_error
        self._idle = IdleDraw(profile, meter)
        # Each CPU's time is known in whole ticks, at the beginning and at the end.
        self._tick_s = TICK_S * (profile.threads / 6.0) ** 0.5
        self._intensities: Intensities | None = None
        """None: a meter that is itself worked out from CPU time cannot tell functions apart."""
        if meter.provenance == "measured" and meter.model_error > 0.0:
            self._intensities = Intensities(profile.threads, meter.model_error, self._idle.known)
        self._before = Interval()
        """The last one. It is learned from when it is known whose its CPU time was: after the next."""

    def forget_last(self) -> None:
        """What came after it is not known."""
        self._before = Interval()

    def prices(self, interval: Interval, workers: list[Worker]) -> Prices:
        """Of a CPU second of each function. The workers have been looked at and weighed."""
        known = self._intensities
        if known is None:
            self._idle.learn(interval.meter_j / interval.seconds, interval.busy_s / interval.seconds)
            return Prices(replace(self._ordinary(interval, self._idle.watts), error=self._error))
        self._learn(known, interval, workers)
        price = replace(self._ordinary(interval, known.idle_w), error=self._error, uneven=known.uneven)
        cpu = _paid_for(interval, workers)
        errors = known.errors(interval.seconds, price.active_j, cpu)
        bounded = {name: hypot(min(error, BEYOND), SAME_FUNCTION) for name, error in errors.items()}
        prices = Prices(price)
        prices.share_out(cpu, {name: known.weight(name) for name in cpu}, bounded)
        return prices

    def _learn(self, known: Intensities, interval: Interval, workers: list[Worker]) -> None:
        """From the interval before, now that it is known who ran in it."""
        before, watts = self._before, interval.meter_j / interval.seconds
        interval.cpu = {OWN: interval.own_s, OTHERS: interval.free_s}
        for worker in workers:
            worker.tell_apart(interval.cpu, before.cpu)
        if before.seconds > 0.0:
            known.look(before.seconds, before.meter_j, before.spread_j, before.cpu, self._tick_s)
            lag_j = LAG_S * abs(watts - before.meter_j / before.seconds)
            interval.spread_j = hypot(interval.spread_j, lag_j)
        known.begin(watts, sum(interval.cpu.values()) / interval.seconds)
        self._before = interval

    def _ordinary(self, interval: Interval, idle_w: float) -> Price:
        spread_j = interval.spread_j
        if self._intensities is not None:
            spread_j = hypot(spread_j, self._intensities.noise * interval.meter_j)
        busy_s, ran_s = interval.busy_s, interval.ran_s
        return price_of(interval.meter_j, spread_j, idle_w, interval.seconds, busy_s, ran_s, self._tick_s)

    def tariffs(self, workers: list[Worker], prices: Prices) -> dict[str, tuple[float, float, float]]:
        """By function that short calls ended of: what a CPU second of it costs, where functions are known to differ."""
        if self._intensities is None:
            return {}
        names = {function for worker in workers for function in worker.short}
        return {name: per_cpu_second(prices.of(name), short=True) for name in sorted(names)}


def _paid_for(interval: Interval, workers: list[Worker]) -> dict[str, float]:
    """CPU seconds by function, of ourselves and of others, as they are paid for in this interval."""
    cpu: dict[str, float] = {}
    own_s = interval.own_s
    for worker in workers:
        own_s += worker.rest_s - worker.kept_s
        worker.share_out(cpu)
        if worker.pool.seconds > 0.0:
            cpu.setdefault(worker.pool.function, 0.0)
    cpu[OWN], cpu[OTHERS] = own_s, interval.free_s
    return cpu
