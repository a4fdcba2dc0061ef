"""The standard streams of a program, handed to the worker that runs a command for it; and signals, passed on to it.

Owns the socket between the two: abstract, so that nothing is left behind, and for processes of the same user only.
Nothing of this is in the journal but the socket's name.
"""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex
from subprocess import DEVNULL
from threading import Thread
from typing import Final

CREDENTIALS: Final = struct.Struct("3i")
STREAMS: Final = 3
PATIENCE_S: Final = 10.0


class Handed:
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
def take_over(door: str) -> Iterator[Handed]:
    """In the worker: fetch the streams from the program that asked."""
    handed = _fetch(door)
    try:
        yield handed
    finally:
        for descriptor in handed.descriptors:
            os.close(descriptor)
        if handed.control is not None:
            handed.control.close()


def _fetch(door: str) -> Handed:
    control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        control.settimeout(PATIENCE_S)
        control.connect(_address(door))
        first, descriptors, _, _ = socket.recv_fds(control, 1, STREAMS)
        control.settimeout(None)
    except OSError:  # the program that asked is gone, and a later one runs its command again
        control.close()
        return Handed(None, 0, [])
    if not first:
        control.close()
        return Handed(None, 0, [])
    return Handed(control, first[0], list(descriptors))


class Handover:
    """In the program that asked: waits for workers, gives each the streams, and passes signals on to all."""

    def __init__(self) -> None:
        self.name: Final = f"wattloom-{os.getpid()}-{token_hex(8)}"
        self.asked: int = 0
        """The signal that was passed on last."""
        self._workers: Final[list[socket.socket]] = []
        self._nothing: Final = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._streams: Final = [self._usable_input(), self._usable(1), self._usable(2)]
        self._door: Final = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._door.bind(_address(self.name))
        self._door.listen()
        self._thread: Final = Thread(target=self._serve, name="wattloom-handover", daemon=True)
        self._thread.start()

    @property
    def begun(self) -> bool:
        """Whether a worker has come for the streams."""
        return bool(self._workers)

    def signal(self, number: int) -> None:
        """To every command that runs, and to those that would begin later. May be called by a signal handler."""
        self.asked = number
        for worker in list(self._workers):
            with suppress(OSError):
                worker.send(bytes([number]))

    def close(self) -> None:
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._door.close()
        for worker in self._workers:
            worker.close()
        os.close(self._nothing)

    def _serve(self) -> None:
        while True:
            try:
                worker, _ = self._door.accept()
            except OSError:
                return
            if not _is_ours(worker):
                worker.close()
                continue
            self._workers.append(worker)  # before the signal is looked at: none is lost in between
            with suppress(OSError):
                socket.send_fds(worker, [bytes([self.asked])], self._streams)

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


def _is_ours(worker: socket.socket) -> bool:
    _, user, _ = CREDENTIALS.unpack(worker.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
    return bool(user == os.getuid())
