"""The parts of the local backend without thread, process or clock: a call from its caller to a worker and back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.local.scripted_host import ScriptedHost

from wattloom.history.log import VERSION, Header
from wattloom.journal.journal import Journal
from wattloom.journal.keys import KeyStore
from wattloom.local.errors import OutcomeUnknown, TaskRejected, TaskTimeout, WorkerLost
from wattloom.local.future import TaskFuture
from wattloom.local.idempotency import Keys
from wattloom.local.instructions import Instructions
from wattloom.local.job import Job
from wattloom.local.journaled_run import JournaledRun
from wattloom.local.nodes import whole_machine
from wattloom.local.open_calls import OpenCalls
from wattloom.local.run_clock import RunClock
from wattloom.local.submissions import Submissions
from wattloom.local.worker_events import WorkerEvents
from wattloom.policies.loading import load_policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.testing.builders import machine
from wattloom.workload.function import Function
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task


class Parts:
    """All of them but the dispatcher, whose turn the test takes."""

    def __init__(self, folder: Path) -> None:
        self.journal = Journal.open(folder / "work.journal")
        profile = machine("box")
        self.host = ScriptedHost([whole_machine(profile, 2)])
        self.clock = RunClock(0.0)
        self.journaled = JournaledRun(self.journal, Header(VERSION, "fifo", "local"), 0.0)
        self.keys = Keys(KeyStore(folder / "keys", self.journal.path, "", "process", 1.0), self.journal.spool, list)
        self.calls = OpenCalls(self.journal.spool)
        self.later: list[str] = []
        self.instructions = Instructions(
            Engine(load_policy("fifo")),
            self.journaled,
            self.host,
            self.calls,
            self.keys,
            None,
            self.clock,
            self.later.append,
        )
        self.worker_events = WorkerEvents(self.journaled, self.instructions, self.calls, self.keys, None, self.clock)
        self.submissions = Submissions(
            self.journaled, self.instructions, self.calls, self.keys, self.clock, {profile.name: profile.arch}
        )
        self.host.begin(self.worker_events)
        self.instructions.tell(ev.MachineDefined(0.0, profile))
        self.instructions.tell(ev.NodeJoined(0.0, self.host.nodes[0].node))
        self.submissions.define(Function("f"))

    def submit(self, name: str, *, idempotent: bool = False, cpu: float = 1.0) -> Job:
        job = Job(
            Task(name, "f", Requirements(cpu), idempotent=idempotent), TaskFuture(name), "d", b"blob", b"args", ""
        )
        self.submissions.submit(job)
        return job

    def turn(self) -> None:
        """What the dispatcher does at the end of each."""
        self.journaled.commit()
        self.host.send(self.clock.now)
        self.worker_events.cancel_unwanted()
        self.calls.deliver()


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    made = Parts(tmp_path)
    yield made
    made.journal.close()


def test_a_call_is_sent_when_the_journal_has_it_and_told_when_the_journal_has_its_end(parts: Parts) -> None:
    job = parts.submit("a")
    assert parts.host.unsent == [job]
    assert not parts.host.sent
    parts.turn()
    assert parts.host.sent == [job]
    parts.host.ends(job, "value")
    assert not job.future.done()
    parts.turn()
    assert job.future.result(0) == "value"
    assert not parts.calls.jobs
    assert not parts.calls.unresolved


def test_a_host_without_a_worker_is_asked_again_later(parts: Parts) -> None:
    parts.host.refuses = OSError("no more processes")
    job = parts.submit("a")
    parts.turn()
    assert not parts.host.sent
    parts.host.refuses = None
    due = parts.instructions.driver.next_tick
    assert due is not None
    parts.clock.now = due
    assert parts.instructions.driver.tick(due)
    parts.turn()
    assert parts.host.sent == [job]
    assert job.attempt == 2


def test_a_lost_call_is_made_again_only_if_that_does_no_harm(parts: Parts) -> None:
    once, again = parts.submit("once"), parts.submit("again", idempotent=True)
    parts.turn()
    parts.host.loses(once, "its worker was killed by SIGKILL")
    parts.host.loses(again, "its worker was killed by SIGKILL")
    parts.turn()
    assert isinstance(once.future.exception(0), OutcomeUnknown)
    assert not again.future.done()
    due = parts.instructions.driver.next_tick
    if due is not None:
        parts.clock.now = due
        parts.instructions.driver.tick(due)
        parts.turn()
    assert parts.host.sent == [again]


def test_a_call_that_comes_back_goes_elsewhere_at_once(parts: Parts) -> None:
    job = parts.submit("a")
    parts.turn()
    parts.host.returns(job)
    parts.turn()
    assert parts.host.sent == [job]
    assert not job.future.done()


def test_a_call_that_overran_has_failed_by_its_own_fault(parts: Parts) -> None:
    job = parts.submit("a")
    job.timeout = 2.0
    parts.turn()
    parts.worker_events.overran(job)
    parts.host.loses(job, "it ran longer than its timeout")
    parts.turn()
    assert isinstance(job.future.exception(0), TaskTimeout)


def test_a_call_that_is_cancelled_before_it_is_sent_is_taken_back(parts: Parts) -> None:
    job = parts.submit("a")
    assert job.future.cancel()
    parts.turn()
    assert not parts.host.sent
    assert not parts.host.unsent
    parts.turn()
    assert not parts.calls.jobs
    assert not parts.calls.unresolved


def test_a_call_that_runs_is_cut_off_when_all_are(parts: Parts) -> None:
    job = parts.submit("a")
    parts.turn()
    parts.worker_events.stopping = True
    parts.submissions.cut_off()
    assert [each for each, _ in parts.host.cut] == [job]
    parts.host.loses(job, "it was cancelled")
    parts.turn()
    assert isinstance(job.future.exception(0), WorkerLost)


def test_a_call_that_fits_nowhere_is_rejected_and_says_why(parts: Parts) -> None:
    job = parts.submit("a", cpu=64.0)
    assert parts.later == ["a"]
    parts.instructions.cancel("a")
    parts.turn()
    problem = job.future.exception(0)
    assert isinstance(problem, TaskRejected)
    assert "64 cores" in str(problem)


def test_a_call_the_engine_refuses_leaves_nothing_behind(parts: Parts) -> None:
    first = parts.submit("a")
    wrong = Job(Task("b", "unheard-of"), TaskFuture("b"), "d", b"blob", b"args", "")
    parts.submissions.submit(wrong)
    assert wrong.future.exception(0) is not None
    assert list(parts.calls.jobs) == ["a"]
    parts.turn()
    assert parts.host.sent == [first]
