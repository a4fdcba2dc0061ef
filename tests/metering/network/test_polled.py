import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from weakref import ref

import pytest
from tests.metering.network.server import eventually

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.metering.count import Limits
from wattloom.metering.polled import Polled
from wattloom.metering.poller import Pace
from wattloom.metering.protocol import Quantity, Sample, period_s
from wattloom.metering.source import Answer, Joules, SourceProblem, Watts


class Scripted:
    """A source that does as the test says."""

    name, summary = "scripted", "a test's own"
    quantity: Quantity = "wall"
    provenance: Provenance = "measured"
    limits = Limits(1000.0, late_s=1.0, gap_s=12.0, still_s=30.0)
    least_s, timeout_s = 0.02, 0.4

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer = answer
        self.hangs = threading.Event()
        self.problem = ""
        self.asked = 0
        self.closed = self.forgotten = 0

    def missing(self) -> str | None:
        return None

    def ask(self) -> Sequence[Answer]:
        self.asked += 1
        while self.hangs.is_set():
            time.sleep(0.01)
        if self.problem:
            raise SourceProblem(self.problem)
        return [self.answer] if self.answer is not None else []

    def close(self) -> None:
        self.closed += 1

    def forget(self) -> None:
        self.forgotten += 1


class Clock:
    def __init__(self) -> None:
        self.now = 500.0

    def __call__(self) -> float:
        return self.now


def good(answer: Sample | Unknown) -> Sample:
    assert isinstance(answer, Sample), answer
    return answer


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "wattloom-scripted"]


def test_a_source_that_hangs_never_keeps_the_reader() -> None:
    source = Scripted(Watts(50.0))
    source.hangs.set()
    meter = Polled(source)
    began = time.monotonic()
    first = meter.read(0.0)
    assert time.monotonic() - began < 0.3
    assert isinstance(first, Unknown)
    assert "awaited" in first.reason
    assert "no answer within 0.4 s" in (meter.available() or "")
    assert eventually(lambda: "no answer for" in getattr(meter.read(1e6 + time.monotonic()), "reason", ""))
    source.hangs.clear()
    assert eventually(lambda: isinstance(meter.read(2e6 + time.monotonic()), Sample))


def test_a_reading_has_the_time_of_the_answer_in_the_readers_clock() -> None:
    clock = Clock()
    meter = Polled(Scripted(Joules({"a": 10.0}, age_s=3.0, stamp=1)), clock=clock)
    assert meter.refresh(5.0)
    clock.now += 2.0
    sample = good(meter.read(17.0))  # the reader began to count 485 s after us
    assert sample.time == pytest.approx(12.0)
    clock.now += 1.0
    assert good(meter.read(18.0)) is sample  # no news: the very same reading


def test_a_reader_who_comes_late_does_not_shift_time() -> None:
    clock = Clock()
    source = Scripted(Joules({"a": 10.0}))
    meter = Polled(source, clock=clock)
    meter.refresh(5.0)
    assert good(meter.read(500.0)).time == 500.0
    clock.now += 1.3  # 0.3 s passed between its looking at the clock and its question
    source.answer = Joules({"a": 60.0})
    meter.refresh(5.0)
    sample = good(meter.read(501.0))
    assert sample.time == 501.0  # not later than it was asked for
    clock.now += 1.0
    source.answer = Joules({"a": 90.0})
    meter.refresh(5.0)
    assert good(meter.read(502.3)).time == pytest.approx(502.3)


def test_busy_time_is_of_the_moment_of_the_figure() -> None:
    meter = Polled(Scripted(Watts(50.0)))
    meter.refresh(5.0)
    assert (good(meter.read(time.monotonic())).busy_s or 0.0) > 0.0


def test_a_failed_answer_is_unknown_with_its_reason_and_a_good_one_goes_on() -> None:
    clock, source = Clock(), Scripted(Watts(50.0))
    meter = Polled(source, clock=clock)
    meter.refresh(5.0)
    first = good(meter.read(clock.now))
    source.problem = "out of paper\nbuy some"
    clock.now += 2.0
    meter.refresh(5.0)
    answer = meter.read(clock.now)
    assert isinstance(answer, Unknown)
    assert answer.reason == "out of paper"
    assert meter.available() == "out of paper\nbuy some"
    source.problem = ""
    clock.now += 2.0
    meter.refresh(5.0)
    last = good(meter.read(clock.now))
    assert (last.joules - first.joules, last.epoch) == (200.0, first.epoch)


def test_power_is_not_integrated_over_a_long_gap() -> None:
    clock, source = Clock(), Scripted(Watts(50.0))
    meter = Polled(source, clock=clock)
    meter.refresh(5.0)
    first = good(meter.read(clock.now))
    clock.now += 13.0
    meter.refresh(5.0)
    answer = meter.read(clock.now)
    assert isinstance(answer, Unknown)
    assert "13.0 s" in answer.reason
    clock.now += 1.0
    meter.refresh(5.0)
    assert good(meter.read(clock.now)).epoch > first.epoch


