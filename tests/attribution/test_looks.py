"""Looks are cut at the time of a reading, and nothing is lost."""

import pytest

from wattloom.attribution.looks import MOST, Look, Looks


def test_a_reading_before_the_last_look_takes_its_part_of_it_and_leaves_the_rest() -> None:
    looks: Looks[str] = Looks()
    looks.add(Look(0.0, 1.0, {"a": 0.5}, 0.6))
    looks.add(Look(1.0, 2.0, {"a": 0.4, "b": 0.8}, 1.2))
    first = looks.take_until(1.25)
    assert [first.used["a"], first.used["b"], first.busy_s] == pytest.approx([0.6, 0.2, 0.9])
    rest = looks.take_until(2.0)
    assert [rest.used["a"], rest.used["b"], rest.busy_s] == pytest.approx([0.3, 0.6, 0.9])
    assert looks.take_until(9.0).used == {}


def test_a_silent_meter_does_not_fill_the_memory_and_loses_nothing() -> None:
    looks: Looks[str] = Looks()
    for second in range(10 * MOST):
        looks.add(Look(float(second), second + 1.0, {"a": 0.1}, 0.1))
    assert len(looks._looks) == MOST
    assert looks.take_until(1e9).used["a"] == pytest.approx(MOST)
