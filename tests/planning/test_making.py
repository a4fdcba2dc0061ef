"""Plans through the front door: demand, servers and profiles in, a plan out."""

import msgspec
import pytest
from tests.beds.plans import ARM, X86, kept, table

from wattloom.cli.plan_shown import distance
from wattloom.errors import InputError
from wattloom.planning.diagnosis import NoPlan
from wattloom.planning.making import Wishes, make_plan, replan
from wattloom.planning.plan import Demand, Plan, Server
from wattloom.planning.problem import Terms
from wattloom.workload.function_profile import Figure, FunctionProfile, FunctionProfiles

PROFILES = table(
    {
        "jwt": {"arm": (10.0, 1.0), "x86": (12.0, 2.0)},
        "zip": {"arm": (5.0, 4.0), "x86": (5.0, 3.0)},
        "gif": {"arm": (1.0, 9.0), "x86": (2.0, 20.0)},
    }
)
DEMAND = [
    Demand(function="jwt", rate=40.0),
    Demand(function="zip", rate=20.0),
    Demand(function="gif", rate=6.0),
]
SERVERS = [ARM, X86]


def where(plan: object) -> dict[str, str]:
    return {each.function: each.server for each in plan.assignments}  # type: ignore[attr-defined]


def test_each_function_goes_where_its_executions_cost_least_and_that_is_proven() -> None:
    plan = make_plan(DEMAND, SERVERS, PROFILES)
    assert where(plan) == {"jwt": "arm", "zip": "x86", "gif": "arm"}
    assert plan.objective == plan.active_w == pytest.approx(40 * 1.0 + 20 * 3.0 + 6 * 9.0)
    assert plan.gap == pytest.approx(0.0, abs=1e-9)
    assert plan.idle_w == 150.0
    assert kept(plan)


def test_cores_are_whole_and_enough_for_the_rate() -> None:
    plan = make_plan([Demand(function="jwt", rate=41.0)], [ARM], PROFILES)
    assert plan.assignments[0].cores == 5
    even = make_plan([Demand(function="gif", rate=3 * 0.1)], [ARM], table({"gif": {"arm": (0.1, 1.0)}}))
    assert even.assignments[0].cores == 3, "0.30000000000000004 / 0.1 is three"


def test_core_aware_gives_out_the_fewest_cores_and_among_those_takes_the_least_watts() -> None:
    plan = make_plan(DEMAND, SERVERS, PROFILES, Wishes("core-aware"))
    assert plan.objective == plan.cores == 4 + 4 + 3
    assert where(plan) == {"jwt": "arm", "zip": "x86", "gif": "x86"}
    assert plan.gap == 0.0


def test_weighted_gives_cores_a_price_in_watts() -> None:
    cheap = make_plan(DEMAND, SERVERS, PROFILES, Wishes("weighted", Terms(core_price_w=0.0)))
    dear = make_plan(DEMAND, SERVERS, PROFILES, Wishes("weighted", Terms(core_price_w=1000.0)))
    assert where(cheap)["gif"] == "arm"
    assert where(dear)["gif"] == "x86"
    assert dear.objective == pytest.approx((dear.active_w or 0.0) + 1000.0 * dear.cores)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("round-robin", {"jwt": "arm", "zip": "x86", "gif": "arm"}),
        ("arm-first", {"jwt": "arm", "zip": "arm", "gif": "arm"}),
        ("x86-first", {"jwt": "x86", "zip": "x86", "gif": "x86"}),
    ],
)
def test_the_studys_simple_policies_take_functions_in_order(policy: str, expected: dict[str, str]) -> None:
    plan = make_plan(DEMAND, SERVERS, PROFILES, Wishes(policy))
    assert where(plan) == expected
    assert plan.bound is None


def test_a_full_server_hands_on_to_the_next_under_x86_first() -> None:
    small = msgspec.structs.replace(X86, cores=9)
    assert where(make_plan(DEMAND, [ARM, small], PROFILES, Wishes("x86-first")))["gif"] == "arm"


