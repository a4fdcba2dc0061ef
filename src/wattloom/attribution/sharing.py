"""Whose joules they are: pure arithmetic over one interval.

Owns the rules. The idle watts stay with the machine. What is above them is shared by CPU time: every busy CPU second of
the interval has the same price, or, where functions are known to differ, one in proportion to what each draws; and a
call pays for its own. Knows no files, processes or clocks; docs/explanation/energy.md says the same in words.
"""

from collections import deque
from collections.abc import Callable
from math import hypot, sqrt
from typing import Final

import msgspec

from wattloom.energy.grains import to_grain

Call = tuple[str, str, float]
"""Task, function, CPU seconds."""

SHORTEST_S: Final = 1e-9
"""No clock of the kernel counts less: so little busy time has no price."""
MOMENT_S: Final = 0.02
"""How long a moment is: what else runs on the machine stays about the same for so long."""
MOST_INTERVALS: Final = 600
"""A call that runs for longer must not hold back the joules of everything else for ever."""
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
    error: float = 0.0
    """How far a function's CPU second may be from this, as one relative standard deviation, in every interval alike."""

    uneven: float = 0.0
    """How far the price of a moment may be from that of the whole interval, relative."""
    weight: float = 1.0
    """What its CPU second draws against an ordinary one, as far as is known: it is in `joules`."""


PriceOf = Callable[[str], Price]
"""Of a CPU second of a function."""


class Prices:
    """What a CPU second of each function cost in an interval, in proportion to what it draws."""

    __slots__ = ("_by_function", "ordinary")

    def __init__(self, ordinary: Price) -> None:
        self.ordinary = ordinary
        """Of whoever is not known."""
        self._by_function: dict[str, Price] = {}

    def of(self, function: str) -> Price:
        return self._by_function.get(function, self.ordinary)

    def share_out(self, seconds: dict[str, float], weights: dict[str, float], errors: dict[str, float]) -> None:
        """Have each pay by its weight: together they pay what they would have paid by the ordinary price."""
        price = self.ordinary
        whole = sum(weights[name] * used for name, used in seconds.items())
        if whole <= 0.0:
            return
        for name, weight in weights.items():
            factor = weight * price.busy_s / whole
            self._by_function[name] = Price(
                price.idle_j,
                price.active_j,
                price.busy_s,
                price.joules * factor,
                price.spread * factor,
                errors[name],
                price.uneven,
                weight,
            )


class Pool:
    """CPU time of a worker that is paid for, but that no ended call has claimed yet."""

    __slots__ = ("doubt", "function", "joules", "ordinary", "seconds", "variance")

    def __init__(self) -> None:
        self.function = ""
        """Of the call that is expected to claim it."""
        self.ordinary = 0.0
        """The joules, had ordinary code run."""
        self.seconds = 0.0
        self.joules = 0.0
        self.variance = 0.0
        """Of the joules, by errors that are another in each interval."""
        self.doubt = 0.0
        """The spread of the joules by the error that is the same in each: these add up."""

    def add(self, seconds: float, price: Price, function: str = "") -> None:
        self.function = function
        self.seconds += seconds
        self.joules += seconds * price.joules
        self.ordinary += seconds * price.joules / price.weight
        self.variance += (seconds * price.spread) ** 2
        self.doubt += seconds * price.joules * price.error

    def take(self, seconds: float) -> tuple[float, float, float]:
        """Joules, variance and doubt for a call with so many seconds, as far as they are there."""
        if seconds >= self.seconds:
            return self.empty()
        share = seconds / self.seconds
        part = self.joules * share, self.variance * share * share, self.doubt * share
        self.seconds -= seconds
        self.ordinary *= 1.0 - share
        self.joules -= part[0]
        self.variance *= (1.0 - share) ** 2
        self.doubt -= part[2]
        return part

    def empty(self) -> tuple[float, float, float]:
        part = self.joules, self.variance, self.doubt
        self.seconds = self.joules = self.ordinary = self.variance = self.doubt = 0.0
        return part


def share_anew(pools: list[Pool], price_of: PriceOf) -> None:
    """Share what long calls have paid so far among them by what is known of their functions now: it was paid bit by
    bit, and at first by guess. Together they have paid what they had."""
    prices = [price_of(pool.function) for pool in pools]
    due = [pool.ordinary * price.weight for pool, price in zip(pools, prices, strict=True)]
    whole, paid = sum(due), sum(pool.joules for pool in pools)
    if not (whole > 0.0 and paid > 0.0):
        return
    for pool, price, joules in zip(pools, prices, due, strict=True):
        factor = joules * paid / whole / pool.joules if pool.joules > 0.0 else 1.0
        pool.joules *= factor
        pool.variance *= factor * factor
        pool.doubt = min(pool.doubt * factor, pool.joules * price.error)


