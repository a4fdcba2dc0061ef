"""The workers of this machine: a `WorkerHost` of warm processes, started when first needed.

Owns who makes which call: who is free, what each was sent, what it said, what it had begun when it died, and the care
for slow and idle ones. The line to a process is `worker_process`'s. Which call goes to which node is the engine's
decision; what an end means is `worker_events`'. One thread alone.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector, SelectorKey
from typing import Final

import msgspec

from wattloom.journal.journal import Journal
from wattloom.journal.progress import NO_LIMIT, Progress
from wattloom.local import errors, frames
from wattloom.local.frames import CallFrame, EndFrame, Hello
from wattloom.local.job import HostWorker, Job
from wattloom.local.nodes import LocalNode
from wattloom.local.worker_host import WorkerListener
from wattloom.local.worker_process import (
    WorkerProcess,
    above_standard,
    how_it_died,
    killed_for_memory,
    start_process,
)
from wattloom.program import name_of, working_folder
from wattloom.runtimes.function_file import build_of
from wattloom.settings import default_journal

ENCODE: Final = msgspec.msgpack.Encoder().encode
ENDS: Final = msgspec.msgpack.Decoder(list[EndFrame])
WORKER: Final = "worker"
"""How the names of progress files begin; then come the run in which the program began and the worker's number."""
MOST_FUNCTIONS: Final = 64
"""Functions that a worker keeps: those sent by value may be large, and new ones without end."""
MOST_NUMBERED: Final = 4096
MOST_AHEAD: Final = 1 << 20
"""Bytes that are sent to a worker beyond the call it makes."""
LOOK_EVERY_S: Final = 0.05
"""How often busy workers are looked at."""
SLOW_S: Final = 0.07
"""A worker that says nothing for so long, with calls behind the one it makes, has these taken back."""
MOST_STILLBORN: Final = 3
MOST_KILLED: Final = 20
"""Workers in a row that die before they are ready: by themselves, or by somebody who may stop doing so."""
STOPPING_S: Final = 2.0
"""How long a worker that was told to stop may take."""


class Upbringing(msgspec.Struct, frozen=True):
    """What every worker is told at its beginning, beside its surroundings, and how long it is kept."""

    initializer: bytes = b""
    """Pickled (function, arguments); empty: none."""
    most_calls: int = 0
    """It ends after so many; 0: as many as come."""
    idle_timeout_s: float = 60.0
    """It ends when it has had nothing to do for so long."""