def test_idle_servers_that_may_be_off_are_off_and_their_watts_count() -> None:
    servers = [msgspec.structs.replace(each, may_be_off=True, off_w=2.0) for each in SERVERS]
    plan = make_plan(DEMAND, servers, PROFILES)
    assert plan.off == ("x86",), "90 W more than the 20 W that zip would save"
    assert plan.objective == pytest.approx(40 + 80 + 54 + 60 + 2)
    assert plan.idle_w == 62.0


def test_a_server_whose_idle_draw_is_unknown_is_never_off() -> None:
    servers = [ARM, msgspec.structs.replace(X86, may_be_off=True, idle_w=None)]
    plan = make_plan([Demand(function="jwt", rate=1.0)], servers, PROFILES)
    assert plan.off == ()
    assert plan.idle_w is None
    assert "not known" in plan.notes[0]


def test_unknown_watts_are_never_cheap() -> None:
    profiles = table({"jwt": {"arm": (10.0, None), "x86": (10.0, 500.0)}})
    plan = make_plan([Demand(function="jwt", rate=10.0)], SERVERS, profiles)
    assert where(plan) == {"jwt": "x86"}
    full = make_plan([Demand(function="jwt", rate=130.0)], SERVERS, profiles)
    assert where(full) == {"jwt": "arm"}, "nothing else has the cores"
    assert full.active_w is None
    assert full.bound is None
    assert "jwt on arm" in full.notes[0]


def test_a_low_quantile_of_e_plans_more_cores() -> None:
    row = FunctionProfile(function="f", machine="arm", per_core_s=Figure(10.0, 5.0, 15.0))
    demand = [Demand(function="f", rate=40.0)]
    assert make_plan(demand, [ARM], FunctionProfiles((row,)), Wishes("core-aware")).cores == 4
    low = Wishes("core-aware", Terms(quantile=0.05))
    assert make_plan(demand, [ARM], FunctionProfiles((row,)), low).cores == 8


def test_labels_and_architectures_are_kept() -> None:
    near = msgspec.structs.replace(X86, name="near", labels={"zone": "a"})
    demand = [
        Demand(function="jwt", rate=1.0, labels={"zone": "a"}),
        Demand(function="zip", rate=1.0, arch=("aarch64",)),
    ]
    assert where(make_plan(demand, [*SERVERS, near], PROFILES)) == {"jwt": "near", "zip": "arm"}


def test_memory_is_a_limit_where_it_is_given() -> None:
    small = msgspec.structs.replace(ARM, memory=30)
    demand = [Demand(function="jwt", rate=40.0, memory=5), Demand(function="gif", rate=6.0, memory=5)]
    plan = make_plan(demand, [small, X86], PROFILES)
    assert kept(plan)
    assert where(plan) == {"jwt": "x86", "gif": "arm"}


def test_a_function_too_large_for_one_server_is_split_if_that_is_wanted() -> None:
    demand = [Demand(function="jwt", rate=240.0)]
    with pytest.raises(NoPlan, match=r"functions\.jwt: fits no server.*--split"):
        make_plan(demand, SERVERS, PROFILES)
    plan = make_plan(demand, SERVERS, PROFILES, Wishes(split=True))
    assert kept(plan)
    assert len(plan.assignments) == 2


def test_where_nothing_fits_the_missing_cores_and_lower_rates_are_named() -> None:
    demand = [Demand(function=name, rate=rate) for name, rate in (("jwt", 130.0), ("zip", 60.0), ("gif", 20.0))]
    with pytest.raises(NoPlan, match=r"cores: nothing fits: at least \d+ more cores.*% lower rates") as told:
        make_plan(demand, SERVERS, PROFILES)
    percent = float(str(told.value).rsplit("or ", 1)[1].partition("%")[0])
    lower = [msgspec.structs.replace(each, rate=each.rate * (1 - percent / 100)) for each in demand]
    assert kept(make_plan(lower, SERVERS, PROFILES)), "what is said would help does help"


def test_gaps_between_whole_functions_are_told_from_missing_cores() -> None:
    profiles = table({name: {"arm": (1.0, 1.0)} for name in "abc"})
    servers = [Server(name=name, machine="arm", cores=3) for name in ("one", "two")]
    demand = [Demand(function=name, rate=2.0) for name in "abc"]
    with pytest.raises(NoPlan, match="cores enough in sum"):
        make_plan(demand, servers, profiles)
    assert kept(make_plan(demand, servers, profiles, Wishes(split=True)))


