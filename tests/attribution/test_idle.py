import pytest
from tests.metering.trees import machine

from wattloom.attribution.idle import IDLE_SHARE, IdleDraw


def test_the_profiles_idle_watts_are_taken_if_they_are_of_the_meters_quantity() -> None:
    idle = IdleDraw(machine("package"), "package")
    idle.learn(3.0, 0.0)
    assert idle.watts == 10.0


def test_watts_at_the_plug_are_never_taken_for_those_of_the_package() -> None:
    idle = IdleDraw(machine("wall"), "package")
    idle.learn(3.0, 0.0)
    assert idle.watts == pytest.approx(3.0)


def test_where_only_busy_times_were_seen_a_usual_share_is_idle() -> None:
    idle = IdleDraw(machine(watts=()), "package")
    idle.learn(100.0, 2.0)
    assert idle.watts == pytest.approx(100.0 * IDLE_SHARE)


def test_a_less_busy_time_tells_more_and_a_busier_one_nothing() -> None:
    idle = IdleDraw(machine(watts=()), "package")
    idle.learn(100.0, 2.0)
    idle.learn(25.0, 0.0)
    assert idle.watts == pytest.approx(25.0)
    idle.learn(100.0, 2.0)
    assert idle.watts == pytest.approx(25.0)


def test_idle_is_never_more_than_the_least_that_was_drawn() -> None:
    idle = IdleDraw(machine(watts=()), "package")
    for watts in (25.0, 20.0, 21.0, 30.0):
        idle.learn(watts, 0.0)
    assert idle.watts == 20.0
