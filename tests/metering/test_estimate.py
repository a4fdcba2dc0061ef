from pathlib import Path

import pytest
from tests.metering.trees import ProcTree, machine

from wattloom.energy.forecast import Unknown
from wattloom.machines.curves import FUNCTIONS_DIFFER
from wattloom.metering.estimate import Estimate
from wattloom.metering.proc import busy_seconds
from wattloom.metering.protocol import Sample


@pytest.fixture
def proc(tmp_path: Path) -> ProcTree:
    return ProcTree(tmp_path / "proc")


def read(meter: Estimate, now: float) -> Sample:
    sample = meter.read(now)
    assert isinstance(sample, Sample), sample
    return sample


@pytest.mark.parametrize(("busy", "watts"), [(0.0, 10.0), (1.0, 30.0), (2.0, 50.0), (0.5, 20.0)])
def test_joules_are_the_curve_at_the_cores_that_were_busy(proc: ProcTree, busy: float, watts: float) -> None:
    meter = Estimate(machine(), proc=proc.root)
    read(meter, 0.0)
    proc.work(busy * 10.0)
    sample = read(meter, 10.0)
    assert sample.joules == pytest.approx(watts * 10.0)
    assert sample.busy_s == pytest.approx(busy * 10.0)


def test_stolen_time_is_not_busy(proc: ProcTree) -> None:
    meter = Estimate(machine(), proc=proc.root)
    read(meter, 0.0)
    proc.work(0.0, steal=5.0)
    assert read(meter, 10.0).joules == pytest.approx(100.0)


def test_a_part_of_the_machine_counts_its_own_cpus_only(tmp_path: Path) -> None:
    proc = ProcTree(tmp_path, cpus=4)
    assert busy_seconds(proc.root) == pytest.approx(100.0)
    assert busy_seconds(proc.root, {0, 3}) == pytest.approx(50.0)
    assert busy_seconds(proc.root, {0, 9}) is None
    meter = Estimate(machine(), proc=proc.root, cpus={1, 2})
    read(meter, 0.0)
    proc.work(20.0)
    assert read(meter, 10.0).joules == pytest.approx(300.0)


def test_neighbours_on_a_shared_cpu_do_not_make_the_part_draw_more_than_it_can(tmp_path: Path) -> None:
    proc = ProcTree(tmp_path, cpus=4)
    meter = Estimate(machine(), proc=proc.root, cpus={0, 1, 2, 3})
    read(meter, 0.0)
    proc.work(40.0)
    sample = read(meter, 10.0)
    assert sample.joules == pytest.approx(500.0)
    assert sample.busy_s == pytest.approx(20.0)


def test_ticks_that_come_late_are_counted_in_the_next_reading(proc: ProcTree) -> None:
    meter = Estimate(machine(), proc=proc.root)
    read(meter, 0.0)
    proc.work(0.04)
    assert read(meter, 0.01).busy_s == pytest.approx(0.02)
    assert read(meter, 1.01).busy_s == pytest.approx(0.04)


def test_a_machine_without_a_curve_says_so_and_is_never_zero(proc: ProcTree) -> None:
    meter = Estimate(machine(watts=()), proc=proc.root)
    assert "no power curve" in (meter.available() or "")
    assert isinstance(meter.read(0.0), Unknown)


def test_it_is_estimated_of_the_curves_quantity_and_as_unsure_as_the_curve(proc: ProcTree) -> None:
    meter = Estimate(machine("package"), proc=proc.root)
    assert (meter.provenance, meter.quantity) == ("estimated", "package")
    assert meter.model_error > FUNCTIONS_DIFFER
