"""Joules of calls on devices beside those on the processors: sums that hold whatever happens, and who has no figure."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.attribution.test_gpu_account import Devices, told
from tests.metering.scripted import Scripted
from tests.metering.trees import ProcTree, machine

from wattloom.attribution.account import Account
from wattloom.attribution.gpu_beside import DevicesBeside
from wattloom.attribution.usage import Usage
from wattloom.energy.forecast import Unknown
from wattloom.metering.devices import DeviceProcess

WORKERS = (1, 2)
IDLE_W = 40.0


class Scene:
    """Two workers, processors at 10 W for each busy CPU second, and a device that idles at 40 W."""

    def __init__(self, folder: Path) -> None:
        self.proc = ProcTree(folder)
        self.proc.process("self", 0.0)
        self.meter, self.cards = Scripted(), Devices()
        self.account = Account(self.meter, machine(provenance="measured"), proc=self.proc.root)
        self.devices = DevicesBeside([self.cards])
        self.now, self.device_j, self.epoch = 0.0, 0.0, 0
        self.silent = ""
        for worker in WORKERS:
            self.proc.process(worker, 0.0)
            self.account.worker_started(worker)
            self.devices.worker_started(worker)
        for _ in range(3):
            self.look(1.0, IDLE_W, {})

    def look(self, seconds: float, watts: float, busy: dict[int, float | None]) -> Usage:
        self.now += seconds
        self.meter.joules += 30.0 * seconds
        self.proc.work(0.5 * seconds)
        self.device_j += watts * seconds
        self.cards.counts["gpu"] = Unknown(self.silent) if self.silent else told(self.now, self.device_j, self.epoch)
        self.cards.busy["gpu"] = min(sum(share or 0.0 for share in busy.values()), 1.0)
        self.cards.users = [DeviceProcess(pid, "gpu", share, 1 << 30) for pid, share in busy.items()]
        usage = self.devices.beside(self.account.sample(self.now), self.now)
        check(usage)
        return usage

    def held(self, usage: Usage) -> float:
        """On the device alone."""
        return usage.held_j - self.account.totals.held_j

    def ended(self, worker: int, task: str, seconds: float, cpu_s: float = 0.0) -> None:
        self.account.ended(worker, task, "infer", cpu_s)
        self.devices.ended(worker, task, "infer", seconds, self.now + 1.0)

    def running(self, worker: int, task: str, since: float) -> None:
        self.account.running(worker, task, "infer")
        self.devices.running(worker, task, "infer", since)


def check(usage: Usage) -> None:
    if usage.meter_j is not None:
        parts = (usage.tasks_j, usage.held_j, usage.idle_j, usage.unattributed_j, usage.overhead_j)
        assert min(parts) >= 0.0
        assert sum(parts[:4]) == usage.meter_j + usage.held_before_j
        assert usage.overhead_j <= usage.unattributed_j
        assert usage.tasks_j == pytest.approx(sum(joules for joules, _ in usage.tasks.values()), abs=1e-5)
        assert all(spread >= 0.0 for _, spread in usage.tasks.values())
        assert all(calls >= 0 and total >= 0.0 for calls, total, _ in usage.functions.values())
    assert not set(usage.tasks) & set(usage.unknown)
    assert not usage.unknown or usage.problem


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_call_has_its_joules_on_the_device_beside_its_own(scene: Scene) -> None:
    scene.ended(1, "a", 0.5)
    usage = scene.look(1.0, 240.0, {1: 0.8})
    assert usage.tasks["a"][0] == pytest.approx(200.0)
    assert usage.functions["infer"] == pytest.approx((1, 200.0, 200.0**2))
    assert usage.meter_j == pytest.approx(30.0 + 240.0)
    assert usage.idle_j >= IDLE_W


def test_calls_that_a_worker_tells_of_together_share_by_their_time(scene: Scene) -> None:
    for task, seconds in (("a", 0.3), ("b", 0.1), ("c", 0.4)):
        scene.ended(1, task, seconds)
    usage = scene.look(1.0, 240.0, {1: 0.8})
    assert {task: round(joules) for task, (joules, _) in usage.tasks.items()} == {"a": 75, "b": 25, "c": 100}


def test_a_call_that_runs_through_several_looks_has_all_of_them_and_the_next_one_none(scene: Scene) -> None:
    began = scene.now
    for second in (1.0, 2.0):
        scene.running(1, "a", began)
        usage = scene.look(1.0, 240.0, {1: 0.9})
        assert not usage.tasks
        assert scene.held(usage) == pytest.approx(200.0 * second)
    scene.ended(1, "a", 3.0)
    usage = scene.look(1.0, 240.0, {1: 0.9})
    assert usage.tasks["a"][0] == pytest.approx(600.0)
    assert scene.held(usage) == 0.0
    scene.ended(1, "b", 1.0)
    assert scene.look(1.0, IDLE_W, {1: 0.0}).tasks["b"][0] == pytest.approx(0.0, abs=1e-6)


def test_a_worker_without_a_call_and_strangers_are_unattributed(scene: Scene) -> None:
    scene.ended(1, "a", 1.0)
    usage = scene.look(1.0, 240.0, {1: 0.2, 2: 0.2, 99: 0.4})
    assert usage.tasks["a"][0] == pytest.approx(50.0)
    assert usage.unattributed_j >= 150.0 - 1e-6
    assert usage.overhead_j == pytest.approx(50.0, abs=1.0), "the worker's alone: it is ours"


def test_a_call_on_a_device_that_is_silent_has_no_figure_and_others_have_theirs(scene: Scene) -> None:
    scene.look(1.0, 240.0, {1: 0.5})
    scene.silent = "it is lost"
    scene.ended(1, "a", 0.5, cpu_s=0.2)
    scene.ended(2, "b", 0.5, cpu_s=0.2)
    usage = scene.look(1.0, 240.0, {1: 0.5})
    assert usage.unknown == ("a",)
    assert "gpu: it is lost" in usage.problem
    assert set(usage.tasks) == {"b"}
    assert usage.functions["infer"][0] == 1, "nothing is learned from it"


def test_when_the_device_is_back_nobody_pays_for_calls_that_were_given_up(scene: Scene) -> None:
    scene.look(1.0, 240.0, {1: 0.8})
    scene.silent = "it is busy"
    scene.ended(1, "a", 1.0)
    scene.look(1.0, 240.0, {1: 0.8})
    scene.ended(1, "b", 1.0)
    scene.look(1.0, 240.0, {1: 0.8})
    scene.silent = ""
    scene.ended(1, "c", 1.0)
    usage = scene.look(1.0, 240.0, {1: 0.8})
    assert usage.tasks["c"][0] == pytest.approx(200.0), "of three seconds one was its own"
    assert usage.meter_j == pytest.approx(30.0 + 720.0)


def test_a_running_call_pays_for_a_silence_that_is_over(scene: Scene) -> None:
    began = scene.now
    for silent in ("it is busy", ""):
        scene.silent = silent
        scene.running(1, "a", began)
        scene.look(1.0, 240.0, {1: 0.8})
    scene.ended(1, "a", 3.0)
    assert scene.look(1.0, 240.0, {1: 0.8}).tasks["a"][0] == pytest.approx(600.0)


def test_a_count_that_broke_off_takes_the_figures_of_all_who_ran_there(scene: Scene) -> None:
    scene.look(1.0, 240.0, {1: 0.8})
    scene.epoch, scene.device_j = 1, 0.0
    scene.running(1, "a", scene.now)
    scene.ended(2, "b", 0.5)
    usage = scene.look(1.0, 0.0, {1: 0.8})
    assert set(usage.tasks) == {"b"}
    assert usage.meter_j == pytest.approx(30.0), "no joules are invented for the device"
    scene.ended(1, "a", 2.0)
    usage = scene.look(1.0, 240.0, {1: 0.8})
    assert usage.unknown == ("a",)
    assert "broke off" in usage.problem
    scene.ended(1, "c", 1.0)
    assert scene.look(1.0, 240.0, {1: 0.8}).tasks["c"][0] == pytest.approx(200.0)


def test_a_driver_that_raises_or_forgets_its_device_is_silent(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.look(1.0, 240.0, {1: 0.8})

    def fails(now: float) -> tuple[DeviceProcess, ...]:
        raise RuntimeError("the driver is gone")

    monkeypatch.setattr(scene.cards, "processes", fails)
    scene.ended(1, "a", 1.0)
    usage = scene.look(1.0, 240.0, {1: 0.8})
    assert usage.unknown == ("a",)
    assert "does not tell of it any more" in usage.problem


def test_while_the_processors_have_no_reading_the_devices_joules_are_kept(scene: Scene) -> None:
    scene.meter.problem = "out"
    scene.ended(1, "a", 1.0)
    assert scene.look(1.0, 240.0, {1: 0.8}).meter_j is None
    scene.meter.problem = ""
    usage = scene.look(1.0, IDLE_W, {1: 0.0})
    assert usage.tasks["a"][0] == pytest.approx(200.0)
    assert usage.meter_j == pytest.approx(60.0 + 280.0)


def test_a_call_whose_worker_died_has_paid_and_its_number_is_forgotten(scene: Scene) -> None:
    scene.look(1.0, 240.0, {1: 0.8})
    assert scene.devices.users == {1}
    scene.account.running(1, "a", "infer")
    scene.devices.ended(1, "a", "", 1.0, scene.now + 1.0)
    scene.account.worker_gone(1)
    scene.devices.worker_gone(1)
    usage = scene.look(1.0, 240.0, {1: 0.8})
    assert usage.tasks["a"][0] == pytest.approx(200.0)
    assert usage.functions == {}, "nothing is learned from a call that was cut off"
    assert scene.devices.users == set()


def test_the_poorer_of_two_sources_is_told(scene: Scene) -> None:
    scene.meter.provenance = "estimated"
    scene.ended(1, "a", 1.0)
    assert scene.look(1.0, 240.0, {1: 0.8}).provenance == "estimated"


def test_thousands_of_short_calls_are_shared_out_in_no_time(scene: Scene) -> None:
    for number in range(5000):
        scene.ended(1, f"t{number}", 1e-4)
    usage = scene.look(1.0, 240.0, {1: 0.8})
    assert usage.tasks_j == pytest.approx(200.0, abs=0.1)
    assert usage.tasks["t17"][0] == pytest.approx(200.0 / 5000, rel=0.01)
    assert usage.tasks["t17"][1] >= 0.0


SHARE = st.one_of(st.none(), st.floats(0.0, 1.0))
STEP = st.fixed_dictionaries(
    {
        "seconds": st.floats(0.01, 5.0),
        "watts": st.floats(0.0, 700.0),
        "busy": st.dictionaries(st.sampled_from((*WORKERS, 99)), SHARE, max_size=3),
        "ended": st.lists(st.tuples(st.sampled_from(WORKERS), st.floats(0.0, 6.0), st.floats(0.0, 3.0)), max_size=5),
        "running": st.sets(st.sampled_from(WORKERS)),
        "device": st.sampled_from(("good", "good", "good", "silent", "broken off")),
        "meter": st.sampled_from(("good", "good", "good", "out", "broken off")),
    }
)


# No shrinking: every step writes files, and to shrink takes minutes.
@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.lists(STEP, min_size=1, max_size=8))
def test_the_sum_holds_to_the_last_bit_whatever_happens(steps: list[dict]) -> None:  # type: ignore[type-arg]
    with TemporaryDirectory() as folder:
        scene, number = Scene(Path(folder)), 0
        meter_j = parts_j = held_j = 0.0
        waiting: set[str] = set()
        runs: dict[int, str] = {}
        for step in steps:
            for worker, seconds, cpu_s in step["ended"]:
                number += 1
                task = runs.pop(worker, f"t{number}")
                waiting.add(task)
                scene.ended(worker, task, seconds, cpu_s)
            for worker in step["running"]:
                number += 1
                scene.running(worker, runs.setdefault(worker, f"t{number}"), scene.now - 0.1)
            scene.silent = "it is lost" if step["device"] == "silent" else ""
            scene.epoch += step["device"] == "broken off"
            scene.meter.problem = "out" if step["meter"] == "out" else ""
            scene.meter.epoch += step["meter"] == "broken off"
            usage = scene.look(step["seconds"], step["watts"], step["busy"])
            assert {*usage.tasks, *usage.unknown} <= waiting
            waiting -= {*usage.tasks, *usage.unknown}
            if usage.meter_j is not None:
                assert not waiting
                assert usage.held_before_j == held_j, "what is held is told once, and goes on"
                held_j = usage.held_j
                meter_j += usage.meter_j
                parts_j += usage.tasks_j + usage.idle_j + usage.unattributed_j
        assert meter_j == parts_j + held_j
