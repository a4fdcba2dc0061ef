from math import inf, isfinite

from hypothesis import given
from hypothesis import strategies as st

from wattloom.metering.pacing import Source, bounded, next_interval, wrap_seconds

FREE = Source(least_s=0.1, most_s=10.0)


def intervals(watts: list[float], source: Source = FREE, start: float = 1.0) -> list[float]:
    found, before = [start], None
    for each in watts:
        found.append(next_interval(found[-1], before, each, source))
        before = each
    return found


def test_steady_power_is_read_ever_more_seldom_up_to_a_bound() -> None:
    found = intervals([50.0] * 12)
    assert found == sorted(found)
    assert found[-1] == FREE.most_s


def test_a_power_that_changes_is_read_ever_more_often_down_to_a_bound() -> None:
    found = intervals([20.0, 80.0] * 5)
    assert found == sorted(found, reverse=True)
    assert found[-1] == FREE.least_s


def test_a_small_change_leaves_the_interval_as_it_is() -> None:
    assert next_interval(1.0, 50.0, 55.0, FREE) == 1.0


def test_a_burst_is_noticed_within_few_readings_after_a_long_rest() -> None:
    found = intervals([10.0] * 12 + [60.0, 10.0, 60.0, 10.0])
    assert found[12] == 10.0
    assert found[-1] < 1.0


def test_a_slow_source_is_not_asked_more_often_than_it_has_news() -> None:
    assert intervals([20.0, 80.0] * 5, Source(period_s=2.0))[-1] == 2.0


def test_reading_takes_no_more_than_its_share_of_a_core() -> None:
    """12 ms for 1,000 processes: no more often than every 1.2 s."""
    assert intervals([20.0, 80.0] * 5, Source(cost_s=0.012))[-1] == 1.2


def test_a_counter_that_wraps_soon_is_read_in_time_whatever_that_costs() -> None:
    wraps = wrap_seconds(65_712.0, 1000.0)
    source = Source(cost_s=1.0, wrap_s=wraps, most_s=600.0)
    assert intervals([50.0] * 20, source)[-1] == wraps / 4.0 < source.cost_s / 0.01


def test_a_meter_that_cannot_be_read_is_asked_more_seldom() -> None:
    assert next_interval(1.0, 50.0, None, FREE) == 1.5


def test_a_counter_without_a_range_never_wraps() -> None:
    assert wrap_seconds(None, 100.0) == inf


watts = st.none() | st.floats(0.0, 1e5)
sources = st.builds(
    Source,
    period_s=st.floats(0.0, 60.0),
    cost_s=st.floats(0.0, 1.0),
    wrap_s=st.floats(1.0, 1e6) | st.just(inf),
    least_s=st.floats(0.01, 1.0),
    most_s=st.floats(1.0, 600.0),
)


@given(st.floats(0.0, 1e9) | st.just(inf), watts, watts, sources)
def test_the_interval_is_always_within_all_bounds(
    interval: float, before: float | None, now: float | None, source: Source
) -> None:
    found = next_interval(interval, before, now, source)
    assert isfinite(found)
    assert 0.0 < found <= source.wrap_s / 4.0
    assert found >= min(source.least_s, source.wrap_s / 4.0)
    assert bounded(found, source) == found
