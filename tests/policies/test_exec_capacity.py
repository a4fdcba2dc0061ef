import pytest

from wattloom.cluster.node import Node
from wattloom.cluster.profile import MachineProfile
from wattloom.errors import PolicyError
from wattloom.policies.exec_capacity import ExecCapacity
from wattloom.scheduling import events as ev
from wattloom.testing.policy_clusters import History
from wattloom.units import GIB
from wattloom.workload.task import Task


def machine(name: str, tdp_w: float | None) -> MachineProfile:
    return MachineProfile(
        name, "x86_64", 8, 8, 16 * GIB, watts=((0, 20.0), (8, 100.0)), tdp_w=tdp_w, quantity="package"
    )


def history(*nodes: Node) -> History:
    return History(ExecCapacity()).set_up(nodes, [machine("plain", None), machine("rated", 150.0)])


def test_the_limit_is_the_cap_else_the_tdp_else_the_top_of_the_curve() -> None:
    assert history(Node("a", "plain"), Node("b", "rated")).place(Task("t", "declared")) == "b"
    assert history(Node("a", "plain"), Node("b", "rated", cap_w=90.0)).place(Task("t", "declared")) == "a"


def test_a_reading_replaces_the_forecast() -> None:
    one = history(Node("a", "plain"), Node("b", "plain"))
    one.send(ev.ReadingArrived(0.0, "a", 60.0))
    assert one.place(Task("t0", "declared")) == "b"
    one.send(ev.ReadingArrived(0.0, "a", 5.0))
    assert one.place(Task("t1", "declared")) == "a"


def test_what_was_placed_since_the_reading_counts_with_the_functions_usual_draw() -> None:
    one = history(Node("a", "plain"), Node("b", "plain"))
    one.place(Task("t0", "declared"))
    one.send(ev.ReadingArrived(0.0, "a", 30.0, {"t0": 10.0}))
    one.send(ev.ReadingArrived(0.0, "b", 25.0))
    assert [one.place(Task(f"t{n}", "declared")) for n in (1, 2, 3)] == ["b", "a", "b"]  # 35, then 40, then 45


def test_a_task_is_placed_even_where_no_watts_are_left() -> None:
    one = history(Node("a", "plain"))
    one.send(ev.ReadingArrived(0.0, "a", 500.0))
    assert one.place(Task("t", "declared")) == "a"


def test_meters_are_read_as_often_as_asked() -> None:
    assert ExecCapacity(interval_s=1.0).reading_interval_s == 1.0
    with pytest.raises(PolicyError, match="interval_s"):
        ExecCapacity(interval_s=0.0)
