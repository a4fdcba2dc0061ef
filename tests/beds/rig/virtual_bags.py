"""Bags on the rig in virtual time: the rig's machine, and functions of which E and W are known exactly.

Owns the played machine: its cores, power, counters and CPU clocks, step by step, and what bags of functions truly come
to on it. What is tried is the ordinary accounting with the ordinary meter, and the ordinary estimate from bags. The
loop that keeps workers busy is the bed's own; it is tried on the rig in real time.
"""

import tempfile
from collections import deque
from math import exp, sqrt
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Final

import msgspec
from tests.beds.rig.conditions import Conditions, active_watts

from wattloom.affinity.bags import Bag, Lots, drawn, rounds
from wattloom.affinity.estimating import profiles
from wattloom.affinity.running import CALL_S, tallied
from wattloom.affinity.seen import Bags, SeenBag, Setting, Trial
from wattloom.affinity.taking import QUIET_S, REST_S
from wattloom.affinity.timed import Timing
from wattloom.attribution.account import Account
from wattloom.energy.forecast import Unknown
from wattloom.energy.measured import Energy
from wattloom.local.frames import VALUE, EndFrame
from wattloom.local.future import TaskFuture
from wattloom.local.job import HostWorker, Job
from wattloom.local.metered_accounting import MeteredAccounting
from wattloom.machines.profile import MachineProfile
from wattloom.metering.powercap import Powercap
from wattloom.metering.proc import USER_HZ
from wattloom.workload.function_profile import FunctionProfile
from wattloom.workload.task import Task

CORES: Final = 2
STEP_S: Final = 0.005
OWN: Final = 0.01
"""Share of a core that the program itself uses."""
SHARES: Final = (0.25, 0.75, 1.0, 2.0)
"""Of its mean that the background uses, now this, now that."""
MEMORY: Final = Path("/dev/shm")


class Played(msgspec.Struct, frozen=True):
    """A function, as it truly is."""

    name: str
    seconds: float
    """Of one execution on a core, whoever is beside it."""
    intensity: float
    suffers: float
    """So much longer does it take beside one that presses fully."""
    presses: float

    def seconds_beside(self, other: "Played") -> float:
        return self.seconds * (1.0 + self.suffers * other.presses)


def functions(count: int, seed: int) -> list[Played]:
    """As different as functions are: from 1 ms to 0.3 s, from 0.6 to 2 times the power of ordinary code."""
    chance = Random(f"functions {seed}")
    return [
        Played(
            f"f{number:02d}",
            10.0 ** chance.uniform(-3.0, -0.5),
            0.6 * (2.0 / 0.6) ** chance.random(),
            chance.uniform(0.0, 0.15),
            chance.random(),
        )
        for number in range(count)
    ]


class Truth(msgspec.Struct, frozen=True):
    per_core_s: float
    joules: float


def truths(known: list[Played], how: Conditions) -> dict[str, Truth]:
    """E and W of each function among the others as lots bring them together: two run at a time, and every other is as
    likely as any."""
    found = {}
    for one in known:
        others = [each for each in known if each is not one] or [one]
        seconds = [one.seconds_beside(other) for other in others]
        joules = [_joules_per_s(one, other, how) * took for other, took in zip(others, seconds, strict=True)]
        found[one.name] = Truth(1.0 / fmean(seconds), fmean(joules))
    return found


def _joules_per_s(one: Played, other: Played, how: Conditions) -> float:
    """Of a CPU second of the one beside the other, over what the background does."""
    return one.intensity * fmean(_price(one, other, how, how.background * share) for share in SHARES)


def _price(one: Played, other: Played, how: Conditions, background: float) -> float:
    rate = 1.0 - (background + OWN) / CORES
    load = rate * (one.intensity + other.intensity) + background * how.background_intensity + OWN * how.rest
    return active_watts(how, load, CORES) / load


