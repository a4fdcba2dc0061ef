"""The thread that drives the engine on this machine.

Owns the loop: what came in (calls, cancellations, ends, deaths, time) is told to the engine; what it answers is written
to the journal, then carried out; then futures learn their results.
"""

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures._base import PENDING
from contextlib import suppress
from selectors import EVENT_READ, EVENT_WRITE
from time import monotonic
from typing import Any, Final

import msgspec

from wattloom.cluster.node import Node
from wattloom.cluster.node_class import Mode
from wattloom.cluster.profile import MachineProfile
from wattloom.errors import EventRefused
from wattloom.journal.errors import JournalError
from wattloom.local import errors
from wattloom.local.books import Books
from wattloom.local.desk import Desk
from wattloom.local.future import METERED_WITHIN_S, Reading, TaskFuture, tell_waiters
from wattloom.local.hearing import Hearing
from wattloom.local.job import Job
from wattloom.local.keys import Keys, Next
from wattloom.local.nodes import LocalNode
from wattloom.local.present_state import present_state
from wattloom.local.reading_pace import USUAL_S
from wattloom.local.recovery import Recovered
from wattloom.local.workforce import Upbringing
from wattloom.scheduling import events as ev
from wattloom.workload.function import Function

AT_ONCE: Final = 512
"""Commands that are taken in before anything else is looked at again."""
KEEP_LEARNED_S: Final = 10.0
LONG_RUN: Final = 32 * 1024 * 1024
"""Bytes of a run's log from which on another is begun, however much may be kept."""
CARRIED: Final = 2048
"""Bytes of log that a run must have for each open call: its beginning is to be a small part of the next one."""
TIDYING_S: Final = 0.005
TIDY_EVERY_S: Final = 0.025


