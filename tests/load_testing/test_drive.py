"""Driving a plan: what is asked and reached, drift, another plan, and that simulator and machine keep the same one."""

import time
from itertools import count
from pathlib import Path

import msgspec
import pytest
from tests.beds import burning
from tests.load_testing.conftest import QUICK, SLOW
from tests.runtimes.builds import needs

from wattloom.errors import InputError
from wattloom.load_testing import load_generator
from wattloom.load_testing.calls import calls_of
from wattloom.load_testing.carried import Carried, carried_out
from wattloom.load_testing.drift import Drift, replanned
from wattloom.load_testing.drive import Wishes, drive_here
from wattloom.load_testing.load_generator import Call, LoadGenerator
from wattloom.load_testing.report import Driven
from wattloom.load_testing.simulated import drive_simulated
from wattloom.local.executor import Executor
from wattloom.local.functions import name_of
from wattloom.local.options import Options
from wattloom.planning.plan import Plan
from wattloom.planning.plan_store import find_plan
from wattloom.workload.function_profile import FunctionProfile, FunctionProfiles, exact

CORES = 2
CALLS = {QUICK: Call(burning.quick), SLOW: Call(burning.slow)}
ERROR = 0.2
"""Of the rate reached, between simulator and machine: calls that are due at the very end end after it."""


@pytest.fixture
def carried(plan: Plan) -> Carried:
    return carried_out(plan, cores=CORES)


def placements(driven: Driven) -> dict[str, dict[str, int]]:
    return {each.function: each.servers for each in driven.functions}


# -- the simulator -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arrivals", ["poisson", "even"])
def test_a_plan_that_is_kept_reaches_its_rates(carried: Carried, arrivals: str) -> None:
    driven = drive_simulated(carried, Wishes(seconds=200.0, arrivals=arrivals, seed=3))  # type: ignore[arg-type]
    assert [each.asked for each in driven.functions] == [each.finished for each in driven.functions]
    for each, rate in zip(driven.functions, (6.0, 2.0), strict=True):
        assert each.reached_per_s == pytest.approx(rate, rel=0.12)
        assert each.per_core_s == pytest.approx(each.planned_per_core_s)
        assert each.joules == pytest.approx(each.planned_joules, rel=1e-6)
    assert placements(driven) == {
        QUICK: {"arm": driven.functions[0].asked}, SLOW: {"x86": driven.functions[1].asked},
    }  # fmt: skip
    assert driven.drift == ()


def test_the_same_run_twice_is_the_same_run(carried: Carried) -> None:
    wishes = Wishes(seconds=30.0, seed=5)
    assert drive_simulated(carried, wishes) == drive_simulated(carried, wishes)


def test_a_rate_that_is_not_as_planned_is_said(carried: Carried) -> None:
    driven = drive_simulated(carried, Wishes(seconds=30.0, rates={SLOW: 8.0}))
    assert [(each.function, each.what, each.planned) for each in driven.drift] == [(SLOW, "rate", 2.0)]
    assert "req/s, planned for 2" in str(driven.drift[0])
    assert driven.to_json()["drift"][0]["words"] == str(driven.drift[0])


def profiles(*, slow_on_arm: float) -> FunctionProfiles:
    rows = [
        FunctionProfile(function=QUICK, machine="small", per_core_s=exact(100.0), joules=exact(0.2)),
        FunctionProfile(function=QUICK, machine="big", per_core_s=exact(100.0), joules=exact(0.5)),
        FunctionProfile(function=SLOW, machine="big", per_core_s=exact(25.0), joules=exact(0.8)),
        FunctionProfile(function=SLOW, machine="small", per_core_s=exact(25.0), joules=exact(slow_on_arm)),
    ]
    return FunctionProfiles(tuple(rows))


