"""A meter that hangs, lies, disappears or comes back; clocks that jump; a machine that slept. No joule is invented."""

import time
from threading import Event

import pytest
from tests.metering.scripted import Scripted
from tests.metering.trees import machine
from tests.monitoring.scripted import ScriptedCensus

from wattloom.energy.forecast import Unknown
from wattloom.metering.patient_meter import PatientMeter
from wattloom.metering.protocol import Sample
from wattloom.metering.readings import MOST_WAITING_S
from wattloom.monitoring.accountant import Accountant
from wattloom.monitoring.sampler import Sampler
from wattloom.monitoring.snapshot import Snapshot


class Run:
    """A machine on which one process keeps one CPU busy, at 30 W with 10 W idle."""

    def __init__(self) -> None:
        self.census, self.meter = ScriptedCensus(), Scripted()
        self.accountant = Accountant(self.census, self.meter, machine(provenance="measured"), own_pid=99)
        self.census.start(1)
        self.now, self.asleep = 100.0, 0.0
        self.shown = self.accountant.sample(self.now)

    def second(self, *, counts: bool = True, seconds: float = 1.0) -> Snapshot:
        self.now += seconds
        self.census.run(1, seconds)
        self.meter.joules += 30.0 * seconds if counts else 0.0
        self.shown = self.accountant.sample(self.now, self.asleep)
        return self.shown


@pytest.fixture
def run() -> Run:
    return Run()


def test_after_a_gap_the_same_count_covers_it(run: Run) -> None:
    run.second()
    run.meter.problem = "unplugged"
    assert run.second().problem == "unplugged"
    assert run.second().waiting_s == 2.0
    assert run.shown.totals.meter_j == 30.0
    run.meter.problem = ""
    shown = run.second()
    assert (shown.problem, shown.last.seconds, shown.totals.meter_j) == ("", 3.0, 120.0)
    assert (shown.processes[0].active_j, shown.totals.unknown_s) == (80.0, 0.0)


def test_a_count_that_broke_off_is_unknown_time(run: Run) -> None:
    run.second()
    run.meter.epoch, run.meter.joules = 1, 5.0
    shown = run.second(counts=False)
    assert (shown.totals.meter_j, shown.totals.unknown_s) == (30.0, 1.0)
    assert "broke off" in shown.problem
    shown = run.second()
    assert (shown.totals.meter_j, shown.problem) == (60.0, "")
    assert shown.processes[0].active_j == 40.0


def test_a_count_that_falls_is_not_believed(run: Run) -> None:
    run.second()
    run.meter.joules = 1.0
    assert run.second(counts=False).totals.meter_j == 30.0
    assert run.second().totals.meter_j == 60.0


