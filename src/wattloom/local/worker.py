"""A worker process: makes calls, one after another, and says how each ended.

Owns the loop around a call: the clocks, what it printed, and the way back. How a call is run is its runtime's business.
Started as `python -m wattloom.local.worker SOCKET LIFELINE`. It knows no engine; when the dispatcher dies, the kernel
ends it with all its children.
"""

import io
import os
import resource
import signal
import socket
import sys
import traceback
from collections import deque
from contextlib import suppress
from math import inf
from pathlib import Path
from threading import Event, Lock, Thread
from time import perf_counter, process_time, sleep
from typing import Any, Final

import msgspec

from wattloom.journal.errors import JournalError
from wattloom.journal.progress import Progress
from wattloom.journal.spool import Spool
from wattloom.local import frames
from wattloom.local.frames import CallFrame, EndFrame, Hello
from wattloom.local.parent_death import die_with
from wattloom.metering.proc import family_seconds
from wattloom.program import set_inside
from wattloom.runtimes.choosing import Runtimes
from wattloom.runtimes.packing import Packed, unpack
from wattloom.runtimes.protocol import Outcome, Runtime

FLUSH_S: Final = 0.02
"""Results of short calls are sent together, but none waits longer."""
FLUSH_AT: Final = 128
READ_AT_ONCE: Final = 1 << 18
MOST_OUTPUT: Final = 64 * 1024
"""Bytes of a call's output that are kept: the last ones."""
MOST_PIECES: Final = 256
PROC: Final = Path("/proc")
CHILDREN_FROM_S: Final = 0.002
"""A call shorter than this cannot have waited for a process of its own."""


