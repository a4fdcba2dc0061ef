"""Idempotency keys: a call with a key is made once, however often it is asked for, and by whichever copy of a program.

Owns which calls with keys are under way here, who waits for the same end, and for which ends of other copies. The key
and the function's name decide what is the same call. Used by the dispatcher's thread alone.
"""

import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from wattloom.energy.forecast import Unknown
from wattloom.journal.errors import JournalError
from wattloom.journal.keys import KeyStore, KnownKey
from wattloom.journal.spool import Spool
from wattloom.local import frames
from wattloom.local.errors import OutcomeUnknown
from wattloom.local.frames import EndFrame
from wattloom.local.future import TaskFuture, tell_waiters
from wattloom.local.job import Job

ASK_EVERY_S: Final = 0.1
"""How often it is looked whether another copy's call has ended."""
LOG: Final = logging.getLogger("wattloom")
Next = Literal["make", "ready", "follow", "wait"]
"""What becomes of a call: it is made here; its end is known; it is that of another call here; another copy makes it."""


class Keys:
    """Calls under way that gave a key."""

    def __init__(self, store: KeyStore, spool: Spool, earlier: Callable[[], list[Path]]) -> None:
        self._store: Final = store
        self._spool: Final = spool
        self._earlier: Final = earlier
        self._first: Final[dict[str, Job]] = {}
        """By key: the call that is made, or that waits for another copy's."""
        self._followers: Final[dict[str, TaskFuture]] = {}
        """By task: futures whose end is that of another call here."""
        self._waiting: Final[dict[str, Job]] = {}
        """By task: calls that another copy makes."""
        self.ask_at: float | None = None
        """When to look after those, in the clock of whoever asks."""

    @property
    def unsaved(self) -> bool:
        return self._store.unsaved

    @property
    def waiting(self) -> list[Job]:
        return list(self._waiting.values())

    def save(self, unix: float) -> None:
        """Before anything of it is acted upon, and before the journal has it."""
        self._store.save(unix)

    def close(self) -> None:
        self._store.close()

    # -- which call is made --------------------------------------------------------------------------------------------

    def take(self, job: Job, now: float, unix: float) -> Next:
        """A call with a key comes in."""
        first = self._first.get(_scoped(job))
        if first is None:
            return self._ask(job, now, unix)
        _warn_of_other_arguments(job, first.task.id, first.mark)
        self._follow(first, job)
        return "follow"

    def recover(self, job: Job, begun: bool, now: float, unix: float) -> Next:
        """A call that an earlier program of this journal had accepted. What has begun and may not be run twice is made
        only in so far as the engine is told of it."""
        self._store.open(unix, self._earlier)
        known = self._store.find(_scoped(job))
        if known is None or (self._store.is_ours(known) and known.state != "finished"):
            return self._claim(job, unix)
        if begun and not job.task.idempotent and known.state == "under way":
            return self._has_ended(job, None, _unknown(job, known))
        return self._ask(job, now, unix)

    def settle(self, unix: float) -> None:
        """Claims that this journal's earlier programs left, beside those of recovered calls: of a call that was never
        accepted, or, if the machine was ended too, of one whose end was lost."""
        if not self._store.is_there:
            return
        self._store.open(unix, self._earlier)
        for known in self._store.left_under_way():
            if known.key in self._first:
                continue
            if self._store.was_here(known):
                self._store.release(known.key, known.task)
            else:
                self._store.forget_how(known.key, known.task, known.mark, unix)

    def ask_again(self, now: float, unix: float) -> list[tuple[Job, Next]]:
        """Those whose wait for another copy is over, and what becomes of them."""
        over = [(job, self._ask(job, now, unix)) for job in self.waiting if not self._is_made_elsewhere(job)]
        self.ask_at = now + ASK_EVERY_S if self._waiting else None
        return over

    def _is_made_elsewhere(self, job: Job) -> bool:
        known = self._store.glance(_scoped(job))
        return known is not None and known.state == "under way" and not self._store.is_forsaken(known)

    def _ask(self, job: Job, now: float, unix: float) -> Next:
        store = self._store
        store.open(unix, self._earlier)
        self._waiting.pop(job.task.id, None)
        known = store.find(_scoped(job))
        if known is None or (known.state == "under way" and store.is_ours(known)):
            return self._claim(job, unix)
        _warn_of_other_arguments(job, known.task, known.mark)
        if known.state == "finished":
            job.future._energy = Unknown(f"the result is that of task {known.task}, made before with this key")
            return self._has_ended(job, EndFrame(0, frames.VALUE, known.body, "", 0.0, 0.0, b""), None)
        if known.state == "under way" and not store.is_forsaken(known):
            self._first[_scoped(job)] = self._waiting[job.task.id] = job
            self.ask_at = now + ASK_EVERY_S
            return "wait"
        if job.task.idempotent:
            return self._claim(job, unix)
        return self._has_ended(job, None, _unknown(job, known))

    def _claim(self, job: Job, unix: float) -> Next:
        self._store.claim(_scoped(job), job.task.id, job.mark, unix)
        self._first[_scoped(job)] = job
        return "make"

    def _has_ended(self, job: Job, value: EndFrame | None, error: BaseException | None) -> Next:
        self._first.pop(_scoped(job), None)
        job.value, job.error = value, error
        return "ready"

    # -- how it ended --------------------------------------------------------------------------------------------------

    def finished(self, job: Job, body: bytes | None, unix: float) -> None:
        """The next with this key gets this. None: its result cannot be kept, but it is not made again either."""
        self._first.pop(_scoped(job), None)
        try:
            if body is not None:
                self._store.finish(_scoped(job), job.task.id, job.mark, body, unix)
                return
        except JournalError as problem:
            if not isinstance(problem.__cause__, sqlite3.DataError):  # larger than SQLite can hold
                raise
        self._store.forget_how(_scoped(job), job.task.id, job.mark, unix)

    def ended(self, job: Job, unix: float, *, unknown: bool = False) -> None:
        """It has not finished; `unknown`: or perhaps it has."""
        if self._first.get(_scoped(job)) is not job:
            return
        del self._first[_scoped(job)]
        if unknown:
            self._store.forget_how(_scoped(job), job.task.id, job.mark, unix)
        else:
            self._store.release(_scoped(job), job.task.id)

    def cancelled(self, task: str) -> bool:
        """A future was cancelled; whether it waited for another's end."""
        job = self._waiting.pop(task, None)
        if job is not None:
            self._first.pop(_scoped(job), None)
        future = self._followers.pop(task, None) if job is None else job.future
        if future is not None:
            tell_waiters(future)
        return future is not None

    def _follow(self, first: Job, job: Job) -> None:
        if job.spool:
            self._spool.delete(job.spool)
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


def _warn_of_other_arguments(job: Job, task: str, mark: bytes) -> None:
    if mark and job.mark and mark != job.mark:
        LOG.warning("key %r of %s was used with other arguments: the end is task %s's", job.key, job.function, task)


def _unknown(job: Job, known: KnownKey) -> OutcomeUnknown:
    left = f"{known.journal}, whose program was ended" if known.state == "under way" else known.journal
    return OutcomeUnknown(
        job.task.id,
        f"{job.function} with the key {job.key!r} may or may not have run to its end (task {known.task} of {left}). It "
        "is not marked idempotent, so it was not run again: if that does no harm mark it so, or use another key",
    )
