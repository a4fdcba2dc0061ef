"""From submission to exactly one end: cancellation, failures, losses, dependencies."""

from collections.abc import Callable

import pytest

from wattloom.cluster.reasons import Reason
from wattloom.policies.protocol import Proposal, Refusal
from wattloom.policies.view import Ask, View
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Conclude, Evict, Place
from wattloom.scheduling.state import Stage
from wattloom.testing.builders import SLEEPER, requirements, task
from wattloom.testing.harness import Harness, places, waits
from wattloom.testing.odd_policies import Scripted

WHOLE = requirements(4.0)


def ends(instructions: list[AnyInstruction]) -> list[tuple[str, str, Reason]]:
    return [(each.task, each.outcome, each.reason) for each in instructions if isinstance(each, Conclude)]


# -- a task's way to each stage --------------------------------------------------------------------------------------


def held_back(h: Harness) -> None:
    h.node("a")
    h.submit("before")
    h.submit("t", after=("before",))


def queued(h: Harness) -> None:
    h.submit("t")


def backing_off(h: Harness) -> None:
    h.node("a")
    h.submit("t")
    h.place_failed("t")


def assigned(h: Harness) -> None:
    h.node("a", SLEEPER, asleep=True)
    h.submit("t")


def placed(h: Harness) -> None:
    h.node("a")
    h.submit("t")


def running(h: Harness) -> None:
    placed(h)
    h.start("t")


def cancelling(h: Harness) -> None:
    running(h)
    h.cancel("t")


STAGES: list[tuple[Callable[[Harness], None], int]] = [
    (held_back, Stage.HELD_BACK),
    (queued, Stage.QUEUED),
    (backing_off, Stage.BACKING_OFF),
    (assigned, Stage.ASSIGNED),
    (placed, Stage.PLACED),
    (running, Stage.RUNNING),
    (cancelling, Stage.CANCELLING),
]


@pytest.mark.parametrize(("bring", "stage"), STAGES)
def test_a_task_can_be_brought_to_every_stage(bring: Callable[[Harness], None], stage: int) -> None:
    h = Harness()
    bring(h)
    assert h.stage("t") == stage


@pytest.mark.parametrize(("bring", "stage"), STAGES[:4])
def test_a_task_that_was_not_placed_is_cancelled_at_once(bring: Callable[[Harness], None], stage: int) -> None:
    h = Harness()
    bring(h)
    assert ends(h.cancel("t")) == [("t", "cancelled", Reason.CANCELLED)]
    assert h.engine.ledger.view.queued == 0
    h.pass_time(500.0)
    assert h.ends["t"] == ["cancelled"]


@pytest.mark.parametrize(("bring", "stage"), STAGES[4:6])
def test_a_placed_task_is_evicted_and_cancelled_when_that_is_reported(
    bring: Callable[[Harness], None], stage: int
) -> None:
    h = Harness()
    bring(h)
    assert h.cancel("t") == [Evict("t", 1, "a", Reason.CANCELLED)]
    assert ends(h.evicted("t")) == [("t", "cancelled", Reason.CANCELLED)]
    assert not h.engine.ledger.index.nodes["a"].tasks


def test_a_task_being_cancelled_is_not_cancelled_again() -> None:
    h = Harness()
    cancelling(h)
    assert h.refused(ev.CancelRequested(h.time, "t")).field == "task"


def test_an_ended_task_is_not_cancelled() -> None:
    h = Harness()
    placed(h)
    h.finish("t")
    assert "has ended" in h.refused(ev.CancelRequested(h.time, "t")).problem


def test_a_task_that_was_faster_than_its_eviction_is_finished() -> None:
    h = Harness()
    cancelling(h)
    h.finish("t")
    assert h.ends["t"] == ["finished"]


@pytest.mark.parametrize("report", ["fail", "fail_infrastructure", "evicted"])
def test_a_task_being_cancelled_is_cancelled_however_its_run_ends(report: str) -> None:
    h = Harness()
    h.node("a")
    h.submit("t", retries=5, idempotent=True)
    h.cancel("t")
    assert ends(getattr(h, report)("t")) == [("t", "cancelled", Reason.CANCELLED)]


def test_a_task_being_cancelled_whose_start_is_refused_is_cancelled() -> None:
    h = Harness()
    placed(h)
    h.cancel("t")
    assert ends(h.place_failed("t")) == [("t", "cancelled", Reason.CANCELLED)]


def test_a_task_being_cancelled_whose_node_is_lost_is_cancelled() -> None:
    h = Harness()
    cancelling(h)
    assert ends(h.lose("a")) == [("t", "cancelled", Reason.CANCELLED)]


def test_a_failed_eviction_leaves_a_running_task_running() -> None:
    h = Harness()
    cancelling(h)
    assert h.evict_failed("t") == []
    assert h.stage("t") == Stage.RUNNING
    assert h.cancel("t") == [Evict("t", 1, "a", Reason.CANCELLED)]


