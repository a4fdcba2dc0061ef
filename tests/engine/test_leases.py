"""One decision for many short tasks: who follows whom, and that nobody is held up by it."""

import pytest

from wattloom.errors import EventRefused
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import Evict, Place
from wattloom.scheduling.lease_terms import LeaseTerms
from wattloom.scheduling.state import Stage
from wattloom.testing import builders
from wattloom.testing.builders import LINEAR
from wattloom.testing.harness import Harness

TERMS = LeaseTerms(seconds=1.0, ahead_s=0.1, most=3)


@pytest.fixture
def h() -> Harness:
    """A node with one core, and a function of 10 ms."""
    return Harness(lease=TERMS).node("a", LINEAR, cpu=1.0).function("f", seconds={"linear": 0.01})


def behind(h: Harness, task: str) -> str:
    return h.placements[task][-1].behind


def test_short_tasks_stand_behind_the_one_that_has_the_core(h: Harness) -> None:
    for name in ("t1", "t2", "t3"):
        h.submit(name)
    assert [behind(h, name) for name in ("t1", "t2", "t3")] == ["", "t1", "t1"]
    assert h.engine.proposals == 2  # for the first, and for the second, which found no room
    assert h.stage("t2") == Stage.BEHIND


def test_no_more_than_the_terms_allow_stand_behind(h: Harness) -> None:
    for number in range(6):
        h.submit(f"t{number}")
    assert [h.stage(f"t{n}") for n in range(6)] == [Stage.PLACED] + 3 * [Stage.BEHIND] + 2 * [Stage.QUEUED]
    h.finish("t0")
    assert h.stage("t1") == Stage.PLACED
    assert h.stage("t4") == Stage.BEHIND


def test_a_free_core_comes_before_a_place_behind() -> None:
    h = Harness(lease=TERMS).node("a", LINEAR, cpu=2.0).function("f", seconds={"linear": 0.01})
    for name in ("t1", "t2", "t3"):
        h.submit(name)
    assert [behind(h, name) for name in ("t1", "t2", "t3")] == ["", "", "t1"]


def test_the_share_is_taken_once_and_given_back_at_the_end(h: Harness) -> None:
    for name in ("t1", "t2"):
        h.submit(name)
    node = h.engine.ledger.index.nodes["a"]
    assert node.demand == 1000
    h.finish("t1")
    assert (node.demand, node.tasks) == (1000, {"t2"})
    h.finish("t2")
    assert (node.demand, node.tasks) == (0, set())


def test_long_tasks_are_decided_one_by_one() -> None:
    h = Harness(lease=TERMS).node("a", LINEAR, cpu=1.0).function("f", seconds={"linear": 5.0})
    h.submit("t1")
    h.submit("t2")
    assert h.stage("t2") == Stage.QUEUED


def test_tasks_of_unknown_length_are_decided_one_by_one() -> None:
    h = Harness(lease=TERMS).node("a", LINEAR, cpu=1.0).function("f")
    h.submit("t1")
    h.submit("t2")
    assert h.stage("t2") == Stage.QUEUED


def test_a_lease_that_has_run_out_takes_nobody_more(h: Harness) -> None:
    for number in range(5):
        h.submit(f"t{number}")
    h.time = 1.5
    h.finish("t0")
    assert h.stage("t4") == Stage.QUEUED
    for number in (1, 2, 3):
        h.finish(f"t{number}")
    assert behind(h, "t4") == ""  # the policy was asked


def test_a_task_of_higher_priority_ends_the_following(h: Harness) -> None:
    h.function("g", seconds={"linear": 0.01})
    for number in range(5):
        h.submit(f"t{number}")
    h.submit("urgent", "g", priority=5)
    h.finish("t0")
    assert h.stage("t4") == Stage.QUEUED


def test_who_is_taken_back_goes_elsewhere_and_nobody_takes_his_place(h: Harness) -> None:
    for name in ("t1", "t2", "t3"):
        h.submit(name)
    h.tell(ev.TaskReturned(0.5, "t2", 1))
    assert h.stage("t2") == Stage.QUEUED
    h.node("b", LINEAR, cpu=1.0)
    assert h.where("t2") == "b"
    assert h.placements["t2"][-1].attempt == 2


