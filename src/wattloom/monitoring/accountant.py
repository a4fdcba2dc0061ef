"""Looks at this machine and keeps its account: who ran, what the meter counted, whose joules they were.

Owns who ran until a reading says what it cost, and closes the interval then. The time is handed in; the census and the
meter are read. Intervals, prices and spreads are `attribution`'s, the same as for the executor's calls. A time whose
count broke off, or in which the machine slept, has no joules: it is reported in seconds and nothing is invented.
"""

import os
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from msgspec.structs import replace

from wattloom.attribution.idle_policy import Claim, IdlePolicy
from wattloom.attribution.intensities import OWN
from wattloom.attribution.looks import Look, Looks
from wattloom.attribution.pricing import Pricing, interval_of, told_apart
from wattloom.attribution.sharing import Prices, uncertainty
from wattloom.machines.profile import MachineProfile
from wattloom.metering.protocol import Meter
from wattloom.metering.readings import Begun, Closed, GivenUp, Readings
from wattloom.monitoring.census import Count
from wattloom.monitoring.cgroup_names import Place
from wattloom.monitoring.cpu_weights import ByCpuTime, CpuWeights
from wattloom.monitoring.entity_counters import EntityCounters
from wattloom.monitoring.process import Process
from wattloom.monitoring.snapshot import DeviceUse, Parts, Snapshot, TaskUse
from wattloom.monitoring.split import (
    Active,
    Departed,
    Policy,
    Who,
    active_joules,
    program,
    reservations,
    shared_joules,
)

SLEPT_S: Final = 0.1
"""Clocks that run on and that stop while the machine sleeps differ by more than this only if it slept."""
TOO_LONG: Final = "the machine slept for {:.0f} s between two looks: what it drew then is nobody's"


LEARNED: Final = "; as heavy as the meter has shown of each program"


class WhoRan(Protocol):
    """What a census is for the accountant."""

    @property
    def living(self) -> dict[int, Process]: ...

    def sample(self) -> Count: ...

    def reserved(self, place: Place) -> float: ...


