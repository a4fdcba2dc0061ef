"""When a figure counts as settled."""

import random

import pytest

from wattloom.profiling.steady import SteadyState, settled

STEADY = SteadyState(window_s=5.0, tolerance=0.01)


def line(slope: float, seconds: float = 10.0, noise: float = 0.0) -> list[tuple[float, float]]:
    chance = random.Random(5)
    times = [step * 0.25 for step in range(int(seconds * 4))]
    return [(t, 100.0 + slope * t + noise * chance.gauss(0.0, 1.0)) for t in times]


def test_a_flat_line_is_settled_and_a_steep_one_is_not() -> None:
    assert settled(line(0.0), STEADY)
    assert not settled(line(2.0), STEADY)
    assert not settled(line(-2.0), STEADY)


def test_a_drift_within_the_tolerance_counts_as_none() -> None:
    assert settled(line(0.15), STEADY), "0.75 W in 5 s of 100 W are below one per cent"
    assert not settled(line(0.25), STEADY)


def test_noise_alone_does_not_keep_it_from_settling() -> None:
    assert settled(line(0.0, noise=4.0), STEADY)


def test_a_drift_that_noise_cannot_explain_is_seen_through_it() -> None:
    assert not settled(line(5.0, noise=2.0), STEADY)


@pytest.mark.parametrize("points", [[], line(0.0, seconds=4.0), line(0.0)[::19]])
def test_too_short_or_too_few_is_not_settled(points: list[tuple[float, float]]) -> None:
    assert not settled(points, STEADY)


def test_only_the_last_window_counts() -> None:
    rising_then_flat = [(t, min(t, 20.0)) for t in range(40)]
    assert settled(rising_then_flat, SteadyState(window_s=10.0, tolerance=0.01))
    assert not settled(rising_then_flat[:22], SteadyState(window_s=10.0, tolerance=0.01))


def test_a_temperature_rests_by_degrees_and_not_by_its_share() -> None:
    cold = [(t, 0.5 + 0.02 * t) for t in range(20)]
    assert settled(cold, SteadyState(10.0, 0.0, least=0.5))
    assert not settled([(t, 0.5 + 0.1 * t) for t in range(20)], SteadyState(10.0, 0.0, least=0.5))
