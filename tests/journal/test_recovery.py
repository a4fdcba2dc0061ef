"""What an earlier run left unfinished is found again, with all that is needed to run it, and only once."""

import tracemalloc
from pathlib import Path

import msgspec
import pytest

from wattloom.history.log import VERSION, Header
from wattloom.journal.journal import Journal
from wattloom.journal.payloads import Call, KeptFunction, Unfinished
from wattloom.scheduling import events as ev
from wattloom.testing.builders import requirements
from wattloom.testing.harness import Harness
from wattloom.workload.task import Task

from .conftest import Opener


def lines(h: Harness) -> bytes:
    """All that a harness' engine took and answered, as the log has it."""
    records = [record for event, instructions in h.recorded for record in (event, *instructions)]
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def left_by(open_journal: Opener, h: Harness) -> dict[str, Unfinished]:
    """The log of a run that is cut off, and what the next one finds."""
    journal = open_journal()
    journal.append(lines(h))
    journal.close()
    return {left.task.id: left for left in open_journal(run=False).unfinished()}


@pytest.fixture
def h() -> Harness:
    return Harness().machine().node("a").function()


def test_every_accepted_task_without_an_end_is_found_in_order(h: Harness, open_journal: Opener) -> None:
    for name in ("t1", "t2", "t3", "t4", "t5", "t6"):
        h.submit(name, needs=requirements(1.0), retries=1 if name == "t4" else 0)
    h.start("t1")
    h.finish("t1")
    h.start("t2")
    h.fail("t2")
    h.cancel("t3")
    h.fail("t4")
    assert list(left_by(open_journal, h)) == sorted(h.engine.ledger.tasks)


def test_a_task_is_found_as_it_was_submitted_with_its_function(h: Harness, open_journal: Opener) -> None:
    h.submit("t1", needs=requirements(2.0, 77), priority=3, idempotent=True, retries=4)
    left = left_by(open_journal, h)["t1"]
    submitted = [event.task for event, _ in h.recorded if isinstance(event, ev.TaskSubmitted)]
    assert [left.task] == submitted
    assert isinstance(left.task, Task)
    assert left.definition is not None
    assert left.definition.name == left.task.function
    assert (left.run, left.attempt, left.place, left.node, left.placed) == (1, 1, 1, "a", True)


def test_whether_it_had_a_place_and_was_started_is_known(h: Harness, open_journal: Opener) -> None:
    h.submit("t1", needs=requirements(0.5))
    h.submit("t2", needs=requirements(0.5))
    h.submit("waits", needs=requirements(1000.0))
    h.start("t1")
    left = left_by(open_journal, h)
    assert [(name, each.placed, each.started, each.attempt) for name, each in left.items()] == [
        ("t1", True, True, 1),
        ("t2", True, False, 1),
        ("waits", False, False, 0),
    ]


def test_a_lost_node_and_a_refused_start_leave_a_task_without_a_place(h: Harness, open_journal: Opener) -> None:
    h.submit("t1", needs=requirements(1.0), idempotent=True)
    h.submit("t2", needs=requirements(1.0))
    h.start("t1")
    h.place_failed("t2")
    h.lose("a")
    left = left_by(open_journal, h)
    assert [(name, each.placed, each.started, each.attempt) for name, each in left.items()] == [
        ("t1", False, False, 1),
        ("t2", False, False, 1),
    ]


def test_failures_and_a_wish_to_cancel_are_remembered(h: Harness, open_journal: Opener) -> None:
    h.submit("t1", needs=requirements(1.0), retries=3)
    h.fail("t1")
    h.fail("t1")
    h.submit("t2", needs=requirements(1.0))
    h.start("t2")
    h.tell(ev.CancelRequested(h.time, "t2"))
    left = left_by(open_journal, h)
    assert (left["t1"].failures, left["t1"].attempt, left["t1"].place) == (2, 3, 3)
    assert (left["t1"].cancelled, left["t2"].cancelled) == (False, True)


def test_a_cancelling_that_failed_is_none(h: Harness, open_journal: Opener) -> None:
    h.submit("t1", needs=requirements(1.0))
    h.start("t1")
    h.cancel("t1")
    h.evict_failed("t1")
    left = left_by(open_journal, h)["t1"]
    assert (left.cancelled, left.started) == (False, True)


