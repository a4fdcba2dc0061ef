from wattloom.cluster.node import Node
from wattloom.policies.pack import Pack
from wattloom.testing.policy_clusters import History
from wattloom.units import GIB
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task


def test_a_used_node_is_filled_before_an_empty_one_is_touched() -> None:
    history = History(Pack()).set_up([Node("a", "flat"), Node("b", "flat"), Node("c", "flat")])
    assert [history.place(Task(f"t{n}", "declared")) for n in range(5)] == ["a", "a", "b", "b", "c"]


def test_among_equally_full_nodes_the_one_with_the_least_memory_left_is_taken() -> None:
    history = History(Pack()).set_up([Node("a", "threads", cpu=4.0), Node("b", "many-cores", cpu=4.0)])
    on_b = Requirements(cpu=2.0, memory=30 * GIB)
    assert history.place(Task("t0", "declared", Requirements(cpu=2.0, arch=("x86_64",)))) == "a"
    assert history.place(Task("t1", "declared", on_b)) == "b"
    assert history.place(Task("t2", "declared", Requirements(cpu=1.0))) == "b"
