"""Whose joules they are: pure arithmetic over one interval.

Owns the rules. The idle watts stay with the machine. What is above them is shared by CPU time: every busy CPU second of
the interval has the same price, and a call pays for its own. Knows no files, processes or clocks; docs/explanation/
energy.md says the same in words.
"""

from math import floor, hypot, sqrt
from typing import Final

import msgspec

Call = tuple[str, str, float]
"""Task, function, CPU seconds."""

GRAIN_J: Final = 2.0**-24
"""Sums are kept in whole multiples of this (60 nJ), so that they add up to the last bit for 500 MJ."""
CLOCK_S: Final = 1e-6
"""What starting and stopping a call's CPU clock may miss."""


class Price(msgspec.Struct, frozen=True, gc=False):
    """What an interval cost, and what a CPU second cost in it."""

    idle_j: float
    active_j: float
    busy_s: float
    """CPU seconds that share the active joules: all that was busy, and never less than what is known to have run."""
    joules: float
    """Of one CPU second."""
    spread: float
    """Of one CPU second: what the meter's and the kernel's steps leave open in this interval."""


class Pool:
    """CPU time of a worker that is paid for, but that no ended call has claimed yet."""

    __slots__ = ("joules", "seconds", "variance")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.joules = 0.0
        self.variance = 0.0

    def add(self, seconds: float, price: Price) -> None:
        self.seconds += seconds
        self.joules += seconds * price.joules
        self.variance += (seconds * price.spread) ** 2

    def take(self, seconds: float) -> tuple[float, float, float]:
        """Seconds, joules and variance for a call, as far as they are there."""
        if seconds >= self.seconds:
            return self.empty()
        share = seconds / self.seconds
        part = seconds, self.joules * share, self.variance * share * share
        self.seconds -= seconds
        self.joules -= part[1]
        self.variance *= (1.0 - share) ** 2
        return part

    def empty(self) -> tuple[float, float, float]:
        part = self.seconds, self.joules, self.variance
        self.seconds = self.joules = self.variance = 0.0
        return part


class Charged:
    """What ended calls cost: by task, by function, and in all."""

    __slots__ = ("functions", "joules", "tasks")

    def __init__(self) -> None:
        self.tasks: dict[str, tuple[float, float]] = {}
        self.functions: dict[str, tuple[int, float, float]] = {}
        self.joules = 0.0


def price_of(
    meter_j: float, meter_spread_j: float, idle_w: float, seconds: float, busy_s: float, ran_s: float, tick_s: float
) -> Price:
    """The price of a CPU second. `ran_s`: CPU seconds known of single processes; `tick_s`: step of `busy_s`."""
    idle = to_grain(min(max(idle_w, 0.0) * seconds, meter_j))
    active = meter_j - idle
    shared = max(busy_s, ran_s)
    if shared <= 0.0:
        return Price(idle, active, 0.0, 0.0, 0.0)
    each = active / shared
    spread = sqrt(meter_spread_j**2 + (each * tick_s) ** 2) / shared
    return Price(idle, active, shared, each, spread)


def with_late(price: Price, seen_s: float, late_s: float, found_s: float, found_j: float) -> Price:
    """The price for calls that report `late_s` more CPU time than the `seen_s` of their worker in this interval.

    `found_s` and `found_j` are what could be found for the rest. What could not be found is uncertainty.
    """
    fresh = seen_s + late_s
    missing = max(late_s - found_s, 0.0) / fresh
    spread = sqrt(price.spread**2 + (missing * price.joules) ** 2)
    each = (seen_s * price.joules + found_j) / fresh
    return Price(price.idle_j, price.active_j, price.busy_s, each, spread)


def charge(calls: list[Call], pool: Pool, price: Price, model_error: float, charged: Charged) -> None:
    """Charge a worker's calls, in the order in which they ended: they take what the pool holds, then pay the price."""
    first = _charge_from_pool(calls, pool, price, model_error, charged) if pool.seconds > 0.0 else 0
    each = price.joules
    # Added, not squared and added: on the careful side, and this loop sees every call there is.
    per_second, clock = per_cpu_second(price, model_error)
    tasks = charged.tasks
    current, count, seconds, squares = "", 0, 0.0, 0.0
    for task, function, cpu_s in calls[first:] if first else calls:
        if function != current:
            _add_function(charged, current, count, seconds * each, squares * each * each)
            current, count, seconds, squares = function, 0, 0.0, 0.0
        count += 1
        seconds += cpu_s
        squares += cpu_s * cpu_s
        if task in tasks:
            _add_to(tasks, task, cpu_s * each, cpu_s * per_second + clock)
        else:
            tasks[task] = (cpu_s * each, cpu_s * per_second + clock)
    _add_function(charged, current, count, seconds * each, squares * each * each)


def charge_short(short: dict[str, list[float]], price: Price, charged: Charged) -> None:
    """Charge a worker's short calls by function: how many, their CPU seconds, and the squares of these."""
    each = price.joules
    for function, (count, seconds, squares) in short.items():
        _add_function(charged, function, int(count), seconds * each, squares * each * each)


def per_cpu_second(price: Price, model_error: float) -> tuple[float, float]:
    """Spread of a call's joules per CPU second, and what its clock leaves open."""
    return hypot(price.joules * model_error, price.spread), price.joules * CLOCK_S


def _charge_from_pool(calls: list[Call], pool: Pool, price: Price, model_error: float, charged: Charged) -> int:
    """Charge calls until the pool is empty; how many that were."""
    for done, (task, function, cpu_s) in enumerate(calls):
        if pool.seconds <= 0.0:
            return done
        seconds, joules, variance = pool.take(cpu_s)
        fresh = max(cpu_s - seconds, 0.0)
        joules += fresh * price.joules
        variance += (fresh * price.spread) ** 2 + (price.joules * CLOCK_S) ** 2
        _add_to(charged.tasks, task, joules, sqrt((model_error * joules) ** 2 + variance))
        _add_function(charged, function, 1, joules, joules * joules)
    return len(calls)


def _add_function(charged: Charged, function: str, calls: int, joules: float, squares: float) -> None:
    if calls:
        before = charged.functions.get(function, (0, 0.0, 0.0))
        charged.functions[function] = (before[0] + calls, before[1] + joules, before[2] + squares)
        charged.joules += joules


def charge_one(charged: Charged, task: str, joules: float, spread: float) -> None:
    """Charge a task whose call did not come to its end."""
    charged.joules += joules
    _add_to(charged.tasks, task, joules, spread)


def _add_to(tasks: dict[str, tuple[float, float]], task: str, joules: float, spread: float) -> None:
    """Attempts of one task in one interval: their errors go the same way, so spreads add up."""
    before = tasks.get(task, (0.0, 0.0))
    tasks[task] = (before[0] + joules, before[1] + spread)


def to_grain(joules: float) -> float:
    """Rounded down to a whole multiple of the grain."""
    return floor(joules / GRAIN_J) * GRAIN_J
