"""Who used the machine's joules: the account a backend keeps while it runs calls.

Owns the calls and workers of an open interval, and what they pay when it is closed. Used by one thread. Reads the
meter and CPU times, and has no clock: `sample(now)` is told the time.

A call may run through many intervals, and its worker reports its CPU time once, at its end. At every closed interval
the CPU time of a busy worker that no ended call accounts for is paid for and put into the worker's pool; calls that end
later draw on the pool first and pay only for the rest. So nothing is paid for twice, and a part that proves not to have
been the call's (the worker's own work between calls) becomes overhead.
"""

from collections.abc import Iterable
from math import hypot, inf
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from wattloom.attribution.intensities import OTHERS, OWN
from wattloom.attribution.pricing import Interval, Pricing, interval_of
from wattloom.attribution.sharing import (
    Call,
    Charged,
    Price,
    PriceOf,
    Prices,
    Unclaimed,
    charge,
    charge_one,
    charge_short,
    per_cpu_second,
    share_anew,
    with_late,
)
from wattloom.attribution.usage import Totals, Usage
from wattloom.attribution.worker import Tariff, Worker
from wattloom.energy.grains import to_grain
from wattloom.machines.profile import MachineProfile
from wattloom.metering.proc import busy_seconds, process_seconds
from wattloom.metering.protocol import Meter
from wattloom.metering.readings import Begun, Closed, Readings, Silent

PROC: Final = Path("/proc")
NO_NEWS: Final = "no time has passed since the last reading"
NOT_READ: Final = "the meter had not been read when the call began"
SPANNED: Final = "the call ran through a time for which the meter has no reading"


