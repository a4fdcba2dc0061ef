"""Plans for functions with several builds, against all choices of builds."""

from itertools import product
from math import inf, isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.beds.plans import kept

from wattloom.planning.diagnosis import NoPlan
from wattloom.planning.making import Wishes, make_plan
from wattloom.planning.plan import Demand, Server
from wattloom.planning.problem import Terms
from wattloom.workload.function_profile import FunctionProfile, FunctionProfiles, exact

SERVER = Server(name="s", machine="m", cores=48)
Builds = dict[tuple[str, str], dict[str, tuple[int, float]]]


def profiles(builds: Builds) -> FunctionProfiles:
    """E and W by function and machine, and by build."""
    return FunctionProfiles(
        tuple(
            FunctionProfile(function=function, machine=machine, variant=name, per_core_s=exact(e), joules=exact(w))
            for (function, machine), by in builds.items()
            for name, (e, w) in by.items()
        )
    )


TWO = profiles({("f", "m"): {"fast": (10, 1.1), "slow": (1, 1.0)}})


def test_core_aware_takes_the_build_that_needs_the_fewest_cores() -> None:
    plan = make_plan([Demand(function="f", rate=20.0)], [SERVER], TWO, Wishes("core-aware"))
    assert (plan.cores, plan.assignments[0].variant, plan.gap) == (2, "fast", 0.0)


def test_energy_aware_takes_the_cheap_build_where_it_fits_and_else_the_one_that_does() -> None:
    cheap = make_plan([Demand(function="f", rate=20.0)], [SERVER], TWO)
    assert (cheap.cores, cheap.assignments[0].variant, cheap.gap) == (20, "slow", 0.0)
    fits = make_plan([Demand(function="f", rate=60.0)], [SERVER], TWO)
    assert (fits.cores, fits.assignments[0].variant, fits.gap) == (6, "fast", 0.0)


def test_builds_are_mixed_on_a_server_that_has_no_room_for_all_cheap_ones() -> None:
    both = profiles({(name, "m"): {"fast": (10, 1.1), "slow": (1, 1.0)} for name in "fg"})
    plan = make_plan([Demand(function="f", rate=30.0), Demand(function="g", rate=40.0)], [SERVER], both)
    assert kept(plan)
    assert {each.function: each.variant for each in plan.assignments} == {"f": "fast", "g": "slow"}
    assert plan.bound is not None
    assert plan.bound <= 33.0 + 40.0


def best(demand: list[Demand], servers: list[Server], builds: Builds, terms: Terms) -> float:
    """The least objective of all servers and builds; infinite: nothing fits."""
    choices = [
        [
            (server.name, -(-int(each.rate) // e), each.rate * w)
            for server in servers
            for e, w in builds.get((each.function, server.machine), {}).values()
        ]
        for each in demand
    ]
    found = inf
    for chosen in product(*choices):
        if any(sum(cores for at, cores, _ in chosen if at == server.name) > server.cores for server in servers):
            continue
        cores, watts = sum(each[1] for each in chosen), sum(each[2] for each in chosen)
        price = terms.core_price_w if terms.goal == "weighted" else 0.0
        found = min(found, float(cores) if terms.goal == "cores" else watts + price * cores)
    return found


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Demand], list[Server], Builds]:
    names = "fgh"[: draw(st.integers(1, 3))]
    servers = [Server(name=name, machine=name, cores=draw(st.integers(2, 12))) for name in "mn"]
    figures = st.tuples(st.integers(1, 6), st.integers(1, 8).map(float))
    builds = {
        (name, server.name): draw(st.dictionaries(st.sampled_from(["a", "b", "c"]), figures, min_size=1))
        for name in names
        for server in servers
    }
    return [Demand(function=name, rate=float(draw(st.integers(1, 24)))) for name in names], servers, builds


POLICIES = {"energy-aware": "energy", "core-aware": "cores", "weighted": "weighted"}


@given(cases(), st.sampled_from(sorted(POLICIES)))
@settings(max_examples=100, deadline=None)
def test_no_choice_of_builds_is_below_the_bound_and_what_is_called_best_is(
    case: tuple[list[Demand], list[Server], Builds], policy: str
) -> None:
    demand, servers, builds = case
    terms = Terms(goal=POLICIES[policy], core_price_w=0.5)  # type: ignore[arg-type]
    least = best(demand, servers, builds, terms)
    if least == inf:
        with pytest.raises(NoPlan):
            make_plan(demand, servers, profiles(builds), Wishes(policy, terms))
        return
    plan = make_plan(demand, servers, profiles(builds), Wishes(policy, terms))
    assert kept(plan)
    assert plan.bound is not None
    assert plan.bound <= least * (1 + 1e-9) <= plan.objective * (1 + 2e-9)
    assert plan.gap is not None
    assert plan.gap > 1e-8 or isclose(plan.objective, least, rel_tol=1e-8)
    assert policy != "core-aware" or plan.objective == least
    for part in plan.assignments:
        e, w = builds[part.function, part.server][part.variant]
        assert part.per_core_s == e
        assert part.watts == pytest.approx(w * part.rate)
