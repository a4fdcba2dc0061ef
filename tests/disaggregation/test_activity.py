"""Who ran when: exact seconds in every step, whatever the length of calls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattloom.disaggregation.activity import Calls, activity, of_levels, run_seconds
from wattloom.disaggregation.quadratic import bounded
from wattloom.disaggregation.readings import grouped, readings
from wattloom.disaggregation.response import Reading, Response
from wattloom.disaggregation.shapes import shapes


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0.0, 50.0), st.floats(0.0, 20.0)), min_size=1, max_size=30))
def test_seconds_in_steps_are_the_overlaps(calls: list[tuple[float, float]]) -> None:
    start = np.array([each[0] for each in calls])
    end = start + np.array([each[1] for each in calls])
    edges = np.linspace(0.0, 80.0, 41)
    found = run_seconds(edges, start, end, np.ones(len(start)))
    overlaps = np.minimum(end[:, None], edges[None, 1:]) - np.maximum(start[:, None], edges[None, :-1])
    assert found == pytest.approx(np.maximum(overlaps, 0.0).sum(axis=0), abs=1e-6)


def test_times_since_1970_keep_their_digits() -> None:
    begin = 1.75e9
    calls = Calls(np.array([begin + 3.25]), np.array([begin + 3.75]), np.array([0]), np.ones(1))
    over = activity(calls, 1, begin, begin + 10.0, 1.0)
    assert over.level.sum() * over.step == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize("response", [Response(1.0, 2.0), Response(0.5, 1.0, 1.5), Response(-1.0, 0.1)])
def test_a_meter_changes_no_sum_only_when_it_is_seen(response: Response) -> None:
    level = np.zeros((600, 1))
    level[200:250] = 3.0
    over = of_levels(0.0, 0.1, level)
    time = np.arange(0.05, 55.0, 0.1)
    seen = Reading(over, time, response).of(level[:, 0])
    assert seen.sum() == pytest.approx(level.sum(), rel=0.02)
    assert float(seen @ time) / seen.sum() == pytest.approx(22.5 + response.centre, abs=0.15)


def test_the_least_square_is_found_at_its_bounds() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(50, 6))
    wanted = np.array([1.0, 0.0, 2.0, 0.0, 0.5, 3.0])
    target = table @ wanted - 0.4 * table[:, 1]
    found = bounded(table.T @ table, table.T @ target, np.zeros(6))
    slope = table.T @ (target - table @ found)
    assert found[1] == 0.0
    assert np.all(found >= 0.0)
    assert np.abs(slope[found > 0]).max() < 1e-6
    assert slope[found == 0].max() < 1e-6


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 12))
def test_the_least_square_without_negative_parts_is_the_best_of_its_kind(seed: int, columns: int, rows: int) -> None:
    chance = np.random.default_rng(seed)
    matrix, wanted = chance.normal(size=(rows, columns)), chance.normal(size=rows)
    ridge = 1e-9
    found = bounded(matrix.T @ matrix + ridge * np.eye(columns), matrix.T @ wanted, np.zeros(columns))
    assert (found >= 0.0).all()

    def misses(parts: np.ndarray) -> float:
        return float(np.sum((matrix @ parts - wanted) ** 2) + ridge * np.sum(parts**2))

    for _ in range(30):
        other = np.maximum(found + chance.normal(scale=0.2, size=columns), 0.0)
        assert misses(found) <= misses(other) + 1e-6


@pytest.mark.parametrize("shape", shapes(), ids=lambda shape: shape.name)
def test_every_curve_begins_at_zero_with_slope_one_and_has_the_slope_it_says(shape: object) -> None:
    u = np.linspace(0.0, 2.0, 401)
    value, slope = shape.value(u), shape.slope(u)  # type: ignore[attr-defined]
    assert value[0] == pytest.approx(0.0, abs=1e-9)
    assert slope[0] == pytest.approx(1.0, abs=0.03)
    assert np.diff(value) / np.diff(u) == pytest.approx((slope[1:] + slope[:-1]) / 2, abs=5e-3)
    assert np.all(slope > 0.0)


def test_readings_of_one_moment_become_their_mean_and_energy_is_the_area() -> None:
    found = readings(np.array([0.0, 1.0, 1.0, 2.0]), np.array([10.0, 20.0, 40.0, 10.0]))
    assert found.watts.tolist() == [10.0, 30.0, 10.0]
    assert found.joules == pytest.approx(40.0)


def test_many_readings_are_joined_without_losing_joules() -> None:
    found = readings(np.arange(1000.0), np.arange(1000.0) % 7)
    fewer, together = grouped(found, 300)
    assert together == 4
    assert len(fewer.time) <= 300
    assert fewer.joules == pytest.approx(found.joules, rel=0.01)
