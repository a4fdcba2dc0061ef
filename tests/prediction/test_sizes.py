"""Whether the size of arguments explains how long a function takes."""

import random

import pytest

from wattloom.prediction.sizes import BySize
from wattloom.testing.builders import LINEAR
from wattloom.testing.harness import Harness
from wattloom.workload.task import Task


def seen(*runs: tuple[int, float]) -> BySize:
    by_size = BySize()
    for size, seconds in runs:
        by_size.add(size, seconds)
    return by_size


def test_sizes_that_explain_the_seconds_are_used() -> None:
    by_size = seen(*((size, 0.01 * 2 ** (size / 4)) for _ in range(8) for size in (4, 8, 12, 16)))
    assert by_size.explains
    assert by_size.seconds(8) == pytest.approx(0.04)


def test_a_size_never_seen_is_on_the_line_through_the_others() -> None:
    by_size = seen(*((size, 0.01 * 2 ** (size / 4)) for _ in range(8) for size in (4, 8, 16, 20)))
    assert by_size.seconds(12) == pytest.approx(0.08)
    assert by_size.seconds(40) == pytest.approx(10.24)


@pytest.mark.parametrize("seed", range(20))
def test_chance_explains_nothing(seed: int) -> None:
    chance = random.Random(seed)
    by_size = seen(*((chance.randrange(60), chance.lognormvariate(-5.0, 1.0)) for _ in range(640)))
    assert not by_size.explains


def test_one_outlier_explains_nothing() -> None:
    runs = [(number % 8, 0.01 * (1.0 + number % 3 / 10.0)) for number in range(320)]
    assert not seen((3, 5.0), *runs).explains


def test_forecasts_follow_the_size_of_the_task() -> None:
    h = Harness().node("a", LINEAR, cpu=1.0).function("f")
    for number in range(48):
        size = 8 + 8 * (number % 2)
        h.submit_task(Task(f"t{number}", "f", size=size))
        h.finish(f"t{number}", 0.1 if size == 8 else 3.0)
    h.submit_task(Task("small", "f", size=8))
    small = h.placements["small"][-1].forecast
    h.finish("small", 0.1)
    h.submit_task(Task("large", "f", size=16))
    large = h.placements["large"][-1].forecast
    assert getattr(small, "seconds", None) == pytest.approx(0.1, rel=0.05)
    assert getattr(large, "seconds", None) == pytest.approx(3.0, rel=0.05)
    h.finish("large", 3.0)
    h.replay()
