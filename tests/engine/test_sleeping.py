"""Idle nodes sleep, sleeping nodes are woken for tasks, and both can fail."""

import msgspec
import pytest

from wattloom.cluster.node import Node
from wattloom.cluster.node_class import Mode, NodeClass
from wattloom.cluster.reasons import Reason
from wattloom.policies.protocol import Policy, View
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import Place, Sleep, Wake
from wattloom.scheduling.state import Stage
from wattloom.testing.builders import LINEAR, SLEEPER, node, requirements
from wattloom.testing.harness import Harness, places
from wattloom.testing.odd_policies import Lingering, Moody
from wattloom.units import GIB
from wattloom.workload.constraints import Taint
from wattloom.workload.requirements import Requirements

WHOLE = requirements(4.0)


def lingering(policy: Policy | None = None) -> Harness:
    return Harness(policy or Lingering()).node("a", SLEEPER)


def mode(h: Harness, name: str) -> Mode:
    return h.engine.ledger.index.nodes[name].mode


def test_a_node_that_joins_idle_is_sent_to_sleep_after_the_policys_time() -> None:
    h = lingering()
    assert h.engine.next_tick == 30.0
    assert h.tick(29.9) == []
    assert h.tick(30.0) == [Sleep("a")]
    assert mode(h, "a") == Mode.ASLEEP


def test_a_node_that_was_busy_in_between_idles_anew() -> None:
    h = lingering()
    h.tick(20.0)
    h.submit("t")
    h.tick(25.0)
    h.finish("t")
    assert h.tick(54.9) == []
    assert h.tick(55.0) == [Sleep("a")]


def test_a_node_that_comes_and_goes_between_busy_and_idle_keeps_one_timer() -> None:
    h = lingering()
    for number in range(200):
        h.submit(f"t{number}")
        h.finish(f"t{number}")
    assert len(h.engine.timers._heap) <= 2


def test_a_busy_node_does_not_sleep() -> None:
    h = lingering()
    h.submit("t")
    assert h.pass_time(500.0) == []


def test_a_machine_that_cannot_sleep_is_never_asked_to() -> None:
    h = Harness(Lingering()).node("a", LINEAR)
    assert h.engine.next_tick is None


def test_a_policy_that_does_not_linger_lets_nodes_be() -> None:
    h = Harness().node("a", SLEEPER)
    assert h.engine.next_tick is None


def test_a_sleeping_node_is_woken_and_the_task_is_placed_when_it_is_awake() -> None:
    h = Harness().node("a", SLEEPER, asleep=True)
    assert h.submit("t") == [Wake("a")]
    assert h.stage("t") == Stage.ASSIGNED
    h.time = 10.0
    [placed] = h.awake("a")
    assert isinstance(placed, Place)
    assert (placed.task, placed.attempt, placed.node) == ("t", 1, "a")


def test_a_waking_node_is_woken_once_for_all_its_tasks_and_they_are_placed_in_order() -> None:
    h = Harness().node("a", SLEEPER, asleep=True)
    h.submit("low")
    assert h.submit("high", priority=3) == []
    assert places(h.awake("a")) == [("high", "a"), ("low", "a")]


def test_a_waking_node_whose_tasks_were_cancelled_idles_when_it_is_awake() -> None:
    h = Harness(Lingering()).node("a", SLEEPER, asleep=True)
    h.submit("t")
    h.cancel("t")
    assert h.awake("a") == []
    assert h.pass_time(30.0) == [Sleep("a")]


def test_reports_on_a_task_whose_node_is_still_waking_are_refused() -> None:
    h = Harness().node("a", SLEEPER, asleep=True)
    h.submit("t")
    for event in (ev.TaskStarted(0.0, "t", 1), ev.TaskFinished(0.0, "t", 1), ev.TaskFailed(0.0, "t", 1)):
        assert h.refused(event).field == "task"


def test_when_waking_fails_its_tasks_back_off_and_the_node_sleeps_on() -> None:
    h = Harness().node("a", SLEEPER, asleep=True)
    h.submit("t")
    h.wake_failed("a")
    assert mode(h, "a") == Mode.ASLEEP
    assert h.stage("t") == Stage.BACKING_OFF
    assert h.reason("t") == Reason.START_REFUSED
    assert h.pass_time(1.0) == [Wake("a")]


def test_when_waking_fails_what_was_assigned_there_is_free_for_others() -> None:
    """A task that found no room while the node was waking is asked again."""
    h = Harness().node("a", SLEEPER, asleep=True)
    h.submit("t", needs=WHOLE)
    h.submit("u", needs=WHOLE)
    assert h.wake_failed("a")[-1] == Wake("a")
    assert h.where("u") == "a"


