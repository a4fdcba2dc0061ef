"""Solvers against brute force, and on families whose answers are proven."""

import time
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.beds.plan_families import FAMILIES, make_instance
from tests.beds.plans import brute_force

from wattloom.planning import solving
from wattloom.planning.exact import everything, solve_exactly
from wattloom.planning.highs import solve_cuts
from wattloom.planning.instance import Deadline, Instance, Outcome, by_server, is_solution
from wattloom.planning.knapsack_bound import knapsack_bound, row_worth
from wattloom.planning.relaxation import ascend, proven
from wattloom.planning.switching import solve_switched

NEAR = 1e-6


def soon(seconds: float = 20.0) -> Deadline:
    return Deadline(time.process_time, seconds)  # a machine that does other work as well is slower, not worse


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    """Small and awkward: tight, with equal servers, forbidden places, memory, idle power."""
    kinds = draw(st.integers(1, 3))
    counts = [draw(st.integers(1, 2)) for _ in range(kinds)]
    rows = draw(st.integers(1, {1: 8, 2: 8}.get(sum(counts), 5 if sum(counts) <= 4 else 4)))
    cores = draw(st.lists(st.lists(st.integers(0, 6), min_size=kinds, max_size=kinds), min_size=rows, max_size=rows))
    costs = st.one_of(st.integers(0, 30).map(float), st.floats(0.0, 30.0, allow_subnormal=False), st.just(inf))
    cost = draw(st.lists(st.lists(costs, min_size=kinds, max_size=kinds), min_size=rows, max_size=rows))
    room = [draw(st.integers(1, 12)) for _ in range(kinds)]
    memory = draw(st.one_of(st.none(), st.just([[2 * core for core in row] for row in cores])))
    idle = draw(st.booleans())
    return Instance(
        cost=np.where(np.array(cores) <= np.array(room), np.array(cost), inf),
        cores=np.array(cores, dtype=np.int64),
        memory=None if memory is None else np.array(memory, dtype=np.int64),
        room=np.array(room, dtype=np.int64),
        memory_room=np.array([draw(st.integers(1, 24)) for _ in range(kinds)], dtype=np.int64),
        counts=np.array(counts, dtype=np.int64),
        on_cost=np.array([float(draw(st.integers(0, 20))) if idle else 0.0 for _ in range(kinds)]),
    )


def best_of(instance: Instance) -> float:
    single, _, _ = by_server(instance)
    return brute_force(
        single.cost.tolist(),
        single.cores.tolist(),
        single.room.tolist(),
        single.on_cost.tolist(),
        None if single.memory is None else single.memory.tolist(),
        None if single.memory is None else single.memory_room.tolist(),
    )


def agree(found: Outcome, instance: Instance, best: float) -> None:
    """A solution where there is one, no better than the best, and a bound no higher than it."""
    if best == inf:
        assert found.solution is None
        return
    assert found.bound <= best + NEAR * max(1.0, best)
    assert found.solution is not None
    assert is_solution(instance, found.solution.kind, found.solution.server)
    assert found.solution.value >= best - NEAR * max(1.0, best)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(instances())
def test_small_instances_are_solved_to_brute_forces_optimum(instance: Instance) -> None:
    best = best_of(instance)
    found = solving.solve(instance, soon())
    agree(found, instance, best)
    if best < inf:
        assert found.solution is not None
        assert found.solution.value == pytest.approx(best, rel=NEAR, abs=NEAR)
        assert found.proven or best < 1e-3
    else:
        assert found.bound == inf, "that there is none is proven"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(instances())
def test_the_way_of_large_instances_is_as_right_on_small_ones(instance: Instance) -> None:
    found = solving.solve(instance, soon(), small=0)
    best = best_of(instance)
    agree(found, instance, best)
    if best < inf:
        assert found.solution is not None
        assert found.solution.value == pytest.approx(best, rel=NEAR, abs=NEAR)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(instances())
