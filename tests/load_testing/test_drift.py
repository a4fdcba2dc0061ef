"""Drift of E against what a plan was made with, and that another plan is made in the same terms."""

from pathlib import Path

import msgspec
import pytest
from tests.load_testing.conftest import SLOW

from wattloom.errors import InputError
from wattloom.history.observed_calls import Observed
from wattloom.load_testing.carried import carried_out
from wattloom.load_testing.drift import Drift, drifts, replanned
from wattloom.planning.making import Wishes, make_plan
from wattloom.planning.plan import Demand, Plan, Server
from wattloom.planning.plan_file import encode_plan, read_plan
from wattloom.planning.problem import Terms
from wattloom.workload.function_profile import Figure, FunctionProfile, FunctionProfiles, exact

ROW = FunctionProfile(function=SLOW, machine="big", per_core_s=Figure(25.0, 12.5, 30.0), joules=exact(0.8))
PROFILES = FunctionProfiles((ROW,))
SERVERS = [Server(name="x86", machine="big", cores=8, idle_w=20.0, arch="x86_64")]
CAREFUL = Terms(quantile=0.05, core_price_w=3.0)


def careful(policy: str = "energy-aware") -> Plan:
    return make_plan([Demand(function=SLOW, rate=50.0)], SERVERS, PROFILES, Wishes(policy, CAREFUL))


def speeds(plan: Plan, per_core_s: float) -> list[str]:
    """What is said of a function that runs at this E, of all that is its own cores' doing."""
    carried = carried_out(plan, cores=8)
    seconds = 1.0 / (per_core_s * carried.speed)
    seen = Observed()
    seen.seconds = [seconds, seconds * 1.001] * 50
    rate = sum(each.rate for each in carried.plan.assignments)
    asked = {SLOW: round(rate * 100.0)}
    return [each.what for each in drifts(carried, asked, 100.0, {SLOW: seen}, {}, PROFILES)]


def test_a_plan_keeps_the_terms_it_was_made_in(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(encode_plan(careful("weighted")))
    plan = read_plan(file)
    assert (plan.quantile, plan.core_price_w) == (0.05, 3.0)


@pytest.mark.parametrize(("per_core_s", "said"), [(25.0, []), (40.0, []), (13.0, []), (10.0, ["E"])])
def test_only_an_e_below_what_a_careful_plan_counts_on_is_drift(per_core_s: float, said: list[str]) -> None:
    assert speeds(careful(), per_core_s) == said


def test_another_plan_is_as_careful_as_the_one_before() -> None:
    plan = careful()
    carried = carried_out(plan, cores=8)
    rate = Drift(SLOW, "rate", 75.0 * carried.scale, 50.0, 0.0, 60.0)
    assert sum(each.cores for each in plan.assignments) == 4, "50 a second at 12.5"
    anew = replanned(carried, [rate], PROFILES, 1.0)
    assert (anew.cores, anew.quantile) == (6, 0.05)
    slower = Drift(SLOW, "E", 20.0 * carried.speed, 12.5, 0.0, 60.0)
    assert replanned(carried, [slower], PROFILES, 1.0).cores == 5, "50 a second at 10, the low end of 20"


@pytest.mark.parametrize("wrong", [{"quantile": 0.0}, {"quantile": 7.0}, {"core_price_w": -1.0}])
def test_a_plan_file_with_absurd_terms_is_refused(tmp_path: Path, wrong: dict[str, float]) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(encode_plan(msgspec.structs.replace(careful(), **wrong)))
    with pytest.raises(InputError, match=next(iter(wrong))):
        read_plan(file)
