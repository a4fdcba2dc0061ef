from math import hypot
from pathlib import Path

import pytest
from tests.metering.rigs import PowercapRig
from tests.metering.scripted import Scripted

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.machines.curves import FUNCTIONS_DIFFER
from wattloom.metering.live import Live
from wattloom.metering.protocol import Sample


def test_watts_are_since_the_last_good_reading() -> None:
    meter = Scripted()
    live = Live(meter)
    first = live.read(100.0)
    assert (first.time_s, first.joules, first.watts) == (0.0, 0.0, None)
    meter.joules = 50.0
    assert live.read(102.0).watts == pytest.approx(25.0)
    meter.problem = "gone"
    missed = live.read(103.0)
    assert (missed.watts, missed.joules, missed.problem) == (None, None, "gone")
    meter.problem, meter.joules = "", 90.0
    after = live.read(106.0)
    assert (after.watts, after.joules) == pytest.approx((10.0, 90.0))


@pytest.mark.parametrize(("provenance", "relative"), [("measured", 0.0), ("modelled", 0.3), ("estimated", 0.3)])
def test_the_spread_holds_the_models_error_and_not_that_of_single_functions(
    provenance: Provenance, relative: float
) -> None:
    class Modelled(Scripted):
        model_error = hypot(0.3, FUNCTIONS_DIFFER)

    meter = Modelled()
    meter.provenance, meter.resolution_j = provenance, 2.0
    live = Live(meter)
    live.read(0.0)
    meter.joules = 400.0
    reading = live.read(4.0)
    steps_w = hypot(2.0, 2.0) / 4.0
    assert reading.spread_w == pytest.approx(hypot(steps_w, relative * 100.0))


def test_over_a_break_there_are_no_watts() -> None:
    meter = Scripted()
    live = Live(meter)
    live.read(0.0)
    meter.joules, meter.epoch = 900.0, 1
    anew = live.read(1.0)
    assert (anew.watts, anew.joules, anew.epoch) == (None, 0.0, 1)
    meter.joules = 905.0
    assert live.read(2.0).watts == pytest.approx(5.0)


def test_a_slow_source_has_nothing_new_until_it_has() -> None:
    class Late(Scripted):
        at = 0.0

        def read(self, now: float) -> Sample | Unknown:
            return Sample(self.at, 10.0 * self.at, 0.1)

    meter = Late()
    live = Live(meter)
    live.read(0.5)
    assert live.read(1.0).watts is None
    meter.at = 4.0
    assert live.read(4.5).watts == pytest.approx(10.0)


def test_the_parts_are_shown_beside_the_sum(tmp_path: Path) -> None:
    rig = PowercapRig(tmp_path)
    live = Live(rig.meter())
    live.read(0.0)
    rig.spend(2.0)
    reading = live.read(2.0)
    assert reading.watts == pytest.approx(55.0)
    assert reading.zones == pytest.approx({"package-0": 30.0, "package-0/dram": 5.0, "package-1": 20.0})


def test_a_meter_that_raises_is_a_problem_in_words() -> None:
    class Broken(Scripted):
        def read(self, now: float) -> Sample | Unknown:
            raise ValueError("odd")

    assert "ValueError: odd" in Live(Broken()).read(0.0).problem
