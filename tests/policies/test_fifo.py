from wattloom.cluster.node import Node
from wattloom.policies.fifo import Fifo
from wattloom.testing.policy_clusters import History
from wattloom.workload.task import Task


def test_the_first_node_by_name_is_filled_before_the_next() -> None:
    history = History(Fifo()).set_up([Node("c", "tiny"), Node("a", "flat"), Node("b", "many-cores")])
    assert [history.place(Task(f"t{n}", "declared")) for n in range(4)] == ["a", "a", "b", "b"]


def test_a_node_that_is_freed_comes_first_again() -> None:
    history = History(Fifo()).set_up([Node("a", "flat"), Node("b", "many-cores")])
    for n in range(3):
        history.place(Task(f"t{n}", "declared"))
    history._finish("t0", None)
    assert history.place(Task("t3", "declared")) == "a"
