"""What workers say, and what becomes of those that say nothing more.

Owns what an end means for the engine, the death of a worker, and the care for busy and idle ones. One thread alone.
"""

from time import monotonic, time
from typing import Final

from wattloom.local import errors, frames
from wattloom.local.books import Books
from wattloom.local.carrying import LOG, LOOK_EVERY_S, Carrying
from wattloom.local.desk import Desk
from wattloom.local.frames import EndFrame
from wattloom.local.job import Job
from wattloom.local.keys import Keys
from wattloom.local.nodes import LocalNode
from wattloom.local.packing import pack_whole, unpack
from wattloom.local.workforce import ENDS, Upbringing, WorkerProcess
from wattloom.scheduling import events as ev

SLOW_S: Final = 0.07
"""A worker that says nothing for so long, with calls behind the one it makes, has these taken back."""
MOST_STILLBORN: Final = 3
MOST_KILLED: Final = 20
"""Workers in a row that die before they are ready: by themselves, or by somebody who may stop doing so."""


class Hearing(Carrying):
    """Listens to workers."""

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
        super().__init__(books, keys, nodes, desk, upbringing)
        self._idle_timeout_s: Final = idle_timeout_s
        self._began: Final = began
        self._stillborn: int = 0
        self._stopping: bool = False

    def unix(self, now: float) -> float:
        """A time of the run, as the world counts."""
        return time() - (monotonic() - self._began - now)

    def hear(self, worker: WorkerProcess) -> None:
        """Its socket has something."""
        said = self._workforce.read(worker)
        if said is None:
            self._died(worker)
        else:
            self._understand(worker, said)

    def hear_the_last(self, worker: WorkerProcess) -> None:
        """It has ended: what it said before still counts."""
        self._understand(worker, self._workforce.read_the_rest(worker))
        self._died(worker)

    def _understand(self, worker: WorkerProcess, said: list[tuple[int, bytes]]) -> None:
        for kind, body in said:
            if kind == frames.ENDED:
                self._ended(worker, ENDS.decode(body))
            elif kind == frames.READY:
                self._ready(worker, body.decode(errors="replace"))
            elif kind == frames.PURGED:
                self._workforce.purged(worker)
                if worker.outbox:
                    self._to_send[worker.number] = worker

    def _ready(self, worker: WorkerProcess, problem: str) -> None:
        worker.ready = True
        worker.heard_at = self._now
        self._stillborn = 0
        if problem:
            raise errors.InitializerFailed(f"the initializer failed in a worker:\n{problem}")
        if self._desk is not None and worker.sent:
            self._desk.busy(worker, self._now)

    # -- ends ----------------------------------------------------------------------------------------------------------

    def _ended(self, worker: WorkerProcess, ends: list[EndFrame]) -> None:
        now = self._now
        sent, desk = worker.sent, self._desk
        worker.heard_at = worker.ended_at = now
        for end in ends:
            if not sent or sent[0].number != end.number:
                continue  # taken back before
            job = sent.popleft()
            self.rest_if_free(worker)  # before the engine gives it something else to do
            if end.status == frames.RETURNED:
                self.tell(ev.TaskReturned(now, job.task.id, job.attempt))
                continue
            finished = end.status == frames.VALUE
            if desk is not None:
                desk.ended(worker, job, end, now, finished)
            if end.output:
                self._books.journal.keep_output(job.task.id, end.output)
            if finished:
                self._succeeded(job, end, now)
            else:
                self._failed(job, end, now)
        if worker.outbox and worker.number in self._workforce.workers:
            self._to_send[worker.number] = worker

    def _succeeded(self, job: Job, end: EndFrame, now: float) -> None:
        task = job.task.id
        job.value, job.error = end, None
        del self._jobs[task]
        self._books.ended(job)
        if job.key:
            self._keep_by_key(job, end, now)
        self.tell(ev.TaskFinished(now, task, job.attempt, end.seconds, job.cpu_s))
        self._to_resolve.append(job)

    def _keep_by_key(self, job: Job, end: EndFrame, now: float) -> None:
        """Keep the result for the next call with this key: whole."""
        body: bytes | None = end.body
        try:
            if end.spool:
                body = pack_whole(unpack(end.body, self._books.journal.spool.map(end.spool)))
        except Exception:  # it cannot be read here, as its caller will find out
            LOG.warning("the result of task %s cannot be kept for its key", job.task.id, exc_info=True)
            body = None
        self._keys.finished(job, body, self.unix(now))

    def _failed(self, job: Job, end: EndFrame, now: float) -> None:
        task = job.task.id
        if end.status == frames.RAISED:
            try:
                job.error = errors.with_its_traceback(*self.unpacked(end))
            except BaseException as wrong:
                job.error = errors.TaskError(task, f"its exception cannot be read here: {errors.in_words(wrong)}")
        else:
            job.error = errors.CannotSend(task, f"{job.function}: {end.body.decode(errors='replace').strip()}")
        message = errors.in_words(job.error)
        self.tell(ev.TaskFailed(now, task, job.attempt, "function", message, job.cpu_s, end.seconds))

    # -- deaths --------------------------------------------------------------------------------------------------------

    def _died(self, worker: WorkerProcess) -> None:
        """Its running call is lost; those behind it had not begun."""
        now = self._now
        if self._desk is not None:
            self._desk.worker_gone(worker, now)
            self._metered.discard(worker.pid)
        begun = worker.progress.begun()
        how = self._workforce.bury(worker)
        if not worker.ready and not worker.doom:
            self._was_stillborn(how)
        self._to_send.pop(worker.number, None)
        jobs = [*worker.sent, *worker.outbox]
        worker.sent.clear()
        worker.outbox.clear()
        for job in reversed(jobs):
            if job.number > begun:
                self.tell(ev.TaskReturned(now, job.task.id, job.attempt))
        for job in jobs:
            if job.number <= begun:
                self._lost(job, how, now)
        self._books.journal.worker_gone(worker.progress.path.name)
        self._after_commit.append(lambda: self._workforce.forget(worker))  # till then it says what had begun

    def _was_stillborn(self, how: str) -> None:
        self._stillborn += 1
        if self._stillborn >= (MOST_KILLED if "SIGKILL" in how else MOST_STILLBORN):
            raise errors.ExecutorLost(f"workers cannot be started: {how}; see what they wrote to standard error")

    def _lost(self, job: Job, how: str, now: float) -> None:
        if isinstance(job.error, errors.TaskTimeout):
            self.tell(ev.TaskFailed(now, job.task.id, job.attempt, "function", str(job.error)))
        else:
            if not self._stopping:
                job.error = None
            self.tell(ev.TaskFailed(now, job.task.id, job.attempt, "infrastructure", how))

    # -- care ----------------------------------------------------------------------------------------------------------

    def look_after_workers(self, now: float) -> None:
        """Calls behind a slow one are taken back; calls beyond their time are stopped; idle workers are ended."""
        next_look: float | None = None
        for worker in list(self._workforce.workers.values()):
            if worker.sent:
                self._look_after(worker, now)
                next_look = now + LOOK_EVERY_S
        for worker in list(self._workforce.idle()):
            if worker.ready and now - worker.idle_since >= self._idle_timeout_s:
                self._workforce.stop(worker)
            else:
                end = max(now + LOOK_EVERY_S, worker.idle_since + self._idle_timeout_s)
                next_look = end if next_look is None else min(next_look, end)
        self._look_at = next_look

    def _look_after(self, worker: WorkerProcess, now: float) -> None:
        running = worker.sent[0]
        begun = worker.progress.begun() >= running.number
        if begun and not running.started:
            running.started = True
            self.tell(ev.TaskStarted(now, running.task.id, running.attempt))
        behind = len(worker.sent) > 1 or bool(worker.outbox)
        if begun and behind and now - worker.heard_at > SLOW_S and not worker.purging and worker.ready:
            self._take_back(worker, now)
        if running.timeout is not None and not worker.doom and worker.ready:
            since = max(running.sent_at, worker.heard_at)
            if now - since > running.timeout:
                running.error = errors.TaskTimeout(
                    running.task.id, f"{running.function} ran longer than its timeout of {running.timeout:g} s"
                )
                self._workforce.kill(worker, "it ran longer than its timeout")

    def _take_back(self, worker: WorkerProcess, now: float) -> None:
        """The call it makes takes long: those behind it go elsewhere."""
        sent = worker.sent
        begun = worker.progress.take_back(worker.progress.begun())
        last = sent[-1].number
        back = [job for job in sent if job.number > begun]
        for job in back:
            sent.remove(job)
        if back:
            self._workforce.purge(worker, last)
        else:
            self._workforce.purged(worker)
        back += worker.outbox
        worker.outbox.clear()
        self._to_send.pop(worker.number, None)
        for job in back:
            self.tell(ev.TaskReturned(now, job.task.id, job.attempt))