def test_drift_has_another_plan_made_and_it_holds(carried: Carried) -> None:
    """40 a second of a function that makes 25 on a core: the server has four, and one more is its own from now on."""
    original = msgspec.structs.replace(
        carried.original, servers=tuple(msgspec.structs.replace(each, cores=4) for each in carried.original.servers)
    )
    larger = carried_out(original, cores=8)
    wishes = Wishes(seconds=20.0, rates={SLOW: 40.0}, replan=True, check_s=2.0)
    driven = drive_simulated(larger, wishes, profiles(slow_on_arm=5.0))
    assert len(driven.plans) >= 2
    assert driven.moves == 0
    cores = {each.function: each.cores for each in find_plan(driven.plans[-1]).assignments}
    assert cores[SLOW] >= 2
    slow = driven.functions[1]
    assert slow.reached_per_s == pytest.approx(slow.asked_per_s, rel=0.05)
    assert "planned anew, no function moves" in driven.replanning[0]


def test_another_plan_is_made_by_the_clock_that_was_brought(carried: Carried) -> None:
    ticks = count()
    drift = Drift(SLOW, "rate", 2.5, 2.0, 1.8, 2.2)
    made = replanned(carried, [drift], profiles(slow_on_arm=5.0), 1.0, lambda: next(ticks) * 1e-3)
    assert made.seconds > 0.0


def test_a_move_that_saves_less_than_its_price_is_not_made(carried: Carried) -> None:
    original = msgspec.structs.replace(
        carried.original, servers=tuple(msgspec.structs.replace(each, cores=4) for each in carried.original.servers)
    )
    larger = carried_out(original, cores=8)
    for price, moves in ((1e6, 0), (0.001, 1)):
        wishes = Wishes(seconds=6.0, rates={SLOW: 20.0}, replan=True, check_s=2.0, move_price=price)
        assert drive_simulated(larger, wishes, profiles(slow_on_arm=0.1)).moves == moves


def test_where_nothing_fits_the_plan_stays_and_that_is_said(carried: Carried) -> None:
    driven = drive_simulated(carried, Wishes(seconds=6.0, rates={SLOW: 500.0}, replan=True, check_s=2.0))
    assert len(driven.plans) == 1
    assert "the plan stays" in driven.replanning[0]


def test_rates_of_functions_that_are_not_in_the_plan_are_refused(carried: Carried) -> None:
    with pytest.raises(InputError, match=r"rates\.nobody"):
        drive_simulated(carried, Wishes(rates={"nobody": 1.0}))


