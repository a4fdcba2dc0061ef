import pytest

from wattloom.cluster.node import Node
from wattloom.errors import PolicyError
from wattloom.policies.arch_first import ArchFirst
from wattloom.testing.policy_clusters import History
from wattloom.workload.task import Task

NODES = [Node("a", "tiny"), Node("b", "flat"), Node("c", "flat"), Node("d", "many-cores")]


def test_x86_is_filled_evenly_before_arm_is_touched() -> None:
    history = History(ArchFirst()).set_up(NODES)
    assert [history.place(Task(f"t{n}", "declared")) for n in range(6)] == ["b", "c", "b", "c", "a", "d"]


def test_arm_is_filled_evenly_before_x86_is_touched() -> None:
    history = History(ArchFirst("aarch64")).set_up(NODES)
    nodes = [history.place(Task(f"t{n}", "nothing-at-all" if n > 17 else "unheard-of")) for n in range(3)]
    assert nodes == ["a", "d", "d"]


def test_another_architecture_is_refused_by_name() -> None:
    with pytest.raises(PolicyError, match="x86_64 or aarch64, not 'sparc'"):
        ArchFirst("sparc")
