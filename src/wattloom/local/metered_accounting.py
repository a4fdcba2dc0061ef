"""Joules for calls: when the meter is read, and who is told.

Owns the time of readings and the futures that wait for a figure. The arithmetic is the accounts': of the processors,
and of devices beside them if there are any. Used by the dispatcher's thread alone.
"""

import logging
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Final
from weakref import ref

from wattloom.attribution.account import Account
from wattloom.attribution.usage import Usage
from wattloom.energy.forecast import Unknown
from wattloom.energy.measured import Energy
from wattloom.energy.used import Used
from wattloom.local.accounting import COVERED, ReadingPace, Told
from wattloom.local.frames import EndFrame
from wattloom.local.future import Reading, TaskFuture
from wattloom.local.job import HostWorker, Job
from wattloom.metering.patient_meter import PatientMeter
from wattloom.metering.protocol import period_s
from wattloom.scheduling import events as ev

if TYPE_CHECKING:
    from wattloom.attribution.gpu_beside import DevicesBeside

SHORT_S: Final = 0.01
"""Calls shorter than this pay by their interval's tariff; longer ones are worth a figure of their own."""
FLUSH_S: Final = 0.021
"""A worker keeps its results so long at most: what it makes now may have begun so much before its last word."""
READ_AFTER_S: Final = 0.05
"""After the last call has ended."""
SILENT_S: Final = 2.0
"""A meter that says nothing for so long is worth a warning."""
LOG: Final = logging.getLogger("wattloom")


