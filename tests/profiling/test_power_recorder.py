"""Watts over a stretch of time, from readings; the processor's temperature beside them."""

from pathlib import Path

import pytest
from tests.metering.trees import ProcTree

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.machines.profile_file import Power
from wattloom.metering.protocol import Quantity, Sample
from wattloom.profiling.bench import Bench, Terms
from wattloom.profiling.power_recorder import PowerRecorder, power_between
from wattloom.profiling.temperature import Thermometer


class Told:
    """A meter that says what it is told to, and a clock that moves when somebody sleeps."""

    name, summary = "told", "for tests"
    quantity: Quantity = "wall"
    provenance: Provenance = "measured"
    model_error = 0.0

    def __init__(self, answers: list[Sample | Unknown]) -> None:
        self.answers, self.time = answers, 0.0

    def available(self) -> str | None:
        return None

    def read(self, now: float) -> Sample | Unknown:
        return self.answers.pop(0)

    def sleep(self, seconds: float) -> None:
        self.time += seconds


def steady(watts: float, count: int, epoch: int = 0, every: float = 0.5) -> list[Sample | Unknown]:
    return [Sample(n * every, n * every * watts, 0.0, epoch=epoch) for n in range(count)]


def recorded(answers: list[Sample | Unknown], folder: Path) -> PowerRecorder:
    meter = Told(answers)
    recorder = PowerRecorder(meter, Thermometer(folder), lambda: meter.time, meter.sleep, 0.5)
    while meter.answers:
        recorder.sample()
        recorder.wait()
    return recorder


def test_mean_and_spread_come_from_the_counter(tmp_path: Path) -> None:
    samples = [Sample(float(n), 10.0 * n + (5.0 if n % 2 else 0.0), 0.0) for n in range(9)]
    found = power_between(samples, 0.0, 8.0)
    assert isinstance(found, Power)
    assert found.watts == pytest.approx(10.0)
    assert found.spread_w == pytest.approx(5.0, rel=0.1)
    assert (found.intervals, found.seconds) == (8, 8.0)


def test_only_readings_within_the_stretch_count(tmp_path: Path) -> None:
    fast = [Sample(float(n), 10.0 * n if n <= 5 else 50.0 + 100.0 * (n - 5), 0.0) for n in range(11)]
    early, late = power_between(fast, 0.0, 5.0), power_between(fast, 5.0, 10.0)
    assert isinstance(early, Power)
    assert isinstance(late, Power)
    assert early.watts == pytest.approx(10.0)
    assert late.watts == pytest.approx(100.0)


def test_a_reading_that_failed_makes_the_stretch_unknown(tmp_path: Path) -> None:
    answers = steady(20.0, 8)
    answers[4] = Unknown("the counter went backwards")
    recorder = recorded(answers, tmp_path)
    assert recorder.power(0.0, 9.0) == Unknown("the counter went backwards")


def test_a_count_that_broke_off_makes_it_unknown(tmp_path: Path) -> None:
    answers = [*steady(20.0, 4), Sample(2.0, 40.0, 0.0, epoch=1), Sample(2.5, 50.0, 0.0, epoch=1)]
    assert recorded(answers, tmp_path).power(0.0, 9.0) == Unknown("the meter's count broke off")


def test_too_few_readings_are_unknown_and_never_zero(tmp_path: Path) -> None:
    found = recorded(steady(20.0, 3), tmp_path).power(0.0, 9.0)
    assert isinstance(found, Unknown)
    assert "3 readings" in found.reason


def test_a_slow_source_that_repeats_itself_is_one_reading(tmp_path: Path) -> None:
    slow: list[Sample | Unknown] = [each for each in steady(20.0, 6, every=2.0) for _ in range(4)]
    recorder = recorded(slow, tmp_path)
    assert len(recorder.samples) == 6
    assert recorder.gap_s == 2.0
    found = recorder.power(0.0, 12.0)
    assert isinstance(found, Power)
    assert found.watts == pytest.approx(20.0)


class Slow(Told):
    """A meter that has a new figure every two seconds: 30 W."""

    period_s = 2.0

    def read(self, now: float) -> Sample | Unknown:
        seen = now - now % 2.0
        return Sample(seen, 30.0 * seen, 0.0)


@pytest.mark.parametrize("settle_s", [0.0, 5.0])
def test_a_slow_meter_is_read_for_as_long_as_it_needs(tmp_path: Path, settle_s: float) -> None:
    meter = Slow([])
    recorder = PowerRecorder(meter, Thermometer(tmp_path), lambda: meter.time, meter.sleep, 0.5)
    quiet = ProcTree(tmp_path / "proc")
    found = Bench(recorder, Terms(seconds=1.0, settle_s=settle_s), 2, proc=quiet.root, system=tmp_path).idle()
    assert isinstance(found.power, Power)
    assert found.power.watts == pytest.approx(30.0)
    assert found.power.intervals >= 3
    assert found.settled
    assert found.attempts == 1


def test_power_that_goes_on_rising_is_said_not_to_have_settled(tmp_path: Path) -> None:
    meter = Told([])
    rising = PowerRecorder(meter, Thermometer(tmp_path), lambda: meter.time, meter.sleep, 0.5)
    meter.read = lambda now: Sample(now, now * now * 5.0, 0.0)  # type: ignore[method-assign]
    quiet = ProcTree(tmp_path / "proc")
    found = Bench(rising, Terms(seconds=2.0, settle_s=20.0), 2, proc=quiet.root, system=tmp_path).idle()
    assert not found.settled
    assert 20.0 <= found.settle_s < 21.0, "and it was not waited for without end"


def test_the_hottest_sensor_of_the_processor_is_read(tmp_path: Path) -> None:
    for number, (name, degrees) in enumerate([("nvme", 90_000), ("coretemp", 51_000), ("coretemp", 63_500)]):
        chip = tmp_path / "hwmon" / f"hwmon{number}"
        chip.mkdir(parents=True)
        (chip / "name").write_text(f"{name}\n")
        (chip / "temp1_input").write_text(f"{degrees}\n")
    assert Thermometer(tmp_path).celsius() == 63.5


@pytest.mark.parametrize(("text", "degrees"), [("48000", 48.0), ("-274000", None), ("off", None), ("", None)])
def test_zones_are_read_where_there_is_no_chip_and_nonsense_is_not(
    tmp_path: Path, text: str, degrees: float | None
) -> None:
    zone = tmp_path / "thermal" / "thermal_zone0"
    zone.mkdir(parents=True)
    (zone / "type").write_text("x86_pkg_temp\n")
    (zone / "temp").write_text(f"{text}\n")
    assert Thermometer(tmp_path).celsius() == degrees


def test_a_machine_without_sensors_has_no_temperature(tmp_path: Path) -> None:
    assert Thermometer(tmp_path).celsius() is None
