"""What becomes of answers, whatever they are: nothing is made up, nothing falls, nothing is counted twice."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattloom.metering.count import Limits
from wattloom.metering.protocol import Sample
from wattloom.metering.source import EnergyCounter, Joules, Watts

LIMITS = Limits(1000.0, late_s=1.0, gap_s=12.0, still_s=30.0)


def counter(epoch: int = 0) -> EnergyCounter:
    return EnergyCounter(LIMITS, epoch, asleep=lambda: 0.0)


def awkward(most: float) -> st.SearchStrategy[float]:
    return st.floats(0.0, most) | st.sampled_from([0.0, -1.0, 1e12, float("nan"), float("inf")])


answers = st.one_of(
    st.builds(Watts, awkward(1500.0), st.floats(0.0, 20.0), st.none() | st.integers(0, 5)),
    st.builds(
        Joules,
        st.dictionaries(st.sampled_from("ab"), st.floats(0.0, 5000.0), min_size=1),
        st.floats(0.0, 20.0),
        st.none() | st.integers(0, 5),
    ),
)


@given(st.lists(st.tuples(st.floats(0.0, 40.0), answers), max_size=30))
def test_readings_rise_within_an_epoch_by_no_more_than_can_be_drawn(story: list[tuple[float, Watts | Joules]]) -> None:
    made, now, seen = counter(), 100.0, list[Sample]()
    for seconds, answer in story:
        now += seconds
        try:
            made.take(now, answer, seconds)
        except (ValueError, OverflowError):  # a counter that is no number: its source refuses it before
            continue
        if made.last is not None and (not seen or made.last is not seen[-1]):
            seen.append(made.last)
    for early, late in pairwise(seen):
        assert late.epoch >= early.epoch
        assert late.resolution_j > 0.0
        if late.epoch == early.epoch:
            assert late.time >= early.time
            assert 0.0 <= late.joules - early.joules <= 2.0 * LIMITS.most_w * (late.time - early.time + LIMITS.late_s)


def test_a_figure_with_the_same_mark_is_counted_once() -> None:
    made = counter()
    for now in (1.0, 2.0, 3.0):
        assert made.take(now, Watts(100.0, age_s=now - 1.0, stamp="a"), 1.0) == ""
    assert made.last is not None
    assert (made.last.time, made.last.joules) == (1.0, 0.0)
    made.take(4.0, Watts(200.0, age_s=1.0, stamp="b"), 1.0)
    assert made.last.time == 3.0
    assert made.last.joules == pytest.approx(300.0)


@pytest.mark.parametrize(("seconds", "failed", "epoch"), [(3.9, True, 0), (4.1, True, 1), (11.0, False, 0)])
def test_a_gap_with_failures_in_it_is_bridged_for_a_moment_only(seconds: float, failed: bool, epoch: int) -> None:
    made = counter()
    made.take(0.0, Watts(100.0), 1.0)
    if failed:
        made.fail()
    assert made.take(seconds, Watts(100.0), seconds) == ""
    assert made.last is not None
    assert made.last.epoch == epoch
    made.take(seconds + 1.0, Watts(100.0), 1.0)
    assert made.last.joules == pytest.approx(100.0 * (1.0 if epoch else seconds + 1.0))


def test_a_restless_power_leaves_more_open_than_a_steady_one() -> None:
    open_j = []
    for wave in (0.0, 80.0):
        made = counter()
        for second in range(40):
            made.take(second, Watts(100.0 + wave * (second // 4 % 2)), 1.0)
        made.take(42.0, Watts(100.0 + wave * (39 // 4 % 2)), 1.0)
        assert made.last is not None
        open_j.append(made.last.resolution_j)
    assert open_j[0] == pytest.approx(6.0, rel=0.1)
    assert open_j[1] > 20.0


def test_a_counter_is_of_the_moment_its_news_was_seen_and_not_of_later_ones() -> None:
    made = counter()
    for now, joules in ((0.0, 10.0), (1.0, 60.5), (2.0, 60.5), (3.0, 60.5)):
        assert made.take(now, Joules({"a": joules}), 1.0) == ""
    assert made.last is not None
    assert made.last.time == 1.0
    assert made.last.joules == pytest.approx(50.5)
    # It may have become new at any time since the last look.
    assert made.last.resolution_j == pytest.approx(50.5 / 12**0.5)


def test_whole_joules_have_the_resolution_of_whole_joules() -> None:
    made = counter()
    made.take(0.0, Joules({"a": 10.0, "b": 4.0}), 1.0)
    assert made.last is not None
    assert made.last.resolution_j >= 1.0


def test_other_counters_than_before_are_a_break() -> None:
    made = counter(epoch=7)
    made.take(0.0, Joules({"a": 10.0}), 1.0)
    assert "not those of before" in made.take(1.0, Joules({"a": 11.0, "b": 500.0}), 1.0)
    made.take(2.0, Joules({"a": 12.0, "b": 501.0}), 1.0)
    assert made.last is not None
    assert made.last.epoch == 8
    assert made.last.joules == pytest.approx(2.0)


def test_nothing_is_lost_by_a_counter_that_could_not_be_asked_for_minutes() -> None:
    made = counter()
    made.take(0.0, Joules({"a": 10.5}), 1.0)
    assert made.take(600.0, Joules({"a": 30_010.5}), 600.0) == ""
    assert made.last is not None
    assert made.last.joules == pytest.approx(30_000.0)
