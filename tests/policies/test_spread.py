import pytest

from wattloom.cluster.node import Node
from wattloom.machines.profile import MachineProfile
from wattloom.policies.spread import Spread, balanced_allocation, least_allocated
from wattloom.testing.policy_clusters import History
from wattloom.units import GIB, MIB
from wattloom.workload.function import Function
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task

# Worked out by hand from kube-scheduler's formulas: whole numbers, fractions cut off at each step.
SCORES = [
    # cpu, of, memory, of: least allocated, balanced allocation
    ((1000, 4000, 1 * GIB, 4 * GIB), 75, 100),
    ((3000, 4000, 5000, 10000), (25 + 50) // 2, 87),  # fractions .75 and .5: 1 - .125
    ((3000, 10000, 5000, 20000), (70 + 75) // 2, 97),  # .3 and .25: 1 - .025
    ((6000, 10000, 0, 20000), (40 + 100) // 2, 70),  # .6 and 0: 1 - .3
    ((1000, 3000, 1, 3), (66 + 66) // 2, 100),
    ((5000, 4000, 1, 4), (0 + 75) // 2, 62),  # over capacity counts as 1: 1 - .375 = .625
    ((1000, 4000, 0, 0), 75, 100),  # what a node does not have at all is left out
    ((0, 0, 0, 0), 0, 100),
]


@pytest.mark.parametrize(("use", "least", "balanced"), SCORES)
def test_scores_are_those_of_kubernetes(use: tuple[int, int, int, int], least: int, balanced: int) -> None:
    assert least_allocated(*use) == least
    assert balanced_allocation(*use) == balanced


def machine(name: str, cores: int, memory: int) -> MachineProfile:
    return MachineProfile(name, "x86_64", cores, cores, memory)


def placed(policy: Spread, requirements: Requirements, tasks: int) -> History:
    history = History(policy).set_up(
        [Node("a", "small"), Node("b", "large")],
        [machine("small", 4, 8 * GIB), machine("large", 8, 16 * GIB)],
        [Function("f", requirements)],
    )
    for n in range(tasks):
        history.place(Task(f"t{n}", "f"))
    return history


def test_the_node_left_emptiest_is_taken_with_the_points_as_cost() -> None:
    history = placed(Spread(), Requirements(cpu=1.0, memory=2 * GIB), 1)
    record = history.engine.ledger.tasks["t0"]
    assert record.node == "b"  # 87 cpu and 87 memory, and balanced; a would have 75 and 75
    assert record.holding.cost == -(87 + 100)


def test_a_task_that_requests_nothing_counts_with_the_defaults_and_without_balance() -> None:
    record = placed(Spread(), Requirements(cpu=0.0, memory=0), 1).engine.ledger.tasks["t0"]
    left_cpu = (8000 - 100) * 100 // 8000
    left_memory = (16 * GIB - 200 * MIB) * 100 // (16 * GIB)
    assert (record.node, record.holding.cost) == ("b", -((left_cpu + left_memory) // 2))


def test_twice_the_node_gets_twice_the_tasks() -> None:
    nodes = [place[1] for place in placed(Spread(), Requirements(cpu=1.0, memory=2 * GIB), 12).running.values()]
    assert (nodes.count("a"), nodes.count("b")) == (4, 8)


def test_requests_fill_a_node_and_ignored_requests_do_not() -> None:
    one_core = Requirements(cpu=1.0)
    assert len(placed(Spread(), one_core, 30).running) == 12
    history = placed(Spread(ignore_requests=True), one_core, 30)
    assert len(history.running) == 30
    nodes = [place[1] for place in history.running.values()]
    assert (nodes.count("a"), nodes.count("b")) == (10, 20)
