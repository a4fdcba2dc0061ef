"""From bags to E and W, with intervals that hold what they say."""

from random import Random

import pytest

from wattloom.affinity.bags import Lots
from wattloom.affinity.estimating import interval, inverse, profiles, student
from wattloom.affinity.seen import Bags, Seen, SeenBag, Setting, Trial


def setting(**changed: object) -> Setting:
    known: dict[str, object] = {
        "functions": ("m:f",), "lots": Lots(), "seconds": 1.0, "machine": "here", "cores": 2, "meter": "rig",
        "provenance": "measured", "quantity": "package",
    }  # fmt: skip
    return Setting(**(known | changed))  # type: ignore[arg-type]


def bags(*seen: Seen, trial: Trial | None = None) -> Bags:
    tried = trial or Trial(function="m.f", cold_start_s=0.2, memory=1 << 20)
    each = tuple(SeenBag(number=n, bag=("m.f",), seen=(one,), seconds=1.0) for n, one in enumerate(seen))
    return Bags(setting=setting(), began="2026-11-18", trials=(tried,), bags=each)


def seen(seconds: float, joules: float, executions: int = 10, **more: float) -> Seen:
    return Seen(
        function="m.f",
        executions=executions,
        seconds=seconds * executions,
        joules=joules * executions,
        metered=executions,
        calls=executions,
        **more,  # type: ignore[arg-type]
    )


def test_students_t_is_that_of_the_tables() -> None:
    assert student(1) == 6.314
    assert student(10) == pytest.approx(1.812, abs=1e-3)
    assert student(30) == pytest.approx(1.697, abs=2e-3)
    assert student(1000) == pytest.approx(1.646, abs=1e-3)


@pytest.mark.parametrize("count", [2, 3, 7, 20])
def test_intervals_hold_the_truth_nine_times_out_of_ten(count: int) -> None:
    chance, held, times = Random(count), 0, 4000
    for _ in range(times):
        figure = interval([chance.gauss(1.0, 0.02) for _ in range(count)])
        held += figure.low <= 1.0 <= figure.high
    assert 0.88 <= held / times <= 0.92


def test_an_error_that_all_bags_share_stays_however_many_there_are() -> None:
    chance, held, times = Random(5), 0, 2000
    for _ in range(times):
        shared = 1.0 + chance.gauss(0.0, 0.05)
        figure = interval([chance.gauss(shared, 0.01) for _ in range(20)], doubt=0.05)
        held += figure.low <= 1.0 <= figure.high
    assert 0.87 <= held / times <= 0.93


def test_a_row_has_the_mean_over_bags_and_what_it_rests_on() -> None:
    row = profiles(bags(seen(0.1, 2.0), seen(0.1, 2.2, 30)), "2 bags")[0]
    assert (row.function, row.machine, row.bags, row.executions) == ("m.f", "here", 2, 40)
    assert row.per_core_s.value == pytest.approx(10.0)
    assert row.joules is not None
    assert row.joules.value == pytest.approx(2.1), "bags count alike, not calls"
    assert row.joules.low < 2.1 < row.joules.high
    assert (row.cold_start_s, row.memory, row.provenance) == (0.2, 1 << 20, "measured")
    assert row.problem() is None


def test_without_joules_w_is_unknown_and_not_nothing() -> None:
    none = Seen(function="m.f", executions=5, seconds=0.5)
    assert profiles(bags(none, none), "")[0].joules is None


def test_a_function_that_was_left_out_or_never_came_to_its_end_has_no_row() -> None:
    assert profiles(bags(seen(0.1, 1.0), trial=Trial(function="m.f", problem="crashed")), "") == []
    assert profiles(bags(Seen(function="m.f", executions=0, seconds=0.0, problem="crashed")), "") == []


def test_of_one_bag_the_spread_is_that_of_its_calls() -> None:
    even = Seen(function="m.f", executions=4, seconds=0.4, seconds_squared=0.04, calls=4)
    uneven = Seen(function="m.f", executions=4, seconds=0.4, seconds_squared=0.05, calls=4)
    assert profiles(bags(even), "")[0].per_core_s.high == pytest.approx(10.0)
    assert profiles(bags(uneven), "")[0].per_core_s.high > 12.0


def test_the_inverse_of_seconds_turns_its_ends_round() -> None:
    turned = inverse(interval([0.1, 0.11]))
    assert turned.low < turned.value < turned.high