def main() -> None:
    """Serve until told to stop or until the dispatcher is gone."""
    channel, lifeline = int(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(channel, False)  # a process that a call leaves behind must not keep them open
    die_with(lifeline)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Worker(socket.socket(fileno=channel), Runtimes()).serve()


class Output(io.TextIOBase):
    """Standard output, and a copy of what the present call wrote."""

    def __init__(self, stream: Any, kept: list[str]) -> None:
        self._stream = stream
        self._kept = kept

    def write(self, text: str, /) -> int:
        self.keep(text)
        return len(text) if self._stream is None else int(self._stream.write(text))

    def keep(self, text: str) -> None:
        """Text that has found its own way out, and is to be kept too."""
        kept = self._kept
        kept.append(text[-MOST_OUTPUT:])
        if len(kept) > MOST_PIECES:
            kept[:] = ["".join(kept)[-MOST_OUTPUT:]]

    def flush(self) -> None:
        if self._stream is not None:  # a program without standard output has workers without it
            self._stream.flush()

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def isatty(self) -> bool:
        return bool(self._stream.isatty())

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return str(self._stream.encoding)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Worker:
    """One worker's life."""

    def __init__(self, channel: socket.socket, runtime: Runtime) -> None:
        self._channel: Final = channel
        self._runtime: Final = runtime
        self._inbox: Final = frames.Inbox()
        self._calls: Final[deque[CallFrame]] = deque()
        self._functions: Final[dict[int, Any]] = {}
        self._forget: Final[set[int]] = set()
        """Functions to be dropped when no call is waiting."""
        self._ended: list[EndFrame] = []
        self._sending: Final = Lock()
        self._unsent: Final = Event()
        self._encode: Final = msgspec.msgpack.Encoder().encode
        self._decode_calls: Final = msgspec.msgpack.Decoder(list[CallFrame]).decode
        self._printed: Final[list[str]] = []
        self._stdout: Any = sys.stdout
        self._sent_at: float = 0.0
        self._stopping: bool = False
        self._slowdown: float = 1.0
        self._setup_s: float = 0.0
        """Of the present call: how long its function took to be ready."""
        self._left: float = inf
        """Calls that it may still make."""
        self._pid: Final = os.getpid()
        self._run: int = 0
        self._progress: Progress
        self._spool: Spool

    # -- the loop ------------------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Until there is nothing left to do."""
        Thread(target=self._send_what_waits, daemon=True).start()
        while True:
            while not self._calls:
                self._send()
                while self._forget:
                    self._functions.pop(self._forget.pop(), None)
                if self._stopping:
                    return
                self._read(blocking=True)
            self._call(self._calls.popleft())
            if self._left <= 0:
                self._send()
                return  # what is waiting here goes elsewhere
            if not self._calls or len(self._ended) >= FLUSH_AT or perf_counter() - self._sent_at > FLUSH_S:
                self._send()
                self._read(blocking=False)

    def _read(self, *, blocking: bool) -> None:
        try:
            data = self._channel.recv(READ_AT_ONCE, 0 if blocking else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            os._exit(0)  # the dispatcher has closed the socket: nobody wants anything any more
        for kind, body in self._inbox.frames(data):
            self._take(kind, body)

    def _take(self, kind: int, body: bytes) -> None:
        if kind == frames.CALLS:
            self._calls.extend(self._decode_calls(body))
        elif kind == frames.FUNCTION:
            number, blob = msgspec.msgpack.decode(body, type=tuple[int, bytes])
            self._functions[number] = blob
            self._forget.discard(number)
        elif kind == frames.PURGE:
            last = msgspec.msgpack.decode(body, type=int)
            for call in [call for call in self._calls if call.number <= last]:
                self._calls.remove(call)
            self._tell(frames.PURGED, b"")
        elif kind == frames.FORGET:
            self._forget.add(msgspec.msgpack.decode(body, type=int))
        elif kind == frames.STOP:
            self._stopping = True
        elif kind == frames.HELLO:
            self._begin(msgspec.msgpack.decode(body, type=Hello))

    def _begin(self, hello: Hello) -> None:
        sys.path[:] = [os.fsdecode(entry) for entry in hello.path]
        os.environ.clear()
        os.environb.update(hello.environment)
        if hello.cores:
            os.sched_setaffinity(0, hello.cores)
        with suppress(OSError):
            os.chdir(hello.folder)
        self._slowdown = hello.slowdown
        self._left = hello.most_calls or inf
        set_inside(hello.program)
        self._run = hello.run
        self._progress = Progress.open(Path(os.fsdecode(hello.progress)))
        self._spool = Spool(Path(os.fsdecode(hello.spool)))
        self._stdout = sys.stdout = Output(sys.stdout, self._printed)
        sys.stderr = Output(sys.stderr, self._printed)
        sys.argv[:] = [""]
        problem = ""
        if hello.initializer:
            try:
                initializer, args = unpack(hello.initializer, [])
                initializer(*args)
            except BaseException:
                problem = traceback.format_exc()
        self._tell(frames.READY, problem.encode(errors="replace"))

    # -- one call ------------------------------------------------------------------------------------------------------

    def _call(self, call: CallFrame) -> None:
        if not self._progress.begin(call.number):  # it was taken back
            self._note(EndFrame(call.number, frames.RETURNED, b"", "", 0.0, 0.0, b""))
            return
        self._left -= 1
        if self._ended:
            self._unsent.set()
        kept = self._kept_s() if call.content else {}
        began, cpu = perf_counter(), process_time()
        outcome = self._outcome(call)
        if os.getpid() != self._pid:
            os._exit(0)  # the call has forked, and this is the child: there is one worker here already
        clock_s = process_time()
        cpu_s = clock_s - cpu
        seconds = perf_counter() - began
        if seconds >= CHILDREN_FROM_S or call.content:
            cpu_s += self._children_s()
        if call.content:
            used_s, kept_s = self._used_by_kept(kept)
            cpu_s += used_s
            clock_s += kept_s
        clock_s += self._children
        if self._slowdown != 1.0:
            seconds = self._wait_as_if_slow(began, cpu_s)
        setup_s, self._setup_s = self._setup_s, 0.0
        output = b""
        if self._printed:
            self._flush()
            output = "".join(self._printed).encode(errors="replace")[-MOST_OUTPUT:]
            self._printed.clear()
        spool = ""
        if outcome.packed.buffers:
            spool, outcome = self._spooled(call.number, outcome)
        self._progress.end(call.number)
        body, content = outcome.packed.body, outcome.content
        alone_s = max(seconds - setup_s, 0.0)
        self._note(
            EndFrame(call.number, outcome.status, body, spool, alone_s, cpu_s, output, clock_s, content, setup_s)
        )

    def _flush(self) -> None:
        """A call may have closed standard output or put something else in its place; nobody may be there to read it."""
        with suppress(Exception):
            self._stdout.flush()
        with suppress(Exception):
            sys.stdout.flush()

    def _note(self, end: EndFrame) -> None:
        with self._sending:
            self._ended.append(end)

    def _outcome(self, call: CallFrame) -> Outcome:
        runtime = self._runtime
        try:
            function = self._functions[call.function]
            if isinstance(function, bytes):
                began = perf_counter()
                try:
                    function = self._functions[call.function] = runtime.load(function)
                finally:
                    self._setup_s = perf_counter() - began
            buffers = self._spool.map(call.spool) if call.spool else []
        except BaseException as problem:
            return runtime.failed(problem, call.content)
        try:
            return runtime.call(function, call.args, buffers, call.content)
        except Exception as problem:  # of the runtime itself: what somebody else's program said can be anything
            return runtime.failed(problem, call.content)

    def _spooled(self, number: int, outcome: Outcome) -> tuple[str, Outcome]:
        name = f"result-{self._run}-{number}"
        try:
            self._spool.write(name, outcome.packed.raw)
            return name, outcome
        except JournalError as problem:
            return "", Outcome(frames.UNSENDABLE, Packed(f"the result cannot be kept: {problem}".encode(), []))

    def _children_s(self) -> float:
        """CPU time of processes that the call started and waited for."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        total = used.ru_utime + used.ru_stime
        children, self._children = total - self._children, total
        return children

    _children: float = 0.0

    def _kept_s(self) -> dict[int, float]:
        """CPU seconds so far of the processes that the runtime keeps, and of theirs."""
        return {pid: family_seconds(PROC / str(pid)) or 0.0 for pid in self._runtime.processes()}

    def _used_by_kept(self, before: dict[int, float]) -> tuple[float, float]:
        """What they have used since, and their clocks now. One that has ended is among the children that were waited
        for, with all it ever used: what it had used before is no part of the call."""
        now = self._kept_s()
        ended_s = sum(seconds for pid, seconds in before.items() if pid not in now)
        used_s = sum(max(seconds - before.get(pid, 0.0), 0.0) for pid, seconds in now.items())
        return used_s - ended_s, sum(now.values())

    def _wait_as_if_slow(self, began: float, cpu_s: float) -> float:
        """A virtual node of another speed: the call takes as long as its work would there."""
        if cpu_s > 0.0:
            sleep(cpu_s * (self._slowdown - 1.0))
        return perf_counter() - began

    # -- the way back --------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        self._sent_at = perf_counter()
        if not self._ended:
            return
        with self._sending:
            ended, self._ended = self._ended, []
            if ended:
                self._write(frames.frame(frames.ENDED, self._encode(ended)))

    def _tell(self, kind: int, body: bytes) -> None:
        with self._sending:
            self._write(frames.frame(kind, body))

    def _write(self, data: bytes) -> None:
        try:
            self._channel.sendall(data)
        except OSError:
            os._exit(0)  # nobody is there to hear it

    def _send_what_waits(self) -> None:
        """So that a long call does not keep back the results of short ones before it."""
        while True:
            self._unsent.wait()
            self._unsent.clear()
            sleep(FLUSH_S)
            if self._ended:
                self._send()


if __name__ == "__main__":
    main()
