"""One worker process and the line to it: how it is started, written to, read and ended.

Owns the socket, the process and its death. Who is given which call is the pool's business.
"""

import fcntl
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Final

from wattloom.interpreter import own_environment, own_module
from wattloom.journal.progress import Progress
from wattloom.local import frames
from wattloom.local.job import HostWorker, Job
from wattloom.local.parent_death import tie_to_us

READ_AT_ONCE: Final = 1 << 18
STDERR: Final = 2


class WorkerProcess(HostWorker):
    """A worker that is a process of this machine."""

    def __init__(
        self, number: int, node: str, process: "subprocess.Popen[bytes]", channel: socket.socket, progress: Progress
    ) -> None:
        super().__init__(number, node, process.pid)
        self.process: Final = process
        self.channel: Final = channel
        self.progress: Final = progress
        self.rope: Final = tie_to_us(process.pid)
        self.life: Final = os.pidfd_open(process.pid)
        """Readable when it has ended, even if something it started keeps its socket open."""
        self._inbox: Final = frames.Inbox()
        self._out: Final = bytearray()
        """Bytes that the socket has not taken yet."""
        self.known: Final[dict[int, None]] = {}
        """Functions it has, the one that was sent last at the end."""
        self.lately: Final[set[str]] = set()
        """Their builds, or some of them."""
        self.outbox: list[Job] = []
        """Calls to be sent when the journal has them."""
        self.calls: int = 0
        """That it was given."""
        self.ready: bool = False
        self.resting: bool = False
        """Whether it is among those with nothing to do."""
        self.idle_since: float = 0.0
        self.heard_at: float = 0.0
        """When it last ended something or was given something to do."""
        self.purging: bool = False
        """Whether calls were taken back and it has not said yet that it knows."""
        self.doom: str = ""
        """Why it was killed, if we did it."""

    def has(self, job: Job) -> bool:
        """Whether it was sent this call's function, lately."""
        return job.build in self.lately

    @property
    def is_free(self) -> bool:
        return not self.sent and not self.outbox and not self.doom

    # -- talking -------------------------------------------------------------------------------------------------------

    def listen_with(self, selector: DefaultSelector) -> None:
        selector.register(self.channel, EVENT_READ, self)
        selector.register(self.life, EVENT_READ, self.number)

    def write(self, data: bytes | bytearray, selector: DefaultSelector) -> None:
        """Now, or when its socket takes it."""
        if self._out:
            self._out.extend(data)
            return
        sent = self._write_some(data)
        if sent < len(data):
            self._out.extend(memoryview(data)[sent:])
            selector.modify(self.channel, EVENT_READ | EVENT_WRITE, self)

    def write_on(self, selector: DefaultSelector) -> None:
        """Its socket takes more."""
        sent = self._write_some(self._out)
        del self._out[:sent]
        if not self._out:
            selector.modify(self.channel, EVENT_READ, self)

    def _write_some(self, data: bytes | bytearray) -> int:
        try:
            return self.channel.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)  # it is dying: we shall read it from the socket

    def read(self) -> list[tuple[int, bytes]] | None:
        """What it said; None: it is gone."""
        try:
            data = self.channel.recv(READ_AT_ONCE)
        except BlockingIOError:
            return []
        except OSError:
            return None
        return list(self._inbox.frames(data)) if data else None

    def read_the_rest(self) -> list[tuple[int, bytes]]:
        """What it said before it ended, to the last byte. Its socket may be held open by a process that it has left
        behind."""
        said: list[tuple[int, bytes]] = []
        with suppress(OSError):
            while data := self.channel.recv(READ_AT_ONCE):
                said += self._inbox.frames(data)
        return said

    # -- the end -------------------------------------------------------------------------------------------------------

    def kill(self, why: str) -> None:
        """It and the processes it started. That it is gone will be read from its socket."""
        self.doom = self.doom or why
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def hang_up(self, selector: DefaultSelector) -> int:
        """It is gone: close the line, and what ties it to us; its exit code."""
        selector.unregister(self.channel)
        selector.unregister(self.life)
        self.channel.close()
        os.close(self.life)
        for end in self.rope:
            os.close(end)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # what it started, if anything is left
        return self.process.wait()

    def let_go(self) -> None:
        """In a forked child: these keep the parent's worker alive."""
        self.channel.close()
        for end in self.rope:
            os.close(end)

    def forget(self) -> None:
        """Nobody will ask any more how far it came."""
        self.progress.close()
        self.progress.path.unlink(missing_ok=True)


def start_process(number: int, node: str, progress: Progress, lifeline: int) -> WorkerProcess:
    """The process itself. If it cannot be had, nothing is left of it."""
    ours, theirs = socket.socketpair()
    theirs = socket.socket(fileno=above_standard(theirs.detach()))
    try:
        process = subprocess.Popen(
            own_module("wattloom.local.worker", str(theirs.fileno()), str(lifeline)),
            stdin=subprocess.DEVNULL,
            stdout=_standard(sys.__stdout__),
            stderr=_standard(sys.__stderr__),
            pass_fds=(theirs.fileno(), lifeline),
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
        return WorkerProcess(number, node, process, ours, progress)
    except BaseException:
        ours.close()
        process.kill()
        process.wait()
        raise


def above_standard(descriptor: int) -> int:
    """A program without standard output has its number free, and its workers would print into the socket."""
    if descriptor > STDERR:
        return descriptor
    found = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, STDERR + 1)
    os.close(descriptor)
    return found


def _standard(ours: object) -> int | None:
    """What a worker prints goes where what we print goes; if that is nowhere, its number is somebody else's by now."""
    return subprocess.DEVNULL if ours is None else None


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