class WorkerPool:
    """All workers, by node."""

    def __init__(
        self,
        nodes: Sequence[LocalNode],
        journal: Journal,
        run: int,
        upbringing: Upbringing,
        after_commit: Callable[[Callable[[], None]], None],
    ) -> None:
        self.nodes: Final = nodes
        self.due: float | None = None
        self._run: Final = run
        self._program: Final = _program_of(journal.path)
        self._by_name: Final = {node.name: node for node in nodes}
        self._journal: Final = journal
        self._upbringing: Final = upbringing
        self._after_commit: Final = after_commit
        self._listener: WorkerListener
        self._selector: Final = DefaultSelector()
        self._wakeup: Final = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._wakeup, EVENT_READ, None)
        self._found: list[tuple[SelectorKey, int]] = []
        self._free: Final[dict[str, list[WorkerProcess]]] = {node.name: [] for node in nodes}
        self._workers: Final[dict[int, WorkerProcess]] = {}
        self._to_send: dict[int, WorkerProcess] = {}
        self._functions: Final[dict[str, int]] = {}
        """Numbers of functions, by build: short names for the socket."""
        self._numbered: int = 0
        self._killed_for_memory: int = killed_for_memory()
        self._started: int = 0
        self._stillborn: int = 0
        self._lifeline: Final = tuple(map(above_standard, os.pipe()))

    def begin(self, listener: WorkerListener) -> None:
        self._listener = listener

    @property
    def has_unsent(self) -> bool:
        return bool(self._to_send)

    def busy(self) -> list[HostWorker]:
        return [worker for worker in self._workers.values() if worker.sent]

    # -- who makes it --------------------------------------------------------------------------------------------------

    def place(self, job: Job, node: str, behind: Job | None) -> None:
        worker = self._take(node) if behind is None else _of(behind)
        job.worker = worker
        worker.outbox.append(job)
        self._to_send[worker.number] = worker

    def take_back(self, job: Job, now: float) -> bool:
        worker = _of(job)
        if job not in worker.outbox:
            return False
        worker.outbox.remove(job)
        self._rest_if_free(worker, now)
        return True

    def cut_off(self, job: Job, why: str) -> None:
        _of(job).kill(why)

    def _take(self, node: str) -> WorkerProcess:
        """A worker of this node with nothing to do: a warm one, or a new one."""
        free = self._free[node]
        while free:
            worker = free.pop()
            worker.resting = False
            if worker.number in self._workers and worker.is_free:
                return worker
        return self._start(self._by_name[node])

    def _rest_if_free(self, worker: WorkerProcess, now: float) -> None:
        if not worker.is_free or worker.number not in self._workers:
            return
        most = self._upbringing.most_calls
        if most and worker.calls >= most:
            self._stop(worker)
        elif not worker.resting:
            worker.resting = True
            worker.idle_since = now
            self._free[worker.node].append(worker)

    def _start(self, node: LocalNode) -> WorkerProcess:
        self._started += 1
        own = int.from_bytes(os.urandom(7))
        progress = Progress.create(self._journal.spool.path(f"{WORKER}-{self._run}-{self._started}"), own)
        try:
            worker = start_process(self._started, node.name, progress, self._lifeline[0])
        except BaseException:
            progress.close()
            progress.path.unlink(missing_ok=True)
            raise
        self._journal.worker_started(progress.path.name, own)
        self._workers[worker.number] = worker
        worker.listen_with(self._selector)
        worker.write(frames.frame(frames.HELLO, ENCODE(self._hello(node, progress))), self._selector)
        self._listener.worker_started(worker)
        return worker

    def _hello(self, node: LocalNode, progress: Progress) -> Hello:
        folder = working_folder()
        return Hello(
            path=[os.fsencode(entry or folder) for entry in sys.path],
            folder=os.fsencode(folder),
            progress=os.fsencode(progress.path),
            spool=os.fsencode(self._journal.spool.folder),
            run=self._run,
            initializer=self._upbringing.initializer,
            most_calls=self._upbringing.most_calls,
            environment=list(os.environb.items()),
            cores=node.cores,
            program=self._program,
            slowdown=node.slowdown,
        )

    # -- sending -------------------------------------------------------------------------------------------------------

    def send(self, now: float) -> None:
        if self._to_send:
            sending, self._to_send = self._to_send, {}
            for worker in sending.values():
                if not worker.purging:
                    self._send(worker, now)

    def _send(self, worker: WorkerProcess, now: float) -> None:
        jobs, worker.outbox = worker.outbox, []
        going: list[Job] = []
        ahead = 0
        for position, job in enumerate(jobs):
            ahead += len(job.args) + (0 if worker.has(job) else len(job.blob))
            if ahead > MOST_AHEAD and (going or worker.sent):
                worker.outbox.extend(jobs[position:])  # large ones wait here till the worker has come that far
                break
            if self._listener.is_wanted(job):
                going.append(job)
            else:
                worker.outbox.append(job)
        if going:
            self._feed(worker, going, now)
            if self.due is None or self.due > now + LOOK_EVERY_S:
                self.due = now + LOOK_EVERY_S
            if worker.ready:
                self._listener.worker_busy(worker)

    def _feed(self, worker: WorkerProcess, jobs: list[Job], now: float) -> None:
        """Calls to make, in this order."""
        out, forget = bytearray(), bytearray()
        calls: list[CallFrame] = []
        for job in jobs:
            build = job.build
            number = self._number_of(build)
            if number not in worker.known:
                worker.known[number] = None
                if len(worker.lately) >= MOST_FUNCTIONS:
                    worker.lately.clear()
                worker.lately.add(build)
                out += frames.frame(frames.FUNCTION, ENCODE((number, build_of(job.blob, job.variant))))
            calls.append(CallFrame(job.number, number, job.args, job.spool, job.content))
            job.sent_at = now
        while len(worker.known) > MOST_FUNCTIONS:  # after these calls: one of them may be the oldest
            oldest = next(iter(worker.known))
            del worker.known[oldest]
            forget += frames.frame(frames.FORGET, ENCODE(oldest))
        worker.progress.share = jobs[0].share
        worker.sent.extend(jobs)
        worker.calls += len(jobs)
        worker.heard_at = now
        out += frames.frame(frames.CALLS, ENCODE(calls))
        worker.write(out + forget, self._selector)

    def _number_of(self, build: str) -> int:
        known = self._functions.get(build)
        if known is None:
            if len(self._functions) >= MOST_NUMBERED:
                self._functions.clear()
            self._numbered += 1
            known = self._functions[build] = self._numbered
        return known

    # -- hearing -------------------------------------------------------------------------------------------------------

    def wait(self, seconds: float | None) -> None:
        self._found = self._selector.select(seconds)

    def wake(self) -> None:
        with suppress(OSError):
            os.eventfd_write(self._wakeup, 1)

    def hear(self, now: float) -> None:
        found, self._found = self._found, []
        for key, mask in found:
            worker = key.data
            if worker is None:
                with suppress(BlockingIOError):
                    os.eventfd_read(self._wakeup)
            elif isinstance(worker, int):
                dead = self._workers.get(worker)
                if dead is not None:  # what it said before still counts
                    self._understand(dead, dead.read_the_rest(), now)
                    self._died(dead, now)
            elif worker.number in self._workers:
                if mask & EVENT_WRITE:
                    worker.write_on(self._selector)
                if mask & EVENT_READ:
                    self._hear(worker, now)

    def _hear(self, worker: WorkerProcess, now: float) -> None:
        said = worker.read()
        if said is None:
            self._died(worker, now)
        else:
            self._understand(worker, said, now)

    def _understand(self, worker: WorkerProcess, said: list[tuple[int, bytes]], now: float) -> None:
        for kind, body in said:
            if kind == frames.ENDED:
                self._ended(worker, ENDS.decode(body), now)
            elif kind == frames.READY:
                self._ready(worker, body.decode(errors="replace"), now)
            elif kind == frames.PURGED:
                self._purged(worker)
                if worker.outbox:
                    self._to_send[worker.number] = worker

    def _ready(self, worker: WorkerProcess, problem: str, now: float) -> None:
        worker.ready = True
        worker.heard_at = now
        self._stillborn = 0
        if problem:
            raise errors.InitializerFailed(f"the initializer failed in a worker:\n{problem}")
        if worker.sent:
            self._listener.worker_busy(worker)

    def _ended(self, worker: WorkerProcess, ends: list[EndFrame], now: float) -> None:
        sent, listener = worker.sent, self._listener
        worker.heard_at = worker.ended_at = now
        for end in ends:
            if not sent or sent[0].number != end.number:
                continue  # taken back before
            job = sent.popleft()
            if not sent:
                self._rest_if_free(worker, now)  # before the engine gives it something else to do
            if end.status == frames.RETURNED:
                listener.returned(job)
            else:
                listener.ended(worker, job, end)
        if worker.outbox and worker.number in self._workers:
            self._to_send[worker.number] = worker

    # -- deaths --------------------------------------------------------------------------------------------------------

    def _died(self, worker: WorkerProcess, now: float) -> None:
        """Its running call is lost; those behind it had not begun."""
        self._listener.worker_gone(worker)
        begun = worker.progress.begun()
        how = self._bury(worker)
        if not worker.ready and not worker.doom:
            self._was_stillborn(how)
        self._to_send.pop(worker.number, None)
        jobs = [*worker.sent, *worker.outbox]
        worker.sent.clear()
        worker.outbox.clear()
        for job in reversed(jobs):
            if job.number > begun:
                self._listener.returned(job)
        for job in jobs:
            if job.number <= begun:
                self._listener.lost(job, how)
        self._journal.worker_gone(worker.progress.path.name)
        self._after_commit(worker.forget)  # till then it says what had begun

    def _bury(self, worker: WorkerProcess) -> str:
        """It is gone: tidy up, and say what happened to it."""
        code = worker.hang_up(self._selector)
        del self._workers[worker.number]
        with suppress(ValueError):
            self._free[worker.node].remove(worker)
        return worker.doom or how_it_died(code, self._memory_ran_out())

    def _memory_ran_out(self) -> bool:
        """Whether the kernel has killed somebody for memory since this was last asked."""
        before, self._killed_for_memory = self._killed_for_memory, killed_for_memory()
        return self._killed_for_memory > before

    def _was_stillborn(self, how: str) -> None:
        self._stillborn += 1
        if self._stillborn >= (MOST_KILLED if "SIGKILL" in how else MOST_STILLBORN):
            raise errors.ExecutorLost(f"workers cannot be started: {how}; see what they wrote to standard error")

    # -- care ----------------------------------------------------------------------------------------------------------

    def look_after(self, now: float) -> None:
        next_look: float | None = None
        for worker in list(self._workers.values()):
            if worker.sent:
                self._look_after(worker, now)
                next_look = now + LOOK_EVERY_S
        timeout_s = self._upbringing.idle_timeout_s
        for worker in list(self._idle()):
            if worker.ready and now - worker.idle_since >= timeout_s:
                self._stop(worker)
            else:
                end = max(now + LOOK_EVERY_S, worker.idle_since + timeout_s)
                next_look = end if next_look is None else min(next_look, end)
        self.due = next_look

    def _idle(self) -> Iterator[WorkerProcess]:
        for free in self._free.values():
            yield from (worker for worker in free if worker.is_free)

    def _look_after(self, worker: WorkerProcess, now: float) -> None:
        running = worker.sent[0]
        begun = worker.progress.begun() >= running.number
        if begun and not running.started:
            running.started = True
            self._listener.begun(running)
        behind = len(worker.sent) > 1 or bool(worker.outbox)
        if begun and behind and now - worker.heard_at > SLOW_S and not worker.purging and worker.ready:
            self._take_back_behind(worker)
        if running.timeout is not None and not worker.doom and worker.ready:
            since = max(running.sent_at, worker.heard_at)
            if now - since > running.timeout:
                self._listener.overran(running)
                worker.kill("it ran longer than its timeout")

    def _take_back_behind(self, worker: WorkerProcess) -> None:
        """The call it makes takes long: those behind it go elsewhere."""
        sent = worker.sent
        begun = worker.progress.take_back(worker.progress.begun())
        last = sent[-1].number
        back = [job for job in sent if job.number > begun]
        for job in back:
            sent.remove(job)
        if back:
            worker.purging = True  # it is to forget those up to the last
            worker.write(frames.frame(frames.PURGE, ENCODE(last)), self._selector)
        else:
            self._purged(worker)
        back += worker.outbox
        worker.outbox.clear()
        self._to_send.pop(worker.number, None)
        for job in back:
            self._listener.returned(job)

    @staticmethod
    def _purged(worker: WorkerProcess) -> None:
        worker.purging = False
        worker.progress.limit = NO_LIMIT

    # -- the end -------------------------------------------------------------------------------------------------------

    def turn_over(self) -> None:
        for worker in self._workers.values():
            self._journal.worker_started(worker.progress.path.name, worker.progress.own)

    def let_go(self) -> None:
        for end in self._lifeline:
            os.close(end)
        for worker in self._workers.values():
            worker.let_go()

    def _stop(self, worker: WorkerProcess) -> None:
        """Let it end by itself."""
        worker.doom = "it was told to stop"
        worker.write(frames.frame(frames.STOP, b""), self._selector)

    def close(self, *, forget: bool) -> None:
        """Those that do nothing end by themselves, the others at once."""
        for worker in list(self._workers.values()):
            if worker.sent or not worker.ready:
                worker.kill("the executor was closed")
            else:
                self._stop(worker)
                with suppress(OSError):
                    worker.channel.shutdown(socket.SHUT_WR)
        for worker in list(self._workers.values()):
            try:
                worker.process.wait(STOPPING_S)
            except subprocess.TimeoutExpired:
                worker.kill("it did not stop")
            self._bury(worker)
            if forget:
                worker.forget()
        for end in self._lifeline:
            os.close(end)
        self._selector.close()
        os.close(self._wakeup)


def _of(job: Job) -> WorkerProcess:
    """The worker that has it, or is to have it: one of this host."""
    worker = job.worker
    assert isinstance(worker, WorkerProcess)
    return worker


def _program_of(journal: Path) -> str:
    """A program is known by its journal, where it has named one."""
    own = default_journal()
    return own.stem if journal.parent == own.parent and journal.stem.startswith(own.stem) else name_of(str(journal))