@pytest.mark.parametrize("wrong", [{"seconds": 0.0}, {"seconds": float("nan")}, {"check_s": 0.0}, {"most_open": 0}])
def test_wishes_that_make_no_sense_are_refused(carried: Carried, wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        drive_simulated(carried, Wishes(**wrong))  # type: ignore[arg-type]


# -- this machine ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("beds_are_found")
def test_simulator_and_machine_keep_the_same_plan_at_the_same_rates(carried: Carried) -> None:
    wishes = Wishes(seconds=4.0, arrivals="even", seed=2, wait=1e6)
    here, modelled = drive_here(carried, CALLS, wishes), drive_simulated(carried, wishes)
    assert placements(here) == placements(modelled)
    for one, other in zip(here.functions, modelled.functions, strict=True):
        assert one.function == other.function
        assert one.asked == one.finished == other.asked
        assert one.failed == one.refused == 0
        assert one.reached_per_s == pytest.approx(other.reached_per_s, rel=ERROR)
        assert one.p50_s is not None
        assert one.joules is not None
        assert one.provenance == "modelled"


@pytest.mark.usefixtures("beds_are_found")
def test_another_plan_holds_while_calls_are_under_way(carried: Carried) -> None:
    """The function is twice as slow as planned: that is said, and planned for."""
    larger = msgspec.structs.replace(
        carried.original, servers=tuple(msgspec.structs.replace(each, cores=4) for each in carried.original.servers)
    )
    calls = {QUICK: CALLS[QUICK], SLOW: Call(burning.twice_as_slow)}
    wishes = Wishes(seconds=8.0, arrivals="even", rates={SLOW: 5.0}, replan=True, check_s=4.0)
    driven = drive_here(carried_out(larger, cores=CORES), calls, wishes)
    assert len(driven.plans) > 1
    assert any(f"{SLOW}: " in words and "planned anew" in words for words in driven.replanning)


@pytest.mark.usefixtures("beds_are_found")
def test_no_more_calls_are_open_than_the_bound(carried: Carried) -> None:
    wishes = Wishes(seconds=1.5, arrivals="even", rates={SLOW: 120.0}, most_open=3, wait=1e6)
    driven = drive_here(carried, CALLS, wishes)
    slow = driven.functions[1]
    assert slow.refused > 0
    assert slow.finished + slow.refused == slow.asked


@pytest.mark.usefixtures("beds_are_found")
def test_a_generator_that_is_always_late_tells_how_far_it_is_all_the_same(tmp_path: Path) -> None:
    def slow_to_make(number: int) -> tuple[()]:
        time.sleep(0.02)
        return ()

    told: list[float] = []
    dues = [0.005 * number for number in range(60)]
    with Executor(max_workers=1, journal=tmp_path / "journal") as executor:
        generator = LoadGenerator(executor, {QUICK: Call(burning.quick, slow_to_make)})
        generator.run([(due, QUICK) for due in dues], dues[-1], told.append)
    assert len(told) >= 3
    assert told == sorted(told)
    assert set(told) <= set(dues), "rates are counted by what was due, not by how late it was submitted"


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("beds_are_found")
def test_functions_are_found_by_the_names_that_journals_have() -> None:
    found = calls_of([QUICK, "math:sqrt"], ["math:sqrt=math:sqrt=[4.0]"])
    assert found[QUICK].function() == "quick"
    assert found["math:sqrt"].args(0) == (4.0,)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("f.js", "exports.handler = n => n + 1"),
        ("F.java", "public class F { public static long handler(long n) { return n + 1; } }"),
    ],
)
def test_a_function_in_a_file_is_called_with_the_arguments_that_were_said(file: str, text: str, tmp_path: Path) -> None:
    needs(*{"f.js": ("node", "nodejs"), "F.java": ("javac", "openjdk-17-jdk-headless")}[file])
    (tmp_path / file).write_text(text)
    call = calls_of(["a"], [f"a={tmp_path / file}:handler=[41]"])["a"]
    assert (name_of(call.function), call.args(0)) == (f"{file}:handler", (41,))
    with Executor(max_workers=1, journal=tmp_path / "journal") as executor:
        assert executor.submit_with(Options(), call.function, call.args(0)).result(60.0) == 42


def test_a_function_in_a_file_is_found_by_the_name_that_journals_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.js").write_text("exports.handler = () => 1")
    found = calls_of(["f.js:handler"])["f.js:handler"]
    assert (name_of(found.function), found.args(0)) == ("f.js:handler", ())


@pytest.mark.parametrize(
    ("functions", "said", "words"),
    [
        (["nobody-knows"], [], "--call nobody-knows="),
        (["no.such.module"], [], "--call no.such.module="),
        (["f"], ["g=math:sqrt"], "g is not in the plan"),
        (["f"], ["f"], "must be NAME="),
        (["f"], ["f=math:nothing"], "has no nothing"),
    ],
)
def test_a_name_that_nobody_knows_is_refused(functions: list[str], said: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        calls_of(functions, said)


@pytest.mark.parametrize("name", ['os:system=["true"]', "/elsewhere/evil.js:handler", "../evil.py:run"])
def test_a_plan_of_a_stranger_gives_functions_no_arguments_and_names_no_files_elsewhere(name: str) -> None:
    with pytest.raises(InputError, match="more than the name of a function"):
        calls_of([name])


def test_a_function_that_never_returns_is_not_driven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_generator, "WARM_UP_S", 1.0)
    with Executor(1, journal=tmp_path / "j", meter="off") as executor:
        generator = LoadGenerator(executor, {"f": Call(time.sleep, lambda number: (60.0,))}, 10)
        with pytest.raises(InputError, match="has not returned after 1 s"):
            generator.warm_up({"f": 1})
