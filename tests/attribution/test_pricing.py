"""The price of a CPU second: which part of it is idle, who weighs more, and how sure that is."""

import random

import pytest
from tests.metering.scripted import Scripted
from tests.metering.trees import machine

from wattloom.attribution.intensities import MOST, OTHERS, OWN
from wattloom.attribution.pricing import Interval, Pricing, told_apart
from wattloom.units import Joules

IDLE_W, CORE_W = 10.0, 15.0
"""Of a machine of two cores whose idle share is not that of most machines."""


def pricing(model_error: float = 0.4) -> Pricing:
    meter = Scripted()
    meter.model_error = model_error
    meter.quantity = "package"
    return Pricing(meter, machine())


def idle_w(low: float, high: float, intervals: int = 120, model_error: float = 0.4) -> float:
    """What is taken for idle after so many intervals, in which so many cores were busy."""
    priced, chance, found = pricing(model_error), random.Random(1), 0.0
    for _ in range(intervals):
        busy = chance.uniform(low, high)
        watts = (IDLE_W + CORE_W * busy) * chance.gauss(1.0, 0.01)
        found = priced.prices(Interval(0.5, Joules(0.5 * watts), 0.01, 0.5 * busy)).ordinary.idle_j / 0.5
    return found


def test_a_machine_that_is_busy_in_different_measure_shows_its_idle_draw() -> None:
    assert idle_w(0.2, 2.0) == pytest.approx(IDLE_W, rel=0.08)


def test_one_that_was_idle_shows_it_at_once() -> None:
    assert idle_w(0.0, 0.02, intervals=4) == pytest.approx(IDLE_W, rel=0.1)


def test_idle_is_never_more_than_the_machine_was_seen_to_draw() -> None:
    assert idle_w(1.9, 2.0) <= IDLE_W + CORE_W * 2.0
    assert idle_w(0.0, 0.01) <= IDLE_W * 1.02


def test_without_a_meter_that_measures_the_least_busy_interval_counts() -> None:
    assert idle_w(0.0, 2.0, model_error=0.0) == pytest.approx(IDLE_W, rel=0.1)


def test_what_was_counted_goes_before_what_was_learned_and_the_unseen_weigh_as_ordinary_code() -> None:
    interval = Interval(1.0, Joules(40.0), 0.0, 2.0, 1.5, paid={"a": 1.0, "b": 0.5}, weights={"a": 1.0, "b": 3.0})
    prices = pricing().prices(interval)
    a, b, others = (prices.of(name).joules for name in ("a", "b", OTHERS))
    assert b == pytest.approx(3.0 * a)
    assert others == pytest.approx(a)
    assert 1.0 * a + 0.5 * b + 0.5 * others == pytest.approx(prices.ordinary.active_j)


@pytest.mark.parametrize("model_error", [0.0, 0.4])
def test_what_everybody_pays_is_what_is_above_idle(model_error: float) -> None:
    priced, chance = pricing(model_error), random.Random(2)
    for _ in range(40):
        cpu = {name: chance.uniform(0.0, 0.6) for name in ("f", "g", OWN)}
        free = chance.uniform(0.0, 0.2)
        known = sum(cpu.values())
        prices = priced.prices(
            Interval(1.0, Joules(chance.uniform(5.0, 60.0)), 0.01, known + free, known, dict(cpu), cpu)
        )
        paid = sum(prices.of(name).joules * seconds for name, seconds in {**cpu, OTHERS: free}.items())
        assert paid == pytest.approx(prices.ordinary.active_j)


def test_who_is_alone_is_sure_of_his_share_from_the_first_interval_on() -> None:
    alone = pricing().prices(Interval(1.0, Joules(40.0), 0.0, 1.0, 1.0, {"f": 1.0}, {"f": 1.0})).of("f")
    beside = pricing().prices(Interval(1.0, Joules(40.0), 0.0, 2.0, 1.0, {"f": 1.0}, {"f": 1.0})).of("f")
    assert alone.error < beside.error
    assert beside.error > 0.4 / 2**0.5


def test_only_the_busiest_programs_are_told_apart_and_ourselves_always() -> None:
    cpu = {f"p{number}": 1.0 + number for number in range(100)} | {OWN: 0.001}
    found = told_apart(cpu)
    assert len(found) == MOST
    assert {OWN, OTHERS, "p99"} <= set(found)
    assert sum(found.values()) == pytest.approx(sum(cpu.values()))
    assert told_apart({"p": 1.0}) == {"p": 1.0}
