"""A process that is kept warm and asked by frames: what Node, Java and native programs have in common.

Owns its pipes, what it prints, and how its end is told. It is in the worker's process group, so whatever ends the
worker ends it too; when the worker has gone, its requests end and so does it.

A frame is a kind (1 byte), a function's number (4), a length (8, all little-endian) and so many bytes. Requests come by
the descriptor in WATTLOOM_REQUESTS, replies go to that in WATTLOOM_REPLIES. Standard output and error are the call's
log.
"""

import codecs
import fcntl
import os
import select
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from signal import Signals
from typing import Final

HEAD: Final = struct.Struct("<BIQ")
LOAD: Final = 1
"""To the process: a function, as JSON (`path`, `entry`, `digest`, and what its runtime adds)."""
CALL_JSON: Final = 2
CALL_BYTES: Final = 3
"""To the process: arguments."""
READY: Final = 16
"""From the process: the function is loaded."""
VALUE_JSON: Final = 17
VALUE_BYTES: Final = 18
"""From the process: a result."""
RAISED: Final = 19
"""From the process: a failure, as JSON (`type`, `message`, `traceback`)."""
UNSENDABLE: Final = 20
"""From the process: why the result cannot be sent, as text."""
RAISED_LAST: Final = 21
"""As RAISED, and the process ends: it is in no state to go on."""
F_SETPIPE_SZ: Final = 1031
PIPE_BYTES: Final = 1 << 20
READ_AT_ONCE: Final = 1 << 20
ENDING_S: Final = 5.0
FAULTS: Final = frozenset(
    {Signals.SIGSEGV, Signals.SIGBUS, Signals.SIGFPE, Signals.SIGILL, Signals.SIGABRT, Signals.SIGSYS, Signals.SIGTRAP}
)
REQUESTS: Final = "WATTLOOM_REQUESTS"
REPLIES: Final = "WATTLOOM_REPLIES"


class Ended(Exception):
    """It has ended instead of answering. `code` as of `subprocess`: negative for a signal."""

    def __init__(self, code: int) -> None:
        self.code: Final = code
        self.plainly: Final = _how(code)
        super().__init__(self.plainly + (" before it had answered" if code >= 0 else ""))

    @property
    def by_its_own_fault(self) -> bool:
        """It ended itself, or did what no program may: nobody else killed it."""
        return self.code >= 0 or -self.code in FAULTS

    @property
    def exit_code(self) -> int:
        """As shells have it: 128 and more for a signal."""
        return self.code if self.code >= 0 else 128 - self.code


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    with suppress(ValueError):
        return f"was killed by {Signals(-code).name}"
    return f"was killed by signal {-code}"


class Printed:
    """What a process prints: passed on to one of our own streams, which keeps it for the call."""

    def __init__(self, stream: str) -> None:
        self.end, self.theirs = os.pipe()
        self._stream: Final = stream
        self._decoder: Final = codecs.getincrementaldecoder("utf-8")("replace")
        os.set_blocking(self.end, False)

    def pass_on(self) -> bool:
        """What is there now. False: nothing more will come."""
        try:
            data = os.read(self.end, READ_AT_ONCE)
        except BlockingIOError:
            return True
        text = self._decoder.decode(data, final=not data)
        if text:
            with suppress(Exception):  # a call may have closed it, or nobody may be there to read
                getattr(sys, self._stream).write(text)
        return bool(data)

    def drain(self) -> None:
        """All that has been written so far."""
        while select.select([self.end], [], [], 0)[0] and self.pass_on():
            pass

    def close(self) -> None:
        os.close(self.end)


class Child:
    """One warm process."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Raises OSError."""
        requests, self._requests = _pipe()
        self._replies, replies = _pipe()
        self._printed: Final = (Printed("stdout"), Printed("stderr"))
        theirs = (requests, replies, *(each.theirs for each in self._printed))
        try:
            self.process: Final = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._printed[0].theirs,
                stderr=self._printed[1].theirs,
                pass_fds=(requests, replies),
                env={**(os.environ if environment is None else environment)}
                | {REQUESTS: str(requests), REPLIES: str(replies)},
            )
        except BaseException:
            self._close_pipes()
            raise
        finally:
            for end in theirs:
                os.close(end)
        os.set_blocking(self._requests, False)
        os.set_blocking(self._replies, False)
        self._life: Final = os.pidfd_open(self.process.pid)
        self.functions: int = 0
        """That it has loaded."""
        self.over: bool = False

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        return not self.over and self.process.poll() is None

    def ask(self, kind: int, function: int, body: bytes | memoryview) -> tuple[int, bytes]:
        """Say something, and wait for the answer. Raises Ended."""
        out = [memoryview(HEAD.pack(kind, function, len(body))), memoryview(body)]
        if len(body) < READ_AT_ONCE:
            out = [memoryview(out[0].tobytes() + bytes(body))]
        found = bytearray()
        asked = self._poll(bool(out))
        while True:
            ready = dict(asked.poll())
            for printed in self._printed:
                if printed.end in ready and not printed.pass_on():
                    asked.unregister(printed.end)
            if self._requests in ready:
                self._write(out)
                if not out:
                    asked.unregister(self._requests)
            if self._replies in ready and not self._read(found):
                asked.unregister(self._replies)
            if self._life in ready:
                self._read_the_rest(found)
            if (answer := _answer(found)) is not None:
                self._drain()
                return answer
            if self._life in ready:
                raise self._ended()

    def _poll(self, writes: bool) -> select.poll:
        asked = select.poll()
        for end in (self._replies, self._life, *(each.end for each in self._printed)):
            asked.register(end, select.POLLIN)
        if writes:
            asked.register(self._requests, select.POLLOUT)
        return asked

    def _write(self, out: list[memoryview]) -> None:
        try:
            while out:
                sent = os.write(self._requests, out[0])
                out[0] = out[0][sent:]
                if not out[0]:
                    del out[0]
        except BlockingIOError:
            pass
        except OSError:
            out.clear()  # it does not read any more: we shall hear of its end

    def _read(self, found: bytearray) -> bool:
        """False: nothing more will come."""
        try:
            data = os.read(self._replies, READ_AT_ONCE)
        except BlockingIOError:
            return True
        found += data
        return bool(data)

    def _read_the_rest(self, found: bytearray) -> None:
        """What it said before it ended. Something that it has left behind may keep the pipe open."""
        while select.select([self._replies], [], [], 0)[0] and self._read(found):
            pass

    def _ended(self) -> Ended:
        self._drain()
        code = self.process.wait()
        self.close()
        return Ended(code)

    def _drain(self) -> None:
        for printed in self._printed:
            printed.drain()

    # -- the end -------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """It ends, by itself or at once."""
        if self.over:
            return
        self.over = True
        self._close_pipes()
        try:
            self.process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._life)

    def _close_pipes(self) -> None:
        for end in (self._requests, self._replies):
            os.close(end)
        for printed in self._printed:
            printed.close()


def _pipe() -> tuple[int, int]:
    read, write = os.pipe()
    with suppress(OSError):  # more than it may have, or not here
        fcntl.fcntl(write, F_SETPIPE_SZ, PIPE_BYTES)
    return read, write


def _answer(found: bytearray) -> tuple[int, bytes] | None:
    """The frame, if it is whole."""
    if len(found) < HEAD.size:
        return None
    kind, _, length = HEAD.unpack_from(found)
    if len(found) < HEAD.size + length:
        return None
    return kind, bytes(memoryview(found)[HEAD.size : HEAD.size + length])
