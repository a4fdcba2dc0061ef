"""The joules of a block or a command: shared by CPU time, nothing invented."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.metering.scripted import Scripted
from tests.metering.trees import ProcTree, machine

from wattloom.energy.forecast import Unknown
from wattloom.energy.measured import Energy
from wattloom.metering.protocol import Sample
from wattloom.monitoring.measurement import BlockAccount, Measured


class Scene:
    """A machine of two CPUs whose profile knows 10 W idle, and a meter the test writes."""

    def __init__(self, folder: Path, model_error: float = 0.0) -> None:
        self.proc = ProcTree(folder / "proc")
        self.meter = Scripted()
        self.meter.model_error = model_error
        self.account = BlockAccount(self.meter, machine(provenance="measured"), proc=self.proc.root)
        self.now = 100.0
        self.cpu_s = 7.0
        self.account.begin(self.now, self.cpu_s)

    def passes(self, seconds: float, joules: float, busy: float, ours: float, look: bool = True) -> None:
        self.now += seconds
        self.meter.joules += joules
        self.proc.work(busy)
        self.cpu_s += ours
        if look:
            self.account.sample(self.now, self.cpu_s)

    def end(self) -> Measured:
        return self.account.end(self.now, self.cpu_s)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def known(measured: Measured) -> Energy:
    assert isinstance(measured.energy, Energy)
    return measured.energy


def idle_w(scene: Scene) -> float:
    return machine().watts[0][1]


def test_work_that_is_alone_has_all_that_is_above_idle(scene: Scene) -> None:
    scene.passes(2.0, 2.0 * idle_w(scene) + 30.0, busy=2.0, ours=2.0)
    measured = scene.end()
    assert known(measured).joules == pytest.approx(30.0, rel=1e-6)
    assert measured.others_j == pytest.approx(0.0, abs=1e-6)
    assert measured.cpu_s == pytest.approx(2.0)
    assert measured.seconds == pytest.approx(2.0)


def test_each_interval_is_shared_at_its_own_price(scene: Scene) -> None:
    scene.passes(1.0, idle_w(scene) + 10.0, busy=2.0, ours=1.0)
    scene.passes(1.0, idle_w(scene) + 40.0, busy=1.0, ours=0.5)
    assert known(scene.end()).joules == pytest.approx(5.0 + 20.0, rel=1e-6)


def test_the_spread_is_small_for_work_that_was_alone_and_wide_in_a_crowd(tmp_path: Path) -> None:
    spreads = []
    for number, busy in enumerate((1.0, 2.0)):
        scene = Scene(tmp_path / str(number), model_error=0.4)
        scene.passes(1.0, idle_w(scene) + 10.0, busy=busy, ours=1.0)
        energy = known(scene.end())
        spreads.append(energy.spread / energy.joules)
    assert spreads[0] < 0.06
    assert spreads[1] == pytest.approx(0.4 / 2**0.5, rel=0.1)  # the neighbour, too, may draw more or less than most


def test_an_estimate_is_never_surer_than_its_curve(scene: Scene) -> None:
    scene.meter.model_error = 0.4
    scene.meter.provenance = "estimated"
    scene.passes(1.0, idle_w(scene) + 10.0, busy=1.0, ours=1.0)
    energy = known(scene.end())
    assert energy.spread >= 0.4 * energy.joules


def test_a_reading_that_fails_is_covered_by_the_next(scene: Scene) -> None:
    scene.meter.problem = "no permission"
    scene.passes(1.0, idle_w(scene) + 10.0, busy=1.0, ours=1.0)
    scene.meter.problem = ""
    scene.passes(1.0, idle_w(scene) + 10.0, busy=1.0, ours=1.0)
    assert known(scene.end()).joules == pytest.approx(20.0, rel=1e-6)


def test_a_count_that_broke_off_makes_the_figure_unknown_and_says_for_how_long(scene: Scene) -> None:
    scene.passes(1.0, idle_w(scene) + 10.0, busy=1.0, ours=1.0)
    scene.meter.epoch += 1
    scene.passes(3.0, 30.0, busy=1.0, ours=1.0)
    measured = scene.end()
    assert measured.energy == Unknown("3.0 of 4.0 s have no reading: the meter's count broke off")
    assert measured.unknown_s == pytest.approx(3.0)


def test_a_meter_that_is_lost_before_the_end_makes_the_figure_unknown(scene: Scene) -> None:
    scene.passes(1.0, idle_w(scene) + 10.0, busy=1.0, ours=1.0)
    scene.meter.problem = "permission was taken away"
    scene.passes(1.0, 10.0, busy=1.0, ours=1.0)
    measured = scene.end()
    assert isinstance(measured.energy, Unknown)
    assert "permission was taken away" in measured.energy.reason


def test_a_meter_that_raises_is_a_meter_without_a_reading(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(now: float) -> Sample:
        raise RuntimeError("driver")

    monkeypatch.setattr(scene.meter, "read", broken)
    scene.passes(1.0, 10.0, busy=1.0, ours=1.0)
    measured = scene.end()
    assert isinstance(measured.energy, Unknown)
    assert "RuntimeError: driver" in measured.energy.reason


def test_children_that_show_only_at_their_end_pay_the_mean_price_of_what_was_nobodys(scene: Scene) -> None:
    for _ in range(4):
        scene.passes(1.0, idle_w(scene) + 10.0, busy=2.0, ours=0.0)
    scene.passes(0.1, 0.1 * idle_w(scene) + 1.0, busy=0.2, ours=8.2)
    assert known(scene.end()).joules == pytest.approx(41.0, rel=0.02)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.05, 5.0), st.floats(0.0, 300.0), st.floats(0.0, 2.0), st.floats(0.0, 1.0), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_own_idle_and_others_are_the_meters_joules(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[float, float, float, float, bool]]
) -> None:
    scene = Scene(tmp_path_factory.mktemp("scene"))
    for seconds, watts, busy, ours, look in parts:
        scene.passes(seconds, watts * seconds, busy * seconds, busy * seconds * ours, look)
    measured = scene.end()
    own = known(measured).joules
    assert own >= 0.0
    assert measured.others_j >= 0.0
    assert own + measured.idle_j + measured.others_j == measured.machine_j
    assert measured.machine_j == pytest.approx(scene.meter.joules, abs=1e-6)


class Slow(Scripted):
    """Has news when the test says so."""

    time = 100.0

    def read(self, now: float) -> Sample | Unknown:
        return Sample(self.time, self.joules, self.resolution_j)


def test_an_end_that_the_source_has_not_reached_is_unknown_and_not_nothing(tmp_path: Path) -> None:
    meter = Slow()
    account = BlockAccount(meter, machine(), proc=ProcTree(tmp_path / "proc").root)
    account.begin(100.0, 0.0)
    meter.time, meter.joules = 101.0, 30.0
    account.sample(101.0, 1.0)
    measured = account.end(130.0, 30.0)
    assert isinstance(measured.energy, Unknown)
    assert "29.0 of 30.0 s" in measured.energy.reason
    assert "too slow" in measured.energy.reason


def test_what_was_used_after_a_slow_sources_reading_is_paid_for_with_the_next(tmp_path: Path) -> None:
    meter, proc = Slow(), ProcTree(tmp_path / "proc")
    account = BlockAccount(meter, machine("package"), proc=proc.root)
    account.begin(100.0, 0.0)
    for second, joules in ((1, 10.0), (2, 40.0), (3, 40.0)):  # idle up to 101, then a core is busy
        if second > 1:
            proc.work(1.0)
        meter.time, meter.joules = 100.5 + second - 1, meter.joules + joules * (0.5 if second == 1 else 1.0)
        account.sample(100.0 + second, second - 1.0)
    meter.time, meter.joules = 103.0, meter.joules + 20.0
    measured = account.end(103.0, 2.0)
    assert known(measured).joules == pytest.approx(70.0, rel=0.1)
