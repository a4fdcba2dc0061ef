import time
from pathlib import Path

from tests.attribution.test_own_meter import Steady

from wattloom.local.accounting import DEAREST_S, SLOWEST_S, USUAL_S, ReadingPace
from wattloom.local.executor import Executor


def read(took_s: float, period_s: float = 0.0, times: int = 10) -> ReadingPace:
    pace = ReadingPace()
    for _ in range(times):
        pace.was_read(took_s, period_s)
    return pace


def test_while_calls_come_and_go_the_meter_is_read_at_the_usual_pace() -> None:
    pace = read(0.0005)
    assert [pace.next_s(True) for _ in range(3)] == [USUAL_S] * 3


def test_while_nothing_changes_it_is_read_less_and_less_often_and_at_once_again_when_something_does() -> None:
    pace = read(0.0005)
    waits = [pace.next_s(False) for _ in range(6)]
    assert waits == sorted(waits)
    assert waits[0] > USUAL_S
    assert waits[-1] == SLOWEST_S
    assert pace.next_s(True) == USUAL_S


def test_a_dear_reading_takes_a_hundredth_of_the_time() -> None:
    assert read(0.012).next_s(True) == 1.2
    assert read(0.03).next_s(True) == 3.0
    assert read(0.03).next_s(False) == 3.0, "slower than the slowest, since it cannot be cheaper"
    assert read(2.0).next_s(True) == DEAREST_S


def test_one_reading_that_was_delayed_changes_nothing() -> None:
    pace = read(0.0005)
    pace.was_read(0.5)
    assert pace.next_s(True) == USUAL_S
    assert read(0.5, times=1).next_s(True) == USUAL_S, "the first loads modules"


def test_a_meter_that_has_something_new_but_seldom_is_read_seldom() -> None:
    assert read(0.0005, period_s=1.5).next_s(True) == 1.5
    assert read(0.0005, period_s=30.0).next_s(True) == SLOWEST_S
    assert read(0.0005, period_s=30.0).least_s == USUAL_S, "calls that wait for it do not wait longer"


def test_a_long_call_is_read_seldom_until_another_one_begins(tmp_path: Path) -> None:
    meter = Steady()
    with Executor(2, meter=meter, journal=tmp_path / "journal.db", policy="fifo") as executor:
        for future in [executor.submit(time.sleep, 0.3) for _ in range(2)]:
            future.result()  # both workers are there
        executor.submit(time.sleep, 5.0)
        first = len(meter.told)
        end = time.monotonic() + 4.0
        while not dozes(meter, first):
            assert time.monotonic() < end, "it is read as often as ever"
            time.sleep(0.02)
        time.sleep(1.1 * USUAL_S)
        began, read = time.monotonic(), len(meter.told)
        executor.submit(time.sleep, 0.01).result()
        while len(meter.told) == read:
            time.sleep(0.01)
        assert meter.told[read][1] < began + 0.8 * USUAL_S, "without the call it would have been later"


def dozes(meter: Steady, first: int) -> bool:
    """Whether it has just been read, later than usual."""
    if len(meter.told) < first + 3:
        return False
    before, last = meter.told[-2][1], meter.told[-1][1]
    return last - before > 1.4 * USUAL_S and time.monotonic() - last < 0.1
