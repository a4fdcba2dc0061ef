from collections import Counter

from wattloom.cluster.node import Node
from wattloom.policies.random_choice import RandomChoice
from wattloom.testing.policy_clusters import History
from wattloom.workload.task import Task


def draws(seed: int, tasks: int, nodes: list[Node]) -> list[str]:
    history = History(RandomChoice(seed)).set_up(nodes)
    return [history.place(Task(f"t{n}", "nothing-at-all")) for n in range(tasks)]


def test_every_node_is_as_likely_as_the_others() -> None:
    counts = Counter(draws(0, 4000, [Node(f"n{n}", "many-cores") for n in range(4)]))
    assert all(850 < counts[f"n{n}"] < 1150 for n in range(4))


def test_every_node_with_room_is_as_likely_when_few_have_room() -> None:
    history = History(RandomChoice()).set_up(
        [Node(f"full-{n}", "many-cores", memory=0) for n in range(60)]
        + [Node(f"n{n}", "many-cores", memory=2**50) for n in range(3)]
    )
    counts = Counter(history.place(Task(f"t{n}", "no-cpu")) for n in range(1500))
    assert set(counts) == {"n0", "n1", "n2"}
    assert all(420 < count < 580 for count in counts.values())


def test_one_seed_draws_the_same_lots_and_another_draws_others() -> None:
    nodes = [Node(f"n{n}", "many-cores") for n in range(10)]
    assert draws(1, 50, nodes) == draws(1, 50, nodes)
    assert draws(1, 50, nodes) != draws(2, 50, nodes)


def test_the_order_in_which_nodes_joined_does_not_matter() -> None:
    nodes = [Node(f"n{n}", "many-cores") for n in range(10)]
    assert draws(1, 50, nodes) == draws(1, 50, nodes[::-1])
