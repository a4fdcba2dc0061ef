from math import inf
from random import Random
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattloom.cluster import fit
from wattloom.cluster.node import Node
from wattloom.cluster.site import NodeState
from wattloom.machines.machine import Machine
from wattloom.machines.profile import MachineProfile
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.scheduling.state import TaskRecord
from wattloom.testing.harness import Harness
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
            cost = last_core(machine, cores) * shape.cpu / MILLI
        found.append((round(cost, 6) if cost < inf else inf, -node.demand, name))
    return min(found)[2] if found else None


def has_room(policy: MarginalEnergy, record: TaskRecord, node: NodeState) -> bool:
    shape, cls = record.shape, node.cls
    if node.allocated + fit.guaranteed(shape, policy.terms) > cls.cpu or node.memory + shape.memory > cls.memory:
        return False
    machine, tdp = cls.machine, cls.machine.profile.tdp_w
    if not policy.terms.tdp or tdp is None or not machine.knows_power:
        return True
    full, wanted = cls.cpu, node.demand + shape.cpu
    booked: float = machine.watts(wanted)
    if wanted > full:
        booked = max(booked, machine.watts(full) + last_core(machine, full) * (wanted - full) / MILLI)
    if machine.profile.quantity == "wall":
        booked = 0.2 * machine.idle_w + 0.72 * (booked - machine.idle_w)
    return booked <= tdp


def last_core(machine: Machine, full: int) -> float:
    return machine.watts(full) - machine.watts(full - MILLI)


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
    tdp_w = random.choice((None, watts[-1] * random.uniform(0.4, 1.1)))
    of: Literal["wall", "package"] = random.choice(("wall", "package"))
    return MachineProfile(name, "x86_64", cores, threads, 8 * GIB, watts=curve, tdp_w=tdp_w, quantity=of)


FOUR = MachineProfile("four", "x86_64", 4, 4, 8 * GIB, watts=((0, 10.0), (1, 30.0), (2, 40.0), (3, 45.0), (4, 47.0)))


def test_a_node_that_is_in_use_costs_less_than_an_empty_one_where_the_curve_flattens() -> None:
    policy = MarginalEnergy(tdp=False, guarantee=1.0)
    history = History(policy).set_up([Node("a", "four"), Node("b", "four")], [FOUR], [Function("f")])
    assert [history.place(Task(f"t{n}", "f")) for n in range(5)] == ["a", "a", "a", "a", "b"]


def test_under_the_80_percent_rule_a_full_node_costs_its_last_core() -> None:
    policy = MarginalEnergy(guarantee=0.8)
    history = History(policy).set_up([Node("a", "four")], [FOUR], [Function("f")])
    assert [history.place(Task(f"t{n}", "f")) for n in range(6)] == ["a"] * 5 + [""]
    assert history.engine.ledger.tasks["t4"].holding.cost == pytest.approx(2.0)


def test_a_node_at_its_tdp_is_left_alone() -> None:
    rated = MachineProfile("rated", "x86_64", 4, 4, 8 * GIB, watts=FOUR.watts, tdp_w=40.0, quantity="package")
    history = History(MarginalEnergy(tdp=True)).set_up([Node("a", "rated")], [rated], [Function("f")])
    assert [history.place(Task(f"t{n}", "f")) for n in range(3)] == ["a", "a", ""]


# -- as the source has it, by default ----------------------------------------------------------------------------------


def rated(tdp_w: float | None, quantity: Literal["wall", "package"] = "package") -> MachineProfile:
    return MachineProfile("rated", "x86_64", 4, 4, 8 * GIB, watts=FOUR.watts, tdp_w=tdp_w, quantity=quantity)


def placed_on_one(policy: MarginalEnergy, machine: MachineProfile, tasks: int) -> int:
    """How many of so many tasks of one core one node of four cores takes."""
    history = History(policy).set_up([Node("a", machine.name)], [machine], [Function("f")])
    return sum(history.place(Task(f"t{n}", "f")) == "a" for n in range(tasks))


def test_both_branches_of_the_algorithm_are_on_unless_they_are_turned_off() -> None:
    assert (MarginalEnergy().terms.guarantee, MarginalEnergy().terms.tdp) == (0.8, True)
    assert placed_on_one(MarginalEnergy(), rated(400.0), 7) == 5
    assert placed_on_one(MarginalEnergy(), rated(40.0), 7) == 2
    assert placed_on_one(MarginalEnergy(tdp=False, guarantee=1.0), rated(40.0), 7) == 4


@pytest.mark.parametrize(("tdp_w", "expected"), [(46.9, 3), (47.0, 4), (48.9, 4), (49.0, 5), (51.0, 6), (400.0, 8)])
def test_a_job_beyond_the_last_core_uses_up_watts_of_the_tdp_too(tdp_w: float, expected: int) -> None:
    """Four cores draw 47 W, the last of them 2 W of it, and the curve ends there: what is booked does not."""
    assert placed_on_one(MarginalEnergy(guarantee=0.5), rated(tdp_w), 12) == expected


def test_what_was_booked_is_given_back_with_the_job() -> None:
    machine = rated(49.0)
    history = History(MarginalEnergy(guarantee=0.5)).set_up([Node("a", "rated")], [machine], [Function("f")])
    assert [history.place(Task(f"t{n}", "f")) for n in range(6)] == ["a"] * 5 + [""]
    history._finish("t2", None)
    assert history.engine.ledger.tasks["t5"].node == "a"


def test_the_draw_at_the_plug_is_held_against_the_tdp_by_the_packages_part_of_it() -> None:
    """10 W idle and 30, 40, 45, 47 W with one to four cores: 2 W, and 16.4, 23.6, 27.2, 28.64 W of the packages."""
    assert [placed_on_one(MarginalEnergy(), rated(tdp, "wall"), 4) for tdp in (16.0, 20.0, 28.0, 29.0)] == [0, 1, 3, 4]


@pytest.mark.parametrize("machine", [rated(None), MachineProfile("rated", "x86_64", 4, 4, 8 * GIB, tdp_w=1.0)])
def test_where_no_tdp_or_no_curve_is_known_nothing_is_bounded_and_why_says_so(machine: MachineProfile) -> None:
    h = Harness(MarginalEnergy()).node("a", machine)
    h.submit("t")
    assert h.where("t") == "a"
    missing = "TDP" if machine.tdp_w is None else "power curve"
    assert h.why("t").notes == [f"TDP is not kept on rated: no {missing} is known"]


def test_why_says_that_watts_of_the_packages_are_estimated_from_the_plug() -> None:
    for machine, said in ((rated(100.0, "wall"), 1), (rated(100.0), 0)):
        h = Harness(MarginalEnergy()).node("a", machine)
        h.submit("t")
        notes = h.why("t").notes
        assert len(notes) == said
        assert all("20% of idle and 72% of the rest at the plug, ± 20%" in note for note in notes)
    h = Harness(MarginalEnergy(tdp=False)).node("a", rated(None))
    h.submit("t")
    assert h.why("t").notes == []


def test_half_a_core_has_a_last_core_too() -> None:
    """A node that gives out less than a core: the step is that of what it has, for a whole core."""
    machine = Machine(MachineProfile("m", "x86_64", 1, 1, GIB, watts=((0, 10.0), (1, 30.0))))
    assert machine.last_core_watts(500) == pytest.approx(20.0)
    assert machine.last_core_watts(0) == 0.0