class _Call:
    def __init__(self, function: Played, number: int, beside: Played, chance: Random) -> None:
        self.function = function
        self.times = max(1, round(CALL_S / function.seconds))
        self.cpu_s = self.times * function.seconds_beside(beside) * exp(chance.gauss(0.0, 0.03))
        self.intensity = function.intensity * (1.0 + chance.gauss(0.0, 0.02))
        self.left_s = self.cpu_s
        self.future = TaskFuture(f"t{number}", number)
        self.job = Job(Task(f"t{number}", function.name), self.future, "", b"", b"", "")
        self.began = 0.0
        self.true_j = 0.0


class _Worker:
    def __init__(self, pid: int) -> None:
        self.host = HostWorker(pid, "here", pid)
        self.clock_s = 0.0
        self.call: _Call | None = None


class Machine:
    """The rig's machine in virtual time, with an account that reads its counters."""

    def __init__(self, folder: Path, how: Conditions, seed: int) -> None:
        self._how, self._folder, self._chance = how, folder, Random(f"machine {seed}")
        self.now = 1000.0
        self._workers = [_Worker(101 + number) for number in range(CORES)]
        self._own_s = self._busy_s = self._meter_j = self._shown_j = self._off = 0.0
        self._late: deque[tuple[float, float]] = deque()
        self._background, self._until = 0.0, 0.0
        self._numbers = 0
        self.true_j: list[dict[str, float]] = []
        """By bag and function, of the calls that count."""
        zone = folder / "powercap" / "intel-rapl:0"
        zone.mkdir(parents=True)
        (zone / "name").write_text("package-0\n")
        (zone / "max_energy_range_uj").write_text(f"{how.range_uj}\n")
        for name in ("self", *(str(worker.host.pid) for worker in self._workers)):
            (folder / "proc" / name).mkdir(parents=True)
        self._write()
        profile = MachineProfile(name="rig", arch="x86_64", cores=CORES, threads=CORES, memory=1 << 33)
        meter = Powercap(folder / "powercap", asleep=lambda: 0.0)
        self._accounting = MeteredAccounting(Account(meter, profile, proc=folder / "proc"), "here")
        self._accounting.begin(self.now)
        for worker in self._workers:
            self._accounting.worker_started(worker.host)
        self._pass(QUIET_S)

    def run(self, known: dict[str, Played], number: int, bag: Bag, seconds: float) -> SeenBag:
        """One bag, as the ordinary loop runs it."""
        some = rounds(bag, CORES)
        calls: dict[str, list[_Call]] = {name: [] for name in bag}
        self._pass(REST_S)
        began = self.now
        for each in some:
            for call in self._round([known[name] for name in each], seconds / len(some)):
                calls[call.function.name].append(call)
        self._read()
        self.true_j.append({name: sum(call.true_j for call in mine) for name, mine in calls.items()})
        seen = tuple(tallied(name, [self._told(call) for call in mine]) for name, mine in calls.items())
        return SeenBag(number=number, bag=bag, seen=seen, seconds=self.now - began)

    def _told(self, call: _Call) -> tuple[Timing, Energy | Unknown]:
        return Timing(call.times, call.began, call.cpu_s, 0.0, 0, False), call.future.energy

    # -- time ----------------------------------------------------------------------------------------------------------

    def _round(self, pair: list[Played], seconds: float) -> list[_Call]:
        end = self.now + seconds
        counted: list[_Call] = []
        for worker, function in zip(self._workers, pair, strict=True):
            self._begin(worker, function, pair)
        while self.now < end or len({call.function.name for call in counted}) < len({each.name for each in pair}):
            for worker in self._step():
                call = worker.call
                assert call is not None
                counted.append(call)
                self._end(worker)
                self._begin(worker, call.function, pair)
        while any(worker.call is not None for worker in self._workers):
            for worker in self._step():
                self._end(worker)
        return counted

    def _begin(self, worker: _Worker, function: Played, pair: list[Played]) -> None:
        beside = pair[1 - self._workers.index(worker)]
        self._numbers += 1
        call = worker.call = _Call(function, self._numbers, beside, self._chance)
        call.began = call.job.sent_at = self.now
        worker.host.sent.append(call.job)
        if self._accounting.due is None:  # it may be read now
            self._write()
        self._accounting.busy(worker.host, self.now)

    def _end(self, worker: _Worker) -> None:
        call = worker.call
        assert call is not None
        worker.call = None
        worker.host.ended_at = self.now
        job = worker.host.sent.popleft()
        wall_s = self.now - call.began
        frame = EndFrame(0, VALUE, b"", "", wall_s, call.cpu_s, b"", worker.clock_s)
        call.future.set_result(None)
        self._accounting.ended(worker.host, job, frame, self.now, True)

    def _pass(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self._step()

    def _step(self) -> list[_Worker]:
        """A step of time; the workers whose calls have come to their end."""
        how = self._how
        if self.now >= self._until:
            self._background = how.background * self._chance.choice(SHARES)
            self._until = self.now + 0.02 * self._chance.randrange(10, 60)
        rate = (1.0 - (self._background + OWN) / CORES) * STEP_S
        weighed = STEP_S * (self._background * how.background_intensity + OWN * how.rest)
        used_s, ended, gains = STEP_S * (self._background + OWN), [], []
        for worker in self._workers:
            call = worker.call
            if call is not None:
                gain = min(rate, call.left_s)
                call.left_s -= gain
                worker.clock_s += gain
                weighed += gain * call.intensity
                used_s += gain
                gains.append((call, gain))
                if call.left_s <= 0.0:
                    ended.append(worker)
        self._own_s += STEP_S * OWN
        self._busy_s += used_s
        self.now += STEP_S
        active_j = active_watts(how, weighed / STEP_S, CORES) * STEP_S
        for call, gain in gains:
            call.true_j += active_j * gain * call.intensity / weighed
        self._draw(active_j)
        due = self._accounting.due
        if due is not None and self.now >= due:
            self._read()
        return ended

    def _draw(self, active_j: float) -> None:
        """Move the counter: with noise, and later."""
        how = self._how
        kept = exp(-STEP_S / how.noise_s)
        self._off = self._off * kept + sqrt(1.0 - kept * kept) * self._chance.gauss(0.0, how.noise)
        self._meter_j += (how.idle_w * STEP_S + active_j) * (1.0 + self._off)
        self._late.append((self.now + how.lag_s, self._meter_j))
        while self._late and self._late[0][0] <= self.now:
            self._shown_j = self._late.popleft()[1]

    # -- what the kernel shows -----------------------------------------------------------------------------------------

    def _read(self) -> None:
        self._write()
        self._accounting.read(self.now, [worker.host for worker in self._workers if worker.host.sent])

    def _write(self) -> None:
        how, folder = self._how, self._folder
        steps = int(self._shown_j * 1e6) // how.step_uj * how.step_uj
        shown = (how.start_uj + steps) % (how.range_uj + 1)
        (folder / "powercap" / "intel-rapl:0" / "energy_uj").write_text(f"{shown}\n")
        (folder / "proc" / "stat").write_text(f"cpu {int(self._busy_s * USER_HZ)} 0 0 0 0 0 0 0\n")
        clocks = {"self": self._own_s} | {str(worker.host.pid): worker.clock_s for worker in self._workers}
        for name, clock_s in clocks.items():
            ticks = [0] * 14
            ticks[10] = int(clock_s * USER_HZ)
            (folder / "proc" / name / "stat").write_text(f"1 (p) R {' '.join(map(str, ticks))}\n")
            (folder / "proc" / name / "schedstat").write_text(f"{int(clock_s * 1e9)} 0 0\n")


def taken(known: list[Played], how: Conditions, lots: Lots, seconds: float) -> tuple[Bags, list[FunctionProfile]]:
    """Bags of these functions on that machine, and what they come to."""
    by_name = {each.name: each for each in known}
    setting = Setting(
        functions=tuple(by_name),
        lots=lots,
        seconds=seconds,
        machine="rig",
        cores=CORES,
        meter="powercap",
        provenance="measured",
        quantity="package",
    )
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        machine = Machine(Path(folder), how, lots.seed)
        seen = [machine.run(by_name, number, bag, seconds) for number, bag in enumerate(drawn(list(by_name), lots))]
    trials = tuple(Trial(function=name) for name in by_name)
    bags = Bags(setting=setting, began="", trials=trials, bags=tuple(seen))
    return bags, profiles(bags, "virtual rig")
