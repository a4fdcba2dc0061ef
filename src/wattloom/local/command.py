"""A command as a call: run by a worker, with its streams passed through and a copy of its output kept.

Owns the command's life inside the worker: starting, streaming, signals, timeout and exit code. The standard streams are
those of the program that asked (`stdio_passing`); where that is gone, output is only kept.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from time import monotonic
from types import FrameType
from typing import Final

from wattloom.errors import WattloomError
from wattloom.local.stdio_passing import PassedStdio, receive_stdio
from wattloom.local.streaming import Stream, streams_for

SIGNALLED: Final = 128
"""Exit code of a command that was killed by signal n: this and n, as shells have it."""
TIMED_OUT: Final = 124
"""As `timeout` has it."""
CANNOT_RUN: Final = 126
GRACE_S: Final = 2.0
"""From the request to end to the order, after a timeout."""
AFTERWARDS_S: Final = 0.1
"""So long its output may stay silent after its end: what it left in the background may hold the streams open."""
INTERPRETERS: Final = ("python", "bash", "sh", "node", "ruby", "perl", "Rscript")
PASSED_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class CommandFailed(WattloomError):
    """It ended with another exit code than 0. `code` is that."""

    def __init__(self, code: int, problem: str) -> None:
        super().__init__(problem)
        self.code = code
        self.problem = problem

    def __reduce__(self) -> tuple[type["CommandFailed"], tuple[int, str]]:
        return type(self), (self.code, self.problem)


class Command:
    """What is sent to the worker in place of a function. Named after the program, so that each has its own figures."""

    def __init__(self, words: list[str]) -> None:
        self.__module__ = "command"
        self.__qualname__ = name_of_command(words)

    def __call__(self, words: list[str], folder: str, door: str, timeout: float | None) -> None:
        """Run it to its end. Raises CommandFailed."""
        with receive_stdio(door) as stdio, _signals_survived():
            if stdio.asked:
                raise CommandFailed(SIGNALLED + stdio.asked, "it was to end before it had begun")
            _Life(words, folder, stdio, timeout).live()


def name_of_command(words: list[str]) -> str:
    """The program's name; of an interpreter also that of its script or module."""
    name = Path(words[0]).name
    if not name.startswith(INTERPRETERS) or len(words) < 2:
        return name
    if words[1] == "-m" and len(words) > 2:
        return f"{name} -m {words[2]}"
    return name if words[1].startswith("-") else f"{name} {Path(words[1]).name}"


class _Life:
    """One command from its beginning to its end."""

    def __init__(self, words: list[str], folder: str, stdio: PassedStdio, timeout: float | None) -> None:
        self._words: Final = words
        self._folder: Final = folder
        self._stdio: Final = stdio
        self._timeout: Final = timeout
        self._selector: Final = DefaultSelector()
        self._code: int | None = None
        self._end: float | None = None
        """When something is due: the timeout, then the end of its grace."""
        self._timed_out = False

    def live(self) -> None:
        out, err = streams_for(self._stdio.out, self._stdio.err)
        open_streams = {out, err}
        try:
            process = self._start(out, err)
            self._watch(process, open_streams)
        finally:
            for stream in {out, err}:
                stream.close()
            self._selector.close()
            _keep(out, err)
        self._judge()

    def _start(self, out: Stream, err: Stream) -> "subprocess.Popen[bytes]":
        """In the worker's process group: whoever ends the worker ends the command too."""
        try:
            process = subprocess.Popen(
                self._words, cwd=self._folder, stdin=self._stdio.stdin, stdout=out.write_end, stderr=err.write_end
            )
        except OSError as problem:
            raise CommandFailed(CANNOT_RUN, f"{self._words[0]} cannot be run: {problem.strerror}") from None
        finally:
            out.close_write_end()
            err.close_write_end()
        return process

    def _watch(self, process: "subprocess.Popen[bytes]", streams: set[Stream]) -> None:
        pidfd = os.pidfd_open(process.pid)
        try:
            self._selector.register(pidfd, EVENT_READ)
            for stream in streams:
                self._selector.register(stream.read_end, EVENT_READ, stream)
            if self._stdio.control is not None:
                self._selector.register(self._stdio.control, EVENT_READ)
            self._end = None if self._timeout is None else monotonic() + self._timeout
            while self._code is None:
                self._turn(process, pidfd, streams)
            self._drain(streams)
        finally:
            os.close(pidfd)

    def _turn(self, process: "subprocess.Popen[bytes]", pidfd: int, streams: set[Stream]) -> None:
        wait = None if self._end is None else max(0.0, self._end - monotonic())
        found = self._selector.select(wait)
        for key, _ in found:
            if isinstance(key.data, Stream):
                self._pass_on(key.data, streams)
            elif key.fd == pidfd:
                self._selector.unregister(pidfd)
                self._code = process.wait()
            else:
                self._obey()
        if self._end is not None and monotonic() >= self._end:
            self._too_long(process)

    def _pass_on(self, stream: Stream, streams: set[Stream]) -> None:
        if not stream.pass_on():
            self._selector.unregister(stream.read_end)
            stream.close()  # whoever writes on learns that nobody reads
            streams.discard(stream)

    def _obey(self) -> None:
        """A signal for the command and all it started."""
        assert self._stdio.control is not None
        asked = self._stdio.control.recv(1)
        if not asked:
            self._selector.unregister(self._stdio.control)
            return
        os.killpg(0, asked[0])

    def _too_long(self, process: "subprocess.Popen[bytes]") -> None:
        if self._timed_out:
            process.kill()
            self._end = None
        else:
            self._timed_out = True
            self._end = monotonic() + GRACE_S
            os.killpg(0, signal.SIGTERM)

    def _drain(self, streams: set[Stream]) -> None:
        """What it wrote last."""
        while streams:
            found = [key for key, _ in self._selector.select(AFTERWARDS_S) if isinstance(key.data, Stream)]
            if not found:
                return
            for key in found:
                self._pass_on(key.data, streams)

    def _judge(self) -> None:
        assert self._code is not None
        if self._timed_out:
            raise CommandFailed(TIMED_OUT, f"ran longer than its timeout of {self._timeout:g} s")
        if self._code < 0:
            raise CommandFailed(SIGNALLED - self._code, f"killed by {_signal_name(-self._code)}")
        if self._code > 0:
            raise CommandFailed(self._code, f"exit code {self._code}")


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


@contextmanager
def _signals_survived() -> Iterator[None]:
    """A signal to the whole group ends the command, not the worker. A handler does it: unlike an ignored signal it is
    not inherited by the command. What was ignored before, as under nohup, stays ignored; the worker's own Ctrl-C is."""
    ours = [each for each in PASSED_ON if each == signal.SIGINT or signal.getsignal(each) != signal.SIG_IGN]
    before = {each: signal.signal(each, _take_no_notice) for each in ours}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _take_no_notice(number: int, frame: FrameType | None) -> None:
    pass


def _keep(out: Stream, err: Stream) -> None:
    """For `wattloom logs`: the worker's standard output keeps what it is told of."""
    keep: Callable[[str], None] | None = getattr(sys.stdout, "keep", None)
    for stream in dict.fromkeys((out, err)):
        if keep is not None and stream.kept:
            keep(stream.kept.decode(errors="replace"))
