"""What callers bring: calls, functions, what earlier runs left, and the keys by which a call is made once.

Owns the way from a caller to the engine's queue. One thread alone: other threads post to the dispatcher.
"""

from concurrent.futures._base import PENDING
from typing import Final

from wattloom.errors import EventRefused
from wattloom.local import errors
from wattloom.local.future import tell_waiters
from wattloom.local.idempotency import Keys, Next
from wattloom.local.instructions import Instructions
from wattloom.local.job import Job
from wattloom.local.journaled_run import JournaledRun
from wattloom.local.open_calls import OpenCalls
from wattloom.local.recovery import Recovered
from wattloom.local.run_clock import RunClock
from wattloom.scheduling import events as ev
from wattloom.workload.function import Function


class Submissions:
    """Takes calls in, and tells the engine of them."""

    def __init__(
        self,
        journaled: JournaledRun,
        instructions: Instructions,
        calls: OpenCalls,
        keys: Keys,
        clock: RunClock,
        machines: dict[str, str],
    ) -> None:
        self._journaled: Final = journaled
        self._instructions: Final = instructions
        self._driver: Final = instructions.driver
        self._calls: Final = calls
        self._keys: Final = keys
        self._clock: Final = clock
        self._machines: Final = machines
        """Names of the profiles that functions may be known on, with their architectures."""

    # -- calls ---------------------------------------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """A call comes in."""
        clock = self._clock
        self._calls.unresolved[job.task.id] = job
        if job.future._state != PENDING:
            tell_waiters(job.future)
            del self._calls.unresolved[job.task.id]
        elif job.key:
            self._go_on(job, self._keys.take(job, clock.now, clock.unix()))
        else:
            self._accept(job, ev.TaskSubmitted(clock.now, job.task))

    def _go_on(self, job: Job, then: Next, killed: str = "") -> None:
        """With a call that has a key. `killed`: it had begun, and this became of it."""
        if then == "make":
            self._accept(job, self._arrival(job, killed))
        elif then == "ready":
            self._calls.resolve_later(job)
        elif then == "follow":
            del self._calls.unresolved[job.task.id]  # another's end is this one's

    def _arrival(self, job: Job, killed: str = "") -> ev.AnyEvent:
        """`killed`: as above."""
        if killed:
            return ev.TaskOrphaned(self._clock.now, job.task, killed, job.past)
        return ev.TaskSubmitted(self._clock.now, job.task, job.past)

    def _accept(self, job: Job, event: ev.AnyEvent) -> None:
        self._calls.jobs[job.task.id] = job
        self._journaled.accept(job)
        try:
            self._driver.tell(event)
        except EventRefused as problem:
            self._is_refused(job, problem)

    def _is_refused(self, job: Job, problem: EventRefused) -> None:
        """The engine does not know it, and no run will."""
        del self._calls.jobs[job.task.id]
        self._journaled.ended(job)
        if job.key:
            self._keys.ended(job, self._clock.unix())
        job.error = problem
        self._calls.resolve(job)

    def cancel_waiting(self, _: None) -> None:
        """Cancel every call that was not sent to a worker."""
        for job in (*self._calls.jobs.values(), *self._keys.waiting):
            job.future.cancel()

    def cut_off(self) -> None:
        """Those that run are not waited for, and the others not made."""
        for job in list(self._calls.jobs.values()):
            job.error = errors.WorkerLost(job.task.id, f"{job.function} was cut off: the executor was shut down")
            self._instructions.cancel(job.task.id)
        for job in self._keys.waiting:
            job.future.cancel()

    # -- functions -----------------------------------------------------------------------------------------------------

    def define(self, function: Function) -> None:
        """A function that has not been called before, or that wants something else now."""
        self._driver.tell_all(self._journaled.definition(function, self._machines, self._clock.now))

    # -- what earlier runs left ----------------------------------------------------------------------------------------

    def recover(self, found: Recovered) -> None:
        """Calls of earlier runs, all in one turn and so in one commit: they are in one run or in the other."""
        clock = self._clock
        for function in found.functions:
            self.define(function)
        for job, message in found.jobs:
            self._calls.unresolved[job.task.id] = job
            if job.key:
                self._go_on(job, self._keys.recover(job, bool(message), clock.now, clock.unix()), message)
            else:
                self._accept(job, self._arrival(job, message))
        for task in found.cancelled:
            self._instructions.cancel(task)
        for run in found.runs:
            self._journaled.journal.taken_over(run)
        self._calls.after_commit(found.delete_leftovers)

    # -- keys ----------------------------------------------------------------------------------------------------------

    def settle_keys(self, _: None) -> None:
        """What earlier programs were about to do with keys, and have not."""
        self._keys.settle(self._clock.unix())

    def pass_time(self, now: float) -> None:
        """Calls that another copy of the program makes may have ended."""
        if self._keys.ask_at is not None and self._keys.ask_at <= now:
            for job, then in self._keys.ask_again(now, self._clock.unix()):
                self._go_on(job, then)
