"""Joules for calls: when the meter is read, and who is told.

Owns the time of readings and the futures that wait for a figure. The arithmetic is the account's. Used by the
dispatcher's thread alone.
"""

from typing import Final
from weakref import ref

from wattloom.attribution.account import Account
from wattloom.attribution.usage import Usage
from wattloom.energy.forecast import Unknown
from wattloom.energy.measured import Energy
from wattloom.energy.used import Used
from wattloom.local.desk import Told
from wattloom.local.frames import EndFrame
from wattloom.local.future import Reading, TaskFuture
from wattloom.local.job import Job
from wattloom.local.workforce import WorkerProcess
from wattloom.scheduling import events as ev

READ_EVERY_S: Final = 0.5
"""While calls run."""
SHORT_S: Final = 0.01
"""Calls shorter than this pay by their interval's tariff; longer ones are worth a figure of their own."""
FLUSH_S: Final = 0.021
"""A worker keeps its results so long at most: what it makes now may have begun so much before its last word."""
READ_AFTER_S: Final = 0.05
"""After the last call has ended."""


class EnergyDesk:
    """One account, and everybody who wants to hear of it."""

    def __init__(self, account: Account, node: str) -> None:
        self.account: Final = account
        self._node: Final = node
        self._waiting: dict[str, ref[TaskFuture]] = {}
        """Ended calls whose joules are not known yet."""
        self._seconds: dict[str, list[float]] = {}
        """By function, of calls that finished since the last good reading: calls, seconds, seconds squared, and seconds
        times the cores asked for."""
        self.due: float | None = None
        """When the meter is read next; None: nothing runs."""
        self._readers: list[Reading] = []
        self._read_at: float = -1.0

    def begin(self, now: float) -> None:
        """The first reading: from now on joules are counted."""
        self.account.sample(now)
        self._read_at = now

    def ended(self, worker: WorkerProcess, job: Job, end: EndFrame, now: float, finished: bool) -> None:
        """A call came to its end."""
        future = job.future
        tariff = None
        seconds, cpu_s = end.seconds, end.cpu_s
        if seconds < SHORT_S and future._energy is None and not future._owed:
            tariff = self.account.ended_short(worker.pid, job.function, cpu_s, end.clock_s)
        if tariff is not None:
            future._energy = cpu_s
            future._tariff = tariff
            job.cpu_s = cpu_s
        else:
            self.account.ended(worker.pid, job.task.id, job.function, cpu_s, end.clock_s)
            self._owe(job)
        if self.due is None:
            self.due = now + READ_AFTER_S
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

    def worker_started(self, worker: WorkerProcess) -> None:
        self.account.worker_started(worker.pid)

    def worker_gone(self, worker: WorkerProcess, now: float) -> None:
        """To be told before it is reaped, while its CPU time can be read. What it was at is paid for all the same."""
        if worker.sent:
            job = worker.sent[0]
            self.account.running(worker.pid, job.task.id, job.function)
            self._owe(job)
            self.due = now
        self.account.worker_gone(worker.pid)

    def node_mode(self, node: str, mode: str, now: float) -> None:
        """This machine does not sleep while it works."""

    def busy(self, worker: WorkerProcess, now: float) -> None:
        """Something runs. After a pause the meter is read first: what comes is not to pay for the pause."""
        if self.due is None:
            if now - self._read_at > READ_EVERY_S:
                self.account.sample(now)
                self._read_at = now
            self.due = now + READ_EVERY_S

    def ask(self, reading: Reading) -> None:
        """Somebody wants to know now."""
        self._readers.append(reading)
        self.due = self._read_at

    def read(self, now: float, busy: list[WorkerProcess]) -> Told:
        """Read the meter, hand the figures out, and say what the engine is to be told."""
        for worker in busy:
            job = worker.sent[0]
            since = max(job.sent_at, worker.ended_at - FLUSH_S)
            self.account.running(worker.pid, job.task.id, job.function, now - since)
        usage = self.account.sample(now)
        self._read_at = now
        self.due = now + READ_EVERY_S if busy else None
        self._hand_out(usage)
        for reader in self._readers:
            reader.done.set()
        self._readers.clear()
        if usage.meter_j is None:
            if self._waiting or self._seconds:
                self.due = now + READ_EVERY_S
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
        return [(event, used)]

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
