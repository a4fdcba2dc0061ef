"""Joules on virtual nodes: what each would draw, by its profile, with the calls that run on it.

Owns the integral over time of each node's curve and its split over the calls. There is no meter: a virtual node's
figure is modelled, from the true times of real calls. Used in place of metered accounting.
"""

from typing import Final

from wattloom.energy.used import Used
from wattloom.local.accounting import COVERED, Told
from wattloom.local.frames import EndFrame
from wattloom.local.future import Reading
from wattloom.local.job import HostWorker, Job
from wattloom.local.nodes import LocalNode
from wattloom.machines.curves import curve_error
from wattloom.machines.machine import Machine
from wattloom.scheduling.events import UsageArrived
from wattloom.units import millicores

READ_EVERY_S: Final = 0.25


class Drawing:
    """A call that runs: the millicores it keeps busy, and its joules."""

    __slots__ = ("_since_j", "_since_s", "cpu", "joules")

    def __init__(self, cpu: int) -> None:
        self.cpu: Final = cpu
        self.joules: float = 0.0
        self._since_j: float = 0.0
        self._since_s: float = 0.0
        """Joules and seconds since the last reading."""

    def take(self, joules: float, seconds: float) -> None:
        self.joules += joules
        self._since_j += joules
        self._since_s += seconds

    def watts(self, seconds: float) -> float | None:
        """Since the last reading so many seconds ago; None: it has not run long enough. Another reading begins."""
        joules, ran = self._since_j, self._since_s
        self._since_j = self._since_s = 0.0
        return joules / ran if ran > 0.0 and ran >= COVERED * seconds else None


class VirtualMeter:
    """One node: what it has drawn since it was last read, and for whom."""

    def __init__(self, node: LocalNode) -> None:
        self.name: Final = node.name
        self.error: Final = curve_error(node.profile)
        self._machine: Final = Machine(node.profile)
        self._at: float = 0.0
        self._running: dict[str, Drawing] = {}
        self._demand: int = 0
        self._floor_w: float = self._machine.idle_w
        self.seconds: float = 0.0
        self.idle_j: float = 0.0
        self.active_j: float = 0.0
        self.ended: dict[str, tuple[float, float]] = {}
        self.used: dict[str, Used] = {}

    def set_mode(self, mode: str, now: float) -> None:
        self.advance(now)
        profile, machine = self._machine.profile, self._machine
        if mode == "waking" and profile.wake_s <= 0.0:
            self.idle_j += profile.wake_j
        waking_w = profile.wake_j / profile.wake_s if profile.wake_s > 0.0 else machine.idle_w
        self._floor_w = {"asleep": machine.sleep_w, "waking": waking_w}.get(mode, machine.idle_w)

    def start(self, task: str, cpu: int, now: float) -> None:
        self.advance(now)
        if task not in self._running:
            self._running[task] = Drawing(cpu)
            self._demand += cpu

    def end(self, task: str, now: float) -> float | None:
        """The joules of a call that has ended; None: it was not here."""
        self.advance(now)
        if task not in self._running:
            return None
        drawing = self._running.pop(task)
        self._demand -= drawing.cpu
        return drawing.joules

    def advance(self, now: float) -> None:
        """Count up to now."""
        seconds, self._at = now - self._at, now
        if seconds <= 0.0:
            return
        self.seconds += seconds
        self.idle_j += self._floor_w * seconds
        if self._demand:
            active_j = (self._machine.watts(self._demand) - self._machine.idle_w) * seconds
            self.active_j += active_j
            for drawing in self._running.values():
                drawing.take(active_j * drawing.cpu / self._demand, seconds)

    def read(self, now: float) -> tuple[UsageArrived, dict[str, Used], dict[str, float]]:
        """What came since the last time."""
        self.advance(now)
        ended_j = sum(joules for joules, _ in self.ended.values())
        event = UsageArrived(
            now,
            self.name,
            self.seconds,
            self.idle_j + self.active_j,
            self.idle_j,
            0.0,
            self.active_j - ended_j,
            "modelled",
            self.used,
            self.ended,
        )
        used, draws = self.used, self._draws()
        self.seconds = self.idle_j = self.active_j = 0.0
        self.ended, self.used = {}, {}
        return event, used, draws

    def _draws(self) -> dict[str, float]:
        """Watts of each call that runs and is measured by now."""
        draws: dict[str, float] = {}
        for task, drawing in self._running.items():
            watts = drawing.watts(self.seconds)
            if watts is not None:
                draws[task] = watts
        return draws


class VirtualAccounting:
    """The meters of all virtual nodes."""

    def __init__(self, nodes: list[LocalNode]) -> None:
        self._meters: Final = {node.name: VirtualMeter(node) for node in nodes}
        self.due: float | None = None

    def begin(self, now: float) -> None:
        for meter in self._meters.values():
            meter.read(now)

    def worker_started(self, worker: HostWorker) -> None:
        """Workers cost nothing here: only calls do."""

    def worker_gone(self, worker: HostWorker, now: float) -> None:
        """What it was at is paid for all the same."""
        if worker.sent:
            self._charge(worker, worker.sent[0], now)

    def busy(self, worker: HostWorker, now: float) -> None:
        """Its first call runs."""
        job = worker.sent[0]
        self._meters[worker.node].start(job.task.id, millicores(job.cpu), now)
        if self.due is None:
            self.due = now + READ_EVERY_S

    def ended(self, worker: HostWorker, job: Job, end: EndFrame, now: float, finished: bool) -> None:
        """And the next one begins."""
        seconds = end.seconds
        joules = self._charge(worker, job, now)
        if finished:
            used = self._meters[worker.node].used
            one = Used(1, seconds, seconds * seconds, joules, joules * joules, 1, seconds * job.cpu)
            used[job.function] = used.get(job.function, Used()) + one
        if worker.sent:
            self.busy(worker, now)

    def _charge(self, worker: HostWorker, job: Job, now: float) -> float:
        """What an attempt cost, beside earlier ones."""
        meter = self._meters[worker.node]
        joules = meter.end(job.task.id, now) or 0.0
        before = meter.ended.get(job.task.id, (0.0, 0.0))
        meter.ended[job.task.id] = (before[0] + joules, before[1] + joules * meter.error)
        spent = job.future._energy
        earlier = spent if isinstance(spent, tuple) else (0.0, 0.0, "modelled")
        job.future._energy = (earlier[0] + joules, earlier[1] + joules * meter.error, "modelled")
        return joules

    def node_mode(self, node: str, mode: str, now: float) -> None:
        self._meters[node].set_mode(mode, now)

    def read(self, now: float, busy: list[HostWorker]) -> Told:
        self.due = now + READ_EVERY_S if busy else None
        return [meter.read(now) for meter in self._meters.values()]

    def ask(self, reading: Reading) -> None:
        """Figures are there as soon as a call has ended."""
        reading.done.set()

    def close(self) -> None:
        """There is nothing to close."""
