"""What every host of workers must do, ours and anybody else's: `check_worker_host(make)` in a test is enough.

Owns the checks. `make` is given a folder that the workers can see too, and makes a host with room for two calls at a
time. The checks have calls made, cut off and killed, and raise AssertionError when the host does not say so. To see
each rule as a test of its own:

    @pytest.mark.parametrize("check", CHECKS, ids=check_name)
    def test_my_host(check: Check, tmp_path: Path) -> None:
        check(make_my_host, tmp_path)
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Timer
from typing import Any, Final

from wattloom.local import frames
from wattloom.local.frames import EndFrame
from wattloom.local.functions import Functions
from wattloom.local.future import TaskFuture
from wattloom.local.job import HostWorker, Job
from wattloom.local.worker_host import WorkerHost
from wattloom.runtimes.packing import pack_call, unpack
from wattloom.workload.task import Task

MakeHost = Callable[[Path], WorkerHost]
Check = Callable[[MakeHost, Path], None]

PATIENCE_S: Final = 60.0
"""So long anything may take."""
A_WHILE_S: Final = 0.3
"""So long is waited for what must not happen."""
FOR_EVER_S: Final = 10_000.0


def check_worker_host(make: MakeHost, folder: Path) -> None:
    """Every rule, one after the other, each with a host and a folder of its own."""
    for check in CHECKS:
        own = folder / check.__name__
        own.mkdir()
        check(make, own)


def check_name(check: Check) -> str:
    return check.__name__


# -- who listens -------------------------------------------------------------------------------------------------------


class Listener:
    """Writes down what it is told, and checks that it can be so."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Job]] = []
        self.ends: dict[str, tuple[HostWorker, EndFrame]] = {}
        self.how: dict[str, str] = {}
        self.workers: dict[int, HostWorker] = {}
        """Those that there are."""
        self.was_busy: set[int] = set()
        self.unwanted: set[str] = set()

    def is_wanted(self, job: Job) -> bool:
        return job.task.id not in self.unwanted

    def begun(self, job: Job) -> None:
        self.heard.append(("begun", job))

    def ended(self, worker: HostWorker, job: Job, end: EndFrame) -> None:
        assert job not in worker.sent, "a call has ended, and its worker still has it"
        assert end.number == job.number, "the end is that of another placement"
        self._over("ended", job)
        self.ends[job.task.id] = (worker, end)

    def returned(self, job: Job) -> None:
        self._over("returned", job)

    def overran(self, job: Job) -> None:
        self.heard.append(("overran", job))

    def lost(self, job: Job, how: str) -> None:
        assert how, "a call is lost, and nobody says how"
        self._over("lost", job)
        self.how[job.task.id] = how

    def worker_started(self, worker: HostWorker) -> None:
        assert worker.number not in self.workers, "two workers have one number"
        self.workers[worker.number] = worker

    def worker_busy(self, worker: HostWorker) -> None:
        assert self.workers.get(worker.number) is worker, "a worker is busy that was never started"
        assert worker.sent, "a worker is busy with nothing"
        self.was_busy.add(worker.number)

    def worker_gone(self, worker: HostWorker) -> None:
        assert self.workers.pop(worker.number, None) is worker, "a worker is gone that was never started, or twice"

    def _over(self, what: str, job: Job) -> None:
        assert self.end_of(job) == "", f"a call was {self.end_of(job)}, and then {what}"
        self.heard.append((what, job))

    def end_of(self, job: Job) -> str:
        """What became of it; empty: nothing yet."""
        for what, whose in self.heard:
            if whose is job and what in ("ended", "returned", "lost"):
                return what
        return ""


