"""What is wrong with a node or a machine is named by its field."""

import msgspec
import pytest

from wattloom.cluster.node import Node
from wattloom.testing.builders import LINEAR, MACHINES, node

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"cores": 0}, "cores"),
        ({"threads": 3}, "threads"),
        ({"threads": 33}, "threads"),
        ({"memory": -1}, "memory"),
        ({"smt_slowdown": 0.9}, "smt_slowdown"),
        ({"smt_slowdown": NAN}, "smt_slowdown"),
        ({"threads": 8, "smt_slowdown": 2.1}, "smt_slowdown"),
        ({"speed": 0.0}, "speed"),
        ({"speed": INF}, "speed"),
        ({"wake_s": -1.0}, "wake_s"),
        ({"wake_j": NAN}, "wake_j"),
        ({"sleep_w": -1.0}, "sleep_w"),
        ({"sleep_w": INF}, "sleep_w"),
        ({"tdp_w": NAN}, "tdp_w"),
        ({"watts": ((1.0, 2.0),)}, "watts"),
        ({"watts": ((0.0, 2.0), (0.0, 3.0))}, "watts"),
        ({"watts": ((0.0, 2.0), (INF, 3.0))}, "watts"),
        ({"watts": ((0.0, -2.0),)}, "watts"),
        ({"watts": ((0.0, NAN),)}, "watts"),
    ],
)
def test_a_wrong_machine_is_refused_by_field(changes: dict[str, object], field: str) -> None:
    problem = msgspec.structs.replace(LINEAR, **changes).problem()
    assert problem is not None
    assert problem[0] == field


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"cpu": 0.0}, "cpu"),
        ({"cpu": -1.0}, "cpu"),
        ({"cpu": INF}, "cpu"),
        ({"memory": -1}, "memory"),
        ({"devices": {"gpu": 0}}, "devices.gpu"),
        ({"cap_w": -5.0}, "cap_w"),
        ({"cap_w": NAN}, "cap_w"),
    ],
)
def test_a_wrong_node_is_refused_by_field(changes: dict[str, object], field: str) -> None:
    problem = msgspec.structs.replace(node("a"), **changes).problem()
    assert problem is not None
    assert problem[0] == field


def test_the_canned_machines_are_right() -> None:
    assert [profile.problem() for profile in MACHINES] == [None] * len(MACHINES)
    assert Node("a", "linear").problem() is None
