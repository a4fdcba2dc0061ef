"""Idle watts of a whole machine: seen as soon as it was busy in different measure."""

import random

import pytest
from tests.metering.scripted import Scripted
from tests.metering.trees import machine

from wattloom.attribution.machine_draw import MachineDraw

IDLE_W, CORE_W = 10.0, 15.0
"""Of a machine of two cores whose idle share is not that of most machines."""


def learned(low: float, high: float, intervals: int = 120, model_error: float = 0.4) -> float:
    meter, chance = Scripted(), random.Random(1)
    meter.model_error = model_error
    meter.quantity = "package"
    draw = MachineDraw(machine(), meter)
    for _ in range(intervals):
        busy = chance.uniform(low, high)
        watts = (IDLE_W + CORE_W * busy) * chance.gauss(1.0, 0.01)
        draw.learn(0.5, 0.5 * watts, 0.01, 0.5 * busy, 0.01)
    return draw.watts


def test_a_machine_that_is_busy_in_different_measure_shows_its_idle_draw() -> None:
    assert learned(0.2, 2.0) == pytest.approx(IDLE_W, rel=0.08)


def test_one_that_was_idle_shows_it_at_once() -> None:
    assert learned(0.0, 0.02, intervals=4) == pytest.approx(IDLE_W, rel=0.1)


def test_it_is_never_more_than_the_machine_was_seen_to_draw() -> None:
    assert learned(1.9, 2.0) <= IDLE_W + CORE_W * 2.0
    assert learned(0.0, 0.01) <= IDLE_W * 1.01


def test_without_a_meter_that_measures_the_least_busy_interval_counts() -> None:
    assert learned(0.0, 2.0, model_error=0.0) == pytest.approx(IDLE_W, rel=0.1)
