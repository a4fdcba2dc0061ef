"""Looks at this machine and keeps its account: who ran, what the meter counted, whose joules they were.

Owns the open interval and closes it at every good reading. The time is handed in; the census and the meter are read.
A time without a reading stays open, and the next reading of the same count covers it; if the count broke off, or the
machine slept, its joules are unknown, and are reported as seconds and not invented.
"""

import os
from collections.abc import Callable
from typing import Final, Protocol

from msgspec.structs import replace

from wattloom.attribution.idle_policy import Claim, IdlePolicy
from wattloom.attribution.machine_draw import MachineDraw
from wattloom.attribution.sharing import Price, price_of, to_grain
from wattloom.cluster.profile import MachineProfile
from wattloom.metering.proc import TICK_S
from wattloom.metering.protocol import Meter
from wattloom.metering.readings import Begun, Closed, Readings, Silent
from wattloom.monitoring.census import Count
from wattloom.monitoring.handing_out import Active, Policy, active_joules, reservations, shared_joules
from wattloom.monitoring.ledger import Ledger
from wattloom.monitoring.pending import Departed, Pending, Stretch, Who
from wattloom.monitoring.process import Process
from wattloom.monitoring.snapshot import DeviceUse, Parts, Snapshot, TaskUse
from wattloom.monitoring.weighing import ByCpuTime, Weighing
from wattloom.monitoring.whereabouts import Place

MOST_WAITING_S: Final = 600.0
"""After so long without a good reading the time is given up."""
SLEPT_S: Final = 0.1
"""Clocks that run on and that stop while the machine sleeps differ by more than this only if it slept."""
TOO_LONG: Final = "the machine slept for {:.0f} s between two looks: what it drew then is nobody's"


class Looks(Protocol):
    """What a census is for the watch."""

    @property
    def living(self) -> dict[int, Process]: ...

    def look(self) -> Count: ...

    def reserved(self, place: Place) -> float: ...