class Bench:
    """A host, who listens to it, and a clock."""

    def __init__(self, host: WorkerHost) -> None:
        self.host: Final = host
        self.listener: Final = Listener()
        self._began: Final = time.monotonic()
        self._numbers: Final = count(1)
        self._functions: Final = Functions()
        host.begin(self.listener)

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    def call(self, fn: Callable[..., Any], *args: Any, timeout: float | None = None) -> Job:
        """A call that is not placed yet."""
        number, sent = next(self._numbers), self._functions.sent(fn)
        task = Task(f"task-{number}", sent.name)
        job = Job(task, TaskFuture(task.id), sent.digest, sent.blob, pack_call(args, {}).body, "")
        job.number, job.attempt, job.timeout = number, 1, timeout
        return job

    def place(self, job: Job, behind: Job | None = None) -> Job:
        job.share = job.number if behind is None else behind.share
        self.host.place(job, self.host.nodes[0].name, behind)
        assert job.worker is not None, "a call was placed, and no worker is to have it"
        return job

    def make(self, fn: Callable[..., Any], *args: Any, timeout: float | None = None) -> Job:
        """Place a call and send it."""
        job = self.place(self.call(fn, *args, timeout=timeout))
        self.host.send(self.now)
        return job

    def turn(self) -> None:
        """As the dispatcher does it."""
        self.host.wait(0.01)
        self.host.hear(self.now)
        if self.host.due is not None and self.host.due <= self.now:
            self.host.look_after(self.now)
        if self.host.has_unsent:
            self.host.send(self.now)

    def until(self, condition: Callable[[], object], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, f"{what}: not within {PATIENCE_S:g} s"
            self.turn()

    def outcome(self, job: Job) -> str:
        """Wait until something became of it."""
        self.until(lambda: self.listener.end_of(job), "a call has no end")
        return self.listener.end_of(job)

    def runs(self, job: Job) -> None:
        """Wait until it is certain that it runs."""
        self.until(lambda: ("begun", job) in self.listener.heard, "a long call is not said to have begun")

    def listen_for_a_while(self) -> None:
        end = time.monotonic() + A_WHILE_S
        while time.monotonic() < end:
            self.host.wait(0.01)
            self.host.hear(self.now)


@contextmanager
def _bench(make: MakeHost, folder: Path) -> Iterator[Bench]:
    host = make(folder)
    try:
        yield Bench(host)
    finally:
        host.close(forget=True)


def _value(bench: Bench, job: Job) -> Any:
    assert bench.outcome(job) == "ended", f"a call was {bench.outcome(job)} that should have ended"
    end = bench.listener.ends[job.task.id][1]
    assert end.status == frames.VALUE, "a call gave no value"
    return unpack(end.body, [])


# -- the rules ---------------------------------------------------------------------------------------------------------


def it_says_what_it_has(make: MakeHost, folder: Path) -> None:
    """Nodes with names of their own, each with its machine."""
    with _bench(make, folder) as bench:
        names = [node.name for node in bench.host.nodes]
        assert names, "a host without nodes"
        assert len(set(names)) == len(names), "two nodes have one name"
        assert all(node.profile.problem() is None for node in bench.host.nodes)
        assert not bench.host.busy()
        assert not bench.host.has_unsent


def a_call_is_made_and_its_end_is_heard(make: MakeHost, folder: Path) -> None:
    """With its value, how long it took and what it used."""
    with _bench(make, folder) as bench:
        job = bench.make(divmod, 17, 5)
        assert _value(bench, job) == (3, 2)
        worker, end = bench.listener.ends[job.task.id]
        assert worker is job.worker
        assert worker.node == bench.host.nodes[0].name
        assert end.seconds >= 0.0
        assert end.cpu_s >= 0.0
        assert worker.number in bench.listener.was_busy


def an_exception_is_an_end(make: MakeHost, folder: Path) -> None:
    """And its worker makes the next call."""
    with _bench(make, folder) as bench:
        job = bench.make(divmod, 1, 0)
        assert bench.outcome(job) == "ended"
        end = bench.listener.ends[job.task.id][1]
        assert end.status == frames.RAISED
        assert isinstance(unpack(end.body, [])[0], ZeroDivisionError)
        assert _value(bench, bench.make(abs, -1)) == 1


def what_a_call_writes_comes_with_its_end(make: MakeHost, folder: Path) -> None:
    with _bench(make, folder) as bench:
        job = bench.make(print, "written")
        assert bench.outcome(job) == "ended"
        assert bench.listener.ends[job.task.id][1].output == b"written\n"


def nothing_begins_before_it_is_sent(make: MakeHost, folder: Path) -> None:
    """The journal does not have it yet."""
    with _bench(make, folder) as bench:
        made = folder / "made"
        job = bench.place(bench.call(os.mkdir, str(made)))
        assert bench.host.has_unsent
        bench.listen_for_a_while()
        assert not made.exists(), "a call was made that had not been sent"
        bench.host.send(bench.now)
        assert _value(bench, job) is None
        assert made.exists()


def a_call_that_is_taken_back_is_never_made(make: MakeHost, folder: Path) -> None:
    """And nothing is said of it."""
    with _bench(make, folder) as bench:
        made = folder / "made"
        job = bench.place(bench.call(os.mkdir, str(made)))
        assert bench.host.take_back(job, bench.now)
        assert _value(bench, bench.make(abs, -1)) == 1
        assert not made.exists()
        assert not any(whose is job for _, whose in bench.listener.heard)


def a_call_that_was_sent_is_not_taken_back(make: MakeHost, folder: Path) -> None:
    with _bench(make, folder) as bench:
        job = bench.make(abs, -1)
        assert not bench.host.take_back(job, bench.now)
        assert _value(bench, job) == 1


def a_call_that_nobody_wants_is_not_sent(make: MakeHost, folder: Path) -> None:
    """It can be taken back as if it had never been tried."""
    with _bench(make, folder) as bench:
        made = folder / "made"
        job = bench.call(os.mkdir, str(made))
        bench.listener.unwanted.add(job.task.id)
        bench.place(job)
        bench.host.send(bench.now)
        bench.listen_for_a_while()
        assert not made.exists()
        assert bench.host.take_back(job, bench.now)


def what_stands_behind_a_call_is_made_next_by_the_same_worker(make: MakeHost, folder: Path) -> None:
    """In order. So a lease saves the way to the policy."""
    with _bench(make, folder) as bench:
        first = bench.place(bench.call(abs, -1))
        behind = [bench.place(bench.call(abs, -number), first) for number in range(2, 20)]
        bench.host.send(bench.now)
        assert [_value(bench, job) for job in (first, *behind)] == list(range(1, 20))
        ended = [job for what, job in bench.listener.heard if what == "ended"]
        assert ended == [first, *behind], "calls were made in another order"
        assert len({bench.listener.ends[job.task.id][0].number for job in ended}) == 1


def two_calls_run_side_by_side(make: MakeHost, folder: Path) -> None:
    with _bench(make, folder) as bench:
        jobs = [bench.make(time.sleep, FOR_EVER_S) for _ in range(2)]
        for job in jobs:
            bench.runs(job)
        busy = bench.host.busy()
        assert {worker.sent[0].task.id for worker in busy} == {job.task.id for job in jobs}
        assert len({worker.number for worker in busy}) == 2


def a_call_behind_a_slow_one_is_made_once_or_returned(make: MakeHost, folder: Path) -> None:
    """Whichever it is, it is true."""
    with _bench(make, folder) as bench:
        first = bench.place(bench.call(time.sleep, 1.0))
        made = [folder / f"made-{number}" for number in range(5)]
        behind = [bench.place(bench.call(os.mkdir, str(path)), first) for path in made]
        bench.host.send(bench.now)
        assert bench.outcome(first) == "ended"
        outcomes = [bench.outcome(job) for job in behind]
        bench.listen_for_a_while()
        assert [path.exists() for path in made] == [outcome == "ended" for outcome in outcomes]


def a_call_that_is_cut_off_is_lost(make: MakeHost, folder: Path) -> None:
    """For the reason that was given; and others are made."""
    with _bench(make, folder) as bench:
        job = bench.make(time.sleep, FOR_EVER_S)
        bench.runs(job)
        bench.host.cut_off(job, "nobody wants it")
        assert bench.outcome(job) == "lost"
        assert "nobody wants it" in bench.listener.how[job.task.id]
        assert not bench.host.busy()
        assert _value(bench, bench.make(abs, -1)) == 1


def a_call_beyond_its_timeout_is_lost(make: MakeHost, folder: Path) -> None:
    """And it is said before that it was for the time."""
    with _bench(make, folder) as bench:
        job = bench.make(time.sleep, FOR_EVER_S, timeout=0.2)
        assert bench.outcome(job) == "lost"
        told = [what for what, whose in bench.listener.heard if whose is job and what != "begun"]
        assert told == ["overran", "lost"]


def a_worker_that_dies_loses_the_call_it_made_and_returns_the_others(make: MakeHost, folder: Path) -> None:
    """Those behind had not begun, for certain."""
    with _bench(make, folder) as bench:
        first = bench.place(bench.call(os._exit, 3))
        made = folder / "made"
        behind = bench.place(bench.call(os.mkdir, str(made)), first)
        worker = first.worker
        bench.host.send(bench.now)
        assert bench.outcome(first) == "lost"
        assert bench.outcome(behind) == "returned"
        assert worker is not None
        assert worker.number not in bench.listener.workers, "nobody said that the worker is gone"
        bench.listen_for_a_while()
        assert not made.exists()
        again = bench.call(os.mkdir, str(made))
        bench.place(again)
        bench.host.send(bench.now)
        assert _value(bench, again) is None


def a_wait_ends_when_somebody_wakes_it(make: MakeHost, folder: Path) -> None:
    """From another thread, before it or while it lasts."""
    with _bench(make, folder) as bench:
        for delay_s in (0.0, 0.1):
            began = time.monotonic()
            timer = Timer(delay_s, bench.host.wake)
            timer.start()
            if not delay_s:
                timer.join()
            bench.host.wait(PATIENCE_S)
            bench.host.hear(bench.now)
            timer.join()
            assert time.monotonic() - began < PATIENCE_S / 2, "a wait went on, though it was woken"


def nothing_is_left_of_it(make: MakeHost, folder: Path) -> None:
    """When it is closed, whatever ran."""
    with _bench(make, folder) as bench:
        jobs = [bench.make(time.sleep, FOR_EVER_S), bench.make(abs, -1)]
        assert _value(bench, jobs[1]) == 1
        bench.runs(jobs[0])
        pids = [worker.pid for worker in bench.listener.workers.values() if worker.pid]
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()], "workers outlive their host"


CHECKS: Final[tuple[Check, ...]] = (
    it_says_what_it_has,
    a_call_is_made_and_its_end_is_heard,
    an_exception_is_an_end,
    what_a_call_writes_comes_with_its_end,
    nothing_begins_before_it_is_sent,
    a_call_that_is_taken_back_is_never_made,
    a_call_that_was_sent_is_not_taken_back,
    a_call_that_nobody_wants_is_not_sent,
    what_stands_behind_a_call_is_made_next_by_the_same_worker,
    two_calls_run_side_by_side,
    a_call_behind_a_slow_one_is_made_once_or_returned,
    a_call_that_is_cut_off_is_lost,
    a_call_beyond_its_timeout_is_lost,
    a_worker_that_dies_loses_the_call_it_made_and_returns_the_others,
    a_wait_ends_when_somebody_wakes_it,
    nothing_is_left_of_it,
)