class Dispatcher(Hearing):
    """A thread that runs until it is told to stop and nothing is left to do."""

    def __init__(
        self,
        books: Books,
        keys: Keys,
        nodes: list[LocalNode],
        desk: Desk | None,
        upbringing: Upbringing,
        idle_timeout_s: float,
        began: float,
    ) -> None:
        super().__init__(books, keys, nodes, desk, upbringing, idle_timeout_s, began)
        self.thread: Final = threading.Thread(target=self.run, name="wattloom-dispatcher", daemon=True)
        self.lock = threading.Lock()
        """Held by whoever submits, or says that no more may be submitted."""
        self._wakeup: Final = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._wakeup, EVENT_READ, None)
        self._inbox: Final[deque[tuple[Callable[[Any], None], Any]]] = deque()
        self._asleep: bool = False
        self._functions: Final[dict[str, Function]] = {}
        self._machines: Final = sorted({node.profile.name for node in nodes})
        self._machine_of: Final = {node.name: node.profile.name for node in nodes}
        self._keep_learned_at: float = KEEP_LEARNED_S
        self._reading_at: float = 0.0
        self._long_run: Final = min(LONG_RUN, books.journal.long_run)
        self._turn_over_at: float = 0.0
        """When it is tried again, if the meter did not say anything."""
        self._tidying: bool = False
        """Whether rows of runs that were let go may still be there."""
        self._tidy_at: float = 0.0
        self.closed: bool = False
        """Whether no more calls are taken."""
        self.ended: bool = False
        """Whether it has nothing open any more, or is about to."""
        self.broken: BaseException | None = None
        self._forked: bool = False
        """Whether this is a child that the executor's process has forked: everything here is the parent's."""

    # -- from other threads --------------------------------------------------------------------------------------------

    def post(self, command: Callable[[Any], None], what: Any) -> None:
        """Have the thread do something."""
        self._inbox.append((command, what))
        if self._asleep:
            self.wake()

    def wake(self) -> None:
        with suppress(OSError):
            os.eventfd_write(self._wakeup, 1)

    def close(self) -> bool:
        """From now on no calls are taken; whether that is news."""
        with self.lock:
            closed, self.closed = self.closed, True
        return not closed

    def let_go(self) -> None:
        """In a forked child, where this thread does not exist; or is the only one, if a done callback forked."""
        self.closed = self._forked = True
        self.lock = threading.Lock()  # nobody is left to let go of the other
        if self.ended:
            return  # its descriptors are closed, and their numbers may be somebody else's
        if self.broken is None:
            self.broken = errors.ExecutorLost("this process was forked from the executor's: make another executor here")
        with suppress(OSError):
            self._workforce.let_go()

    def check_that_it_can_come(self, future: TaskFuture) -> None:
        """Before somebody waits for the end of a call: this thread must be there to tell it, and be another."""
        if self._forked and self.broken is not None:
            raise self.broken
        if threading.current_thread() is self.thread:
            raise RuntimeError(
                f"a done callback cannot wait for another call (task {future.task_id}): it keeps the thread that would "
                "tell of its end. Give that call a callback too, or wait in a thread of your own"
            )

    def meter_now(self, future: TaskFuture) -> None:
        """Wait until the future has its joules. In a done callback, which this thread runs, they are read at once."""
        if threading.current_thread() is self.thread:
            if self._desk is not None:
                self._read_meter(self._desk, self._now)
            return
        reading = Reading(future)
        self.post(self.read_meter, reading)
        if self.thread.is_alive():
            reading.done.wait(METERED_WITHIN_S)

    def cancel_later(self, task: str) -> None:
        self.post(self.cancel, task)

    # -- commands ------------------------------------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """A call comes in."""
        self._unresolved[job.task.id] = job
        if job.future._state != PENDING:
            tell_waiters(job.future)
            del self._unresolved[job.task.id]
        elif job.key:
            self._go_on(job, self._keys.take(job, self._now, self.unix(self._now)))
        else:
            self._accept(job, ev.TaskSubmitted(self._now, job.task))

    def _go_on(self, job: Job, then: Next, killed: str = "") -> None:
        """With a call that has a key. `killed`: it had begun, and this became of it."""
        if then == "make":
            self._accept(job, self._arrival(job, killed))
        elif then == "ready":
            self._to_resolve.append(job)
        elif then == "follow":
            del self._unresolved[job.task.id]  # another's end is this one's

    def _arrival(self, job: Job, killed: str = "") -> ev.AnyEvent:
        """`killed`: as above."""
        if killed:
            return ev.TaskOrphaned(self._now, job.task, killed, job.past)
        return ev.TaskSubmitted(self._now, job.task, job.past)

    def settle_keys(self, _: None) -> None:
        """What earlier programs were about to do with keys, and have not."""
        self._keys.settle(self.unix(self._now))

    def _ask_for_keys(self) -> None:
        for job, then in self._keys.ask_again(self._now, self.unix(self._now)):
            self._go_on(job, then)

    def _accept(self, job: Job, event: ev.AnyEvent) -> None:
        try:
            instructions = self._books.tell(event)
        except EventRefused as problem:
            if job.key:
                self._keys.ended(job, self.unix(self._now))
            job.error = problem
            self.resolve(job)
            return
        self._jobs[job.task.id] = job
        self._books.accept(job)
        if instructions:
            self.carry_out(instructions)

    def define(self, function: Function) -> None:
        """A function that has not been called before, or that wants something else now."""
        self._functions[function.name] = function
        self.carry_out(self._books.define(function, self._machines, self._now))

    def recover(self, found: Recovered) -> None:
        """Calls of earlier runs, all in one turn and so in one commit: they are in one run or in the other."""
        for function in found.functions:
            self.define(function)
        for job, message in found.jobs:
            self._unresolved[job.task.id] = job
            if job.key:
                begun = bool(message)
                self._go_on(job, self._keys.recover(job, begun, self._now, self.unix(self._now)), message)
            else:
                self._accept(job, self._arrival(job, message))
        for task in found.cancelled:
            self.cancel(task)
        for run in found.runs:
            self._books.journal.taken_over(run)
        self._after_commit.append(found.delete_leftovers)

    def cancel_waiting(self, _: None) -> None:
        """Cancel every call that was not sent to a worker."""
        for job in (*self._jobs.values(), *self._keys.waiting):
            job.future.cancel()

    def read_meter(self, reading: Reading) -> None:
        if self._desk is None:
            reading.done.set()
        else:
            self._desk.ask(reading)

    def after_commit(self, then: Callable[[], None]) -> None:
        """Call back when all that came before is in the journal."""
        self._after_commit.append(then)

    def stop(self, kill: bool) -> None:
        """No more calls will come. `kill`: those that run are not waited for."""
        self._stopping = True
        if kill:
            for job in list(self._jobs.values()):
                job.error = errors.WorkerLost(job.task.id, f"{job.function} was cut off: the executor was shut down")
                self.cancel(job.task.id)
            for job in self._keys.waiting:
                job.future.cancel()

    # -- the loop ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """The thread."""
        try:
            self._begin()
            while not self._is_over():
                self._turn()
            if not self._forked:
                self._finish()
        except BaseException as problem:
            if not self._forked:
                self._break(problem)
        finally:
            self._leave()

    def _is_over(self) -> bool:
        return self._forked or (self._stopping and not (self._jobs or self._inbox or self._keys.waiting))

    def _leave(self) -> None:
        self.ended = True
        if not self._forked:
            self._keys.close()
            self._workforce.close(forget=self.broken is None)
            with suppress(JournalError):
                self._books.journal.close()
            self._selector.close()
            os.close(self._wakeup)

    def _begin(self) -> None:
        self._join([node.node for node in self._nodes])
        if self._desk is not None:
            self._now = monotonic() - self._began  # of the reading, not of the executor's first moment
            self._desk.begin(self._now)

    def _join(self, nodes: list[Node]) -> None:
        """Tell the engine of the nodes."""
        for profile in _different([node.profile for node in self._nodes]):
            self.tell(ev.MachineDefined(self._now, profile))
        for node in nodes:
            self.tell(ev.NodeJoined(self._now, node))

    def _turn(self) -> None:
        """What came in; what follows; what is written; what is done."""
        self._listen()
        self._take_commands()
        self._pass_time()
        if self._keys.unsaved:
            self._keys.save(self.unix(self._now))
        if self._books.has_news or self._after_commit:
            self._books.commit()
        self.deliver()
        if self._books.journal.run_bytes > self._long_run:
            self._turn_over()
        elif self._tidying and self._now >= self._tidy_at:
            self._tidy()

    def _look_at_the_clock(self) -> None:
        """Once a turn: all that is done in it happens at one time."""
        self._now = monotonic() - self._began

    def _listen(self) -> None:
        self._asleep = True
        self._look_at_the_clock()
        at_once = self._inbox or self._to_send or self._to_resolve or self._books.has_news
        found = self._selector.select(0.0 if at_once else self._may_wait())
        self._asleep = False
        self._look_at_the_clock()
        for key, mask in found:
            worker = key.data
            if worker is None:
                with suppress(BlockingIOError):
                    os.eventfd_read(self._wakeup)
            elif isinstance(worker, int):
                dead = self._workforce.by_life.get(worker)
                if dead is not None:
                    self.hear_the_last(dead)
            elif worker.number in self._workforce.workers:
                if mask & EVENT_WRITE:
                    self._workforce.write_on(worker)
                if mask & EVENT_READ:
                    self.hear(worker)

    def _may_wait(self) -> float | None:
        """Seconds until something is due; None: only when something comes in."""
        due = [
            self._books.engine.next_tick,
            self._look_at,
            self._keys.ask_at,
            None if self._desk is None else self._desk.due,
        ]
        due += [when for when, _ in self._waking]
        times = [when for when in due if when is not None]
        return max(0.0, min(times) - self._now) if times else None

    def _take_commands(self) -> None:
        inbox = self._inbox
        for _ in range(min(len(inbox), AT_ONCE)):
            command, what = inbox.popleft()
            command(what)

    def _pass_time(self) -> None:
        now = self._now
        tick = self._books.engine.next_tick
        if tick is not None and tick <= now:
            self.tell(ev.Tick(now))
        for due, node in [each for each in self._waking if each[0] <= now]:
            self._waking.remove((due, node))
            if self._desk is not None:
                self._desk.node_mode(node, "awake", now)
            self.tell(ev.NodeAwake(now, node))
        if self._look_at is not None and self._look_at <= now:
            self.look_after_workers(now)
        if self._keys.ask_at is not None and self._keys.ask_at <= now:
            self._ask_for_keys()
        desk = self._desk
        if desk is not None and desk.due is not None and desk.due <= now:
            # Commands may have taken a while: joules belong to the time at which they are counted.
            self._now = monotonic() - self._began
            self._read_meter(desk, self._now)

    def _read_meter(self, desk: Desk, now: float) -> bool:
        """Whether the meter said something: what ended before has its joules then."""
        interval = self._books.engine.policy.reading_interval_s
        wanted = interval is not None and now >= self._reading_at
        busy = [worker for worker in self._workforce.workers.values() if worker.sent]
        told = False
        for event, used, draws in desk.read(now, busy):
            if event.seconds > 0.0:
                told = True
                self.tell(event)
                if wanted:
                    self.tell(ev.ReadingArrived(now, event.node, event.meter_j / event.seconds, draws))
            for function, each in used.items():
                self._books.learn(function, self._machine_of[event.node], each)
        if wanted and interval is not None:
            self._reading_at = now + interval
        if interval is not None and desk.due is not None:  # the policy waits for it, though nothing may have changed
            desk.due = min(desk.due, max(self._reading_at, now + USUAL_S))
        if now >= self._keep_learned_at:
            self._books.keep_learned()
            self._keep_learned_at = now + KEEP_LEARNED_S
        return told

    # -- a run's end ---------------------------------------------------------------------------------------------------

    def _turn_over(self) -> None:
        """The run has become long: begin another with what is open, so that the journal need not keep this one."""
        run_bytes = self._books.journal.run_bytes
        if self._waking or len(self._jobs) * CARRIED > run_bytes or self._now < self._turn_over_at:
            return  # soon; or when what is told again is little beside what is left behind
        if not self._all_is_paid() and run_bytes < 2 * self._long_run:
            self._turn_over_at = self._now + USUAL_S
            return
        state = present_state(self._books.engine, self._jobs, self._now)
        nodes = self._as_they_are()
        self._books.turn_over(self.unix(self._now), list(self._jobs.values()))
        self._workforce.turn_over()
        self._join(nodes)
        for function in list(self._functions.values()):
            self.carry_out(self._books.define(function, self._machines, self._now))
        for event in state:
            self.tell(event)
        self._books.commit()
        self._books.journal.prune(self._long_run)
        self._tidying = True

    def _all_is_paid(self) -> bool:
        """Calls that have ended are to have their joules in the run in which they did."""
        desk = self._desk
        if desk is None or desk.due is None:
            return True
        self._look_at_the_clock()
        return self._read_meter(desk, self._now)

    def _as_they_are(self) -> list[Node]:
        """The nodes; some may sleep."""
        states = self._books.engine.ledger.index.nodes
        return [
            msgspec.structs.replace(node.node, asleep=states[node.name].mode == Mode.ASLEEP) for node in self._nodes
        ]

    def _tidy(self) -> None:
        """A little at a time: calls are not to wait for it."""
        self._tidying = self._books.journal.tidy(TIDYING_S)
        self._tidy_at = monotonic() - self._began + TIDY_EVERY_S

    def _finish(self) -> None:
        if self._desk is not None and self._desk.due is not None:
            self._read_meter(self._desk, self._now)
        self._books.keep_learned()
        self._books.commit()
        self.deliver()
        self._books.commit()
        self._books.journal.end_run(self.unix(self._now))

    def _break(self, problem: BaseException) -> None:
        """Nothing can be done any more: whoever waits is told why."""
        if isinstance(problem, errors.InitializerFailed | errors.ExecutorLost):
            self.broken = problem
        else:
            self.broken = errors.ExecutorLost(f"the dispatcher has stopped: {errors.in_words(problem)}")
            self.broken.__cause__ = problem
        self.close()
        waiting = dict(self._unresolved)
        while self._inbox:
            command, what = self._inbox.popleft()
            if isinstance(what, Job):
                waiting[what.task.id] = what
            elif isinstance(what, Reading):
                what.done.set()
            elif command == self.after_commit:
                what()
        for job in waiting.values():
            with suppress(BaseException):
                tell_waiters(job.future)
                if not job.future.done():
                    job.future.set_exception(self.broken)


def _different(profiles: list[MachineProfile]) -> list[MachineProfile]:
    return list({profile.name: profile for profile in profiles}.values())
