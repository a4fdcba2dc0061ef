"""Intervals between good readings: closed, open, or lost; and meters that hang meanwhile."""

import gc
import os
import threading
import time
from math import nan

import pytest
from tests.metering.scripted import Scripted

from wattloom.energy.forecast import Unknown
from wattloom.energy.grains import to_grain
from wattloom.metering.patient_meter import PatientMeter
from wattloom.metering.protocol import Sample
from wattloom.metering.readings import (
    BROKE_OFF,
    MOST_WAITING_S,
    NOT_BUSY,
    Begun,
    Closed,
    GivenUp,
    Readings,
    Silent,
)
from wattloom.metering.timeout import NoAnswer, TimeLimiter


class Breaking(Scripted):
    """Says once why its count broke off, and then goes on with the next."""

    def __init__(self) -> None:
        super().__init__()
        self.broke = ""

    def read(self, now: float) -> Sample | Unknown:
        if self.broke:
            reason, self.broke = self.broke, ""
            self.epoch += 1
            return Unknown(reason)
        return super().read(now)


def test_two_good_readings_close_an_interval_and_what_failed_in_between_is_covered() -> None:
    meter = Scripted()
    readings = Readings(meter)
    assert readings.look(1.0) == Begun(Sample(1.0, 0.0, 1e-9), None, "")
    meter.problem = "unplugged"
    assert readings.look(2.0) == Silent("unplugged", 1.0)
    meter.problem, meter.joules = "", 60.0
    found = readings.look(3.0)
    assert isinstance(found, Closed)
    assert (found.seconds, found.last.time, found.reading.joules) == (2.0, 1.0, 60.0)
    assert found.resolution_j == pytest.approx(1e-9 * 2**0.5)
    assert (found.joules, found.busy_s) == (60.0, None)


def test_a_meter_that_is_silent_for_too_long_loses_the_time_and_begins_anew() -> None:
    meter = Scripted()
    readings = Readings(meter)
    readings.look(1.0)
    meter.problem = "unplugged"
    assert readings.look(1.0 + MOST_WAITING_S) == Silent("unplugged", MOST_WAITING_S)
    assert readings.look(2.0 + MOST_WAITING_S) == GivenUp("unplugged", MOST_WAITING_S + 1.0)
    meter.problem = ""
    found = readings.look(5.0 + MOST_WAITING_S)
    assert isinstance(found, Begun)
    assert (found.last, found.lost_s) == (None, 3.0)


def test_intervals_in_grains_add_up_to_the_count_to_the_last_bit() -> None:
    meter, joules = Scripted(), 0.0
    readings = Readings(meter)
    readings.look(0.0)
    for second in range(1, 200):
        meter.joules += 1.0 / 3.0
        found = readings.look(float(second))
        assert isinstance(found, Closed)
        joules += found.joules
    assert joules == to_grain(meter.joules)


def test_what_the_meter_does_not_know_of_busy_cpus_the_kernel_does_or_the_interval_stays_open() -> None:
    busy: list[float | None] = [10.0, None, 11.5]
    readings = Readings(Scripted(), lambda: busy.pop(0))
    readings.look(1.0)
    assert readings.look(2.0) == Silent(NOT_BUSY, 1.0)
    found = readings.look(3.0)
    assert isinstance(found, Closed)
    assert (found.seconds, found.busy_s) == (2.0, 1.5)


def test_who_forgets_a_count_is_told_what_was_lost() -> None:
    readings = Readings(Scripted())
    assert readings.forget(0.0) == 0.0
    readings.look(1.0)
    assert readings.forget(4.0) == 3.0
    found = readings.look(4.0)
    assert isinstance(found, Begun)
    assert found.lost_s == 0.0


def test_the_same_reading_again_is_no_news() -> None:
    readings = Readings(Scripted())
    readings.look(1.0)
    assert readings.look(1.0) == Silent("")


def test_a_count_that_broke_off_is_asked_again_at_once_and_says_why() -> None:
    meter = Breaking()
    readings = Readings(meter)
    readings.look(1.0)
    meter.broke = "it jumped"
    found = readings.look(2.0)
    assert isinstance(found, Begun)
    assert (found.reason, found.reading.time, found.reading.epoch) == ("it jumped", 2.0, 1)


@pytest.mark.parametrize("what", ["epoch", "joules"])
def test_another_epoch_or_a_count_that_fell_begins_anew(what: str) -> None:
    meter = Scripted()
    meter.joules = 5.0
    readings = Readings(meter)
    readings.look(1.0)
    setattr(meter, what, 1)
    found = readings.look(2.0)
    assert isinstance(found, Begun)
    assert found.reason == BROKE_OFF


@pytest.mark.parametrize("field", ["joules", "resolution_j"])
def test_what_is_no_number_is_no_reading(field: str) -> None:
    meter = Scripted()
    setattr(meter, field, nan)
    assert Readings(meter).look(1.0) == Silent("the meter scripted gave what is no number")


# -- timeout -----------------------------------------------------------------------------------------------------------


def threads(name: str) -> int:
    return sum(thread.name == name for thread in threading.enumerate())


def test_a_patient_meter_says_how_its_source_knows_as_soon_as_that_tells() -> None:
    meter = Scripted()
    patient = PatientMeter(meter)
    meter.provenance = "estimated"
    patient.read(1.0)
    assert patient.provenance == "estimated"


def test_the_thread_of_a_patient_meter_ends_with_it() -> None:
    meter = Scripted()
    meter.name = "dropped"
    patient = PatientMeter(meter)
    patient.read(1.0)
    assert threads("wattloom-dropped") == 1
    del patient
    gc.collect()
    limit = time.monotonic() + 20
    while threads("wattloom-dropped") and time.monotonic() < limit:
        time.sleep(0.01)
    assert threads("wattloom-dropped") == 0


def test_what_a_question_raises_is_raised_and_the_next_one_is_answered() -> None:
    limiter = TimeLimiter("asks")
    with pytest.raises(ValueError, match="invalid literal"):
        limiter.ask(20.0, int, "x")
    assert limiter.ask(20.0, int, "7") == 7


def test_while_one_question_is_open_others_are_refused_and_the_late_answer_is_had_once() -> None:
    limiter, go = TimeLimiter("asks"), threading.Event()
    with pytest.raises(NoAnswer, match=r"did not answer within 0\.01 s"):
        limiter.ask(0.01, go.wait, 30.0)
    with pytest.raises(NoAnswer, match="has not answered for"):
        limiter.ask(20.0, int, "7")
    go.set()
    limit = time.monotonic() + 20
    late = None
    while late is None and time.monotonic() < limit:
        try:
            late = limiter.late()
        except NoAnswer:
            time.sleep(0.01)
    assert late is not None
    assert late.result() is True
    assert limiter.late() is None
    assert limiter.ask(20.0, int, "7") == 7


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_of_a_fork_asks_with_a_thread_of_its_own() -> None:
    limiter = TimeLimiter("asks")
    limiter.ask(20.0, int, "7")
    child = os.fork()
    if not child:
        try:
            os._exit(0 if limiter.ask(20.0, int, "7") == 7 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