def test_no_bound_is_above_the_best(instance: Instance) -> None:
    if not instance.allowed.any(axis=1).all():
        return
    best = best_of(instance)
    prices = ascend(instance, soon())
    limit = best + NEAR * max(1.0, best)
    assert prices.bound <= limit
    _, costs = proven(instance, prices.cores, prices.memory)
    assert knapsack_bound(instance, row_worth(costs), min(best, 1e3), soon()) <= limit
    assert solve_switched(instance, soon(), 0.0).bound <= limit


def test_planes_that_are_steep_and_go_through_nothing_do_not_overflow() -> None:
    slopes = np.array([[0.0, 0.0], [-9e44, -9e44]])
    least, named = solve_cuts(np.zeros(2), slopes, np.array([0, 1]), np.array([1, 1]), (np.ones(2), 0.0), 5.0)
    assert least <= 0.0
    assert named is None or named[1] == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gets_a_solution_that_fits_and_a_bound_below_it(family: str) -> None:
    instance = make_instance(family, 120, 12, 1)
    found = solving.solve(instance, soon(12.0))
    assert found.solution is not None
    assert is_solution(instance, found.solution.kind, found.solution.server)
    assert found.bound <= found.solution.value
    assert found.gap < 0.05


@pytest.mark.parametrize("family", ["source", "typed", "tight"])
def test_a_thousand_functions_on_twenty_servers_are_proven_best(family: str) -> None:
    found = solving.solve(make_instance(family, 1000, 20, 2), soon(60.0))
    assert found.proven


def test_the_answer_is_that_of_highs_on_the_whole_model() -> None:
    instance = make_instance("source", 150, 10, 3)
    whole = solve_exactly(instance, everything(instance), soon(60.0))
    found = solving.solve(instance, soon(60.0))
    assert whole.solution is not None
    assert found.solution is not None
    assert found.solution.value == pytest.approx(whole.solution.value, rel=1e-8)


def test_the_same_instance_gets_the_same_answer() -> None:
    instance = make_instance("tight", 300, 12, 4)
    one, two = (solving.solve(instance, soon(60.0)) for _ in range(2))
    assert one.solution is not None
    assert two.solution is not None
    assert (one.solution.kind == two.solution.kind).all()
    assert one.bound == two.bound


def test_time_is_kept_to_and_what_there_is_comes_with_its_bound() -> None:
    instance = make_instance("tight", 3000, 100, 5)
    begun = time.process_time()
    found = solving.solve(instance, Deadline(time.process_time, 1.0))
    assert time.process_time() - begun < 3.0
    assert found.solution is not None
    assert found.bound <= found.solution.value


def test_that_nothing_fits_is_proven_for_large_instances_too() -> None:
    instance = make_instance("source", 500, 20, 6)
    full = replace(instance, room=instance.room // 2)
    full = replace(full, cost=np.where(full.cores <= full.room, full.cost, inf))
    found = solving.solve(full, soon())
    assert found.solution is None
    assert found.bound == inf


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_two_servers_are_solved_to_brute_forces_optimum(data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 8))
    pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=rows, max_size=rows)
    costs = st.one_of(st.integers(0, 30).map(float), st.just(inf))
    cost = data.draw(st.lists(st.tuples(costs, costs), min_size=rows, max_size=rows))
    room = np.array(data.draw(st.tuples(st.integers(1, 20), st.integers(1, 20))), dtype=np.int64)
    cores = np.array(data.draw(pairs), dtype=np.int64)
    instance = Instance(
        cost=np.where(cores <= room, np.array(cost), inf),
        cores=cores,
        memory=None,
        room=room,
        memory_room=np.full(2, 1 << 62, dtype=np.int64),
        counts=np.ones(2, dtype=np.int64),
        on_cost=np.zeros(2),
    )
    assert solving.on_two_servers(instance)
    best = best_of(instance)
    found = solving.solve(instance, soon())
    agree(found, instance, best)
    assert found.bound == best
