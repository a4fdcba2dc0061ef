"""Idempotency keys: a call with a key is made once, however often it is asked for.

Owns which calls with keys are under way, who waits for the same end, and the form in which results are kept: a digest
of the arguments, then the result. Used by the dispatcher's thread alone.
"""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final

from wattloom.energy.forecast import Unknown
from wattloom.errors import InputError
from wattloom.journal.journal import Journal
from wattloom.local import frames
from wattloom.local.frames import EndFrame
from wattloom.local.future import TaskFuture, tell_waiters
from wattloom.local.job import Job
from wattloom.local.packing import DIGEST_BYTES


class Keys:
    """Calls under way that gave a key."""

    def __init__(self, journal: Journal) -> None:
        self._journal: Final = journal
        self._first: Final[dict[str, Job]] = {}
        self._followers: Final[dict[str, TaskFuture]] = {}
        """By task: futures whose end is that of another call."""

    def take(self, job: Job, ready: Callable[[Job], None]) -> bool:
        """Whether the call need not be made: it was made before (then it is `ready`), or is under way."""
        scoped = _scoped(job)
        first = self._first.get(scoped)
        if first is not None:
            if first.args_digest != job.args_digest:
                job.error = _other_arguments(job)
                ready(job)
                return True
            self._follow(first, job)
            return True
        kept = self._journal.result_of(scoped)
        if kept is None:
            self._first[scoped] = job
            return False
        if kept.body[:DIGEST_BYTES] != job.args_digest:
            job.error = _other_arguments(job)
        else:
            job.future._energy = Unknown(f"the result is that of task {kept.task}, made before with this key")
            job.value = EndFrame(0, frames.VALUE, kept.body[DIGEST_BYTES:], "", 0.0, 0.0, b"")
        ready(job)
        return True

    def begin(self, job: Job) -> None:
        """A call with a key that is under way from an earlier run."""
        self._first[_scoped(job)] = job

    def keep(self, job: Job, body: bytes, time: float) -> None:
        """It has finished: the next with this key gets this."""
        self._journal.keep_result(_scoped(job), job.task.id, "finished", job.args_digest + body, time)

    def end(self, job: Job) -> None:
        """It is not under way any more, however it ended."""
        if self._first.get(_scoped(job)) is job:
            del self._first[_scoped(job)]

    def cancelled(self, task: str) -> None:
        """A future was cancelled that waits for another's end."""
        future = self._followers.pop(task, None)
        if future is not None:
            tell_waiters(future)

    def _follow(self, first: Job, job: Job) -> None:
        if job.spool:
            self._journal.spool.delete(job.spool)
        self._followers[job.task.id] = job.future
        first.future.add_done_callback(lambda done: self._ended(done, job))

    def _ended(self, done: "Future[Any]", job: Job) -> None:
        self._followers.pop(job.task.id, None)
        end_as(done, job.future)


def end_as(done: "Future[Any]", future: TaskFuture) -> None:
    """What the call with the same key came to."""
    with suppress(Exception):
        if done.cancelled():
            future.cancel()
        if future.cancelled():
            tell_waiters(future)
            return
        future._energy = Unknown("the call was made once for several with this key")
        problem = done.exception()
        if problem is not None:
            future.set_exception(problem)
        else:
            future.set_result(done.result())


def _scoped(job: Job) -> str:
    """The same key of another function is another key."""
    return f"{job.function}\n{job.key}"


def _other_arguments(job: Job) -> InputError:
    return InputError("key", f"{job.key!r} was used for a call of {job.function} with other arguments")