class Accountant:
    """Say `sample` about once a second, with a clock that never goes back and stops while the machine sleeps."""

    def __init__(
        self,
        census: WhoRan,
        meter: Meter,
        profile: MachineProfile,
        *,
        node: str = "",
        policy: IdlePolicy = "node",
        devices: Callable[[float], tuple[DeviceUse, ...]] | None = None,
        tasks: Callable[[float], tuple[TaskUse, ...]] | None = None,
        cpu_weights: CpuWeights | None = None,
        own_pid: int | None = None,
    ) -> None:
        self.meter: Final = meter
        self._census: Final = census
        self._node: Final = node or profile.name
        self._policy: Final = Policy(policy, float(profile.threads))
        self._cpu_weights: Final = cpu_weights or ByCpuTime()
        self._devices, self._tasks = devices, tasks
        self._own: Final = os.getpid() if own_pid is None else own_pid
        self._pricing: Final = Pricing(meter, profile)
        self._learned: Final = LEARNED if self._pricing.learns and not self._cpu_weights.counted else ""
        self._pending: Final[Looks[Who]] = Looks()
        self._counters: Final = EntityCounters()
        self._totals, self._last_parts = Parts(), Parts()
        self._readings: Final = Readings(meter)
        self._looked: float | None = None
        self._busy_s: float | None = None
        self._asleep_s: float | None = None
        self._own_s = 0.0

    def sample(self, now: float, asleep_s: float = 0.0) -> Snapshot:
        """One look. `asleep_s`: how long the machine has slept since it was started, by which a nap is noticed."""
        count = self._census.sample()
        self._put_by(count, now)
        problem = self._nap(now, asleep_s) or self._read(now)
        self._counters.seen(self._census.living.values(), now)
        self._counters.fold(now)
        return self._snapshot(count, now, problem)

    # -- who ran -----------------------------------------------------------------------------------------------------

    def _put_by(self, count: Count, now: float) -> None:
        """Keep who ran until the meter says what it cost."""
        begin, self._looked = self._looked, max(now, self._looked or now)
        busy, before = count.busy_s, self._busy_s
        self._busy_s = busy if busy is not None else before
        used: dict[Who, float] = dict(count.used)
        for each in count.exited:
            who = Departed(each.place, each.parent)
            used[who] = used.get(who, 0.0) + each.cpu_s
        self._own_s += sum(seconds for process, seconds in count.used if process.pid == self._own)
        if begin is not None:
            self._cpu_weights.observe(used)
            rise = max(busy - before, 0.0) if busy is not None and before is not None else 0.0
            self._pending.add(Look(begin, self._looked, used, rise))

    def _nap(self, now: float, asleep_s: float) -> str:
        """What is to be said if the machine slept since the last look."""
        before, self._asleep_s = self._asleep_s, asleep_s
        slept = asleep_s - before if before is not None else 0.0
        if slept <= SLEPT_S:
            return ""
        self._give_up(now, self._readings.forget(now) + slept)
        self._readings.look(now)
        return TOO_LONG.format(slept)

    # -- the interval ------------------------------------------------------------------------------------------------

    def _read(self, now: float) -> str:
        """Read the meter and close the interval if it can be. What is wrong; empty: nothing."""
        found = self._readings.look(now)
        if isinstance(found, Closed):
            self._close(found)
            return ""
        if isinstance(found, Begun):
            self._give_up(found.reading.time, found.lost_s)
        elif isinstance(found, GivenUp):
            self._give_up(now, found.lost_s)
        return found.reason

    def _give_up(self, until: float, lost_s: float) -> None:
        """The joules of this time will never be known."""
        self._pending.take_until(until)
        self._totals = replace(self._totals, unknown_s=self._totals.unknown_s + lost_s)
        self._last_parts = Parts(unknown_s=lost_s)
        self._counters.open_interval(0.0)
        self._pricing.forget_last()

    def _close(self, closed: Closed) -> None:
        ran = self._pending.take_until(closed.reading.time)
        prices = self._prices(closed, ran)
        self._cpu_weights.learn(prices.ordinary.active_j / closed.seconds, closed.seconds)
        self._last_parts = self._hand_out(closed, ran, prices)
        self._totals = self._totals.plus(self._last_parts)

    def _prices(self, closed: Closed, ran: Look[Who]) -> Prices:
        busy_s = ran.busy_s if closed.busy_s is None else closed.busy_s
        interval = interval_of(closed, busy_s, sum(ran.used.values()))
        if self._pricing.learns:
            interval.paid = _by_name(ran.used, self._program)
            interval.ran = told_apart(interval.paid)
        if self._cpu_weights.counted:
            interval.paid = _by_name(ran.used, self._name)
            interval.weights = {self._name(who): self._cpu_weights.factor(who) for who in ran.used}
        return self._pricing.prices(interval)

    def _hand_out(self, closed: Closed, ran: Look[Who], prices: Prices) -> Parts:
        price_of = {who: prices.of(self._name(who)) for who in ran.used}
        active = active_joules(ran.used, price_of, prices.ordinary.active_j)
        own = sum(joules for who, joules in active.of.items() if self._is_own(who))
        idle, overhead = shared_joules(self._policy, prices.ordinary.idle_j, own, active, self._claims(active))
        self._counters.open_interval(closed.seconds)
        entities_j = shared_j = 0.0
        for who in {**active.of, **idle.parts, **overhead.parts}:
            if self._is_own(who):
                continue
            cpu_s, joules, borne = ran.used.get(who, 0.0), active.of.get(who, 0.0), idle.of(who) + overhead.of(who)
            off = uncertainty(cpu_s, price_of.get(who, prices.ordinary))
            self._counters.charge(who, cpu_s, joules, borne, off, closed.reading.time)
            entities_j += joules + borne
            shared_j += borne
        return Parts(closed.seconds, closed.joules, entities_j, idle.node_j, overhead.node_j, active.left_j, shared_j)

    def _name(self, who: Who) -> str:
        """By which its price is known: where processes are counted they differ, else programs do."""
        return who.key if self._cpu_weights.counted else self._program(who)

    def _program(self, who: Who) -> str:
        return OWN if self._is_own(who) else program(who)

    def _is_own(self, who: Who) -> bool:
        return isinstance(who, Process) and who.pid == self._own

    def _claims(self, active: Active) -> dict[Who, Claim]:
        if self._policy.name == "pro-rata":
            return {who: Claim(joules) for who, joules in active.of.items() if not self._is_own(who)}
        if self._policy.name == "reserved":
            others = [process for process in self._census.living.values() if process.pid != self._own]
            return reservations(others, self._census.reserved)
        return {}

    # -- the picture -------------------------------------------------------------------------------------------------

    def _snapshot(self, count: Count, now: float, problem: str) -> Snapshot:
        entities = self._counters.entities
        return Snapshot(
            node=self._node,
            time=now,
            meter=self.meter.name,
            quantity=self.meter.quantity,
            provenance=self.meter.provenance,
            model_error=self.meter.model_error,
            policy=self._policy.name,
            shared_by=self._cpu_weights.summary + self._learned,
            last=self._last_parts,
            totals=self._totals,
            problem=problem,
            waiting_s=max(now - self._readings.since, 0.0),
            processes=entities("process", now),
            containers=entities("container", now),
            pods=entities("pod", now),
            vms=entities("vm", now),
            units=entities("unit", now),
            gone=dict(self._counters.gone),
            devices=self._devices(now) if self._devices is not None else (),
            tasks=self._tasks(now) if self._tasks is not None else (),
            living=count.living,
            hidden=count.hidden,
            look_s=self._own_s,
        )


def _by_name(used: Mapping[Who, float], name: Callable[[Who], str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for who, seconds in used.items():
        found[name(who)] = found.get(name(who), 0.0) + seconds
    return found
