"""Calls from the moment they are accepted until their callers have been told how they ended.

Owns the jobs, by task, and the way from an end to a future: nobody is told before the journal knows. One thread alone.
"""

import logging
from collections.abc import Callable
from concurrent.futures import InvalidStateError
from concurrent.futures._base import CANCELLED, CANCELLED_AND_NOTIFIED
from typing import Any, Final

from wattloom.journal.spool import Spool
from wattloom.local.frames import EndFrame
from wattloom.local.future import tell_waiters
from wattloom.local.job import Job
from wattloom.runtimes.python import decoded_value

LOG: Final = logging.getLogger("wattloom")


class OpenCalls:
    """Jobs, and what is to be done when the journal has it."""

    def __init__(self, spool: Spool) -> None:
        self._spool: Final = spool
        self.jobs: Final[dict[str, Job]] = {}
        """Calls that the engine has."""
        self.unresolved: Final[dict[str, Job]] = {}
        """Calls whose callers have not been told how they ended: those, and a few more."""
        self._to_resolve: list[Job] = []
        self._after_commit: list[Callable[[], None]] = []

    @property
    def waits_to_be_told(self) -> bool:
        return bool(self._to_resolve)

    @property
    def wants_a_commit(self) -> bool:
        """Whether somebody waits for the journal, though the engine may have nothing new."""
        return bool(self._after_commit)

    def resolve_later(self, job: Job) -> None:
        """Its caller is told when the journal knows its end."""
        self._to_resolve.append(job)

    def after_commit(self, then: Callable[[], None]) -> None:
        """Call back when all that came before is in the journal."""
        self._after_commit.append(then)

    def deliver(self) -> None:
        """The journal has it: tell who was waiting."""
        if self._to_resolve:
            resolve, self._to_resolve = self._to_resolve, []
            for job in resolve:
                self.resolve(job)
        if self._after_commit:
            then, self._after_commit = self._after_commit, []
            for each in then:
                each()

    def resolve(self, job: Job) -> None:
        """The journal knows its end: now its caller may. Nothing that a caller has made may come through here."""
        future = job.future
        if job.spool:
            self._spool.delete(job.spool)
        value, error = job.value, job.error
        job.args = b""
        job.value = job.error = None
        if value is None and error is None:
            future.cancel()
        if future._state in (CANCELLED, CANCELLED_AND_NOTIFIED):
            tell_waiters(future)
            self.unresolved.pop(job.task.id, None)
            return
        result: Any = None
        if error is None:
            try:
                result = self.unpacked(value)
            except BaseException as problem:
                error = problem
        try:
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)
        except InvalidStateError:
            pass  # the caller has set it himself
        except BaseException:
            LOG.exception("a done callback of task %s raised", job.task.id)
        self.unresolved.pop(job.task.id, None)

    def unpacked(self, end: EndFrame) -> Any:
        """What a call ended with."""
        if not end.spool:
            return decoded_value(end.body, [], end.content)
        try:
            return decoded_value(end.body, self._spool.map(end.spool), end.content)
        finally:
            self._spool.delete(end.spool)

    def give_up(self, problem: BaseException, more: list[Job]) -> None:
        """Nothing can be done any more: whoever waits is told why, and so are these."""
        waiting = self.unresolved | {job.task.id: job for job in more}
        for job in waiting.values():
            try:
                tell_waiters(job.future)
                if not job.future.done():
                    job.future.set_exception(problem)
            except BaseException:
                LOG.debug("the future of task %s would not be told", job.task.id, exc_info=True)