def test_equal_servers_are_packed_one_by_one() -> None:
    profiles = table({f"f{i}": {"arm": (1.0, 1.0)} for i in range(6)})
    servers = [Server(name=f"s{i}", machine="arm", cores=5) for i in range(3)]
    sizes = (2, 2, 2, 3, 3, 3)
    plan = make_plan([Demand(function=f"f{i}", rate=size) for i, size in enumerate(sizes)], servers, profiles)
    assert kept(plan)
    assert plan.gap == pytest.approx(0.0)


def test_a_plan_is_changed_with_few_moves() -> None:
    old = make_plan(DEMAND, SERVERS, PROFILES, Wishes("x86-first"))
    dear = replan(old, DEMAND, SERVERS, PROFILES, 1e6)
    assert where(dear) == where(old)
    assert dear.moves == 0
    some = replan(old, DEMAND, SERVERS, PROFILES, 50.0)
    assert where(some) == {"jwt": "x86", "zip": "x86", "gif": "arm"}, "gif saves 66 W, jwt 40 W"
    assert some.moves == 1
    assert some.objective == pytest.approx((some.active_w or 0.0) + 50.0)
    assert where(replan(old, DEMAND, SERVERS, PROFILES, 0.0)) == where(make_plan(DEMAND, SERVERS, PROFILES))


def test_the_same_question_has_the_same_answer() -> None:
    one, two = (make_plan(DEMAND, SERVERS, PROFILES) for _ in range(2))
    assert msgspec.json.encode(one) == msgspec.json.encode(two)


def test_what_cannot_be_planned_for_is_refused_by_its_field() -> None:
    with pytest.raises(InputError, match=r"functions\.jwt\.rate"):
        make_plan([Demand(function="jwt", rate=float("nan"))], SERVERS, PROFILES)
    with pytest.raises(InputError, match="servers: there is none"):
        make_plan(DEMAND, [], PROFILES)
    with pytest.raises(InputError, match=r"functions\.jwt: is there twice"):
        make_plan([DEMAND[0], DEMAND[0]], SERVERS, PROFILES)
    with pytest.raises(InputError, match="policy: 'best' is none of"):
        make_plan(DEMAND, SERVERS, PROFILES, Wishes("best"))


def test_core_aware_takes_known_watts_before_unknown_ones_at_the_same_cores() -> None:
    profiles = table({"jwt": {"arm": (10.0, None), "x86": (10.0, 500.0)}, "zip": {"arm": (5.0, 1.0)}})
    demand = [Demand(function="jwt", rate=10.0), Demand(function="zip", rate=5.0)]
    plan = make_plan(demand, SERVERS, profiles, Wishes("core-aware"))
    assert where(plan) == {"jwt": "x86", "zip": "arm"}
    assert plan.notes == ()
    fewer = table({"jwt": {"arm": (10.0, None), "x86": (5.0, 500.0)}})
    assert where(make_plan(demand[:1], SERVERS, fewer, Wishes("core-aware"))) == {"jwt": "arm"}, "cores come first"


def test_a_plan_above_a_bound_of_nothing_is_not_called_best() -> None:
    above = Plan(policy="energy-aware", goal="energy", assignments=(), objective=5.0, bound=0.0)
    assert above.gap is None
    assert "best" not in distance(above)
    assert msgspec.structs.replace(above, objective=0.0).gap == 0.0


def test_a_split_plan_fills_the_cheap_server_and_claims_no_bound() -> None:
    profiles = table({"f": {"arm": (1.0, 1.0), "x86": (1.0, 2.0)}})
    servers = [Server(name=name, machine=name, cores=48) for name in ("arm", "x86")]
    plan = make_plan([Demand(function="f", rate=60.0)], servers, profiles, Wishes(split=True))
    assert kept(plan)
    assert plan.objective == pytest.approx(48.0 + 2 * 12.0)
    assert plan.bound is None
    assert plan.gap is None
    assert "equal parts" in plan.notes[-1]
    whole = make_plan([Demand(function="f", rate=40.0)], servers, profiles, Wishes(split=True))
    assert whole.gap == 0.0, "nothing is in parts"
