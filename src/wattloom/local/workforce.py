"""The worker processes: starting, feeding, listening to and ending them.

Owns their sockets and their lives. Which call goes where is the engine's decision; what an end means is the
dispatcher's.
"""

import fcntl
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Final

import msgspec

from wattloom.interpreter import own_environment, own_module
from wattloom.journal.journal import Journal
from wattloom.journal.progress import NO_LIMIT, Progress
from wattloom.local import frames
from wattloom.local.frames import CallFrame, EndFrame, Hello
from wattloom.local.job import Job
from wattloom.local.lifeline import tie_to_us
from wattloom.local.nodes import LocalNode
from wattloom.program import name_of, working_folder
from wattloom.settings import default_journal

READ_AT_ONCE: Final = 1 << 18
ENCODE: Final = msgspec.msgpack.Encoder().encode
ENDS: Final = msgspec.msgpack.Decoder(list[EndFrame])
WORKER: Final = "worker"
"""How the names of progress files begin; then come the run in which the program began and the worker's number."""
MOST_FUNCTIONS: Final = 64
"""Functions that a worker keeps: those sent by value may be large, and new ones without end."""
MOST_NUMBERED: Final = 4096
STDERR: Final = 2
STOPPING_S: Final = 2.0
"""How long a worker that was told to stop may take."""


class Upbringing(msgspec.Struct, frozen=True):
    """What every worker is told at its beginning, beside its surroundings."""

    initializer: bytes = b""
    """Pickled (function, arguments); empty: none."""
    most_calls: int = 0
    """It ends after so many; 0: as many as come."""


class WorkerProcess:
    """One worker, seen from the dispatcher."""

    def __init__(
        self, number: int, node: str, process: "subprocess.Popen[bytes]", channel: socket.socket, progress: Progress
    ) -> None:
        self.number: Final = number
        self.node: Final = node
        self.process: Final = process
        self.pid: Final = process.pid
        self.channel: Final = channel
        self.progress: Final = progress
        self.rope: Final = tie_to_us(process.pid)
        self.life: Final = os.pidfd_open(process.pid)
        """Readable when it has ended, even if something it started keeps its socket open."""
        self.inbox: Final = frames.Inbox()
        self.out: Final = bytearray()
        """Bytes that the socket has not taken yet."""
        self.known: Final[dict[int, None]] = {}
        """Functions it has, the one that was sent last at the end."""
        self.lately: Final[set[str]] = set()
        """Their digests, or some of them."""
        self.outbox: list[Job] = []
        """Calls to be sent when the journal has them."""
        self.sent: Final[deque[Job]] = deque()
        """Calls it has, in order; the first is running."""
        self.calls: int = 0
        """That it was given."""
        self.ready: bool = False
        self.resting: bool = False
        """Whether it is among those with nothing to do."""
        self.idle_since: float = 0.0
        self.heard_at: float = 0.0
        """When it last ended something or was given something to do."""
        self.ended_at: float = 0.0
        """When it last ended something."""
        self.purging: bool = False
        """Whether calls were taken back and it has not said yet that it knows."""
        self.doom: str = ""
        """Why it was killed, if we did it."""

    def has(self, job: Job) -> bool:
        """Whether it was sent this call's function, lately."""
        return job.digest in self.lately

    @property
    def is_free(self) -> bool:
        return not self.sent and not self.outbox and not self.doom