class Unclaimed:
    """Busy CPU time nobody has claimed yet, while calls run that may: of the last intervals, newest first.

    The CPU time of a call's subprocesses often shows only when the call ends, after the intervals in which it was spent
    are closed. So the joules are held back, and given up as unattributed when no running call is as old.
    """

    __slots__ = ("_intervals",)

    def __init__(self) -> None:
        self._intervals: deque[tuple[float, float]] = deque()

    @property
    def joules(self) -> float:
        return sum(joules for _, joules in self._intervals)

    def add(self, seconds: float, joules: float) -> None:
        self._intervals.appendleft((seconds, joules))

    def take(self, seconds: float) -> tuple[float, float]:
        """As many seconds as there are, evenly out of all intervals, and their joules."""
        there = sum(seconds for seconds, _ in self._intervals)
        if there <= 0.0:
            return 0.0, 0.0
        share = min(seconds / there, 1.0)
        taken = self.joules * share
        self._intervals = deque((s * (1.0 - share), j * (1.0 - share)) for s, j in self._intervals)
        return there * share, taken

    def release(self, keep: int) -> None:
        """Give up all but the newest so many intervals."""
        keep = min(keep, MOST_INTERVALS)
        while len(self._intervals) > keep:
            self._intervals.pop()


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
    if shared < SHORTEST_S:
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
    return Price(price.idle_j, price.active_j, price.busy_s, each, spread, price.error, price.uneven, price.weight)


def uncertainty(seconds: float, price: Price) -> tuple[float, float]:
    """Of what somebody pays for so many CPU seconds: the variance by errors that are another in each interval, and the
    spread by the one that is the same in each, so that it adds up."""
    moments = price.joules * price.uneven * _moments(seconds)
    return seconds**2 * (price.spread**2 + moments**2), seconds * price.joules * price.error


def charge(calls: list[Call], pool: Pool, price_of: PriceOf, charged: Charged) -> None:
    """Charge a worker's calls, in the order in which they ended: they take what the pool holds, then pay the price."""
    first = _charge_from_pool(calls, pool, price_of, charged) if pool.seconds > 0.0 else 0
    tasks = charged.tasks
    current, count, seconds, squares = "", 0, 0.0, 0.0
    each = per_second = clock = uneven = 0.0
    for task, function, cpu_s in calls[first:] if first else calls:
        if function != current or not count:
            _add_function(charged, current, count, seconds * each, squares * each * each)
            current, count, seconds, squares = function, 0, 0.0, 0.0
            # Added, not squared and added: on the careful side, and this loop sees every call there is.
            price = price_of(function)
            each, per_second, clock = per_cpu_second(price)
            uneven = price.joules * price.uneven
        count += 1
        seconds += cpu_s
        squares += cpu_s * cpu_s
        spread = cpu_s * hypot(per_second, uneven * _moments(cpu_s)) + clock
        if task in tasks:
            _add_to(tasks, task, cpu_s * each, spread)
        else:
            tasks[task] = (cpu_s * each, spread)
    _add_function(charged, current, count, seconds * each, squares * each * each)


def charge_short(function: str, calls: int, seconds: float, squares: float, price: Price, charged: Charged) -> None:
    """Charge a worker's short calls of a function: how many, their CPU seconds, and the squares of these."""
    _add_function(charged, function, calls, seconds * price.joules, squares * price.joules**2)


def per_cpu_second(price: Price, *, short: bool = False) -> tuple[float, float, float]:
    """Joules of a CPU second of a call, their spread, and what the call's clock leaves open. `short`: of calls that are
    over in a moment."""
    uneven = price.joules * price.uneven if short else 0.0
    return price.joules, hypot(price.joules * price.error, price.spread, uneven), price.joules * CLOCK_S


def _moments(cpu_s: float) -> float:
    """What is left of the unevenness of moments in a call of so many seconds: it averages out."""
    return sqrt(MOMENT_S / (MOMENT_S + cpu_s))


def _charge_from_pool(calls: list[Call], pool: Pool, price_of: PriceOf, charged: Charged) -> int:
    """Charge calls until the pool is empty; how many that were.

    The pool was filled when it was not known yet whose it would be: so those who take from it share by what they draw.
    """
    takers: list[tuple[Call, Price, float]] = []
    left = pool.seconds
    for call in calls:
        if left <= 0.0:
            break
        taken = min(call[2], left)
        left -= taken
        takers.append((call, price_of(call[1]), taken))
    weights = [taken * price.joules for _, price, taken in takers]
    if not sum(weights) > 0.0:
        weights = [taken for _, _, taken in takers]
    whole = sum(weights)
    part = pool.take(sum(taken for _, _, taken in takers))
    for (call, price, taken), weight in zip(takers, weights, strict=True):
        _charge_taker(call, price, call[2] - taken, part, weight / whole if whole > 0.0 else 0.0, charged)
    return len(takers)


def _charge_taker(
    call: Call, price: Price, fresh_s: float, part: tuple[float, float, float], share: float, charged: Charged
) -> None:
    """A call that has its share of what was held, and pays for the rest of its CPU time."""
    task, function, cpu_s = call
    fresh_j = fresh_s * price.joules
    joules, doubt = part[0] * share + fresh_j, part[2] * share + fresh_j * price.error
    variance = part[1] * share * share + (fresh_s * price.spread) ** 2 + (price.joules * CLOCK_S) ** 2
    variance += (joules * price.uneven * _moments(cpu_s)) ** 2
    _add_to(charged.tasks, task, joules, sqrt(doubt**2 + variance))
    _add_function(charged, function, 1, joules, joules * joules)


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