@pytest.mark.parametrize(
    "changes",
    [
        {"cpu": 1.0},
        {"memory": 0},
        {"closed": True},
        {"cap_w": 55.0},
        {"taints": (Taint("spot"),)},
        {"labels": {}},
        {"devices": {}},
        {"resources": {}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_node_that_becomes_another_one_while_it_wakes_is_not_given_what_it_can_no_longer_hold(
    changes: dict[str, object],
) -> None:
    whole = Node("a", "sleeper", labels={"zone": "a"}, devices={"gpu": 1}, resources={"pods": 1}, asleep=True)
    needs = Requirements(4.0, GIB, labels=(("zone", "a"),), devices=(("gpu", 1.0),), resources=(("pods", 1),))
    h = Harness().machine(SLEEPER)
    h.join(whole, SLEEPER)
    assert h.submit("t", needs=needs) == [Wake("a")]
    h.change(msgspec.structs.replace(whole, **changes))
    assert h.stage("t") == Stage.QUEUED
    assert h.awake("a") == []
    h.change(whole)
    assert h.where("t") == "a"
    h.replay()


def test_who_still_fits_on_a_node_that_shrinks_while_it_wakes_keeps_his_place() -> None:
    """First come, first served; and what only looks different is no reason to ask anybody again."""
    h = Harness().node("a", SLEEPER, asleep=True)
    for name in ("t", "u", "v"):
        h.submit(name)
    assert h.change(node("a", SLEEPER, labels={"zone": "b"})) == []
    assert [h.stage(name) for name in "tuv"] == [Stage.ASSIGNED] * 3
    h.change(node("a", SLEEPER, cpu=2.0))
    assert [h.stage(name) for name in "tuv"] == [Stage.ASSIGNED, Stage.ASSIGNED, Stage.QUEUED]
    assert places(h.awake("a")) == [("t", "a"), ("u", "a")]
    assert [h.attempt(name) for name in "tuv"] == [1, 1, 1]


def test_a_cap_that_falls_while_a_node_wakes_holds_for_what_it_wakes_for() -> None:
    h = Harness().node("a", SLEEPER, asleep=True)
    for name in ("t", "u", "v"):
        h.submit(name)
    h.cap(50.0)
    assert [h.stage(name) for name in "tuv"] == [Stage.ASSIGNED] * 3
    h.cap(45.0)
    assert h.stage("v") == Stage.QUEUED
    h.awake("a")
    assert h.engine.ledger.index.microwatts <= 45_000_000


def test_when_sleeping_fails_the_node_is_awake_and_tried_again_later() -> None:
    h = lingering()
    h.tick(30.0)
    assert h.sleep_failed("a") == []
    assert mode(h, "a") == Mode.AWAKE
    assert h.pass_time(59.0) == []
    assert h.pass_time(1.0) == [Sleep("a")]


def test_a_failed_sleep_is_not_tried_again_at_once_by_a_policy_that_does_not_linger_at_all() -> None:
    h = lingering(_AtOnce())
    h.tick(1.0)
    assert mode(h, "a") == Mode.ASLEEP
    assert h.sleep_failed("a") == []


class _AtOnce(Lingering):
    def linger(self, cls: object, view: object) -> float | None:
        return 0.0


def test_when_sleeping_fails_those_who_wait_for_a_node_that_is_awake_are_asked() -> None:
    h = lingering()
    h.tick(30.0)
    h.sleep_failed("a")
    assert places(h.submit("t")) == [("t", "a")]


@pytest.mark.parametrize("wake", [True, False])
def test_a_failure_of_what_was_not_asked_for_is_refused(wake: bool) -> None:
    h = lingering()
    event = ev.InstructionFailed(h.time, "wake" if wake else "sleep", node="a")
    assert h.refused(event).field == "node"


def test_a_node_may_fall_asleep_and_wake_by_itself() -> None:
    h = lingering()
    h.asleep("a")
    assert mode(h, "a") == Mode.ASLEEP
    assert "asleep already" in h.refused(ev.NodeAsleep(h.time, "a")).problem
    h.awake("a")
    assert mode(h, "a") == Mode.AWAKE
    assert "awake already" in h.refused(ev.NodeAwake(h.time, "a")).problem


def test_a_node_with_tasks_cannot_be_asleep() -> None:
    h = lingering()
    h.submit("t")
    assert h.refused(ev.NodeAsleep(h.time, "a")).field == "node"


def test_a_node_that_cannot_sleep_cannot_be_asleep() -> None:
    h = Harness().node("a", LINEAR)
    assert h.refused(ev.NodeAsleep(h.time, "a")).field == "node"
    assert h.refused(ev.NodeJoined(h.time, node("b", LINEAR, asleep=True))).field == "node.asleep"


def test_a_sleeping_node_cannot_turn_into_one_that_cannot_sleep() -> None:
    h = Harness().machine(LINEAR).node("a", SLEEPER, asleep=True)
    assert h.refused(ev.NodeChanged(h.time, node("a", LINEAR))).field == "node.machine"


def test_a_node_that_is_lost_and_joins_again_is_not_sent_to_sleep_by_an_old_timer() -> None:
    h = lingering()
    h.tick(10.0)
    h.lose("a")
    h.tick(20.0)
    h.node("a", SLEEPER)
    assert h.tick(30.0) == []
    assert h.tick(50.0) == [Sleep("a")]


def test_sleep_frees_watts_for_those_who_wait_for_them() -> None:
    """Two idle nodes draw 40 W of 55 W: a task that needs 20 W has them when the other node sleeps."""
    h = Harness(Lingering()).node("a", LINEAR).node("b", SLEEPER)
    h.cap(55.0)
    h.submit("t", needs=requirements(2.0))
    assert h.reason("t") == Reason.CLUSTER_WATTS
    h.tick(30.0)
    assert h.where("t") == "a"


def test_a_node_that_falls_asleep_by_itself_frees_watts() -> None:
    h = Harness().node("a", LINEAR).node("b", SLEEPER)
    h.cap(55.0)
    h.submit("t", needs=requirements(2.0))
    h.asleep("b")
    assert h.where("t") == "a"


def test_a_policy_whose_linger_fails_or_makes_no_sense_does_not_take_the_engine_down() -> None:
    h = Harness(Moody())
    for number in range(20):
        h.time = float(number)
        h.node(f"n{number}", SLEEPER)
    h.pass_time(100.0)


def test_a_node_that_may_linger_beyond_all_times_stays_awake() -> None:
    class Patient(Lingering):
        def linger(self, cls: NodeClass, view: View) -> float | None:
            return 1e232

    assert Harness(Patient()).node("a", SLEEPER).engine.next_tick is None