class Account:
    """Shares out what a meter counts. Call `sample` once before the first call, then about once a second."""

    def __init__(self, meter: Meter, machine_profile: MachineProfile, *, proc: Path = PROC) -> None:
        self.meter = meter
        self.totals = Totals()
        self._proc = proc
        self._pricing = Pricing(meter, machine_profile)
        self._workers: dict[int, Worker] = {}
        self._gone: list[Worker] = []
        self._unclaimed = Unclaimed()
        self._readings = Readings(meter, lambda: busy_seconds(proc))
        self._own_s = 0.0
        self._held_j = 0.0

    # -- what the backend tells ----------------------------------------------------------------------------------

    def worker_started(self, worker: int) -> None:
        """A new process with this id: all its CPU time falls into the present interval."""
        self._workers[worker] = Worker(self._proc / str(worker))

    def worker_gone(self, worker: int) -> None:
        """It has ended or is about to be reaped. Best said before reaping, while its CPU time can still be read."""
        gone = self._workers.pop(worker, None)
        if gone is not None:
            gone.look()
            gone.gone = True
            self._gone.append(gone)

    def ended(self, worker: int, task: str, function: str, cpu_s: float, clock_s: float = 0.0) -> None:
        """A call ended; `cpu_s` is all its CPU time, from its start, with the children it waited for. `clock_s`, if it
        is known, is what the worker's CPU clock showed then."""
        known = self._workers.get(worker)
        if known is None:
            known = self._gone_one(worker)
        known.ended.append((task, function, cpu_s))
        known.place(function, cpu_s, clock_s)

    def ended_short(self, worker: int, function: str, cpu_s: float, clock_s: float = 0.0) -> Tariff | None:
        """A call that was far shorter than an interval ended: the tariff by which it will pay. None: not this one; say
        `ended`."""
        known = self._workers.get(worker)
        return None if known is None else known.end_short(function, cpu_s, clock_s)

    def ended_many(self, worker: int, calls: Iterable[Call]) -> None:
        """Several calls ended on a worker, in this order: (task, function, CPU seconds) each."""
        for task, function, cpu_s in calls:
            self.ended(worker, task, function, cpu_s)

    def running(self, worker: int, task: str, function: str, most_s: float = inf) -> None:
        """What a worker runs now, and the most CPU time it can have used. Holds until that call has ended, or something
        else is said."""
        known = self._workers.get(worker)
        if known is not None:
            known.run(task, function, most_s)

    def idle(self, worker: int) -> None:
        """The worker runs nothing now."""
        known = self._workers.get(worker)
        if known is not None:
            known.running = None

    def held_j(self, worker: int) -> float:
        """Joules of the call that a worker runs, up to the last closed interval."""
        known = self._workers.get(worker)
        return known.pool.joules if known is not None else 0.0

    def _gone_one(self, worker: int) -> Worker:
        """A worker whose end was told before that of its call."""
        folder = self._proc / str(worker)
        gone = next((gone for gone in self._gone if gone.folder == folder), None)
        if gone is None:
            gone = Worker(folder, gone=True)
            self._gone.append(gone)
        return gone

    # -- the interval --------------------------------------------------------------------------------------------

    def sample(self, now: float) -> Usage:
        """Read the meter and close the interval. Without a good reading it stays open, and the next one covers it."""
        found = self._readings.look(now)
        if isinstance(found, Closed):
            return self._close(found)
        if isinstance(found, Silent):
            return self._open(found.reason or NO_NEWS, found.waited_s)
        if isinstance(found, Begun) and found.last is None:
            return self._begin(found.lost_s)
        return self._give_up(found.lost_s, found.reason)

    def _begin(self, lost_s: float) -> Usage:
        """The first reading, or the first after all was given up."""
        usage = self._give_up(lost_s, NOT_READ)
        return usage if usage.unknown or usage.seconds else replace(usage, meter_j=0.0, problem="")

    def _open(self, reason: str, seconds: float = 0.0) -> Usage:
        held = self._held_j
        return Usage(seconds, self.meter.provenance, None, held_j=held, held_before_j=held, problem=reason)

    def _give_up(self, seconds: float, reason: str) -> Usage:
        """These joules will never be known, nor those of the calls that ended or ran meanwhile."""
        self._own_used()
        unknown: list[str] = []
        for worker in (*self._workers.values(), *self._gone):
            worker.look()
            worker.weigh()
            unknown += [task for task, _, _ in worker.ended]
            for tariff in worker.short.values():
                tariff.unknown = reason
            if worker.gone and worker.running is not None:
                unknown.append(worker.running[0])
            worker.pool.empty()
            worker.broken = worker.running is not None
            worker.close()
        self._gone.clear()
        self._pricing.forget_last()
        was = self.totals
        self.totals = replace(
            was, unknown_s=was.unknown_s + seconds, unknown_calls=was.unknown_calls + len(unknown), held_j=self._held_j
        )
        return replace(self._open(reason, seconds), unknown=tuple(unknown))

    def _close(self, closed: Closed) -> Usage:
        own_s = self._own_used()
        workers = [*self._workers.values(), *self._gone]
        unknown: list[str] = []
        for worker in workers:
            worker.look()
            unknown += worker.give_up_broken()
            worker.weigh()
        known_s = own_s + sum(worker.used_s for worker in workers)
        interval = interval_of(closed, closed.busy_s or 0.0, known_s)
        if self._pricing.learns:
            interval.ran = _who_ran(own_s, workers, self._pricing.ran_before)
            interval.paid = _who_pays(own_s, workers)
        prices = self._pricing.prices(interval)
        tariffs = _tariffs(workers, prices) if self._pricing.learns else {}
        charged = Charged()
        overhead_j = own_s * prices.of(OWN).joules + self._charge(workers, prices, interval.free_s, charged)
        usage = self._settle(interval, prices.ordinary, charged, overhead_j, tariffs)
        if unknown:
            usage = replace(usage, problem=SPANNED, unknown=tuple(unknown))
        self.totals = self.totals.plus(usage)
        return usage

    def _own_used(self) -> float:
        """CPU seconds of this process since it was last asked."""
        total = process_seconds(self._proc / "self") or 0.0
        used = max(total - self._own_s, 0.0)
        self._own_s += used
        return used

    def _charge(self, workers: list[Worker], prices: Prices, free_s: float, charged: Charged) -> float:
        """Charge every worker's calls; the joules of the workers' own overhead. `free_s`: busy, and nobody's yet."""
        late_s = sum(worker.late_s for worker in workers)
        here_s = min(late_s, free_s)
        then_s, then_j = self._unclaimed.take(late_s - here_s) if late_s > here_s else (0.0, 0.0)
        free_j = prices.of(OTHERS).joules
        found_s, found_j = here_s + then_s, here_s * free_j + then_j
        overhead_j = 0.0
        share_anew([worker.pool for worker in workers if worker.pool.seconds > 0.0], prices.of)
        for worker in workers:
            share = worker.late_s / late_s if late_s > 0.0 else 0.0
            special: PriceOf = prices.of
            if share > 0.0:
                special = _late_prices(worker, prices, found_s * share, found_j * share)
            charge(worker.ended, worker.pool, special, charged)
            for function, tariff in worker.short.items():
                price = prices.of(function)
                charge_short(function, tariff.calls, tariff.seconds, tariff.squares, price, charged)
                tariff.set(*per_cpu_second(price, short=True), self.meter.provenance)
            overhead_j += self._keep_or_drop(worker, prices, charged)
            worker.close()
        self._gone.clear()
        self._unclaimed.add(free_s - here_s, (free_s - here_s) * free_j)
        self._unclaimed.release(max((worker.age for worker in self._workers.values()), default=0))
        return overhead_j

    def _keep_or_drop(self, worker: Worker, prices: Prices, charged: Charged) -> float:
        """What no ended call has claimed is kept for the running one; else it was overhead, and is returned."""
        overhead_j = (worker.rest_s - worker.kept_s) * prices.of(OWN).joules
        if worker.ended or worker.short or worker.running is None:
            overhead_j += worker.pool.empty()[0]
        if worker.running is None:
            return overhead_j
        price = prices.of(worker.running[1])
        worker.pool.add(worker.kept_s, price, worker.running[1])
        if worker.gone:  # it died at work: what it had used is the task's, though no call came to its end
            joules, variance, doubt = worker.pool.empty()
            charge_one(charged, worker.running[0], joules, hypot(doubt, variance**0.5))
        return overhead_j

    def _settle(
        self,
        interval: Interval,
        price: Price,
        charged: Charged,
        overhead_j: float,
        tariffs: dict[str, tuple[float, float, float]],
    ) -> Usage:
        """The record of the interval, with parts that add up."""
        before = self._held_j
        self._held_j = to_grain(sum(each.pool.joules for each in self._workers.values()) + self._unclaimed.joules)
        return Usage(
            interval.seconds,
            self.meter.provenance,
            interval.meter_j,
            idle_j=price.idle_j,
            held_j=self._held_j,
            held_before_j=before,
            tasks=charged.tasks,
            functions=charged.functions,
            cpu_second=per_cpu_second(price),
            cpu_second_of=tariffs,
        ).balanced(to_grain(charged.joules), to_grain(overhead_j))


