from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattloom.cluster.node import Node
from wattloom.errors import PolicyError
from wattloom.machines.profile import MachineProfile
from wattloom.policies.weighted import Weighted
from wattloom.testing.policy_clusters import History
from wattloom.units import GIB
from wattloom.workload.function import Function, Variant
from wattloom.workload.task import Task


def history(figures: list[tuple[float, float]], weight: float | None = None) -> History:
    """One node per pair of watts for one core and seconds."""
    machines = [
        MachineProfile(f"m{n}", "x86_64", 4, 4, 8 * GIB, watts=((0, 0.0), (4, 4 * watts)))
        for n, (watts, _) in enumerate(figures)
    ]
    seconds = {f"m{n}": figure[1] for n, figure in enumerate(figures)}
    nodes = [Node(f"n{n}", f"m{n}") for n in range(len(figures))]
    return History(Weighted(weight)).set_up(nodes, machines, [Function("f", variants=(Variant(seconds=seconds),))])


def test_all_for_speed_takes_the_fastest_and_all_for_energy_the_least_joules() -> None:
    figures = [(50.0, 10.0), (10.0, 30.0), (20.0, 20.0)]  # 500, 300, 400 J
    assert history(figures).place(Task("t", "f", energy_weight=0.0)) == "n0"
    assert history(figures).place(Task("t", "f", energy_weight=1.0)) == "n1"


def test_in_between_both_count_against_the_largest_among_the_candidates() -> None:
    one = history([(50.0, 10.0), (10.0, 30.0), (15.0, 20.0)])  # 500, 300, 300 J of at most 500; of at most 30 s
    assert one.place(Task("t", "f", energy_weight=0.5)) == "n2"
    assert one.engine.ledger.tasks["t"].holding.cost == pytest.approx(0.5 * 300 / 500 + 0.5 * 20 / 30)


def test_the_option_overrides_the_tasks_weight() -> None:
    figures = [(50.0, 10.0), (10.0, 30.0)]
    assert history(figures, weight=1.0).place(Task("t", "f", energy_weight=0.0)) == "n1"
    with pytest.raises(PolicyError, match="energy_weight"):
        Weighted(1.5)


@given(
    st.lists(st.tuples(st.floats(1.0, 100.0), st.floats(1.0, 100.0)), min_size=1, max_size=6),
    st.sampled_from((0.0, 0.25, 0.5, 1.0)),
)
def test_no_node_scores_better_than_the_one_taken(figures: list[tuple[float, float]], weight: float) -> None:
    taken = int(history(figures).place(Task("t", "f", energy_weight=weight))[1:])
    joules = [watts * seconds for watts, seconds in figures]
    most_joules, most_seconds = max(joules), max(seconds for _, seconds in figures)
    scores = [
        weight * joule / most_joules + (1.0 - weight) * figure[1] / most_seconds
        for joule, figure in zip(joules, figures, strict=True)
    ]
    assert scores[taken] <= min(scores, default=inf) + 1e-9
