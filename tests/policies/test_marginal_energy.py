from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattloom.cluster import fit
from wattloom.cluster.node import Node
from wattloom.cluster.profile import MachineProfile
from wattloom.cluster.site import NodeState
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.scheduling.state import TaskRecord
from wattloom.testing.policy_clusters import History
from wattloom.units import GIB, MILLI
from wattloom.workload.function import Function
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task


def exhaustive(history: History, policy: MarginalEnergy, record: TaskRecord) -> str | None:
    """HSC's Algorithm 1 over every node, one by one."""
    shape = record.shape
    found: list[tuple[float, float, str]] = []
    for name, node in history.engine.ledger.index.nodes.items():
        machine, cores = node.cls.machine, node.cls.cpu
        if not has_room(policy, record, node):
            continue
        if not machine.knows_power:
            cost = inf
        elif node.demand + shape.cpu <= cores:
            cost = machine.watts(node.demand + shape.cpu) - machine.watts(node.demand)
        else:
            cost = (machine.watts(cores) - machine.watts(max(0, cores - MILLI))) * shape.cpu / MILLI
        found.append((round(cost, 6) if cost < inf else inf, -node.demand, name))
    return min(found)[2] if found else None


def has_room(policy: MarginalEnergy, record: TaskRecord, node: NodeState) -> bool:
    shape, cls = record.shape, node.cls
    if node.allocated + fit.guaranteed(shape, policy.terms) > cls.cpu or node.memory + shape.memory > cls.memory:
        return False
    tdp = cls.machine.profile.tdp_w
    if not policy.terms.tdp or tdp is None or cls.machine.profile.quantity != "package":
        return True
    return cls.machine.knows_power and cls.machine.watts(node.demand + shape.cpu) <= tdp


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from((1.0, 0.8)))
def test_it_takes_what_an_exhaustive_scan_takes(seed: int, tdp: bool, guarantee: float) -> None:
    random = Random(seed)
    policy = MarginalEnergy(tdp=tdp, guarantee=guarantee)
    machines = [random_machine(f"m{n}", random) for n in range(3)]
    nodes = [Node(f"n{n}", random.choice(machines).name) for n in range(random.randint(1, 7))]
    functions = [
        Function(f"f{n}", Requirements(random.choice((0.5, 1.0, 2.0)), random.randrange(3) * GIB)) for n in range(4)
    ]
    history = History(policy).set_up(nodes, machines, functions)
    expected: dict[str, str | None] = {}
    history.engine.watcher = lambda record: expected.update({record.task.id: exhaustive(history, policy, record)})
    for n in range(40):
        node = history.place(Task(f"t{n}", random.choice(functions).name))
        assert node == (expected.get(f"t{n}") or "")
        if history.running and random.random() < 0.3:
            history._finish(random.choice(sorted(history.running)), None)


def random_machine(name: str, random: Random) -> MachineProfile:
    cores = random.choice((2, 4))
    threads = cores * random.choice((1, 2))
    watts = [random.uniform(2.0, 60.0)]
    for _ in range(threads):
        watts.append(watts[-1] + random.uniform(0.0, 15.0))
    curve = tuple((float(core), power) for core, power in enumerate(watts)) if random.random() < 0.8 else ()
    tdp_w = random.choice((None, watts[-1] * random.uniform(0.6, 1.1)))
    return MachineProfile(name, "x86_64", cores, threads, 8 * GIB, watts=curve, tdp_w=tdp_w)


FOUR = MachineProfile("four", "x86_64", 4, 4, 8 * GIB, watts=((0, 10.0), (1, 30.0), (2, 40.0), (3, 45.0), (4, 47.0)))


def test_a_node_that_is_in_use_costs_less_than_an_empty_one_where_the_curve_flattens() -> None:
    history = History(MarginalEnergy()).set_up([Node("a", "four"), Node("b", "four")], [FOUR], [Function("f")])
    assert [history.place(Task(f"t{n}", "f")) for n in range(5)] == ["a", "a", "a", "a", "b"]


def test_under_the_80_percent_rule_a_full_node_costs_its_last_core() -> None:
    policy = MarginalEnergy(guarantee=0.8)
    history = History(policy).set_up([Node("a", "four")], [FOUR], [Function("f")])
    assert [history.place(Task(f"t{n}", "f")) for n in range(6)] == ["a"] * 5 + [""]
    assert history.engine.ledger.tasks["t4"].cost == pytest.approx(2.0)


def test_a_node_at_its_tdp_is_left_alone() -> None:
    rated = MachineProfile("rated", "x86_64", 4, 4, 8 * GIB, watts=FOUR.watts, tdp_w=40.0, quantity="package")
    history = History(MarginalEnergy(tdp=True)).set_up([Node("a", "rated")], [rated], [Function("f")])
    assert [history.place(Task(f"t{n}", "f")) for n in range(3)] == ["a", "a", ""]
