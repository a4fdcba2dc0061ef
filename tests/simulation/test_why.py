"""`why` from a log: each decision explained, and the truth about tasks that still wait or ended early."""

from pathlib import Path

from tests.beds.recording import Backend

import wattloom
from wattloom.cluster.reasons import Reason
from wattloom.history.waiting import Waiting
from wattloom.history.why import why
from wattloom.policies.loading import load_policy
from wattloom.scheduling.instructions import Conclude, Place, Wait


def test_why_explains_each_placement_and_each_new_reason_to_wait(log: Path) -> None:
    b = Backend()
    b.node("a", cpu=1.0)
    b.submit("x")
    b.start("x")
    b.submit("t")
    b.after(5.0).finish("x", 5.0)
    found = b.why_in(log, "t")
    assert found.same_decisions
    assert [(each.node, each.reason) for each in found.explanations] == [(None, Reason.NO_ROOM), ("a", Reason.TAKEN)]
    assert [type(told.instruction) for told in found.recorded] == [Wait, Place]
    assert [told.time for told in found.recorded] == [0.0, 5.0]
    assert found.waiting is None


def test_why_carries_the_policys_measure(log: Path) -> None:
    b = Backend(load_policy("least-joules"))
    b.function(seconds={"linear": 10.0}).node("a")
    b.submit("t")
    assert b.why_in(log, "t").explanations[0].measure == "J"
    fifo = Backend()
    fifo.node("a")
    fifo.submit("t")
    assert fifo.why_in(log, "t").explanations[0].measure == ""


def test_why_does_not_explain_decisions_that_the_policy_would_not_take_again(log: Path) -> None:
    b = Backend()
    b.node("a").node("b")
    b.submit("before")
    b.submit("t")
    b.submit("later")
    changed = b.write(log).read_bytes()
    at = changed.index(b'"task":"t","attempt":1,"node":"a"')
    log.write_bytes(changed[:at] + changed[at:].replace(b'"node":"a"', b'"node":"b"', 1))
    found = why(log, "t", b.policy)
    assert (found.same_decisions, found.explanations) == (False, [])
    told = found.recorded[0].instruction
    assert isinstance(told, Place)
    assert told.node == "b"
    assert why(log, "before", b.policy).same_decisions
    assert why(log, "before", b.policy).explanations[0].node == "a"
    assert not why(log, "later", b.policy).same_decisions


def test_why_keeps_what_was_explained_before_decisions_differ(log: Path) -> None:
    b = Backend()
    b.node("a", cpu=1.0)
    b.submit("x")
    b.start("x")
    b.submit("t")
    b.after(5.0).finish("x", 5.0)
    before, last = b.write(log).read_bytes().rsplit(b'"cost":0.0', 1)
    log.write_bytes(before + b'"cost":9.0' + last)
    found = why(log, "t", b.policy)
    assert not found.same_decisions
    assert [each.reason for each in found.explanations] == [Reason.NO_ROOM]


def test_why_under_another_policy_in_the_header_says_so_and_does_not_fail(log: Path) -> None:
    wattloom.simulate("heats-bursts", "pack", log=log)
    log.write_bytes(log.read_bytes().replace(b'"policy":"pack"', b'"policy":"random"', 1))
    found = wattloom.why("t70", log)
    assert not found.same_decisions
    assert found.explanations == []
    assert any(isinstance(told.instruction, Place) for told in found.recorded)


def test_a_task_behind_others_of_its_kind_waits_for_the_reason_of_the_first(log: Path) -> None:
    b = Backend()
    b.node("a", cpu=1.0)
    for task in ("x", "first", "second", "third"):
        b.submit(task)
    assert b.why_in(log, "first").waiting == Waiting(Reason.NO_ROOM)
    found = b.why_in(log, "third")
    assert (found.explanations, found.recorded, found.same_decisions) == ([], [], True)
    assert found.waiting == Waiting(Reason.NO_ROOM, ahead=2)


def test_a_task_that_is_held_back_names_what_it_waits_for(log: Path) -> None:
    b = Backend()
    b.node("a")
    b.submit("x")
    b.submit("y")
    b.submit("t", after=("y", "x"))
    assert b.why_in(log, "t").waiting == Waiting(Reason.DEPENDENCIES, after=["x", "y"])


def test_a_task_whose_start_was_refused_is_tried_again_later(log: Path) -> None:
    b = Backend()
    b.node("a")
    b.submit("t")
    b.place_failed("t")
    assert b.why_in(log, "t").waiting == Waiting(Reason.START_REFUSED)


def test_a_task_that_lost_its_node_waits_again(log: Path) -> None:
    b = Backend()
    b.node("a")
    b.submit("t", idempotent=True)
    b.start("t")
    b.lose("a")
    assert b.why_in(log, "t").waiting == Waiting(Reason.NO_NODES)


def test_a_task_that_ended_before_its_turn_says_how(log: Path) -> None:
    b = Backend()
    b.node("a", cpu=1.0)
    b.submit("x")
    b.submit("y")
    b.submit("t")
    b.cancel("t")
    found = b.why_in(log, "t")
    assert (found.explanations, found.waiting) == ([], None)
    assert [told.instruction for told in found.recorded] == [Conclude("t", "cancelled", Reason.CANCELLED)]


def test_equal_cost_is_a_tie_where_cost_decides_and_nothing_where_lots_are_drawn(log: Path) -> None:
    reasons: dict[str, set[Reason | None]] = {}
    for spec in ("fifo", "random"):
        b = Backend(load_policy(spec))
        b.node("a").node("b", labels={"zone": "b"})
        b.submit("t")
        reasons[spec] = {each.reason for each in b.why_in(log, "t").explanations[0].candidates}
    assert reasons == {"fifo": {Reason.TAKEN, Reason.TIE}, "random": {Reason.TAKEN, None}}