def _who_ran(own_s: float, workers: list[Worker], before: dict[str, float]) -> dict[str, float]:
    """CPU seconds by function, by the workers' clocks; and those of the interval before, which are put right."""
    ran = {OWN: own_s}
    for worker in workers:
        worker.tell_apart(ran, before)
    return ran


def _who_pays(own_s: float, workers: list[Worker]) -> dict[str, float]:
    """CPU seconds by function, as they are paid for in this interval."""
    cpu: dict[str, float] = {}
    for worker in workers:
        own_s += worker.rest_s - worker.kept_s
        worker.share_out(cpu)
        if worker.pool.seconds > 0.0:
            cpu.setdefault(worker.pool.function, 0.0)
    cpu[OWN] = own_s
    return cpu


def _tariffs(workers: list[Worker], prices: Prices) -> dict[str, tuple[float, float, float]]:
    """By function that short calls ended of: what a CPU second of it costs."""
    names = {function for worker in workers for function in worker.short}
    return {name: per_cpu_second(prices.of(name), short=True) for name in sorted(names)}


def _late_prices(worker: Worker, prices: Prices, found_s: float, found_j: float) -> PriceOf:
    """For the calls of a worker that report more than was seen of it."""

    def price(function: str) -> Price:
        return with_late(prices.of(function), worker.used_s, worker.late_s, found_s, found_j)

    return price
