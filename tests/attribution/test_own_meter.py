"""An executor with a meter that its caller made."""

import time
from pathlib import Path

from tests.metering.scripted import Scripted

from wattloom.energy.forecast import Unknown
from wattloom.energy.measured import Energy
from wattloom.local.executor import Executor
from wattloom.metering.protocol import Sample


class Steady(Scripted):
    """50 W all the time, by the clock of whoever reads it; remembers what it was told and what time it was."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[float, float]] = []

    def read(self, now: float) -> Sample | Unknown:
        self.told.append((now, time.monotonic()))
        self.joules = 50.0 * (time.monotonic() - self.told[0][1])
        return super().read(now)


def test_a_meter_of_ones_own_is_read_and_calls_have_its_joules(tmp_path: Path) -> None:
    meter = Steady()
    with Executor(1, meter=meter, journal=tmp_path / "journal.db") as executor:
        energy = executor.submit(sum, range(3_000_000)).energy
    assert isinstance(energy, Energy)
    assert energy.provenance == "measured"
    assert energy.joules > 0.0


def test_readings_are_of_the_time_at_which_they_are_made(tmp_path: Path) -> None:
    """Not of the executor's first moment, nor of the beginning of a turn: joules must fit their interval."""
    meter = Steady()
    with Executor(1, meter=meter, journal=tmp_path / "journal.db") as executor:
        began = executor._began
        executor.submit(time.sleep, 0.6).result()
    assert len(meter.told) >= 2
    assert meter.told[0][0] > 0.0
    for now, clock in meter.told:
        assert 0.0 <= clock - began - now < 0.1
