"""When calls come: seeded, open loop, the same for every backend."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattloom.errors import InputError
from wattloom.workload.open_loop import Arrivals, schedule


@pytest.mark.parametrize("kind", ["poisson", "even"])
def test_the_same_seed_gives_the_same_times_and_another_seed_others(kind: Arrivals) -> None:
    one = schedule({"f": 5.0}, 10.0, kind, seed=1)
    assert schedule({"f": 5.0}, 10.0, kind, seed=1) == one
    assert schedule({"f": 5.0}, 10.0, kind, seed=2) != one


@settings(max_examples=40, deadline=None)
@given(
    rates=st.dictionaries(st.text(max_size=3), st.floats(0.0, 40.0), max_size=4),
    seconds=st.floats(0.1, 20.0),
    kind=st.sampled_from(["poisson", "even"]),
)
def test_times_are_in_order_and_within_the_time_asked_for(
    rates: dict[str, float], seconds: float, kind: Arrivals
) -> None:
    times = schedule(rates, seconds, kind)
    assert times == sorted(times)
    assert all(0.0 <= time < seconds and rates[name] > 0.0 for time, name in times)
    for name, rate in rates.items():
        if kind == "even":
            assert abs(sum(each == name for _, each in times) - rate * seconds) <= 1.0


def test_poisson_arrivals_come_at_their_rate_and_vary_as_chance_does() -> None:
    counts = [len(schedule({"f": 50.0}, 2.0, "poisson", seed)) for seed in range(200)]
    mean = sum(counts) / len(counts)
    variance = sum((count - mean) ** 2 for count in counts) / len(counts)
    assert 97.0 < mean < 103.0
    assert 70.0 < variance < 135.0


def test_what_one_function_is_asked_does_not_hang_on_the_others() -> None:
    alone = [time for time, _ in schedule({"f": 5.0}, 10.0)]
    assert [time for time, name in schedule({"g": 9.0, "f": 5.0}, 10.0) if name == "f"] == alone


def test_more_calls_than_can_be_driven_are_refused_before_any_is_drawn() -> None:
    with pytest.raises(InputError, match="fewer seconds"):
        schedule({"f": 1e9}, 1e6)