def test_a_failed_eviction_does_not_make_a_placed_task_a_started_one() -> None:
    h = Harness()
    placed(h)
    h.cancel("t")
    h.evict_failed("t")
    assert h.stage("t") == Stage.PLACED
    h.start("t")
    assert h.stage("t") == Stage.RUNNING


def test_a_start_reported_while_cancelling_is_remembered() -> None:
    h = Harness()
    placed(h)
    h.cancel("t")
    h.start("t")
    assert h.stage("t") == Stage.CANCELLING
    assert "reported as started" in h.refused(ev.InstructionFailed(h.time, "place", "t", 1)).problem
    assert "started before" in h.refused(ev.TaskStarted(h.time, "t", 1)).problem


def test_cancelling_the_first_of_its_kind_has_the_next_asked() -> None:
    """The first chose to wait, its timer is void with it: the next must not wait for ever."""
    h = Harness(
        Scripted(
            lambda ask, view: Refusal(Reason.WAITING_IS_CHEAPER, 1000.0) if ask.task.id == "t" else Proposal("a", 1.0)
        )
    )
    h.node("a")
    h.submit("t")
    h.submit("u")
    assert places(h.cancel("t")) == [("u", "a")]


# -- failures and losses ---------------------------------------------------------------------------------------------


def test_a_failed_function_ends_its_task_as_failed() -> None:
    h = Harness()
    running(h)
    assert ends(h.fail("t", "ZeroDivisionError")) == [("t", "failed", Reason.FUNCTION_FAILED)]


def test_a_failed_function_is_run_again_as_often_as_its_retries_say() -> None:
    h = Harness().node("a")
    h.submit("t", retries=2)
    assert [place.attempt for place in h.fail("t") if isinstance(place, Place)] == [2]
    assert [place.attempt for place in h.fail("t") if isinstance(place, Place)] == [3]
    assert ends(h.fail("t")) == [("t", "failed", Reason.RETRIES_EXHAUSTED)]


@pytest.mark.parametrize("loss", ["lose", "fail_infrastructure", "evicted"])
def test_a_task_that_is_not_idempotent_and_is_lost_has_an_unknown_outcome(loss: str) -> None:
    h = Harness()
    running(h)
    instructions = h.lose("a") if loss == "lose" else getattr(h, loss)("t")
    assert ends(instructions) == [("t", "unknown", Reason.OUTCOME_UNKNOWN)]


@pytest.mark.parametrize("loss", ["lose", "fail_infrastructure", "evicted"])
def test_an_idempotent_task_that_is_lost_runs_again_elsewhere(loss: str) -> None:
    h = Harness().node("a").node("b")
    h.submit("t", idempotent=True, infrastructure_retries=1)
    instructions = h.lose("a") if loss == "lose" else getattr(h, loss)("t")
    assert [task for task, _ in places(instructions)] == ["t"]
    assert h.attempt("t") == 2
    again = h.lose("b") if loss == "lose" else getattr(h, loss)("t")
    assert ends(again) == [("t", "failed", Reason.RETRIES_EXHAUSTED)]


def test_losses_and_the_functions_own_failures_are_counted_apart() -> None:
    h = Harness().node("a")
    h.submit("t", idempotent=True, retries=1, infrastructure_retries=1)
    h.fail_infrastructure("t")
    h.fail("t")
    assert h.where("t") == "a"
    assert ends(h.fail("t")) == [("t", "failed", Reason.RETRIES_EXHAUSTED)]


def test_a_refused_start_uses_up_no_retry() -> None:
    h = Harness().node("a")
    h.submit("t", infrastructure_retries=0)
    for _ in range(10):
        h.place_failed("t")
        h.pass_time(60.0)
    assert h.where("t") == "a"


@pytest.mark.parametrize("loss", ["lose", "wake_failed"])
def test_a_task_assigned_to_a_waking_node_is_queued_again_for_free(loss: str) -> None:
    h = Harness()
    h.node("a", SLEEPER, asleep=True)
    h.submit("t", infrastructure_retries=0)
    assert h.stage("t") == Stage.ASSIGNED
    getattr(h, loss)("a")
    assert h.outcome("t") is None
    h.node("b")
    h.pass_time(1.0)
    assert h.where("t") is not None


def test_the_tasks_of_a_lost_node_are_placed_again_in_their_order() -> None:
    h = Harness().node("a").node("b", cpu=2.0)
    h.submit("filler", needs=requirements(2.0))
    for name in ("z", "y"):
        h.submit(name, idempotent=True)
    assert {h.where(name) for name in ("z", "y")} == {"a"}
    h.finish("filler")
    assert places(h.lose("a")) == [("z", "b"), ("y", "b")]


def test_reports_on_an_older_attempt_are_refused() -> None:
    h = Harness().node("a")
    h.submit("t", retries=1)
    h.fail("t")
    for event in (
        ev.TaskStarted(h.time, "t", 1),
        ev.TaskFinished(h.time, "t", 1),
        ev.TaskFailed(h.time, "t", 1),
        ev.InstructionFailed(h.time, "place", "t", 1),
    ):
        assert h.refused(event).field == "attempt"