def test_what_is_no_number_and_what_raises_is_no_reading(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.second()
    run.meter.joules = float("nan")
    assert "no number" in run.second(counts=False).problem
    run.meter.joules = 60.0
    monkeypatch.setattr(run.meter, "read", lambda now: 1 / 0)
    assert "ZeroDivisionError" in run.second(counts=False).problem
    assert run.shown.totals.meter_j == 30.0


def test_a_meter_that_never_comes_back_is_given_up_and_memory_stays_small(run: Run) -> None:
    run.second()
    run.meter.problem = "stolen"
    for _ in range(int(MOST_WAITING_S) + 20):
        run.second(counts=False)
    assert run.shown.totals.unknown_s >= MOST_WAITING_S
    assert len(run.accountant._pending._looks) <= 60
    run.meter.problem, run.meter.joules = "", 9e9
    shown = run.second()
    assert shown.totals.meter_j == 30.0
    assert shown.totals.seconds + shown.totals.unknown_s == run.now - 100.0


def test_a_machine_that_slept_between_two_looks_invents_nothing(run: Run) -> None:
    run.second()
    run.asleep += 3600.0
    run.meter.joules += 7200.0
    shown = run.second()
    assert shown.totals.meter_j == 30.0
    assert shown.totals.unknown_s == 3601.0
    assert "slept for 3600 s" in shown.problem
    shown = run.second()
    assert (shown.totals.meter_j, shown.problem) == (60.0, "")


def test_a_clock_that_goes_back_costs_nothing_and_counts_go_on(run: Run) -> None:
    run.second()
    run.now -= 50.0
    assert run.second().totals.meter_j == 30.0
    run.now += 50.0
    shown = run.second()
    assert shown.totals.meter_j == 90.0
    assert shown.processes[0].active_j == pytest.approx(90.0 - shown.totals.idle_j - shown.totals.unattributed_j)


def test_a_slow_source_is_matched_with_who_ran_until_its_own_time(run: Run) -> None:
    """Its figure is of 0.5 s ago: who ran since then waits for the next one."""

    class Slow(Scripted):
        def read(self, now: float) -> Sample | Unknown:
            return Sample(now - 0.5, self.joules, 0.0)

    census, meter = ScriptedCensus(), Slow()
    accountant = Accountant(census, meter, machine(provenance="measured"), own_pid=99)
    census.start(1)
    census.start(2)
    accountant.sample(0.0)
    census.run(1, 1.0)
    meter.joules = 30.0
    accountant.sample(1.0)
    census.run(2, 1.0)
    meter.joules = 60.0
    shown = accountant.sample(2.0)
    halves = {entity.name: entity.cpu_s for entity in shown.processes}
    assert halves == {"p1": pytest.approx(1.0), "p2": pytest.approx(0.5)}


def test_figures_older_than_the_last_look_add_up_too(run: Run) -> None:
    run.second()
    joules = run.shown.totals.meter_j
    run.meter.read = lambda now: Sample(run.now - 1.0, joules, 0.0)  # type: ignore[method-assign]
    shown = run.second()
    assert (shown.totals.meter_j, shown.problem) == (joules, "")


# -- a meter that hangs ------------------------------------------------------------------------------------------------


class Hanging(Scripted):
    """Does not answer until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = Event()
        self.go.set()

    def read(self, now: float) -> Sample | Unknown:
        self.go.wait(30)
        return super().read(now)


def test_a_meter_that_hangs_does_not_hang_the_look() -> None:
    meter = Hanging()
    patient = PatientMeter(meter, wait_s=0.05)
    assert isinstance(patient.read(1.0), Sample)
    meter.go.clear()
    began = time.monotonic()
    late = patient.read(2.0)
    assert isinstance(late, Unknown)
    assert "did not answer" in late.reason
    again = patient.read(4.0)
    assert isinstance(again, Unknown)
    assert "for 2.0 s" in again.reason
    assert time.monotonic() - began < 5.0
    meter.go.set()
    limit = time.monotonic() + 20
    while isinstance(found := patient.read(5.0), Unknown) and time.monotonic() < limit:
        time.sleep(0.01)
    assert isinstance(found, Sample)
    assert found.time == 2.0  # as of its own time, not of now
    assert isinstance(patient.read(6.0), Sample)
    patient.close()


def test_while_a_meter_hangs_the_pictures_go_on_and_afterwards_nothing_is_lost() -> None:
    census, meter = ScriptedCensus(), Hanging()
    census.start(1)
    sampler = Sampler(Accountant(census, PatientMeter(meter, 0.02), machine(provenance="measured"), own_pid=99), 0.05)
    sampler.start()
    try:
        meter.go.clear()
        wait_until(lambda: sampler.latest.problem != "")
        before = sampler.latest.time
        wait_until(lambda: sampler.latest.time > before + 0.2)
        meter.joules = 50.0
        meter.go.set()
        wait_until(lambda: sampler.latest.totals.meter_j == 50.0)
        assert sampler.latest.totals.unknown_s == 0.0
    finally:
        meter.go.set()
        sampler.stop()
    assert sampler.failure is None


def wait_until(true: object) -> None:
    limit = time.monotonic() + 20
    while not true():  # type: ignore[operator]
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_a_dear_look_makes_the_next_one_come_later() -> None:
    class Dear(ScriptedCensus):
        looks = 0

        def sample(self):  # type: ignore[no-untyped-def]
            self.looks += 1
            end = time.thread_time() + 0.02
            while time.thread_time() < end:
                pass
            return super().sample()

    census = Dear()
    sampler = Sampler(Accountant(census, Scripted(), machine(provenance="measured"), own_pid=99), 0.01)
    sampler.start()
    time.sleep(1.0)
    sampler.stop()
    assert census.looks <= 4  # at most 2% of a core: one of 20 ms a second, and the first two
