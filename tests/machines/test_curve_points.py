from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattloom.machines.curve_estimate import curve
from wattloom.machines.curve_model import INNER, LOADS, Situation, shipped, situation
from wattloom.machines.curve_model import alike as alike_numbers
from wattloom.machines.curve_points import alike, logs_of, readings, shares_of, spline

MILAN = "AMD EPYC 7763 64-Core Processor"


def test_with_nothing_known_the_spline_is_a_straight_line() -> None:
    assert spline([], np.empty((1, 0)))[0] == pytest.approx(np.arange(1, 10) / 10)


def test_the_spline_bends_as_fritsch_and_carlsons_does() -> None:
    found = spline([40.0], np.array([[0.8]]))[0]
    steep, flat = 0.8 / 40, 0.2 / 60
    first = ((2 * 40 + 60) * steep - 40 * flat) / 100
    middle = (160 + 140) / (160 / steep + 140 / flat)
    assert found[3] == pytest.approx(0.8)
    # Half way a cubic lies a quarter of the slopes' difference off the middle of its chord, over half the stretch.
    assert found[1] == pytest.approx(0.4 + 40 * (first - middle) / 8)


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=2), st.sampled_from([(10.0, 50.0), (35.0, 95.0)]))
def test_the_spline_never_falls_and_stays_between_idle_and_full(shares: list[float], loads: tuple[float, ...]) -> None:
    found = [0.0, *spline(loads, np.array([sorted(shares)]))[0], 1.0]
    assert all(a <= b + 1e-12 for a, b in pairwise(found))


def test_shares_and_logarithms_are_two_ways_to_write_a_shape() -> None:
    shares, ratios = np.array([[0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.95]]), np.array([[0.17]])
    assert shares_of(logs_of(shares, ratios), ratios)[0, 1:-1] == pytest.approx(shares[0])
    assert len(shares[0]) == INNER


def test_a_point_between_two_levels_reads_both() -> None:
    (row,) = readings([45.0])
    assert {load: share for load, share in zip(LOADS, row, strict=True) if share} == {40: 0.5, 50: 0.5}


def test_points_tell_more_than_a_spline_through_them() -> None:
    """The catalogue's machine with this processor; the published watts in between are not given."""
    true = [75.6, 173, 195, 217, 239, 258, 283, 307, 333, 386, 460]
    told = curve(true[0], true[-1], cpu=MILAN, points={10.0: true[1], 50.0: true[5]}).watts
    shares = np.array([[(true[level] - true[0]) / (true[-1] - true[0]) for level in (1, 5)]])
    plain = [true[0], *(true[0] + (true[-1] - true[0]) * spline([10.0, 50.0], shares)[0]), true[-1]]
    off = [sum(abs(a - b) / b for a, b in zip(way, true, strict=True)) for way in (told, plain)]
    assert off[0] < off[1] / 2


def test_a_machine_is_told_the_same_however_its_points_are_ordered() -> None:
    there = {10.0: 190.0, 50.0: 330.0}
    back = dict(reversed(there.items()))
    assert curve(95.0, 560.0, points=there).watts == curve(95.0, 560.0, points=back).watts


def test_a_load_close_to_idle_or_full_does_no_harm() -> None:
    found = curve(95.0, 560.0, cpu=MILAN, points={0.5: 100.0, 50.0: 330.0, 99.5: 559.0})
    assert all(a <= b for a, b in pairwise(found.watts))
    assert found.by_load["50"] == 330.0


@pytest.mark.parametrize("maker", ["", "Dell"])
def test_numbers_and_arrays_of_machines_are_as_alike(maker: str) -> None:
    model = shipped()
    asked = situation(model, (100.0, 400.0), "epyc-7763", None, maker)
    other = situation(model, (60.0, 300.0), "epyc-7543", 2021, maker)
    rows, columns = (
        Situation(*(np.array([getattr(one, name)]) for name in one.__struct_fields__)) for one in (asked, other)
    )
    alone, together = alike_numbers(asked, other, model.kernel), alike(rows, columns, model.kernel)
    assert alone.kin > 0.0
    assert [part.item() for part in together] == pytest.approx(list(alone), rel=1e-12)