# -- dependencies ----------------------------------------------------------------------------------------------------


def test_a_chain_runs_one_after_the_other() -> None:
    h = Harness().node("a")
    h.submit("one")
    assert waits(h.submit("two", after=("one",))) == [("two", Reason.DEPENDENCIES)]
    h.submit("three", after=("two",))
    assert places(h.finish("one")) == [("two", "a")]
    assert places(h.finish("two")) == [("three", "a")]


def test_a_diamond_joins_when_both_sides_have_finished() -> None:
    h = Harness().node("a")
    h.submit("top")
    h.submit("left", after=("top",))
    h.submit("right", after=("top",))
    h.submit("bottom", after=("left", "right"))
    assert places(h.finish("top")) == [("left", "a"), ("right", "a")]
    assert places(h.finish("right")) == []
    assert places(h.finish("left")) == [("bottom", "a")]


def test_what_comes_after_a_failure_is_rejected_all_the_way_down() -> None:
    h = Harness().node("a")
    h.submit("top")
    h.submit("left", after=("top",))
    h.submit("right", after=("top",))
    h.submit("bottom", after=("left", "right"))
    assert sorted(ends(h.fail("top"))) == [
        ("bottom", "rejected", Reason.DEPENDENCY_ENDED),
        ("left", "rejected", Reason.DEPENDENCY_ENDED),
        ("right", "rejected", Reason.DEPENDENCY_ENDED),
        ("top", "failed", Reason.FUNCTION_FAILED),
    ]
    assert not h.engine.graph.dependents


def test_a_long_chain_is_rejected_without_running_out_of_stack() -> None:
    h = Harness()
    h.submit("t0")
    for number in range(1, 3_000):
        h.engine.handle(ev.TaskSubmitted(0.0, task(f"t{number}", after=(f"t{number - 1}",))))
    assert len(ends(h.cancel("t0"))) == 3_000


def test_cancelling_in_the_middle_rejects_only_what_comes_after() -> None:
    h = Harness().node("a")
    h.submit("one")
    h.submit("two", after=("one",))
    h.submit("three", after=("two",))
    assert ends(h.cancel("two"))[1] == ("three", "rejected", Reason.DEPENDENCY_ENDED)
    h.finish("one")
    assert h.ends == {"two": ["cancelled"], "three": ["rejected"], "one": ["finished"]}


def test_a_task_that_comes_after_an_unknown_one_is_refused() -> None:
    h = Harness().node("a").function()
    assert h.refused(ev.TaskSubmitted(0.0, task("t", after=("nobody",)))).field == "task.after"


def test_a_task_that_comes_after_finished_ones_is_placed_at_once() -> None:
    h = Harness().node("a")
    h.submit("one")
    h.finish("one")
    assert places(h.submit("two", after=("one",))) == [("two", "a")]


def test_a_task_that_comes_after_a_failed_one_is_rejected_at_once_and_not_counted_as_queued() -> None:
    h = Harness().node("a")
    h.submit("one")
    h.fail("one")
    assert ends(h.submit("two", after=("one",))) == [("two", "rejected", Reason.DEPENDENCY_ENDED)]
    assert h.engine.ledger.view.queued == 0


def test_a_task_rejected_at_once_leaves_nothing_with_the_others_it_named() -> None:
    h = Harness().node("a")
    h.submit("bad")
    h.fail("bad")
    h.submit("good")
    h.submit("t", after=("good", "bad"))
    h.finish("good")
    assert h.ends["t"] == ["rejected"]


def test_naming_the_same_task_twice_queues_once() -> None:
    h = Harness().node("a")
    h.submit("one")
    h.submit("two", after=("one", "one"))
    assert places(h.finish("one")) == [("two", "a")]
    assert h.engine.ledger.view.queued == 0


def test_what_comes_after_a_task_waits_through_its_retries() -> None:
    h = Harness().node("a")
    h.submit("one", retries=1)
    h.submit("two", after=("one",))
    h.fail("one")
    assert h.stage("two") == Stage.HELD_BACK
    assert places(h.finish("one")) == [("two", "a")]


# -- what a task carries ---------------------------------------------------------------------------------------------


def test_deadline_and_energy_weight_reach_the_policy() -> None:
    seen: list[tuple[float | None, float, float, int]] = []

    def script(ask: Ask, view: View) -> Proposal | Refusal:
        seen.append((ask.task.deadline_s, ask.shape.energy_weight, ask.submitted, ask.attempt))
        return Proposal("a", 1.0)

    h = Harness(Scripted(script)).node("a")
    h.time = 5.0
    h.submit("t", deadline_s=30.0, energy_weight=0.9, retries=1)
    h.time = 7.0
    h.fail("t")
    assert seen == [(30.0, 0.9, 5.0, 0), (30.0, 0.9, 5.0, 1)]


def test_a_task_late_for_its_deadline_still_runs() -> None:
    h = Harness()
    h.submit("t", deadline_s=1.0)
    h.pass_time(100.0)
    h.node("a")
    assert h.where("t") == "a"