def test_what_has_begun_cannot_be_taken_back(h: Harness) -> None:
    h.submit("t1")
    h.submit("t2")
    h.start("t2")
    with pytest.raises(EventRefused, match="started"):
        h.tell(ev.TaskReturned(0.5, "t2", 1))


def test_cancelling_one_behind_evicts_it_and_leaves_the_holder_alone(h: Harness) -> None:
    h.submit("t1")
    h.submit("t2")
    [evict] = h.cancel("t2")
    assert isinstance(evict, Evict)
    h.evicted("t2")
    assert h.ends == {"t2": ["cancelled"]}
    assert h.stage("t1") == Stage.PLACED


def test_a_lost_node_loses_those_behind_too(h: Harness) -> None:
    h.submit("t1")
    h.submit("t2", idempotent=True)
    h.lose("a")
    assert h.ends == {"t1": ["unknown"]}
    assert h.stage("t2") == Stage.QUEUED


def test_a_log_with_leases_replays(h: Harness) -> None:
    for number in range(8):
        h.submit(f"t{number}")
    for number in range(8):
        h.time += 0.01
        h.finish(f"t{number}", 0.01)
    assert sum(isinstance(each, Place) for _, told in h.recorded for each in told) == 8
    h.replay()


# -- from an earlier run -----------------------------------------------------------------------------------------------


def found(h: Harness, task: str, behind: str = "", started: bool = False) -> None:
    past = ev.Past(attempts=2, failures=1, submitted=0.0)
    h.tell(ev.TaskFound(h.time, builders.task(task, "f"), "a", 2, started, past, behind))


def test_those_found_behind_another_follow_it_and_take_no_share_of_their_own(h: Harness) -> None:
    found(h, "t1", started=True)
    found(h, "t2", "t1")
    found(h, "t3", "t1")
    node = h.engine.ledger.index.nodes["a"]
    assert (node.demand, node.tasks) == (1000, {"t1"})
    assert [h.stage(name) for name in ("t1", "t2", "t3")] == [Stage.RUNNING, Stage.BEHIND, Stage.BEHIND]
    h.finish("t1")
    assert [h.stage(name) for name in ("t2", "t3")] == [Stage.PLACED, Stage.BEHIND]
    h.tell(ev.TaskFinished(h.time, "t2", 2))
    h.tell(ev.TaskFinished(h.time, "t3", 2))
    assert (node.demand, node.tasks) == (0, set())
    assert h.outcome("t3") == "finished"


def test_nobody_else_is_placed_behind_those_that_were_found(h: Harness) -> None:
    found(h, "t1")
    found(h, "t2", "t1")
    h.submit("t3")
    assert h.stage("t3") == Stage.QUEUED


def test_nobody_is_found_behind_one_who_has_no_share_there(h: Harness) -> None:
    found(h, "t1")
    found(h, "t2", "t1")
    for behind_whom in ("nobody", "t2"):
        event = ev.TaskFound(h.time, builders.task("t3", "f"), "a", behind=behind_whom)
        assert h.refused(event).field == "behind"


def test_what_earlier_runs_saw_of_a_task_counts_on(h: Harness) -> None:
    past = ev.Past(attempts=4, failures=1, losses=3, submitted=-2.0)
    h.tell(ev.TaskSubmitted(h.time, builders.task("t1", "f", retries=1, idempotent=True), past))
    record = h.engine.ledger.tasks["t1"]
    assert (record.attempt, record.failures, record.losses, record.submitted) == (5, 1, 3, -2.0)
    h.tell(ev.TaskFailed(h.time, "t1", 5, "infrastructure"))
    assert h.outcome("t1") == "failed"
    h.tell(ev.TaskSubmitted(h.time, builders.task("t2", "f", retries=1), past))
    h.tell(ev.TaskFailed(h.time, "t2", 5, "function"))
    assert h.outcome("t2") == "failed"


@pytest.mark.parametrize("past", [ev.Past(attempts=-1), ev.Past(losses=2**63 - 1), ev.Past(submitted=5.0)])
def test_a_past_that_cannot_be_is_refused(h: Harness, past: ev.Past) -> None:
    assert h.refused(ev.TaskSubmitted(h.time, builders.task("t1", "f"), past)).field.startswith("past.")