class Workforce:
    """All workers, by node."""

    def __init__(
        self, nodes: list[LocalNode], journal: Journal, run: int, upbringing: Upbringing, selector: DefaultSelector
    ) -> None:
        self._run: Final = run
        self._program: Final = _program_of(journal.path)
        self._nodes: Final = {node.name: node for node in nodes}
        self._journal: Final = journal
        self._spool: Final = journal.spool
        self._upbringing: Final = upbringing
        self._selector: Final = selector
        self._free: Final[dict[str, list[WorkerProcess]]] = {node.name: [] for node in nodes}
        self.workers: Final[dict[int, WorkerProcess]] = {}
        self._functions: Final[dict[str, int]] = {}
        """Numbers of functions, by digest: short names for the socket."""
        self._numbered: int = 0
        self.by_life: Final[dict[int, WorkerProcess]] = {}
        self._killed_for_memory: int = killed_for_memory()
        self._started: int = 0
        self._lifeline: Final = tuple(map(_above_standard, os.pipe()))

    # -- who does it ---------------------------------------------------------------------------------------------------

    def take(self, node: str) -> WorkerProcess:
        """A worker of this node with nothing to do: a warm one, or a new one."""
        free = self._free[node]
        while free:
            worker = free.pop()
            worker.resting = False
            if worker.number in self.workers and worker.is_free:
                return worker
        return self._start(self._nodes[node])

    def rest(self, worker: WorkerProcess, now: float) -> None:
        """It has nothing to do."""
        most = self._upbringing.most_calls
        if most and worker.calls >= most:
            self.stop(worker)
        elif not worker.resting:
            worker.resting = True
            worker.idle_since = now
            self._free[worker.node].append(worker)

    def idle(self) -> Iterator[WorkerProcess]:
        for free in self._free.values():
            yield from (worker for worker in free if worker.is_free)

    def _start(self, node: LocalNode) -> WorkerProcess:
        self._started += 1
        number = self._started
        own = int.from_bytes(os.urandom(7))
        progress = Progress.create(self._spool.path(f"{WORKER}-{self._run}-{number}"), own)
        try:
            worker = self._process(number, node, progress)
        except BaseException:
            progress.close()
            progress.path.unlink(missing_ok=True)
            raise
        self._journal.worker_started(progress.path.name, own)
        self.workers[number] = worker
        self._selector.register(worker.channel, EVENT_READ, worker)
        self._selector.register(worker.life, EVENT_READ, worker.life)
        self.by_life[worker.life] = worker
        folder = working_folder()
        hello = Hello(
            path=[os.fsencode(entry or folder) for entry in sys.path],
            folder=os.fsencode(folder),
            progress=os.fsencode(progress.path),
            spool=os.fsencode(self._spool.folder),
            run=self._run,
            initializer=self._upbringing.initializer,
            most_calls=self._upbringing.most_calls,
            environment=list(os.environb.items()),
            cores=node.cores,
            program=self._program,
            slowdown=node.slowdown,
        )
        self._write(worker, frames.frame(frames.HELLO, ENCODE(hello)))
        return worker

    def _process(self, number: int, node: LocalNode, progress: Progress) -> WorkerProcess:
        """The process itself. If it cannot be had, nothing is left of it."""
        ours, theirs = socket.socketpair()
        theirs = socket.socket(fileno=_above_standard(theirs.detach()))
        try:
            process = subprocess.Popen(
                own_module("wattloom.local.worker", str(theirs.fileno()), str(self._lifeline[0])),
                stdin=subprocess.DEVNULL,
                stdout=_standard(sys.__stdout__),
                stderr=_standard(sys.__stderr__),
                pass_fds=(theirs.fileno(), self._lifeline[0]),
                start_new_session=True,
                env=own_environment(),
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        try:
            return WorkerProcess(number, node.name, process, ours, progress)
        except BaseException:
            ours.close()
            process.kill()
            process.wait()
            raise

    # -- talking -------------------------------------------------------------------------------------------------------

    def send(self, worker: WorkerProcess, jobs: list[Job], now: float) -> None:
        """Calls to make, in this order."""
        out, forget = bytearray(), bytearray()
        calls: list[CallFrame] = []
        for job in jobs:
            number = self._number_of(job.digest)
            if number not in worker.known:
                worker.known[number] = None
                if len(worker.lately) >= MOST_FUNCTIONS:
                    worker.lately.clear()
                worker.lately.add(job.digest)
                out += frames.frame(frames.FUNCTION, ENCODE((number, job.blob)))
            calls.append(CallFrame(job.number, number, job.args, job.spool))
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
        self._write(worker, out + forget)

    def _number_of(self, digest: str) -> int:
        known = self._functions.get(digest)
        if known is None:
            if len(self._functions) >= MOST_NUMBERED:
                self._functions.clear()
            self._numbered += 1
            known = self._functions[digest] = self._numbered
        return known

    def purge(self, worker: WorkerProcess, last: int) -> None:
        """Have it forget the calls up to this number that it has not begun."""
        worker.purging = True
        self._write(worker, frames.frame(frames.PURGE, ENCODE(last)))

    def purged(self, worker: WorkerProcess) -> None:
        worker.purging = False
        worker.progress.limit = NO_LIMIT

    def _write(self, worker: WorkerProcess, data: bytes | bytearray) -> None:
        if worker.out:
            worker.out.extend(data)
            return
        sent = self._write_some(worker, data)
        if sent < len(data):
            worker.out.extend(memoryview(data)[sent:])
            self._selector.modify(worker.channel, EVENT_READ | EVENT_WRITE, worker)

    def write_on(self, worker: WorkerProcess) -> None:
        """Its socket takes more."""
        sent = self._write_some(worker, worker.out)
        del worker.out[:sent]
        if not worker.out:
            self._selector.modify(worker.channel, EVENT_READ, worker)

    @staticmethod
    def _write_some(worker: WorkerProcess, data: bytes | bytearray) -> int:
        try:
            return worker.channel.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)  # it is dying: we shall read it from the socket

    def read(self, worker: WorkerProcess) -> list[tuple[int, bytes]] | None:
        """What it said; None: it is gone."""
        try:
            data = worker.channel.recv(READ_AT_ONCE)
        except BlockingIOError:
            return []
        except OSError:
            return None
        return list(worker.inbox.frames(data)) if data else None

    def read_the_rest(self, worker: WorkerProcess) -> list[tuple[int, bytes]]:
        """What a worker that has ended said before, to the last byte. Its socket may be held open by a process that it
        has left behind."""
        said: list[tuple[int, bytes]] = []
        with suppress(OSError):
            while data := worker.channel.recv(READ_AT_ONCE):
                said += worker.inbox.frames(data)
        return said

    # -- the end -------------------------------------------------------------------------------------------------------

    def kill(self, worker: WorkerProcess, why: str) -> None:
        """It and the processes it started. That it is gone will be read from its socket."""
        worker.doom = worker.doom or why
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)

    def bury(self, worker: WorkerProcess) -> str:
        """It is gone: tidy up, and say what happened to it."""
        self._selector.unregister(worker.channel)
        self._selector.unregister(worker.life)
        worker.channel.close()
        os.close(worker.life)
        for end in worker.rope:
            os.close(end)
        del self.by_life[worker.life]
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(worker.pid, signal.SIGKILL)  # what it started, if anything is left
        code = worker.process.wait()
        del self.workers[worker.number]
        with suppress(ValueError):
            self._free[worker.node].remove(worker)
        return worker.doom or how_it_died(code, self._memory_ran_out())

    def _memory_ran_out(self) -> bool:
        """Whether the kernel has killed somebody for memory since this was last asked."""
        before, self._killed_for_memory = self._killed_for_memory, killed_for_memory()
        return self._killed_for_memory > before

    def forget(self, worker: WorkerProcess) -> None:
        """Nobody will ask any more how far it came."""
        worker.progress.close()
        worker.progress.path.unlink(missing_ok=True)

    def turn_over(self) -> None:
        """Another run has begun, with the same workers."""
        for worker in self.workers.values():
            self._journal.worker_started(worker.progress.path.name, worker.progress.own)

    def let_go(self) -> None:
        """In a forked child: whatever keeps the parent's workers alive is not ours to keep."""
        for end in self._lifeline:
            os.close(end)
        for worker in self.workers.values():
            worker.channel.close()
            for end in worker.rope:
                os.close(end)

    def stop(self, worker: WorkerProcess) -> None:
        """Let it end by itself."""
        worker.doom = "it was told to stop"
        self._write(worker, frames.frame(frames.STOP, b""))

    def close(self, *, forget: bool) -> None:
        """End all of them: those that do nothing by themselves, the others at once. Without `forget` their progress is
        left for a later run, which has to know what had begun."""
        for worker in list(self.workers.values()):
            if worker.sent or not worker.ready:
                self.kill(worker, "the executor was closed")
            else:
                self.stop(worker)
                with suppress(OSError):
                    worker.channel.shutdown(socket.SHUT_WR)
        for worker in list(self.workers.values()):
            try:
                worker.process.wait(STOPPING_S)
            except subprocess.TimeoutExpired:
                self.kill(worker, "it did not stop")
            self.bury(worker)
            if forget:
                self.forget(worker)
        for end in self._lifeline:
            os.close(end)


def _above_standard(descriptor: int) -> int:
    """A program without standard output has its number free, and its workers would print into the socket."""
    if descriptor > STDERR:
        return descriptor
    found = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, STDERR + 1)
    os.close(descriptor)
    return found


def _standard(ours: object) -> int | None:
    """What a worker prints goes where what we print goes; if that is nowhere, its number is somebody else's by now."""
    return subprocess.DEVNULL if ours is None else None


def _program_of(journal: Path) -> str:
    """A program is known by its journal, where it has named one."""
    own = default_journal()
    return own.stem if journal.parent == own.parent and journal.stem.startswith(own.stem) else name_of(str(journal))


def killed_for_memory() -> int:
    """How many processes the kernel has killed because memory ran out, on the machine or in a control group."""
    with suppress(OSError, ValueError), open("/proc/vmstat") as file:
        for line in file:
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def how_it_died(code: int, memory_ran_out: bool = False) -> str:
    """In words."""
    if code >= 0:
        return f"its worker ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    memory = "; the kernel killed a process because memory ran out" if memory_ran_out and name == "SIGKILL" else ""
    return f"its worker was killed by {name}{memory}"
