"""The rules that all meters share: the running count, several counters, and power that is added up."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattloom.energy.forecast import Unknown
from wattloom.metering.count import Count, Limits, seconds_asleep
from wattloom.metering.counters import Counters, Raw
from wattloom.metering.integrated import Integrated
from wattloom.metering.protocol import Sample


def good(answer: Sample | Unknown) -> Sample:
    assert isinstance(answer, Sample), answer
    return answer


def why(answer: Sample | Unknown | None) -> str:
    assert isinstance(answer, Unknown), answer
    return answer.reason


LIMITS = Limits(most_w=100.0, gap_s=60.0, still_s=10.0)


# -- one count ---------------------------------------------------------------------------------------------------------


def test_time_that_runs_backwards_is_refused_and_does_no_harm() -> None:
    count = Count(LIMITS)
    assert count.refusal(5.0) is None
    assert "time went backwards" in why(count.refusal(4.0))
    assert "time went backwards" in why(count.refusal(nan))
    assert count.refusal(5.0) is None


@pytest.mark.parametrize(
    ("joules", "says"),
    [(-1.0, "went backwards by 1 J"), (1000.0, "it jumped"), (nan, "no number"), (inf, "no number")],
)
def test_an_impossible_rise_breaks_the_count_off(joules: float, says: str) -> None:
    count = Count(LIMITS)
    before = good(count.rise(0.0, 0.0, 0.1))
    assert says in why(count.rise(1.0, joules, 0.1))
    after = good(count.rise(2.0, 50.0, 0.1))
    assert (after.epoch, after.joules) == (before.epoch + 1, 50.0)


def test_a_gap_is_bridged_up_to_its_bound_and_no_further() -> None:
    count = Count(LIMITS)
    good(count.rise(0.0, 0.0, 0.1))
    assert good(count.rise(60.0, 30.0, 0.1)).epoch == 0
    assert "more than 60 s are not bridged" in why(count.rise(121.0, 30.0, 0.1))


def test_the_clock_that_tells_of_sleep_runs_here() -> None:
    asleep = seconds_asleep()
    assert asleep >= -1e-3
    assert abs(seconds_asleep() - asleep) < 0.1


# -- counters ----------------------------------------------------------------------------------------------------------


def shown(**values: int) -> dict[str, Raw]:
    return {name: Raw(value, 10**12) for name, value in values.items()}


def test_a_counter_that_goes_and_comes_breaks_the_count_off_each_time() -> None:
    counters: Counters[str] = Counters(LIMITS)
    good(counters.read(0.0, shown(a=0, b=0)))
    good(counters.read(1.0, shown(a=1_000_000, b=2_000_000)))
    assert "b went" in why(counters.read(2.0, shown(a=2_000_000)))
    alone = good(counters.read(3.0, shown(a=3_000_000)))
    assert (alone.epoch, round(alone.joules, 6)) == (1, 4.0)
    assert "b came" in why(counters.read(4.0, shown(a=4_000_000, b=700_000_000)))
    assert good(counters.read(5.0, shown(a=5_000_000, b=701_000_000))).joules == pytest.approx(6.0)


def test_what_one_counter_rose_by_is_known_beside_the_sum() -> None:
    counters: Counters[str] = Counters(LIMITS)
    good(counters.read(0.0, shown(a=5, b=5)))
    good(counters.read(1.0, shown(a=1_000_005, b=3_000_005)))
    assert [counters.joules_of(name) for name in "ab"] == pytest.approx([1.0, 3.0])
    assert counters.joules_of("nobody") == 0.0


@pytest.mark.parametrize(("a", "b"), [(900_000_000, 1_000_000), (70_000_000, 70_000_000)], ids=["one", "together"])
def test_a_jump_of_one_or_of_all_together_is_no_parts_either(a: int, b: int) -> None:
    counters: Counters[str] = Counters(LIMITS)
    good(counters.read(0.0, shown(a=0, b=0)))
    why(counters.read(1.0, shown(a=a, b=b)))
    assert [counters.joules_of(name) for name in "ab"] == [0.0, 0.0]
    good(counters.read(2.0, shown(a=a + 1_000_000, b=b + 2_000_000)))
    assert [counters.joules_of(name) for name in "ab"] == pytest.approx([1.0, 2.0])


def test_one_counter_that_stands_still_makes_the_sum_wait_and_the_next_rise_covers_it() -> None:
    counters: Counters[str] = Counters(LIMITS)
    good(counters.read(0.0, shown(a=0, b=0)))
    good(counters.read(10.0, shown(a=10_000_000, b=0)))
    assert "b has stood at 0 for 11.0 s" in why(counters.read(11.0, shown(a=11_000_000, b=0)))
    after = good(counters.read(12.0, shown(a=12_000_000, b=12_000_000)))
    assert (after.epoch, round(after.joules, 6)) == (0, 24.0)


def test_readings_taken_in_the_background_are_of_their_own_time_and_grow_stale() -> None:
    counters: Counters[str] = Counters(LIMITS)
    first = good(counters.read(3.0, shown(a=0), taken=2.0))
    assert first.time == 2.0
    assert counters.read(4.0, shown(a=0), taken=2.0) == first
    assert good(counters.read(6.0, shown(a=3_000_000), taken=5.0)).joules == pytest.approx(3.0)
    assert "stale: the last reading is 11.0 s old" in why(counters.read(16.0, shown(a=3_000_000), taken=5.0))


# -- power -------------------------------------------------------------------------------------------------------------


def test_power_is_added_up_by_lines_or_held() -> None:
    line, hold = Integrated(LIMITS), Integrated(LIMITS, between="hold")
    for each in (line, hold):
        good(each.read(0.0, 10.0))
    assert good(line.read(2.0, 30.0)).joules == pytest.approx(40.0)
    assert good(hold.read(2.0, 30.0)).joules == pytest.approx(20.0)


def test_a_step_somewhere_between_two_figures_is_within_what_the_reading_leaves_open() -> None:
    """Over all places where the step may have been, the error has the standard deviation that is claimed."""
    meter = Integrated(LIMITS, noise=0.0)
    good(meter.read(0.0, 10.0))
    sample = good(meter.read(4.0, 50.0))
    truths = [10.0 * at + 50.0 * (4.0 - at) for at in (4.0 * (step + 0.5) / 1000 for step in range(1000))]
    spread = (sum((truth - sample.joules) ** 2 for truth in truths) / len(truths)) ** 0.5
    assert sample.resolution_j == pytest.approx(spread, rel=1e-3)


def test_a_long_gap_in_power_is_never_bridged() -> None:
    meter = Integrated(LIMITS)
    before = good(meter.read(0.0, 10.0))
    assert "not bridged" in why(meter.read(61.0, 11.0))
    after = good(meter.read(62.0, 11.0))
    assert (after.epoch, round(after.joules, 6)) == (before.epoch + 1, 11.0)


@pytest.mark.parametrize("watts", [-1.0, 101.0, nan, inf])
def test_power_that_cannot_be_is_unknown_and_is_not_added_up_later(watts: float) -> None:
    meter = Integrated(LIMITS)
    good(meter.read(0.0, 10.0))
    why(meter.read(1.0, watts))
    why(meter.read(2.0, 12.0))
    after = good(meter.read(3.0, 14.0))
    assert after.joules == pytest.approx(13.0)
    assert after.epoch == 2


def test_power_that_is_the_same_to_the_last_digit_for_long_is_stale() -> None:
    meter = Integrated(LIMITS)
    good(meter.read(0.0, 10.0))
    good(meter.read(10.0, 10.0))
    good(meter.read(10.0, 10.0))  # asked twice at one time, which is no news
    assert "shown the same for 11.0 s" in why(meter.read(11.0, 10.0))
    assert "shown the same for 11.0 s" in why(meter.read(11.0, 10.0))
    assert good(meter.read(12.0, 10.5)).epoch == 0


def test_a_figure_of_earlier_is_counted_at_its_own_time() -> None:
    meter = Integrated(LIMITS)
    good(meter.read(1.0, 10.0, taken=0.0))
    last = good(meter.read(6.0, 20.0, taken=5.0))
    assert (last.time, round(last.joules, 6)) == (5.0, 75.0)
    assert meter.read(7.0, 20.0, taken=5.0) == last
    assert "stale: the last figure is 11.0 s old" in why(meter.read(16.0, 20.0, taken=5.0))


# -- whatever happens --------------------------------------------------------------------------------------------------

RANGE = 60_000_000
"""Microjoules: wraps after 60 J."""
happenings = st.lists(
    st.tuples(
        st.sampled_from(["spend", "spend", "spend", "missed", "restart", "jump", "asleep", "gone"]),
        st.floats(0.05, 2.0),
        st.floats(0.5, 8.0),
    ),
    max_size=30,
)


@given(happenings)
def test_never_more_is_counted_than_was_spent_and_within_an_epoch_all_of_it(
    story: list[tuple[str, float, float]],
) -> None:
    slept = [0.0]
    counters: Counters[str] = Counters(Limits(most_w=10.0, gap_s=4.0), asleep=lambda: slept[0])
    now, value, spent = 0.0, 30_000_000, 0.0
    seen = value
    last = good(counters.read(now, {"a": Raw(value, RANGE)}))
    since = 0.0
    for what, seconds, watts in story:
        now += seconds
        value = (value + round(watts * seconds * 1e6)) % (RANGE + 1)
        spent, since = spent + watts * seconds, since + watts * seconds
        if what == "missed":
            continue
        if what == "restart" and 0 < seen < RANGE - 45_000_000:  # else it looks like a wrap, and nobody could tell
            value = 0
        if what == "jump":
            value = (seen + 50_000_000) % (RANGE + 1)
        slept[0] += 100.0 if what == "asleep" else 0.0
        shown_now = {"b": Raw(5)} if what == "gone" else {"a": Raw(value, RANGE)}
        answer = counters.read(now, shown_now)
        if isinstance(answer, Unknown):
            answer = good(counters.read(now, shown_now))
            assert answer.joules == last.joules
        elif answer.epoch == last.epoch:
            assert answer.joules - last.joules == pytest.approx(since if what != "gone" else 0.0, abs=2e-5)
        assert answer.joules <= spent + 1e-4
        last, since, seen = answer, 0.0, value
