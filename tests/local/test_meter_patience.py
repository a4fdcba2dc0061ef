"""A meter that hangs stops no call: those go on without joules, which is said, and have them when it answers again."""

import logging
import threading
import time
from pathlib import Path
from threading import Event

import pytest
from tests.metering.scripted import Scripted

import wattloom
from wattloom.energy.forecast import Unknown
from wattloom.energy.measured import Energy
from wattloom.local.future import TaskFuture
from wattloom.metering.protocol import Sample

SOON_S = 60.0


class Hanging(Scripted):
    """40 W, until it hangs; `go` lets it answer."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.asked = Event(), Event()
        self.go.set()

    def read(self, now: float) -> Sample | Unknown:
        self.asked.set()
        self.go.wait()
        self.joules = 40.0 * now
        return super().read(now)


@pytest.fixture
def meter() -> Hanging:
    return Hanging()


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_meter_that_hangs_for_ever_stops_no_call(
    tmp_path: Path, meter: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    """From its first reading on."""
    meter.go.clear()
    began = time.monotonic()
    with caplog.at_level(logging.WARNING, "wattloom"), wattloom.Executor(2, journal=tmp_path / "j", meter=meter) as own:
        assert list(own.map(abs, range(-200, 0))) == list(range(200, 0, -1))
        last = own.submit(burn, 0.05)
        last.result(SOON_S)
        assert meter.asked.is_set()
        energy = last.energy
        assert isinstance(energy, Unknown)
        assert "the meter scripted" in energy.reason
        while not caplog.records and time.monotonic() < began + SOON_S:
            own.submit(burn, 0.05).result(SOON_S)
    (said,) = caplog.messages
    assert said.startswith("calls have no joules until the meter answers: the meter scripted has not answered for")
    meter.go.set()


def test_a_call_that_ran_while_the_meter_hung_has_its_joules_when_it_answers_again(
    tmp_path: Path, meter: Hanging
) -> None:
    with wattloom.Executor(1, journal=tmp_path / "j", meter=meter) as own:
        own.submit(burn, 0.05).result(SOON_S)
        meter.go.clear()
        meter.asked.clear()
        call = own.submit(burn, 0.2)
        call.result(SOON_S)
        assert isinstance(call.energy, Unknown)
        assert meter.asked.wait(SOON_S)
        meter.go.set()
        assert joules_in_the_end(call) > 0.0


def joules_in_the_end(call: TaskFuture) -> float:
    end = time.monotonic() + SOON_S
    while time.monotonic() < end:
        energy = call.energy
        if isinstance(energy, Energy):
            return energy.joules
        time.sleep(0.05)
    raise TimeoutError("it has no joules")


def test_the_thread_that_asks_the_meter_ends_with_the_executor(tmp_path: Path, meter: Hanging) -> None:
    with wattloom.Executor(1, journal=tmp_path / "j", meter=meter) as own:
        own.submit(burn, 0.05).result(SOON_S)
        (asking,) = [each for each in threading.enumerate() if each.name == "wattloom-scripted"]
    asking.join(SOON_S)
    assert not asking.is_alive()