class Watch:
    """Say `look` about once a second, with a clock that never goes back and stops while the machine sleeps."""

    def __init__(
        self,
        census: Looks,
        meter: Meter,
        profile: MachineProfile,
        *,
        node: str = "",
        policy: IdlePolicy = "node",
        devices: Callable[[float], tuple[DeviceUse, ...]] | None = None,
        tasks: Callable[[float], tuple[TaskUse, ...]] | None = None,
        weighing: Weighing | None = None,
        own_pid: int | None = None,
    ) -> None:
        self.meter: Final = meter
        self._census: Final = census
        self._profile: Final = profile
        self._node: Final = node or profile.name
        self._policy: Final = Policy(policy, float(profile.threads))
        self._weighing: Final = weighing or ByCpuTime()
        self._devices, self._tasks = devices, tasks
        self._own: Final = os.getpid() if own_pid is None else own_pid
        self._draw: Final = MachineDraw(profile, meter)
        self._pending: Final = Pending()
        self._ledger: Final = Ledger(meter.model_error)
        self._totals, self._last_parts = Parts(), Parts()
        self._readings: Final = Readings(meter)
        self._looked: float | None = None
        self._since = 0.0
        """When the open interval began."""
        self._busy_s: float | None = None
        self._asleep_s: float | None = None
        self._own_s = 0.0

    def look(self, now: float, asleep_s: float = 0.0) -> Snapshot:
        """One look. `asleep_s`: how long the machine has slept since it was started, by which a nap is noticed."""
        count = self._census.look()
        self._since = now if self._looked is None else self._since
        self._put_by(count, now)
        problem = self._nap(now, asleep_s) or self._read(now)
        self._ledger.seen(self._census.living.values(), now)
        self._ledger.fold(now)
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
            self._weighing.look(used)
            rise = max(busy - before, 0.0) if busy is not None and before is not None else 0.0
            self._pending.add(Stretch(begin, self._looked, used, rise))

    def _nap(self, now: float, asleep_s: float) -> str:
        """What is to be said if the machine slept since the last look."""
        before, self._asleep_s = self._asleep_s, asleep_s
        slept = asleep_s - before if before is not None else 0.0
        if slept <= SLEPT_S:
            return ""
        self._give_up(now, slept)
        self._readings.forget()
        self._readings.look(now)
        return TOO_LONG.format(slept)

    # -- the interval ------------------------------------------------------------------------------------------------

    def _read(self, now: float) -> str:
        """Read the meter and close the interval if it can be. What is wrong; empty: nothing."""
        found = self._readings.look(now)
        if isinstance(found, Silent):
            if found.reason and now - self._since > MOST_WAITING_S:
                self._give_up(now)
                self._readings.forget()
            return found.reason
        if isinstance(found, Begun):
            self._give_up(found.reading.time)
            return found.reason
        self._close(found)
        return ""

    def _give_up(self, until: float, slept_s: float = 0.0) -> None:
        """The joules of this time will never be known."""
        self._pending.take_until(until)
        lost = max(until - self._since, 0.0) + slept_s
        self._totals = replace(self._totals, unknown_s=self._totals.unknown_s + lost)
        self._last_parts = Parts(unknown_s=lost)
        self._ledger.open_interval(0.0)
        self._since = max(until, self._since)

    def _close(self, interval: Closed) -> None:
        last, reading, seconds = interval.last, interval.reading, interval.seconds
        meter_j = to_grain(reading.joules) - to_grain(last.joules)
        ran = self._pending.take_until(reading.time)
        busy_s = ran.busy_s
        if reading.busy_s is not None and last.busy_s is not None:
            busy_s = max(reading.busy_s - last.busy_s, 0.0)
        tick_s = TICK_S * self._profile.threads**0.5
        self._draw.learn(seconds, meter_j, interval.resolution_j, busy_s, tick_s)
        used_s, idle_w = sum(ran.used.values()), self._draw.watts
        price = price_of(meter_j, interval.resolution_j, idle_w, seconds, busy_s, used_s, tick_s)
        self._weighing.learn(price.active_j / seconds, seconds)
        self._since = reading.time
        self._last_parts = self._hand_out(seconds, meter_j, price, ran, reading.time)
        self._totals = self._totals.plus(self._last_parts)

    def _hand_out(self, seconds: float, meter_j: float, price: Price, ran: Stretch, now: float) -> Parts:
        active = active_joules(ran.used, price, self._weighing.factor)
        own = sum(joules for who, joules in active.of.items() if self._is_own(who))
        idle, overhead = shared_joules(self._policy, price.idle_j, own, active, self._claims(active))
        self._ledger.open_interval(seconds)
        entities_j = shared_j = 0.0
        for who in {**active.of, **idle.parts, **overhead.parts}:
            if self._is_own(who):
                continue
            cpu_s, joules, borne = ran.used.get(who, 0.0), active.of.get(who, 0.0), idle.of(who) + overhead.of(who)
            self._ledger.charge(who, cpu_s, joules, borne, (cpu_s * price.spread) ** 2, now)
            entities_j += joules + borne
            shared_j += borne
        return Parts(seconds, meter_j, entities_j, idle.node_j, overhead.node_j, active.left_j, shared_j)

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
        entities = self._ledger.entities
        last = self._readings.last
        seen = last.time if last is not None else self._since
        return Snapshot(
            node=self._node,
            time=now,
            meter=self.meter.name,
            quantity=self.meter.quantity,
            provenance=self.meter.provenance,
            model_error=self.meter.model_error,
            policy=self._policy.name,
            shared_by=self._weighing.summary,
            last=self._last_parts,
            totals=self._totals,
            problem=problem,
            waiting_s=max(now - seen, 0.0),
            processes=entities("process", now),
            containers=entities("container", now),
            pods=entities("pod", now),
            vms=entities("vm", now),
            units=entities("unit", now),
            gone=dict(self._ledger.gone),
            devices=self._devices(now) if self._devices is not None else (),
            tasks=self._tasks(now) if self._tasks is not None else (),
            living=count.living,
            hidden=count.hidden,
            look_s=self._own_s,
        )
