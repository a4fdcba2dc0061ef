"""What workers say, and what it means: an end, a loss or a start becomes an event of the engine.

Owns that meaning. Where workers come from and how they are heard is their host's business. One thread alone.
"""

import logging
from concurrent.futures._base import RUNNING
from typing import Any, Final

from wattloom.local import errors, frames
from wattloom.local.accounting import Accounting
from wattloom.local.frames import EndFrame
from wattloom.local.idempotency import Keys
from wattloom.local.instructions import Instructions
from wattloom.local.job import HostWorker, Job
from wattloom.local.journaled_run import JournaledRun
from wattloom.local.open_calls import OpenCalls
from wattloom.local.run_clock import RunClock
from wattloom.runtimes.packing import pack_whole
from wattloom.runtimes.protocol import PICKLE
from wattloom.runtimes.python import decoded_value
from wattloom.runtimes.raised import raised_from
from wattloom.scheduling import events as ev

LOG: Final = logging.getLogger("wattloom")
LEAST_SETUP_S: Final = 0.001
"""What takes less to be ready, as an imported function of Python does, has no cold start."""


class WorkerEvents:
    """Listens to a host of workers, and tells the engine."""

    def __init__(
        self,
        journaled: JournaledRun,
        instructions: Instructions,
        calls: OpenCalls,
        keys: Keys,
        accounting: Accounting | None,
        clock: RunClock,
    ) -> None:
        self._journal: Final = journaled.journal
        self._journaled: Final = journaled
        self._instructions: Final = instructions
        self._calls: Final = calls
        self._keys: Final = keys
        self._accounting: Final = accounting
        self._clock: Final = clock
        self._unwanted: list[str] = []
        """Tasks that were cancelled when they were about to be sent."""
        self.stopping: bool = False
        """Whether those that run are cut off, and know why."""

    # -- workers -------------------------------------------------------------------------------------------------------

    def worker_started(self, worker: HostWorker) -> None:
        if self._accounting is not None:
            self._accounting.worker_started(worker)

    def worker_busy(self, worker: HostWorker) -> None:
        if self._accounting is not None:
            self._accounting.busy(worker, self._clock.now)

    def worker_gone(self, worker: HostWorker) -> None:
        if self._accounting is not None:
            self._accounting.worker_gone(worker, self._clock.now)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def is_wanted(self, job: Job) -> bool:
        if job.future._state == RUNNING or job.future.set_running_or_notify_cancel():
            return True
        self._unwanted.append(job.task.id)
        return False

    def cancel_unwanted(self) -> None:
        """Those that were not sent after all. Others may be placed then: they are sent next turn."""
        if self._unwanted:
            unwanted, self._unwanted = self._unwanted, []
            for task in unwanted:
                self._instructions.cancel(task)

    def begun(self, job: Job) -> None:
        self._instructions.tell(ev.TaskStarted(self._clock.now, job.task.id, job.attempt))

    def returned(self, job: Job) -> None:
        self._instructions.tell(ev.TaskReturned(self._clock.now, job.task.id, job.attempt))

    def ended(self, worker: HostWorker, job: Job, end: EndFrame) -> None:
        now, finished = self._clock.now, end.status == frames.VALUE
        job.future.seconds = end.seconds
        if self._accounting is not None:
            self._accounting.ended(worker, job, end, now, finished)
        if end.output:
            self._journal.keep_output(job.task.id, end.output)
        if finished:
            self._succeeded(job, end, now)
        elif end.status == frames.LOST:
            self.lost(job, end.body.decode(errors="replace"))
        else:
            self._failed(job, end, now)

    def _succeeded(self, job: Job, end: EndFrame, now: float) -> None:
        task = job.task.id
        job.value, job.error = end, None
        del self._calls.jobs[task]
        self._journaled.ended(job)
        if job.key:
            self._keep_by_key(job, end)
        setup_s = end.setup_s if end.setup_s >= LEAST_SETUP_S else None
        self._instructions.tell(ev.TaskFinished(now, task, job.attempt, end.seconds, job.cpu_s, setup_s))
        self._calls.resolve_later(job)

    def _keep_by_key(self, job: Job, end: EndFrame) -> None:
        """Keep the result for the next call with this key: whole."""
        body: bytes | None = end.body
        try:
            if end.spool or end.content:
                buffers = self._journal.spool.map(end.spool) if end.spool else []
                body = pack_whole(decoded_value(end.body, buffers, end.content))
        except Exception:  # it cannot be read here, as its caller will find out
            LOG.warning("the result of task %s cannot be kept for its key", job.task.id, exc_info=True)
            body = None
        self._keys.finished(job, body, self._clock.unix())

    def _failed(self, job: Job, end: EndFrame, now: float) -> None:
        task = job.task.id
        if end.status == frames.RAISED:
            try:
                job.error = _raised(task, self._calls.unpacked(end), end.content)
            except BaseException as wrong:
                job.error = errors.TaskError(task, f"its exception cannot be read here: {errors.in_words(wrong)}")
        else:
            job.error = errors.CannotSend(task, f"{job.function}: {end.body.decode(errors='replace').strip()}")
        message = errors.in_words(job.error)
        self._instructions.tell(ev.TaskFailed(now, task, job.attempt, "function", message, job.cpu_s, end.seconds))

    def overran(self, job: Job) -> None:
        job.error = errors.TaskTimeout(
            job.task.id, f"{job.function} ran longer than its timeout of {job.timeout or 0.0:g} s"
        )

    def lost(self, job: Job, how: str) -> None:
        now, task = self._clock.now, job.task.id
        if isinstance(job.error, errors.TaskTimeout):
            self._instructions.tell(ev.TaskFailed(now, task, job.attempt, "function", str(job.error)))
            return
        if not self.stopping:
            job.error = None
        self._instructions.tell(ev.TaskFailed(now, task, job.attempt, "infrastructure", how))


def _raised(task: str, found: Any, content: str) -> BaseException:
    """What the function raised: itself, if it is Python's, else what was said of it."""
    if content == PICKLE:
        return errors.with_its_traceback(*found)
    return errors.RemoteError(task, raised_from(found))