class MeteredAccounting:
    """One account, with or without devices beside it, and everybody who wants to hear of it."""

    def __init__(self, account: Account, node: str, devices: "DevicesBeside | None" = None) -> None:
        self.account: Final = account
        self._node: Final = node
        self._devices: Final = devices
        self._apart: set[int] = set()
        """Workers that use a device: their short calls, too, have figures of their own."""
        self._pace: Final = ReadingPace()
        self._running: list[str] = []
        """Tasks that ran at the last reading."""
        self._held_j: dict[str, float] = {}
        """Their joules by then."""
        self._waiting: dict[str, ref[TaskFuture]] = {}
        """Ended calls whose joules are not known yet."""
        self._seconds: dict[str, list[float]] = {}
        """By function, of calls that finished since the last good reading: calls, seconds, seconds squared, and seconds
        times the cores asked for."""
        self.due: float | None = None
        """When the meter is read next; None: nothing runs."""
        self._silent_since: float | None = None
        """Since when the meter has said nothing; None: it has."""
        self._readers: list[Reading] = []
        self._read_at: float = -1.0
        self._soon: float = 0.0
        """When the meter is read next at the usual pace."""
        self._dozing: bool = False
        """Whether it is read later than that, since nothing changes."""

    def begin(self, now: float) -> None:
        """The first reading: from now on joules are counted."""
        self._sample(now)

    def _sample(self, now: float) -> Usage:
        """One look at everything, and what it took."""
        began = perf_counter()
        usage = self.account.sample(now)
        if self._devices is not None:
            usage = self._devices.beside(usage, now)
            self._apart = self._devices.users
        self._read_at = now
        self._pace.was_read(perf_counter() - began, period_s(self.account.meter))
        self._soon = now + self._pace.usual_s
        self._note_silence(usage, now)
        return usage

    def _note_silence(self, usage: Usage, now: float) -> None:
        """Say once that there are no joules to be had, when that has lasted for a while."""
        if usage.meter_j is not None or usage.unknown or usage.seconds <= 0.0:
            self._silent_since = None
        elif self._silent_since is None:
            self._silent_since = now
        elif now - self._silent_since >= SILENT_S:
            self._silent_since = inf  # it was said
            LOG.warning("calls have no joules until the meter answers: %s", usage.problem)

    def close(self) -> None:
        """The thread that asks the meter ends."""
        if isinstance(self.account.meter, PatientMeter):
            self.account.meter.close()

    def ended(self, worker: HostWorker, job: Job, end: EndFrame, now: float, finished: bool) -> None:
        """A call came to its end."""
        future = job.future
        tariff = None
        seconds, cpu_s = end.seconds, end.cpu_s
        if seconds < SHORT_S and future._energy is None and not future._owed and worker.pid not in self._apart:
            tariff = self.account.ended_short(worker.pid, job.function, cpu_s, end.clock_s)
        if tariff is not None:
            future._energy = cpu_s
            future._tariff = tariff
            job.cpu_s = cpu_s
        else:
            self.account.ended(worker.pid, job.task.id, job.function, cpu_s, end.clock_s)
            if self._devices is not None:
                self._devices.ended(worker.pid, job.task.id, job.function, seconds, now)
            self._owe(job)
        if self.due is None or self._dozing:
            self._wake_up(now + READ_AFTER_S)
        if finished:
            self._count(job, seconds)

    def _owe(self, job: Job) -> None:
        """It will have a figure of its own when the meter is read, beside those of earlier attempts."""
        job.future._owed = 1
        self._waiting[job.task.id] = ref(job.future)

    def _count(self, job: Job, seconds: float) -> None:
        sums = self._seconds.get(job.function)
        if sums is None:
            sums = self._seconds[job.function] = [0, 0.0, 0.0, 0.0]
        sums[0] += 1
        sums[1] += seconds
        sums[2] += seconds * seconds
        sums[3] += seconds * job.cpu

    def worker_started(self, worker: HostWorker) -> None:
        self.account.worker_started(worker.pid)
        if self._devices is not None:
            self._devices.worker_started(worker.pid)

    def worker_gone(self, worker: HostWorker, now: float) -> None:
        """To be told before it is reaped, while its CPU time can be read. What it was at is paid for all the same."""
        if worker.sent:
            job = worker.sent[0]
            self.account.running(worker.pid, job.task.id, job.function)
            if self._devices is not None:
                self._devices.ended(worker.pid, job.task.id, "", now - max(job.sent_at, worker.ended_at), now)
            self._owe(job)
            self.due = now
        self.account.worker_gone(worker.pid)
        if self._devices is not None:
            self._devices.worker_gone(worker.pid)

    def node_mode(self, node: str, mode: str, now: float) -> None:
        """This machine does not sleep while it works."""

    def busy(self, worker: HostWorker, now: float) -> None:
        """Something runs. After a pause, or a time in which nothing changed, the meter is read first: what comes is not
        to pay for what was."""
        if self.due is None:
            if now > self._soon:
                self._sample(now)
            self.due = now + self._pace.usual_s
        elif self._dozing:
            self._wake_up(now)

    def _wake_up(self, when: float) -> None:
        """Something changed: read the meter then, or as soon as the usual pace allows it."""
        self.due = when if self.due is None else min(self.due, max(when, self._soon))
        self._dozing = False

    def ask(self, reading: Reading) -> None:
        """Somebody wants to know now."""
        self._readers.append(reading)
        self.due = self._read_at

    def read(self, now: float, busy: list[HostWorker]) -> Told:
        """Read the meter, hand the figures out, and say what the engine is to be told."""
        running = []
        ran: dict[int, tuple[str, float]] = {}
        for worker in busy:
            job = worker.sent[0]
            since = max(job.sent_at, worker.ended_at - FLUSH_S)
            ran[worker.pid] = (job.task.id, now - since)
            self.account.running(worker.pid, job.task.id, job.function, now - since)
            running.append(job.task.id)
            if self._devices is not None:
                since = max(job.sent_at, worker.ended_at)
                self._devices.running(worker.pid, job.task.id, job.function, since)
        usage = self._sample(now)
        changed = bool(self._waiting or self._seconds or running != self._running)
        self._running = running
        self.due = now + self._pace.next_s(changed) if busy else None
        self._dozing = self.due is not None and self.due > self._soon
        self._hand_out(usage)
        for reader in self._readers:
            reader.problem = usage.problem if usage.meter_j is None else ""
            reader.done.set()
        self._readers.clear()
        if usage.meter_j is None:
            if self._waiting or self._seconds:
                self.due = now + self._pace.least_s
            return []
        used = self._used(usage)
        event = ev.UsageArrived(
            now,
            self._node,
            usage.seconds,
            usage.meter_j,
            usage.idle_j,
            usage.unattributed_j,
            usage.held_j - usage.held_before_j,
            usage.provenance,
            used,
            usage.tasks,
            usage.cpu_second,
            usage.cpu_second_of,
        )
        return [(event, used, self._draws(ran, usage.seconds))]

    def _draws(self, ran: dict[int, tuple[str, float]], seconds: float) -> dict[str, float]:
        """Watts of each call that runs, where it ran for long enough since the last reading."""
        before, self._held_j = self._held_j, {}
        draws: dict[str, float] = {}
        for worker, (task, ran_s) in ran.items():
            joules = self._held_j[task] = self.account.held_j(worker)
            if ran_s > 0.0 and ran_s >= COVERED * seconds:
                draws[task] = max(joules - before.get(task, 0.0), 0.0) / min(ran_s, seconds)
        return draws

    def _hand_out(self, usage: Usage) -> None:
        provenance, waiting = usage.provenance, self._waiting
        for task, (joules, spread) in usage.tasks.items():
            found = waiting.pop(task, None)
            future = found() if found is not None else None
            if future is not None:
                before = future._known_energy()  # of an attempt that failed
                if isinstance(before, Energy):
                    joules, spread = joules + before.joules, spread + before.spread
                future._energy = (joules, spread, provenance)
                future._owed = 0
        for task in usage.unknown:
            found = waiting.pop(task, None)
            future = found() if found is not None else None
            if future is not None:
                future._energy = Unknown(usage.problem)
                future._owed = 0

    def _used(self, usage: Usage) -> dict[str, Used]:
        seconds, self._seconds = self._seconds, {}
        found: dict[str, Used] = {}
        for function, (calls, total, squared, core_s) in seconds.items():
            metered, joules, joules_squared = usage.functions.get(function, (0, 0.0, 0.0))
            metered = min(metered, int(calls))
            found[function] = Used(int(calls), total, squared, joules, joules_squared, metered, core_s)
        return found
