"""Run times: declared, learned, carried over, unknown."""

from statistics import fmean, stdev

import hypothesis.strategies as st
import pytest
from hypothesis import given

from wattloom.energy.forecast import RunTime, Unknown
from wattloom.machines.machine import Machine
from wattloom.prediction.runtimes import DECLARED_COUNTS_AS, ENOUGH_SAMPLES, REPUBLISH_AT, Learned, RunTimes
from wattloom.testing.builders import ARM, LINEAR, function, variant
from wattloom.units import Seconds

HERE, SLOW = Machine(LINEAR), Machine(ARM)
SECONDS = st.lists(st.floats(0.001, 1e6), min_size=1, max_size=60)


def runtimes() -> RunTimes:
    known = RunTimes()
    known.know_machine(HERE)
    known.know_machine(SLOW)
    return known


@given(SECONDS)
def test_mean_and_spread_are_those_of_all_runs(seen: list[float]) -> None:
    learned = Learned(None)
    for seconds in seen:
        learned.add(seconds)
    assert learned.mean == pytest.approx(fmean(seen))
    if len(seen) > 1:
        assert learned.spread == pytest.approx(stdev(seen), rel=1e-6, abs=1e-6 * max(seen))


@given(SECONDS, st.floats(0.01, 1e4))
def test_what_is_declared_weighs_as_much_as_some_runs(seen: list[float], declared: float) -> None:
    learned = Learned(declared)
    for seconds in seen:
        learned.add(seconds)
    assert learned.mean == pytest.approx(fmean([declared] * DECLARED_COUNTS_AS + seen))


@given(SECONDS)
def test_what_is_published_is_never_far_from_what_was_learned(seen: list[float]) -> None:
    learned = Learned(None)
    for seconds in seen:
        before = learned.published
        changed = learned.add(seconds)
        assert changed == (learned.published != before)
    if len(seen) >= ENOUGH_SAMPLES:
        assert abs(learned.mean - learned.published) <= REPUBLISH_AT * learned.published


def test_nothing_known_is_unknown() -> None:
    expected = runtimes().expect(function("f"), variant(), HERE)
    assert isinstance(expected, Unknown)
    assert "f has not run" in expected.reason


def test_what_is_declared_is_modelled_until_runs_change_it() -> None:
    known, build = runtimes(), variant(seconds={"linear": 10.0})
    f = function("f")
    assert known.expect(f, build, HERE) == RunTime(Seconds(10.0), provenance="modelled")
    known.learn(f, build, HERE, Seconds(10.0))
    expected = known.expect(f, build, HERE)
    assert isinstance(expected, RunTime)
    assert expected.provenance == "modelled"
    while not known.learn(f, build, HERE, Seconds(30.0)):
        pass
    expected = known.expect(f, build, HERE)
    assert isinstance(expected, RunTime)
    assert expected.provenance == "measured"
    assert 10.0 < expected.seconds < 30.0


def test_what_is_known_elsewhere_is_carried_over_by_speed_as_an_estimate() -> None:
    expected = runtimes().expect(function("f"), variant(seconds={"linear": 10.0}), SLOW)
    assert expected == RunTime(Seconds(20.0), provenance="estimated")


def test_builds_and_functions_are_learned_apart() -> None:
    known, f = runtimes(), function("f")
    for _ in range(3):
        known.learn(f, variant("a"), HERE, Seconds(5.0))
    assert isinstance(known.expect(f, variant("a"), HERE), RunTime)
    assert isinstance(known.expect(f, variant("b"), HERE), Unknown)
    assert isinstance(known.expect(function("g"), variant("a"), HERE), Unknown)
    known.forget("f")
    assert isinstance(known.expect(f, variant("a"), HERE), Unknown)
