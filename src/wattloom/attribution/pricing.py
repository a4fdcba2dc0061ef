"""What a CPU second cost in an interval: the one price that executor, exporter and `measure` charge by.

Owns what is learned from intervals (the idle watts, what functions and programs draw), how active joules are weighed
(by CPU time and what was learned, or by what the processor counted) and how uncertain a price is. Knows no processes,
files or clocks: who ran is handed in by name.
"""

from math import hypot
from typing import Final

import msgspec
from msgspec.structs import replace

from wattloom.attribution.idle import IdleDraw
from wattloom.attribution.intensities import MOST, OTHERS, OWN, Intensities
from wattloom.attribution.sharing import Price, Prices, price_of
from wattloom.machines.profile import MachineProfile
from wattloom.metering.proc import TICK_S
from wattloom.metering.protocol import Meter
from wattloom.metering.readings import Closed
from wattloom.units import Joules, Watts

LAG_S: Final = 0.01
"""How much later than the work a meter may show it: what was drawn before counts for so much of an interval."""
BEYOND: Final = 2.0
"""A relative error larger than this says no more than this."""
SAME_FUNCTION: Final = 0.02
"""How far calls of one function are from each other, whatever is learned of it."""


class Interval(msgspec.Struct):
    """What the meter counted in some time, and who ran in it: functions, programs, `OWN`. Everybody else's is what is
    left of the busy time."""

    seconds: float = 0.0
    meter_j: Joules = Joules(0.0)
    spread_j: float = 0.0
    """Of the count, by the meter's resolution and its lag."""
    busy_s: float = 0.0
    known_s: float = 0.0
    """CPU seconds that are known of single processes."""
    ran: dict[str, float] = {}
    """CPU seconds by name: who really ran, to learn from."""
    paid: dict[str, float] = {}
    """CPU seconds by name as they are paid for in this interval: the same, but for calls that end later."""
    weights: dict[str, float] = {}
    """By name in `paid`: what its CPU second weighs, where the processor counted it. Empty: by what is learned."""

    @property
    def free_s(self) -> float:
        """Busy, and of no process that is known."""
        return max(self.busy_s - self.known_s, 0.0)


def interval_of(closed: Closed, busy_s: float, known_s: float) -> Interval:
    """The interval between two readings, of which it is not said yet who ran."""
    return Interval(closed.seconds, closed.joules, closed.resolution_j, busy_s, known_s)


class Pricing:
    """Sets the prices of intervals, one after another."""

    def __init__(self, meter: Meter, profile: MachineProfile) -> None:
        self._meter = meter
        self._idle = IdleDraw(profile, meter)
        # Each CPU's time is known in whole ticks, at the beginning and at the end.
        self._tick_s = TICK_S * (profile.threads / 6.0) ** 0.5
        self._intensities: Intensities | None = None
        """None: a meter that is itself worked out from CPU time cannot tell functions apart."""
        if meter.provenance == "measured" and meter.model_error > 0.0:
            self._intensities = Intensities(profile.threads, meter.model_error, self._idle.known)
        self._before = Interval()
        """The last one. It is learned from when it is known whose its CPU time was: after the next."""

    @property
    def learns(self) -> bool:
        """Whether it matters who ran."""
        return self._intensities is not None

    @property
    def ran_before(self) -> dict[str, float]:
        """Who ran in the last interval. May be put right until the next one is priced."""
        return self._before.ran

    def forget_last(self) -> None:
        """What came after it is not known."""
        self._before = Interval()

    def prices(self, interval: Interval) -> Prices:
        """Of a CPU second of everybody."""
        known = self._intensities
        if known is None:
            self._idle.learn(interval.meter_j / interval.seconds, interval.busy_s / interval.seconds)
            prices = Prices(self._ordinary(interval, self._idle.watts, interval.spread_j))
        else:
            self._learn(known, interval)
            spread_j = hypot(interval.spread_j, known.noise * interval.meter_j)
            prices = Prices(replace(self._ordinary(interval, known.idle_w, spread_j), uneven=known.uneven))
        self._weigh(prices, interval)
        return prices

    def _learn(self, known: Intensities, interval: Interval) -> None:
        """From the interval before, now that it is known who ran in it."""
        before, watts = self._before, interval.meter_j / interval.seconds
        interval.ran = {**interval.ran, OTHERS: interval.ran.get(OTHERS, 0.0) + interval.free_s}
        if before.seconds > 0.0:
            known.look(before.seconds, before.meter_j, before.spread_j, before.ran, self._tick_s)
            lag_j = LAG_S * abs(watts - before.meter_j / before.seconds)
            interval.spread_j = hypot(interval.spread_j, lag_j)
        known.begin(watts, sum(interval.ran.values()) / interval.seconds)
        self._before = interval

    def _ordinary(self, interval: Interval, idle_w: Watts, spread_j: float) -> Price:
        busy_s, known_s = interval.busy_s, interval.known_s
        price = price_of(interval.meter_j, spread_j, idle_w, interval.seconds, busy_s, known_s, self._tick_s)
        return replace(price, error=self._meter.model_error)

    def _weigh(self, prices: Prices, interval: Interval) -> None:
        """In proportion to CPU seconds times what each weighs. Who is not known weighs as ordinary code does."""
        known, cpu = self._intensities, {**interval.paid, OTHERS: interval.paid.get(OTHERS, 0.0) + interval.free_s}
        if interval.weights:
            weights = {name: interval.weights.get(name, 1.0) for name in cpu}
            prices.share_out(cpu, weights, dict.fromkeys(cpu, self._meter.model_error))
        elif known is not None:
            errors = known.errors(interval.seconds, prices.ordinary.active_j, cpu)
            bounded = {name: hypot(min(error, BEYOND), SAME_FUNCTION) for name, error in errors.items()}
            prices.share_out(cpu, {name: known.weight(name) for name in cpu}, bounded)


def told_apart(cpu: dict[str, float]) -> dict[str, float]:
    """The busiest by name, as many as can be told apart; what is not theirs is everybody else's."""
    if len(cpu) <= MOST - 1:
        return dict(cpu)
    busiest = sorted(cpu, key=lambda name: (name != OWN, -cpu[name], name))[: MOST - 1]
    found = {name: cpu[name] for name in busiest}
    found[OTHERS] = sum(cpu.values()) - sum(found.values())
    return found
