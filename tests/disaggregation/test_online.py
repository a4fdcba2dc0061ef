"""The online filter: it converges, follows changes, never goes below zero, and loses no joule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattloom.disaggregation.online import PowerFilter


def feed(power: PowerFilter, watts: dict[str, float], intervals: int, seed: int = 1, idle: float = 60.0) -> None:
    """Intervals of a second with random work, and a meter with a watt of noise."""
    rng = np.random.default_rng(seed)
    for _ in range(intervals):
        ran = {name: float(rng.uniform(0, 3)) for name in watts if rng.random() < 0.7}
        drawn = idle + sum(watts[name] * seconds for name, seconds in ran.items())
        power.feed(1.0, drawn + float(rng.normal(0, 1.0)), ran)


def test_it_finds_idle_and_the_watts_of_each_function() -> None:
    power = PowerFilter()
    feed(power, {"hot": 20.0, "mild": 8.0, "waits": 0.0}, 300)
    hot, mild, waits = (power.of(name) for name in ("hot", "mild", "waits"))
    assert hot is not None
    assert mild is not None
    assert waits is not None
    assert hot.watts == pytest.approx(20.0, abs=1.5)
    assert mild.watts == pytest.approx(8.0, abs=1.5)
    assert 0.0 <= waits.watts < 1.5
    assert power.idle.watts == pytest.approx(60.0, abs=3.0)
    assert abs(hot.watts - 20.0) < 4 * hot.spread


def test_a_function_that_changes_is_followed() -> None:
    power = PowerFilter(half_life_s=300.0)
    feed(power, {"f": 10.0, "g": 5.0}, 400)
    feed(power, {"f": 25.0, "g": 5.0}, 200, seed=2)
    now, other = power.of("f"), power.of("g")
    assert now is not None
    assert other is not None
    assert now.watts == pytest.approx(25.0, abs=2.5)
    assert other.watts == pytest.approx(5.0, abs=2.0)


def test_a_function_that_comes_later_gets_its_own_watts() -> None:
    power = PowerFilter()
    feed(power, {"f": 10.0}, 200)
    feed(power, {"f": 10.0, "late": 30.0}, 150, seed=3)
    late = power.of("late")
    assert late is not None
    assert late.watts == pytest.approx(30.0, abs=3.0)
    assert power.of("never") is None


def test_others_on_the_machine_are_unattributed() -> None:
    power = PowerFilter()
    feed(power, {"f": 10.0}, 300)
    shares = power.feed(1.0, 60.0 + 10.0 + 80.0, {"f": 1.0})
    assert shares.functions["f"] < 25.0
    assert shares.unattributed_j > 55.0


def test_a_wild_reading_hardly_moves_it() -> None:
    power = PowerFilter()
    feed(power, {"f": 10.0}, 300)
    before = power.of("f")
    power.feed(1.0, 3000.0, {"f": 1.0})
    after = power.of("f")
    assert before is not None
    assert after is not None
    assert after.watts == pytest.approx(before.watts, abs=1.0)


def test_an_interval_without_a_figure_is_left_out() -> None:
    power = PowerFilter()
    feed(power, {"f": 10.0}, 50)
    before = power.of("f")
    for seconds, watts in ((0.0, 80.0), (-1.0, 80.0), (1.0, float("nan"))):
        assert power.feed(seconds, watts, {"f": 1.0}).meter_j == 0.0
    assert power.of("f") == before


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(0.05, 60.0),
            st.floats(0.0, 2000.0),
            st.dictionaries(st.sampled_from("abc"), st.floats(0.0, 500.0), max_size=3),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_every_interval_is_shared_out_without_loss(intervals: list[tuple[float, float, dict[str, float]]]) -> None:
    power = PowerFilter()
    for seconds, watts, ran in intervals:
        shares = power.feed(seconds, watts, ran)
        assert shares.meter_j == pytest.approx(seconds * watts, rel=1e-9, abs=1e-9)
        assert shares.idle_j >= 0.0
        assert all(joules >= 0.0 for joules in shares.functions.values())
        assert all(power.of(name).watts >= 0.0 for name in ran)  # type: ignore[union-attr]
