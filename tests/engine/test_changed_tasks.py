"""A task with other needs, and one that is taken away: neither has failed."""

import pytest

from wattloom.cluster.node_class import DeviceShare
from wattloom.cluster.reasons import Reason
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import Conclude
from wattloom.scheduling.lease_terms import LeaseTerms
from wattloom.scheduling.state import Stage
from wattloom.testing import builders
from wattloom.testing.builders import SLEEPER, requirements
from wattloom.testing.harness import Harness, places
from wattloom.units import GIB
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task


def changed(h: Harness, task: str, needs: Requirements, **about: object) -> list[tuple[str, str]]:
    """Who got a place by that."""
    return places(h.tell(ev.TaskChanged(h.time, builders.task(task, needs=needs, **about))))  # type: ignore[arg-type]


def test_a_running_task_that_grows_takes_more_than_there_is_and_nobody_is_placed_beside_it() -> None:
    h = Harness().node("a")
    h.submit("t")
    h.start("t")
    before = h.record("t").holding
    changed(h, "t", requirements(6.0, 2 * GIB))
    node, has = h.engine.ledger.index.nodes["a"], h.record("t").holding
    assert (node.demand, node.allocated, node.memory) == (6000, 6000, 2 * GIB)
    assert (h.stage("t"), has.attempt, has.started, has.number) == (Stage.RUNNING, 1, True, before.number)
    h.submit("u")
    assert h.stage("u") == Stage.QUEUED
    assert places(h.finish("t")) == [("u", "a")]


def test_a_running_task_that_shrinks_makes_room() -> None:
    h = Harness().node("a")
    h.submit("t", needs=requirements(4.0))
    h.start("t")
    h.submit("u", needs=requirements(2.0))
    assert changed(h, "t", requirements(1.0)) == [("u", "a")]
    assert h.outcome("t") is None


def test_a_queued_task_keeps_its_turn_and_its_waiting_time() -> None:
    h = Harness().node("a")
    h.submit("big", needs=requirements(4.0))
    h.submit("first", needs=requirements(4.0))
    h.time = 30.0
    h.submit("second", needs=requirements(2.0))
    assert changed(h, "first", requirements(2.0)) == []
    assert (h.stage("first"), h.record("first").waiting_since) == (Stage.QUEUED, 0.0)
    assert places(h.finish("big")) == [("first", "a"), ("second", "a")]


def test_a_queued_task_that_fits_now_is_placed_at_once() -> None:
    h = Harness().node("a")
    h.submit("t", needs=requirements(8.0))
    assert changed(h, "t", requirements(2.0)) == [("t", "a")]


def test_a_task_whose_node_wakes_up_keeps_it_if_it_still_fits_and_goes_back_if_not() -> None:
    h = Harness().node("a", SLEEPER, asleep=True)
    h.submit("t")
    assert h.stage("t") == Stage.ASSIGNED
    changed(h, "t", requirements(2.0))
    assert (h.stage("t"), h.where("t")) == (Stage.ASSIGNED, "a")
    changed(h, "t", requirements(64.0))
    assert (h.stage("t"), h.where("t")) == (Stage.QUEUED, None)


def test_a_task_keeps_the_devices_it_has_while_it_wants_as_many() -> None:
    h = Harness().node("a", devices={"gpu": 2})
    h.submit("first", needs=requirements(devices={"gpu": 1.0}))
    h.submit("t", needs=requirements(devices={"gpu": 1.0}))
    h.finish("first")
    changed(h, "t", requirements(2.0, devices={"gpu": 1.0}))
    assert h.record("t").holding.devices == (DeviceShare("gpu", 1, 1000),)
    changed(h, "t", requirements(2.0, devices={"gpu": 2.0}))
    assert len(h.record("t").holding.devices) == 2
    h.finish("t")
    assert h.engine.ledger.index.nodes["a"].devices == ((0, 0),)


@pytest.mark.parametrize(
    ("task", "field"),
    [
        (builders.task("nobody"), "task.id"),
        (builders.task("gone"), "task.id"),
        (builders.task("t", "g"), "task.function"),
        (builders.task("t", "undefined"), "task.function"),
        (builders.task("t", after=("u",)), "task.after"),
        (builders.task("t", needs=requirements(-1.0)), "task.requirements.cpu"),
    ],
)
def test_what_a_task_cannot_become_is_refused(task: Task, field: str) -> None:
    h = Harness().node("a").function("g")
    for name in ("gone", "t", "u"):
        h.submit(name)
    h.finish("gone")
    assert h.refused(ev.TaskChanged(h.time, task)).field == field


def test_a_task_on_whose_share_others_follow_stays_as_it_is() -> None:
    h = Harness(lease=LeaseTerms(seconds=50.0, ahead_s=60.0)).node("a", cpu=1.0)
    h.function("f", seconds={"linear": 10.0})
    h.submit("t")
    h.submit("behind")
    assert h.stage("behind") == Stage.BEHIND
    for name in ("t", "behind"):
        assert h.refused(ev.TaskChanged(h.time, builders.task(name))).field == "task.id"


@pytest.mark.parametrize("stage", ["running", "cancelling", "queued", "held-back", "backing-off", "assigned"])
def test_a_task_that_is_taken_away_has_not_failed_and_is_not_retried(stage: str) -> None:
    h = Harness().node("a").node("b", SLEEPER, asleep=True)
    h.submit("other")
    needs = requirements(64.0) if stage == "queued" else requirements(4.0) if stage == "assigned" else None
    h.submit("t", needs=needs, retries=3, idempotent=True, after=("other",) if stage == "held-back" else ())
    if stage == "backing-off":
        h.place_failed("t")
    elif stage in ("running", "cancelling"):
        h.start("t")
        if stage == "cancelling":
            h.cancel("t")
    assert h.record("t").stage == getattr(Stage, stage.upper().replace("-", "_"))
    said = h.tell(ev.TaskRemoved(h.time, "t", "it was deleted"))
    assert [each for each in said if isinstance(each, Conclude)] == [
        Conclude("t", "cancelled", Reason.REMOVED, "it was deleted")
    ]
    assert h.engine.ledger.view.queued == 0
    assert h.refused(ev.TaskRemoved(h.time, "t")).field == "task"
    h.replay()


def test_what_comes_after_a_task_that_was_taken_away_cannot_run() -> None:
    h = Harness().node("a")
    h.submit("t")
    h.submit("u", after=("t",))
    h.tell(ev.TaskRemoved(h.time, "t"))
    assert h.outcome("u") == "rejected"
