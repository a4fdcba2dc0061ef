"""On the rig the true joules of every call are known: what is said of them is held against that."""

import time
from math import hypot

import numpy as np
import pytest
from tests.attribution.rig_functions import long_frugal, long_hungry, long_plain
from tests.beds.rig.conditions import Conditions, active_watts
from tests.beds.rig.functions import Burnt, join
from tests.beds.rig.rig import Rig
from tests.beds.rig.rivals import nonnegative
from tests.beds.rig.scores import Scores, scores
from tests.beds.rig.trial import Plan, Trial, run

from wattloom.local.leave_one_out import validate_attribution

pytestmark = pytest.mark.usefixtures("beds_are_found")


@pytest.fixture(scope="module")
def trial(beds_are_found: None) -> Trial:
    """Calls of 50 ms on two workers, for about 7 s on two cores of its own."""
    return run(Plan(0.05, 2, 5.0, 2), Conditions(background=0.1, update_s=0.002, start_uj=9_990_000_000))


@pytest.fixture(scope="module")
def scored(trial: Trial) -> Scores:
    return scores(trial)


def test_the_parts_are_the_meter_to_the_last_bit(trial: Trial) -> None:
    totals = trial.totals
    assert totals.meter_j == totals.tasks_j + totals.held_j + totals.idle_j + totals.unattributed_j
    assert totals.held_j == 0.0
    assert totals.calls >= len(trial.told)


def test_the_counters_wrapped_and_nothing_was_lost(trial: Trial) -> None:
    assert trial.totals.meter_j > 10.0, "the counters wrap after 10 J"
    assert trial.totals.unknown_calls == 0
    assert trial.totals.meter_j == pytest.approx(float(trial.truth.meter_j[-1]), rel=0.3)


def test_calls_are_told_nearly_what_they_cost(scored: Scores) -> None:
    """With other tests on the same cores; the benchmark says how near on a machine of one's own."""
    assert scored.ours.median < 0.15
    assert abs(scored.ours.bias) < 0.15


def test_spreads_hold_the_truth(scored: Scores) -> None:
    assert scored.held > 0.65
    assert scored.spread < 0.25, "a spread that holds everything is worth nothing"


def test_the_rules_of_others_are_further_off(scored: Scores) -> None:
    """They do not know that functions differ."""
    assert scored.ours.median < 0.7 * scored.scaphandre.median
    assert scored.ours.median < 0.7 * scored.kepler.median


def test_functions_cost_what_they_draw(trial: Trial) -> None:
    """Whoever draws three times as much is told so: by CPU time alone all would be told the same."""
    costs = []
    for function in (0, 3):
        mine = [each for each in trial.told[len(trial.told) // 3 :] if each.call.function == function]
        costs.append(sum(each.joules for each in mine) / sum(_cpu(each.call) for each in mine))
    assert costs[1] > 1.7 * costs[0]


def _cpu(call: Burnt) -> float:
    return call.cpu_ended - call.cpu_began


# -- the rig itself --------------------------------------------------------------------------------------------------


def test_the_rigs_power_is_idle_and_the_curve_of_what_runs() -> None:
    conditions = Conditions(noise=0.0, lag_s=0.0)
    assert active_watts(conditions, 2.0, cores=2) == pytest.approx(20.0)
    assert active_watts(conditions, 1.0, cores=2) > 10.0, "it is concave"
    assert active_watts(Conditions(bend=0.0), 1.0, cores=2) == pytest.approx(10.0)


def test_an_idle_rig_draws_its_idle_watts_and_what_the_program_uses() -> None:
    with Rig(Conditions(noise=0.0, update_s=0.005)) as rig:
        meter = rig.meter()
        first = meter.read(time.monotonic())
        time.sleep(0.5)
        last = meter.read(time.monotonic())
        truth = rig.stop()
    watts = (last.joules - first.joules) / (last.time - first.time)  # type: ignore[union-attr]
    assert 7.0 <= watts < 8.0 + 4.0
    assert float(np.median(np.diff(truth.time))) == pytest.approx(0.005, rel=0.5)


def test_least_squares_without_negative_factors() -> None:
    known = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert nonnegative(known, np.array([2.0, 3.0, 5.0])) == pytest.approx([2.0, 3.0])
    assert nonnegative(known, np.array([2.0, -3.0, 1.0])) == pytest.approx([1.5, 0.0])


def test_leaving_one_function_out_agrees_with_what_is_said_on_a_straight_machine() -> None:
    """Where power is a straight line, what leaving a function out saves is its share."""
    with Rig(Conditions(bend=0.0, update_s=0.002, noise=0.005)) as rig:
        found = validate_attribution(
            [long_frugal, long_plain, long_hungry],
            seconds=12.0,
            rounds=2,
            meter=rig.meter,
            workers=2,
            initializer=join,
            initargs=(rig.slots,),
        )
    assert (found.meter, found.provenance, found.rounds) == ("powercap", "measured", 2)
    assert [each.function.rpartition(".")[2] for each in found.functions] == [
        "long_frugal",
        "long_plain",
        "long_hungry",
    ]
    for each in found.functions:
        unsure = 3.0 * hypot(each.said_spread_j, each.saw_spread_j)
        assert abs(each.said_j - each.saw_j) < unsure + 0.2 * each.saw_j, each
    whole = sum(each.said_j for each in found.functions)
    assert whole == pytest.approx(sum(each.saw_j for each in found.functions), rel=0.35)
    said = [each.said_j / each.calls for each in found.functions]
    assert said[0] < said[1] < said[2]
