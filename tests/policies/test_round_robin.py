from wattloom.cluster.node import Node
from wattloom.policies.round_robin import RoundRobin
from wattloom.scheduling import events as ev
from wattloom.testing.policy_clusters import History
from wattloom.workload.task import Task


def test_nodes_take_turns_by_name() -> None:
    history = History(RoundRobin()).set_up([Node(name, "many-cores") for name in ("b", "c", "a")])
    assert [history.place(Task(f"t{n}", "declared")) for n in range(5)] == ["a", "b", "c", "a", "b"]


def test_a_node_without_room_misses_its_turn() -> None:
    history = History(RoundRobin()).set_up([Node("a", "many-cores"), Node("b", "tiny"), Node("c", "many-cores")])
    assert [history.place(Task(f"t{n}", "carried-over")) for n in range(5)] == ["a", "b", "c", "a", "c"]


def test_the_turn_goes_on_where_the_last_node_was_even_if_it_is_gone() -> None:
    history = History(RoundRobin()).set_up([Node(name, "many-cores") for name in "abcd"])
    history.place(Task("t0", "declared"))
    assert history.place(Task("t1", "declared")) == "b"
    history.send(ev.NodeLost(0.0, "b"))
    assert history.place(Task("t2", "declared")) == "c"


def test_a_new_instance_knows_whose_turn_it_is() -> None:
    history = History(RoundRobin()).set_up([Node(name, "many-cores") for name in "abc"])
    history.place(Task("t0", "declared"))
    history.send(ev.TaskSubmitted(0.0, Task("t1", "declared")))
    record = history.engine.ledger.tasks["t1"]
    answer = RoundRobin().propose(record, history.engine.ledger.view)
    assert getattr(answer, "node", None) == "c"
