"""tasks + idle + unattributed = meter: for whatever happens, and on a real machine."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.metering.scripted import Scripted
from tests.metering.trees import ProcTree, machine

from wattloom.attribution.account import Account
from wattloom.attribution.usage import Usage
from wattloom.machines.this_machine import allowed_cpus, this_machine
from wattloom.metering.estimate import Estimate
from wattloom.metering.proc import process_clock

WORKERS = (1, 2, 3)
SECONDS = st.floats(0.0, 5.0, allow_subnormal=False)
STEP = st.fixed_dictionaries(
    {
        "seconds": st.floats(0.001, 10.0),
        "watts": st.floats(0.0, 500.0),
        "busy": SECONDS,
        "own": st.floats(0.0, 0.5),
        "used": st.tuples(SECONDS, SECONDS, SECONDS),
        "ended": st.lists(st.tuples(st.sampled_from(WORKERS), st.floats(0.0, 8.0)), max_size=6),
        "running": st.sets(st.sampled_from(WORKERS)),
        "idle": st.sets(st.sampled_from(WORKERS)),
        "dies": st.sampled_from((None, None, None, *WORKERS)),
        "meter": st.sampled_from(("good", "good", "good", "unknown", "broken off")),
    }
)


class Life:
    """An account that goes through arbitrary steps, checked after each."""

    def __init__(self, folder: Path, learns: bool) -> None:
        self.proc = ProcTree(folder)
        self.meter = Scripted()
        self.meter.model_error = 0.4 if learns else 0.0
        self.account = Account(self.meter, machine("package" if learns else "wall", provenance="measured"), proc=folder)
        self.cpu = dict.fromkeys((0, *WORKERS), 0.0)
        self.now, self.tasks = 0.0, 0
        self.waiting: set[str] = set()
        self.running: dict[int, str] = {}
        for worker in WORKERS:
            self.start(worker)
        self.account.sample(0.0)

    def start(self, worker: int) -> None:
        self.cpu[worker] = 0.0
        self.proc.process(worker, 0.0)
        self.account.worker_started(worker)

    def task(self) -> str:
        self.tasks += 1
        return f"task-{self.tasks}"

    def step(self, step: dict) -> Usage:  # type: ignore[type-arg]
        self.now += step["seconds"]
        self.meter.problem = "out" if step["meter"] == "unknown" else ""
        self.meter.epoch += step["meter"] == "broken off"
        self.meter.joules += step["watts"] * step["seconds"]
        self.proc.work(step["busy"])
        self.cpu[0] += step["own"]
        self.proc.process("self", self.cpu[0])
        for worker, used in zip(WORKERS, step["used"], strict=True):
            self.cpu[worker] += used
            self.proc.process(worker, self.cpu[worker])
        self.tell(step)
        usage = self.account.sample(self.now)
        self.check(usage)
        return usage

    def tell(self, step: dict) -> None:  # type: ignore[type-arg]
        for worker, cpu_s in step["ended"]:
            ended = self.running.pop(worker, None) or self.task()
            self.waiting.add(ended)
            self.account.ended(worker, ended, f"f{self.tasks % 3}", cpu_s)
        for worker in step["running"]:
            self.running.setdefault(worker, self.task())
            self.account.running(worker, self.running[worker], f"f{worker % 2}")
        if step["dies"] is not None:
            task = self.running.pop(step["dies"], None)
            if task is not None:
                self.waiting.add(task)
            self.account.worker_gone(step["dies"])
            self.start(step["dies"])

    def check(self, usage: Usage) -> None:
        answered = [*usage.tasks, *usage.unknown]
        assert len(answered) == len(set(answered)), "a task is answered for twice"
        assert set(answered) <= self.waiting
        self.waiting -= set(answered)
        if usage.meter_j is None:
            assert usage.problem
            assert not usage.tasks
        else:
            assert not self.waiting, "a good reading must answer for every call that ended"
            parts = (usage.tasks_j, usage.held_j, usage.idle_j, usage.unattributed_j, usage.overhead_j)
            assert min(parts) >= 0.0
            assert sum(parts[:4]) == usage.meter_j + usage.held_before_j
            assert usage.overhead_j <= usage.unattributed_j
            assert usage.tasks_j == pytest.approx(sum(joules for joules, _ in usage.tasks.values()), abs=1e-6)
            assert all(spread >= 0.0 for _, spread in usage.tasks.values())
        totals = self.account.totals
        assert totals.meter_j == totals.tasks_j + totals.held_j + totals.idle_j + totals.unattributed_j


# No shrinking: every step writes files, and to shrink takes minutes.
@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.lists(STEP, min_size=1, max_size=8), st.booleans())
def test_tasks_and_idle_and_unattributed_are_the_meter_whatever_happens(
    steps: list[dict],  # type: ignore[type-arg]
    learns: bool,
) -> None:
    """Whether the meter can tell functions apart or not."""
    with TemporaryDirectory() as folder:
        life = Life(Path(folder), learns)
        for step in steps:
            life.step(step)
        for worker in WORKERS:
            life.account.idle(worker)
        calm = dict.fromkeys(("busy", "own"), 0.0) | {"seconds": 1.0, "watts": 10.0, "used": (0.0, 0.0, 0.0)}
        quiet = calm | {"ended": [], "running": set(), "dies": None, "meter": "good"}
        life.running.clear()
        life.step(quiet)
        life.step(quiet)
        totals = life.account.totals
        assert totals.held_j == 0.0, "with nothing running nothing is held"
        assert totals.meter_j == totals.tasks_j + totals.idle_j + totals.unattributed_j


BURN = """
import sys, time
print("ready", flush=True)
sys.stdin.readline()
share = float(sys.argv[1])
while True:
    until = time.process_time() + 0.02 * share
    while time.process_time() < until:
        pass
    time.sleep(0.02 * (1.0 - share))
