"""The standard streams of a program, handed to the worker that runs a command for it; and signals, passed on to it.

Owns the socket between the two: abstract, so that nothing is left behind, and for processes of the same user only, at
both ends: everybody can see its name, and take it when the program is gone.
Nothing of this is in the journal but the socket's name.
"""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex
from selectors import EVENT_READ, DefaultSelector
from subprocess import DEVNULL
from threading import Event, RLock, Thread
from typing import Final

CREDENTIALS: Final = struct.Struct("3i")
STREAMS: Final = 3
PATIENCE_S: Final = 10.0
TRY_AGAIN_S: Final = 0.05
"""When a worker could not be let in: for want of descriptors, mostly, and others may give some back."""


class PassedStdio:
    """What a worker was given. Without anybody to give it something: no input, and nowhere to write to."""

    def __init__(self, control: socket.socket | None, asked: int, descriptors: list[int]) -> None:
        self.control: Final = control
        self.asked: Final = asked
        """A signal that came before the command could begin; 0: none."""
        self.descriptors: Final = descriptors
        self.stdin: Final = descriptors[0] if descriptors else DEVNULL
        self.out: Final = descriptors[1] if descriptors else None
        self.err: Final = descriptors[2] if descriptors else None


@contextmanager
def receive_stdio(door: str) -> Iterator[PassedStdio]:
    """In the worker: fetch the streams from the program that asked."""
    stdio = _fetch(door)
    try:
        yield stdio
    finally:
        for descriptor in stdio.descriptors:
            os.close(descriptor)
        if stdio.control is not None:
            stdio.control.close()


def _fetch(door: str) -> PassedStdio:
    control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        control.settimeout(PATIENCE_S)
        control.connect(_address(door))
        if not _is_ours(control):  # anybody may have taken the name of a program that is gone
            raise PermissionError
        first, descriptors, _, _ = socket.recv_fds(control, 1, STREAMS)
        control.settimeout(None)
    except OSError:  # the program that asked is gone, and a later one runs its command again
        control.close()
        return PassedStdio(None, 0, [])
    if not first:
        control.close()
        return PassedStdio(None, 0, [])
    return PassedStdio(control, first[0], list(descriptors))


class StdioServer:
    """In the program that asked: waits for workers, gives each the streams, and passes signals on to all."""

    def __init__(self) -> None:
        self.name: Final = f"wattloom-{os.getpid()}-{token_hex(8)}"
        self.asked: int = 0
        """The signal that was passed on last."""
        self.begun: bool = False
        """Whether a worker has ever come for the streams."""
        self._workers: Final[set[socket.socket]] = set()
        """Those that have not gone."""
        self._changing: Final = RLock()
        """Held while one comes or goes. A signal handler may interrupt another: both are of one thread."""
        self._closing: Final = Event()
        self._nothing: Final = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._streams: Final = [self._usable_input(), self._usable(1), self._usable(2)]
        self._door: Final = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._door.setblocking(False)
        self._door.bind(_address(self.name))
        self._door.listen()
        self._selector: Final = DefaultSelector()
        self._selector.register(self._door, EVENT_READ)
        self._thread: Final = Thread(target=self._serve, name="wattloom-stdio", daemon=True)
        self._thread.start()

    def signal(self, number: int) -> None:
        """To every command that runs, and to those that would begin later. May be called by a signal handler."""
        self.asked = number
        with self._changing:
            for worker in list(self._workers):
                with suppress(OSError):
                    worker.send(bytes([number]))

    def close(self) -> None:
        self._closing.set()
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._selector.close()
        self._door.close()
        for worker in self._workers:
            worker.close()
        os.close(self._nothing)

    def _serve(self) -> None:
        while not self._closing.is_set():
            for key, _ in self._selector.select():
                if isinstance(key.data, socket.socket):
                    self._let_go(key.data)
                else:
                    self._let_in()

    def _let_in(self) -> None:
        try:
            worker, _ = self._door.accept()
        except BlockingIOError:  # it went away again
            return
        except OSError:  # it waits at the door until somebody gives a descriptor back; or the door was shut
            self._closing.wait(TRY_AGAIN_S)
            return
        if not _is_ours(worker):
            worker.close()
            return
        with self._changing:
            self._workers.add(worker)  # before the signal is looked at: none is lost in between
            self.begun = True
            self._selector.register(worker, EVENT_READ, worker)
        with suppress(OSError):
            socket.send_fds(worker, [bytes([self.asked])], self._streams)

    def _let_go(self, worker: socket.socket) -> None:
        """It never writes: there is something to read when its command has ended."""
        with self._changing:
            self._selector.unregister(worker)
            self._workers.discard(worker)
            worker.close()

    def _usable(self, descriptor: int) -> int:
        try:
            os.fstat(descriptor)
        except OSError:
            return self._nothing
        return descriptor

    def _usable_input(self) -> int:
        """Not a terminal in whose background we are: the command would take from the shell what is typed there."""
        try:
            if os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp():
                return self._nothing
        except OSError:
            return self._usable(0)  # a terminal, but not the one that controls us
        return self._usable(0)


def _address(name: str) -> str:
    return f"\0{name}"


def _is_ours(other: socket.socket) -> bool:
    """Whether a process of this user is at the other end, by the kernel's word: of the one that listens, who it was
    when it began to."""
    _, user, _ = CREDENTIALS.unpack(other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
    return bool(user == os.geteuid())
