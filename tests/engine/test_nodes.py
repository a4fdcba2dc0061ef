"""Nodes that join, change and vanish, in every state."""

import pytest

from wattloom.cluster.node import Node
from wattloom.cluster.node_class import Mode
from wattloom.cluster.reasons import Reason
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import Conclude
from wattloom.testing.builders import ARM, CONCAVE, LINEAR, SLEEPER, machine, node, requirements
from wattloom.testing.harness import Harness, places
from wattloom.units import GIB


def test_a_node_of_an_unknown_machine_is_refused() -> None:
    assert Harness().refused(ev.NodeJoined(0.0, Node("a", "nothing"))).field == "node.machine"


def test_a_node_joins_once() -> None:
    h = Harness().node("a")
    assert h.refused(ev.NodeJoined(0.0, node("a"))).field == "node.name"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (Node("", "linear"), "node.name"),
        (Node("b", "linear", cpu=0.0), "node.cpu"),
        (Node("b", "linear", cpu=float("nan")), "node.cpu"),
        (Node("b", "linear", memory=-1), "node.memory"),
        (Node("b", "linear", devices={"gpu": 0}), "node.devices.gpu"),
        (Node("b", "linear", cap_w=0.0), "node.cap_w"),
        (Node("b", "linear", cap_w=float("inf")), "node.cap_w"),
    ],
)
def test_a_node_with_a_wrong_field_is_refused_by_name(wrong: Node, field: str) -> None:
    h = Harness().machine(LINEAR)
    assert h.refused(ev.NodeJoined(0.0, wrong)).field == field


@pytest.mark.parametrize("event", [ev.NodeLost, ev.NodeAwake, ev.NodeAsleep])
def test_news_of_an_unknown_node_are_refused(event: type[ev.NodeLost]) -> None:
    assert Harness().refused(event(0.0, "nowhere")).field == "node"


def test_a_machine_may_be_defined_again_as_it_was_and_not_otherwise_while_nodes_are_here() -> None:
    h = Harness().node("a").machine(LINEAR)
    assert h.refused(ev.MachineDefined(0.0, machine("linear", cores=8))).field == "machine.name"
    h.lose("a")
    h.machine(machine("linear", cores=8))
    h.node("a", machine("linear", cores=8))
    h.submit("t", needs=requirements(8.0))
    assert h.where("t") == "a"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (node("a", ARM), "node.machine"),
        (node("b"), "node"),
    ],
)
def test_a_change_that_what_runs_there_forbids_is_refused(change: Node, field: str) -> None:
    h = Harness().machine(ARM).node("a")
    h.submit("t", needs=requirements(2.0, 2 * GIB))
    assert h.refused(ev.NodeChanged(h.time, change)).field == field


@pytest.mark.parametrize("smaller", [node("a", cpu=1.0), node("a", memory=GIB)])
def test_a_node_that_becomes_smaller_than_what_runs_there_takes_nothing_more_until_it_drains(smaller: Node) -> None:
    h = Harness().node("a")
    h.submit("t", needs=requirements(2.0, 2 * GIB))
    h.change(smaller)
    h.submit("next", needs=requirements(0.5, GIB // 2))
    assert (h.where("t"), h.where("next")) == ("a", None)
    h.finish("t")
    assert h.where("next") == "a"


def test_a_node_that_loses_a_device_in_use_loses_no_more_than_that() -> None:
    h = Harness().node("a", devices={"gpu": 2, "fpga": 1})
    h.submit("both", needs=requirements(1.0, devices={"gpu": 2.0}))
    h.submit("fpga", needs=requirements(1.0, devices={"fpga": 1.0}))
    h.change(node("a", devices={"gpu": 1, "nic": 1}))
    assert h.engine.ledger.index.nodes["a"].devices == ((1000,), (0,))
    h.submit("next", needs=requirements(1.0, devices={"gpu": 0.5}))
    h.finish("fpga")
    assert h.where("next") is None
    h.finish("both")
    assert h.where("next") == "a"


def test_a_machine_may_be_better_known_while_tasks_run_there() -> None:
    h = Harness().machine(CONCAVE).node("a")
    h.submit("t")
    h.change(node("a", CONCAVE))
    h.finish("t")
    assert h.engine.ledger.index.nodes["a"].cls.machine.name == "concave"


def test_a_node_without_tasks_may_become_anything() -> None:
    h = Harness().machine(ARM).node("a", devices={"gpu": 2})
    h.change(node("a", ARM, devices={"fpga": 1}))
    h.submit("t", needs=requirements(1.0, arch=("aarch64",), devices={"fpga": 1.0}))
    assert h.where("t") == "a"


def test_what_runs_on_a_node_that_changes_stays_and_is_given_back() -> None:
    h = Harness().node("a")
    h.submit("t", needs=requirements(2.0))
    h.change(node("a", cpu=2.0, cap_w=30.0, labels={"zone": "b"}))
    assert h.where("t") == "a"
    h.finish("t")
    assert h.engine.ledger.index.nodes["a"].demand == 0


def test_a_waking_node_may_change() -> None:
    h = Harness().node("a", SLEEPER, asleep=True)
    h.submit("t")
    h.change(node("a", SLEEPER, labels={"zone": "a"}))
    assert places(h.awake("a")) == [("t", "a")]


def test_a_sleeping_node_that_changes_sleeps_on() -> None:
    h = Harness().node("a", SLEEPER, asleep=True)
    h.change(node("a", SLEEPER, cpu=2.0))
    assert h.engine.ledger.index.nodes["a"].mode == Mode.ASLEEP


@pytest.mark.parametrize("asleep", [True, False])
def test_an_idle_node_is_lost_without_a_word(asleep: bool) -> None:
    h = Harness().node("a", SLEEPER, asleep=asleep)
    assert h.lose("a") == []
    assert h.engine.ledger.index.microwatts == 0


def test_a_node_is_lost_with_all_that_is_on_it_each_by_its_own_rule() -> None:
    h = Harness().node("a")
    h.submit("sure", idempotent=True)
    h.submit("once")
    h.submit("unwanted")
    h.cancel("unwanted")
    told = {each.task: each.outcome for each in h.lose("a") if isinstance(each, Conclude)}
    assert told == {"once": "unknown", "unwanted": "cancelled"}
    assert h.reason("sure") == Reason.NO_NODES


def test_a_lost_node_may_join_again_and_old_reports_are_refused() -> None:
    h = Harness().node("a")
    h.submit("t", idempotent=True)
    h.lose("a")
    h.node("a")
    assert h.attempt("t") == 2
    assert h.refused(ev.TaskFinished(h.time, "t", 1)).field == "attempt"
    h.finish("t")


def test_the_clusters_draw_is_the_sum_of_its_nodes_to_the_last_digit() -> None:
    odd = machine("odd", watts=((0.0, 17.3), (1.0, 23.7), (3.0, 31.1), (4.0, 60.9)))
    h = Harness()
    for number in range(7):
        h.node(f"n{number}", odd)
    idle = h.engine.ledger.index.microwatts
    for number in range(30):
        h.submit(f"t{number}", needs=requirements(0.7))
    for number in range(30):
        if h.where(f"t{number}"):
            h.finish(f"t{number}")
    assert h.engine.ledger.index.microwatts == idle == 7 * 17_300_000