def test_its_arguments_and_its_function_come_with_it(h: Harness, open_journal: Opener) -> None:
    h.submit("t1")
    h.submit("t2")
    h.submit("t3")
    calls = [Call("t1", "d1", b"one", ("t1.0",), "key"), Call("t2", "d1", b"two")]
    journal = open_journal()
    journal.append(lines(h))
    journal.keep_function("d1", "f", b"pickled")
    journal.keep(calls)
    forgotten = journal.keep([Call("t3", "d1", b"three")])
    journal.commit()
    journal.forget(forgotten)
    journal.close()
    found = open_journal(run=False).unfinished()
    assert [left.call for left in found] == [*calls, None]
    assert [left.function for left in found] == [KeptFunction("d1", "f", b"pickled")] * 2 + [None]


def test_a_run_that_was_taken_over_is_not_recovered_twice(h: Harness, open_journal: Opener) -> None:
    h.submit("t1")
    assert list(left_by(open_journal, h)) == ["t1"]
    journal = open_journal(run=False)
    assert [left.task.id for left in journal.unfinished()] == ["t1"]
    journal.begin_run(Header(VERSION, "fifo", "local"), 2000.0)
    journal.taken_over(1)
    journal.append(lines(h))
    journal.keep([Call("t1", "d", b"again")])
    journal.commit()
    assert journal.unfinished() == []
    journal.close()
    again = open_journal(run=False).unfinished()
    assert [(left.run, left.task.id, left.call) for left in again] == [(2, "t1", Call("t1", "d", b"again"))]


def test_until_the_taking_over_is_committed_nothing_is_taken_over(h: Harness, open_journal: Opener) -> None:
    h.submit("t1")
    left_by(open_journal, h)
    journal = open_journal(run=False)
    journal.begin_run(Header(VERSION, "fifo", "local"), 2000.0)
    journal.taken_over(1)
    assert [left.run for left in journal.unfinished()] == [1]


def test_a_run_that_ended_properly_is_not_looked_into(h: Harness, open_journal: Opener) -> None:
    h.submit("t1")
    journal = open_journal()
    journal.append(lines(h))
    journal.end_run(1001.0, unfinished=0)
    journal.close()
    assert open_journal(run=False).unfinished() == []


def test_a_run_that_ended_with_tasks_left_is(h: Harness, open_journal: Opener) -> None:
    h.submit("t1")
    journal = open_journal()
    journal.append(lines(h))
    journal.end_run(1001.0, unfinished=1)
    journal.close()
    assert [left.task.id for left in open_journal(run=False).unfinished()] == ["t1"]


def test_tasks_of_several_runs_are_found_together(open_journal: Opener) -> None:
    for number in (1, 2, 3):
        own = Harness().machine().node("a").function()
        own.submit(f"t{number}")
        open_journal().append(lines(own))
    found = open_journal(run=False).unfinished()
    assert [(left.run, left.task.id) for left in found] == [(1, "t1"), (2, "t2"), (3, "t3")]


def test_kinds_of_records_that_are_not_known_do_no_harm(h: Harness, open_journal: Opener) -> None:
    h.submit("t1")
    journal = open_journal()
    journal.append(lines(h))
    journal.append(b'{"event":"comet-seen","time":9.0,"tail":[1,2]}\n{"instruction":"wave","hands":2}\n')
    journal.close()
    assert [left.task.id for left in open_journal(run=False).unfinished()] == ["t1"]


# -- what it costs -----------------------------------------------------------------------------------------------------


def peak_of_recovering(path: Path, ended: int) -> int:
    """Bytes of memory that it takes to find the one open task behind so many that have ended."""
    journal = Journal.open(path)
    journal.begin_run(Header(VERSION, "fifo", "local"), 1000.0)
    journal.append(b'{"event":"task-submitted","time":0.5,"task":{"id":"1-0","function":"f"}}\n')
    for first in range(0, ended, 100):
        for number in range(first + 1, first + 101):
            journal.append(
                b'{"event":"task-submitted","time":1.0,"task":{"id":"1-%d","function":"f"}}\n'
                b'{"instruction":"place","task":"1-%d","attempt":1,"node":"n","variant":"default","cost":null}\n'
                b'{"event":"task-finished","time":2.0,"task":"1-%d","attempt":1,"cpu_s":0.1}\n'
                % (number, number, number)
            )
        journal.commit()
    journal.close()
    journal = Journal.open(path)
    tracemalloc.start()
    try:
        assert [each.task.id for each in journal.unfinished()] == ["1-0"]
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        journal.close()


def test_memory_does_not_grow_with_the_tasks_that_have_ended(tmp_path: Path) -> None:
    few, many = peak_of_recovering(tmp_path / "few", 200), peak_of_recovering(tmp_path / "many", 6000)
    assert many < 2 * few
