"""Joules of single calls on a GPU: the executor with real workers, NVIDIA's real binding, and silicon of our own."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.attribution.test_own_meter import Steady
from tests.metering.gpu.silicon import LOST, Silicon, User
from tests.metering.scripted import Scripted

from wattloom import Executor, replay
from wattloom.attribution.gpu_beside import DevicesBeside
from wattloom.energy.forecast import Unknown
from wattloom.energy.measured import Energy
from wattloom.history.log import Log
from wattloom.local import build
from wattloom.local.future import TaskFuture
from wattloom.local.metered_accounting import MeteredAccounting
from wattloom.machines.this_machine import this_machine
from wattloom.metering.protocol import Quantity
from wattloom.scheduling import events as ev

IDLE_W, BUSY_W = 40.0, 240.0


class Packages(Steady):
    """50 W in the processors all the time."""

    quantity: Quantity = "package"


class Card:
    """A GPU at work: its counter rises, and its driver has ever new samples of who is busy."""

    def __init__(self, silicon: Silicon) -> None:
        self.silicon = silicon
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._watts, self._at, self.joules = IDLE_W, time.monotonic(), 0.0
        silicon.gpus[0].busy = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def run(self, *pids: int) -> None:
        """From now on these processes' kernels run, in equal parts of the time."""
        self._write()
        with self._lock:
            self._watts = BUSY_W if pids else IDLE_W
            self.silicon.gpus[0].busy = 80 if pids else 0
            self.silicon.users = [User(pid, busy=80 // len(pids)) for pid in pids]
        self._write()

    def rest(self) -> None:
        """Contexts are still held."""
        self._write()
        with self._lock:
            self._watts, self.silicon.gpus[0].busy = IDLE_W, 0
            for user in self.silicon.users:
                user.busy = 0
        self._write()

    def lose(self, code: int) -> None:
        with self._lock:
            self.silicon.gpus[0].energy_rc = code
        self._write()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.02):
            self._write()

    def _write(self) -> None:
        with self._lock:
            now = time.monotonic()
            drawn, self._at = self._watts * (now - self._at), now
            self.joules += drawn
            self.silicon.gpus[0].energy += round(drawn * 1e3)
            for user in self.silicon.users:
                user.stamp = round(now * 1e6)
            self.silicon.write()


@pytest.fixture
def card(nvidia: Silicon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Card]:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidiactl").touch()
    monkeypatch.setattr(build, "DEV", tmp_path / "dev")
    made = Card(nvidia)
    yield made
    made.stop()


@pytest.fixture
def executor(card: Card, tmp_path: Path) -> Iterator[Executor]:
    """One worker, which is warm; the card has been idle for a while."""
    with Executor(1, meter=Packages(), journal=tmp_path / "journal.db", policy="fifo") as made:
        metered(made, 0.05)
        time.sleep(0.7)
        yield made


def metered(executor: Executor, seconds: float) -> Energy | Unknown:
    return executor.submit(time.sleep, seconds).energy


def worker(executor: Executor) -> int:
    pid: int = executor.submit(os.getpid).result()
    return pid


def joules(future: TaskFuture) -> float:
    energy = future.energy
    assert isinstance(energy, Energy), energy
    return energy.joules


def test_a_call_on_the_gpu_has_its_joules_and_one_beside_it_has_none(executor: Executor, card: Card) -> None:
    pid = worker(executor)
    card.run(pid)
    on_it = joules(executor.submit(time.sleep, 1.2))
    card.rest()
    beside = joules(executor.submit(time.sleep, 0.3))
    assert on_it == pytest.approx((BUSY_W - IDLE_W) * 1.2, rel=0.25)
    assert beside < 30.0


def test_journal_and_replay_tell_what_the_futures_told_and_the_sum_holds(
    executor: Executor, card: Card, tmp_path: Path
) -> None:
    pid = worker(executor)
    card.run(pid)
    futures = [executor.submit(time.sleep, 0.4) for _ in range(3)]
    told = {future.task_id: joules(future) for future in futures}
    card.rest()
    executor.shutdown()
    meter = parts = 0.0
    tasks: dict[str, float] = {}
    for event in Log(tmp_path / "journal.db").events():
        if isinstance(event, ev.UsageArrived):
            meter += event.meter_j
            parts += event.idle_j + event.unattributed_j + event.running_j
            parts += sum(used.joules for used in event.functions.values())
            tasks |= {task: found for task, (found, _) in event.tasks.items()}
    assert parts == pytest.approx(meter)
    assert {task: tasks[task] for task in told} == pytest.approx(told)
    assert sum(told.values()) == pytest.approx((BUSY_W - IDLE_W) * 1.2, rel=0.25)
    assert replay(tmp_path / "journal.db").same_decisions


def test_short_calls_of_a_worker_on_the_gpu_have_their_share(executor: Executor, card: Card) -> None:
    pid = worker(executor)
    card.run(pid)
    metered(executor, 0.3)  # the driver shows the worker
    began = time.monotonic()
    futures = [executor.submit(time.sleep, 0.004) for _ in range(150)]
    for future in futures:
        future.result()
    took = time.monotonic() - began
    found = [joules(future) for future in futures]
    assert sum(found) == pytest.approx((BUSY_W - IDLE_W) * took, rel=0.4)
    assert sorted(found)[len(found) // 10] > 0.2, "only those at the edge of an interval may have hardly any"


def test_a_gpu_that_is_lost_leaves_its_calls_without_a_figure_and_the_next_ones_have_theirs(
    executor: Executor, card: Card
) -> None:
    pid = worker(executor)
    card.run(pid)
    metered(executor, 0.3)
    card.lose(LOST)
    lost = metered(executor, 0.2)
    assert isinstance(lost, Unknown)
    assert "GPU-" in lost.reason
    card.lose(0)
    metered(executor, 0.2)  # its count begins again
    assert joules(executor.submit(time.sleep, 0.5)) == pytest.approx((BUSY_W - IDLE_W) * 0.5, rel=0.4)


def test_a_meter_at_the_plug_has_the_gpu_in_it_and_nothing_is_added(card: Card, tmp_path: Path) -> None:
    here = this_machine()
    assert build.devices_beside(Steady(), here) is None
    assert isinstance(build.devices_beside(Packages(), here), DevicesBeside)
    by_cpu_time = Scripted()
    by_cpu_time.provenance = "estimated"
    assert isinstance(build.devices_beside(by_cpu_time, here), DevicesBeside), "an estimate sees no GPU"


def test_two_workers_on_one_gpu_share_it(card: Card, tmp_path: Path) -> None:
    with Executor(2, meter=Packages(), journal=tmp_path / "journal.db", policy="fifo") as executor:
        pids = {future.result() for future in [executor.submit(pid_after, 0.3) for _ in range(2)]}
        assert len(pids) == 2
        time.sleep(0.7)
        card.run(*pids)
        futures = [executor.submit(time.sleep, 1.0) for _ in range(2)]
        found = [joules(future) for future in futures]
        card.rest()
        accounting = executor._dispatcher._accounting
        assert isinstance(accounting, MeteredAccounting)
        assert accounting._apart == pids
    for each in found:
        assert each == pytest.approx((BUSY_W - IDLE_W) / 2.0, rel=0.3)


def pid_after(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def test_a_machine_without_devices_loads_nothing_for_them(tmp_path: Path) -> None:
    program = (
        "import sys, wattloom\n"
        "if __name__ == '__main__':\n"
        f"    with wattloom.Executor(1, journal={str(tmp_path / 'journal.db')!r}) as executor:\n"
        "        executor.submit(sum, [1, 2]).energy\n"
        "    ours = ('pynvml', 'amdsmi', 'wattloom.metering.nvml', 'wattloom.metering.amdsmi')\n"
        "    print([m for m in sys.modules if m.startswith((*ours, 'wattloom.attribution.gpu'))])\n"
    )
    (tmp_path / "program.py").write_text(program)
    if any((build.DEV / node).exists() for node in build.NODES):
        pytest.skip("This machine has an accelerator, so what others load for it is NOT TESTED: run it elsewhere")
    done = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
