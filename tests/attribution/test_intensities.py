"""What functions draw, learned from machines whose law the test knows."""

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattloom.attribution.intensities import MOST, OTHERS, OWN, Intensities

CORES = 4
TRUE = {"a": 0.5, "b": 1.0, "c": 2.0}
MIXES = ({"a": 2.0}, {"b": 1.0, "c": 1.0}, {"a": 1.0, "b": 0.5}, {"c": 2.0, "a": 0.3}, {"b": 2.5}, {"a": 0.2})


def watts(mix: dict[str, float], true: dict[str, float], bend: float = 0.0) -> float:
    """10 W idle, and 8 W for a core with ordinary code on a straight machine."""
    load = sum(true.get(name, 1.0) * cores for name, cores in mix.items())
    return 10.0 + 8.0 * load * (1.0 - bend * load / (2.0 * CORES))


def taught(
    mixes: Iterable[dict[str, float]], true: dict[str, float] = TRUE, bend: float = 0.0, noise: float = 0.0
) -> Intensities:
    known, chance = Intensities(CORES, 0.4), Random(3)
    show(known, mixes, true, bend, noise, chance)
    return known


def show(
    known: Intensities,
    mixes: Iterable[dict[str, float]],
    true: dict[str, float],
    bend: float = 0.0,
    noise: float = 0.0,
    chance: Random | None = None,
) -> None:
    for mix in mixes:
        factor = 1.0 + (chance or Random(1)).gauss(0.0, noise)
        used = {name: 0.5 * cores for name, cores in mix.items()}
        known.look(0.5, 0.5 * watts(mix, true, bend) * factor, 0.001, used, 0.005)


def shares(known: Intensities, mix: dict[str, float]) -> dict[str, float]:
    whole = sum(known.weight(name) * cores for name, cores in mix.items())
    return {name: known.weight(name) * cores / whole for name, cores in mix.items()}


@pytest.mark.parametrize(("bend", "noise"), [(0.0, 0.0), (0.3, 0.0), (0.3, 0.02)])
def test_functions_that_run_in_different_mixes_are_told_apart(bend: float, noise: float) -> None:
    known = taught(MIXES * 10, bend=bend, noise=noise)
    for name in "ac":
        assert known.weight(name) / known.weight("b") == pytest.approx(TRUE[name], rel=0.12)
    errors = known.errors(0.5, 5.0, {"a": 0.5, "c": 0.5})
    assert all(error < 0.15 for error in errors.values())
    assert known.idle_w == pytest.approx(10.0, rel=0.15)


def test_functions_that_always_run_in_the_same_mix_are_not() -> None:
    mix = {"a": 1.0, "c": 1.0}
    known = taught([mix] * 100)
    assert shares(known, mix) == pytest.approx({"a": 0.5, "c": 0.5}, rel=0.01)
    for error in known.errors(0.5, 8.0, {"a": 0.5, "c": 0.5}).values():
        assert 0.2 < error < 0.5, "each may be as far from the mean of both as functions are"


def test_a_function_with_a_small_part_in_every_mix_may_be_as_far_from_the_others_as_functions_are() -> None:
    known = Intensities(CORES, 0.4, (10.0, 0.1))
    show(known, [{"a": 0.05, "b": 2.0}] * 50, TRUE)
    assert 0.4 < known.errors(0.5, 8.0, {"a": 0.025, "b": 1.0})["a"] < 0.4 * 2.0**0.5


def test_a_function_that_is_alone_on_the_machine_has_all_of_it_whatever_it_draws() -> None:
    known = taught([{"c": 2.0}] * 20)
    assert shares(known, {"c": 1.0}) == {"c": 1.0}
    known = taught([{"c": 2.0}, {"c": 0.01}] * 20)
    assert known.errors(0.5, 16.0, {"c": 1.0})["c"] < 0.1


def test_of_a_function_that_was_never_seen_nothing_is_known() -> None:
    known = taught(MIXES * 5)
    assert known.weight("new") == 1.0
    assert known.errors(0.5, 8.0, {"b": 0.9, "new": 0.1})["new"] == pytest.approx(0.4, rel=0.2)


def test_a_function_that_changes_is_followed() -> None:
    known = taught(MIXES * 10)
    changed = TRUE | {"c": 0.7}
    show(known, MIXES * 10, changed)
    assert known.weight("c") / known.weight("b") == pytest.approx(0.7, rel=0.25)


def test_one_look_that_cannot_be_true_changes_little() -> None:
    known = taught(MIXES * 10)
    before = {name: known.weight(name) for name in TRUE}
    known.look(0.5, 500.0, 0.001, {"c": 1.0}, 0.005)
    for name, weight in before.items():
        assert known.weight(name) == pytest.approx(weight, rel=0.25)


def test_looks_of_a_moment_are_taken_together() -> None:
    at_once, pieces = taught(MIXES * 4), Intensities(CORES, 0.4)
    for mix in MIXES * 4:
        for _ in range(100):
            used = {name: 0.005 * cores for name, cores in mix.items()}
            pieces.look(0.005, 0.005 * watts(mix, TRUE), 0.001, used, 0.005)
    for name in TRUE:
        assert pieces.weight(name) == pytest.approx(at_once.weight(name), rel=0.15)


def test_no_more_than_some_are_remembered_and_those_not_used_for_longest_are_forgotten() -> None:
    known = Intensities(CORES, 0.4, (10.0, 0.1))
    for number in range(3 * MOST):
        show(known, [{f"f{number}": 1.0, "b": 1.0}, {"b": 1.0}], TRUE | {f"f{number}": 2.0})
    assert known.weight("f0") == 1.0
    assert known.weight(f"f{3 * MOST - 1}") / known.weight("b") == pytest.approx(2.0, rel=0.2)
    assert len(known.errors(0.5, 8.0, {"b": 1.0})) == 1


def test_idle_watts_that_were_measured_are_believed() -> None:
    known = Intensities(CORES, 0.4, (10.0, 0.1))
    show(known, [{"b": 3.0}] * 20, TRUE)
    assert known.idle_w == pytest.approx(10.0, abs=0.2)


def test_noise_beyond_what_was_thought_makes_it_less_sure() -> None:
    calm, wild = taught(MIXES * 10), taught(MIXES * 10, noise=0.15)
    assert wild.noise > 3.0 * calm.noise
    cpu = {"a": 0.5, "c": 0.5}
    assert wild.errors(0.5, 5.0, cpu)["a"] > 1.5 * calm.errors(0.5, 5.0, cpu)["a"]


CPU = st.dictionaries(st.sampled_from(("a", "b", "c", OWN, OTHERS)), st.floats(0.0, 4.0), min_size=1)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(0.001, 100.0), st.floats(0.0, 1000.0), CPU), min_size=1, max_size=20))
def test_whatever_is_seen_weights_are_positive_and_errors_are_numbers(
    looks: list[tuple[float, float, dict[str, float]]],
) -> None:
    known, again = Intensities(CORES, 0.4), Intensities(CORES, 0.4)
    for seconds, drawn, cpu in looks:
        for each in (known, again):
            each.look(seconds, drawn * seconds, 0.01, cpu, 0.005)
        assert known.idle_w >= 0.0
        for name, error in known.errors(seconds, drawn, cpu).items():
            assert known.weight(name) > 0.0
            assert 0.0 <= error < float("inf")
            assert known.weight(name) == again.weight(name), "the same looks must tell the same"