def test_a_count_without_news_becomes_stale() -> None:
    clock = Clock()
    meter = Polled(Scripted(Joules({"a": 10.0})), clock=clock)
    meter.refresh(5.0)
    good(meter.read(clock.now))
    clock.now += 31.0
    meter.refresh(5.0)
    answer = meter.read(clock.now)
    assert isinstance(answer, Unknown)
    assert "stale" in answer.reason


def test_joules_where_there_were_watts_are_another_count() -> None:
    clock, source = Clock(), Scripted(Watts(50.0))
    meter = Polled(source, clock=clock)
    meter.refresh(5.0)
    first = good(meter.read(clock.now))
    source.answer = Joules({"a": 1e6})
    clock.now += 1.0
    meter.refresh(5.0)
    assert good(meter.read(clock.now)).epoch == first.epoch + 1


def test_whatever_a_source_raises_the_thread_goes_on_and_tells_no_secrets() -> None:
    class Broken(Scripted):
        def ask(self) -> Sequence[Answer]:
            raise RuntimeError("password=secret")

    meter = Polled(Broken())
    assert meter.available() == "scripted failed: RuntimeError"
    assert meter.available() == "scripted failed: RuntimeError"


# -- the thread --------------------------------------------------------------------------------------------------------


def test_nothing_runs_before_the_first_question_and_nothing_after_the_meter_is_dropped() -> None:
    source = Scripted(Watts(50.0))
    meter = Polled(source)
    assert not threads()
    meter.read(0.0)
    assert len(threads()) == 1
    gone = ref(meter)
    del meter
    gc.collect()
    assert gone() is None
    assert eventually(lambda: not threads())
    assert source.closed == 1


def test_a_fork_has_a_thread_of_its_own_and_a_new_epoch() -> None:
    source = Scripted(Watts(50.0))
    meter = Polled(source)
    meter.refresh(5.0)
    before = good(meter.read(time.monotonic()))
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        fresh = meter.refresh(10.0) and meter.read(time.monotonic())
        fine = isinstance(fresh, Sample) and fresh.epoch > before.epoch and source.forgotten == 1
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert source.forgotten == 0
    assert good(meter.read(time.monotonic())).epoch == before.epoch


def test_a_program_ends_although_a_source_hangs() -> None:
    program = (
        f"import sys, time; sys.path.insert(0, {os.getcwd()!r})\n"
        "from tests.metering.network.test_polled import Scripted\n"
        "from wattloom.metering.polled import Polled\n"
        "source = Scripted(); source.hangs.set(); meter = Polled(source); meter.read(0.0); print('done')\n"
    )
    ended = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, timeout=30, text=True)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("done\n", "", 0)


def test_a_reader_after_a_pause_wakes_the_source_up() -> None:
    clock, source = Clock(), Scripted(Watts(50.0))
    meter = Polled(source, clock=clock)
    meter.refresh(5.0)
    clock.now += 31.0
    assert eventually(lambda: source.asked >= 2)  # the last wait was short; from now on it dozes
    time.sleep(0.1)
    before = source.asked
    meter.read(clock.now)
    assert eventually(lambda: source.asked > before, 2.0)


# -- the pace ----------------------------------------------------------------------------------------------------------


def waits(pace: Pace, times: int, news: bool, took_s: float = 0.0, cpu_s: float = 0.0) -> float:
    for _ in range(times):
        pace.answered(news, took_s, cpu_s)
    return pace.wait_s(wanted=True)


def test_a_source_with_news_is_asked_often_and_one_without_less_often() -> None:
    pace = Pace(0.5)
    assert waits(pace, 5, news=True) == 0.5
    assert waits(pace, 20, news=False) == 2.0
    assert waits(pace, 5, news=True) == 0.5


def test_asking_costs_no_more_than_a_hundredth_of_a_core_and_a_quarter_of_the_sources_time() -> None:
    assert waits(Pace(0.5), 3, news=True, cpu_s=0.05) == pytest.approx(5.0)
    assert waits(Pace(0.5), 3, news=True, took_s=2.0) == pytest.approx(6.0)


def test_one_dear_answer_as_the_first_always_is_changes_nothing() -> None:
    pace = Pace(0.5)
    pace.answered(True, 1.0, 0.2)
    assert waits(pace, 1, news=True, cpu_s=0.001) == 0.5


def test_a_source_that_fails_is_given_time() -> None:
    pace = Pace(0.5)
    found = []
    for _ in range(6):
        pace.failed()
        found.append(pace.wait_s(wanted=True))
    assert found == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert waits(pace, 1, news=True) == 2.0
    pace.failed()
    assert pace.wait_s(wanted=True) == 0.5


def test_the_period_of_a_meter_is_that_of_its_news() -> None:
    clock, source = Clock(), Scripted(Joules({"a": 1.0}))
    meter = Polled(source, clock=clock)
    meter.refresh(5.0)
    clock.now += 5.0
    source.answer = Joules({"a": 200.0})
    meter.refresh(5.0)
    meter.read(clock.now)
    assert period_s(meter) == 5.0