"""
"""Be busy for a share of the time, until killed."""


@contextmanager
def burning(*shares: float) -> Iterator[list[subprocess.Popen[str]]]:
    command = [sys.executable, "-c", BURN]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen([*command, str(share)], stdin=pipe, stdout=pipe, text=True) for share in shares]
    try:
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def run_for_a_while(account: Account) -> tuple[list[Usage], list[float]]:
    """Two processes are one long call each; their workers go while they run. And the CPU seconds of each: a machine
    that is busy with something else may not give them what they want."""
    with burning(1.0, 0.2) as processes:
        for process in processes:
            account.worker_started(process.pid)
        account.sample(time.monotonic())
        for number, process in enumerate(processes):
            account.running(process.pid, f"task-{number}", "burn")
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        usages = []
        for _ in range(4):
            time.sleep(0.4)
            usages.append(account.sample(time.monotonic()))
        used = [process_clock(process.pid) or 0.0 for process in processes]
        for process in processes:
            account.worker_gone(process.pid)
    return [*usages, account.sample(time.monotonic())], used


def test_on_this_machine_the_parts_are_the_meter_and_processes_pay_by_what_they_used() -> None:
    profile = this_machine()
    account = Account(Estimate(profile, cpus=allowed_cpus()), profile)
    account.sample(time.monotonic())
    usages, used = run_for_a_while(account)
    for usage in usages:
        assert usage.meter_j is not None, usage.problem
        parts = usage.tasks_j + usage.held_j + usage.idle_j + usage.unattributed_j
        assert parts == usage.meter_j + usage.held_before_j
    ended = usages[-1].tasks
    assert ended["task-0"][0] / ended["task-1"][0] == pytest.approx(used[0] / used[1], rel=0.3)
    assert ended["task-0"][1] > 0.2 * ended["task-0"][0], "an estimate is not as sure as that"
    assert usages[-1].provenance == "estimated"
    totals = account.totals
    assert totals.meter_j == totals.tasks_j + totals.held_j + totals.idle_j + totals.unattributed_j
    assert totals.idle_j == pytest.approx(profile.watts[0][1] * totals.seconds, rel=0.01)
