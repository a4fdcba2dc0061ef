"""What goes over the socket between the dispatcher and a worker.

Owns the frames: a length, a kind, and a MessagePack body. Both ends are ours and of one version.
"""

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from wattloom.runtimes.protocol import LOST, RAISED, UNSENDABLE, VALUE

__all__ = [
    "CALLS", "ENDED", "FORGET", "FUNCTION", "HELLO", "LOST", "PURGE", "PURGED", "RAISED", "READY", "RETURNED", "STOP",
    "UNSENDABLE", "VALUE", "CallFrame", "EndFrame", "Hello", "Inbox", "frame",
]  # fmt: skip

HEAD: Final = struct.Struct("<IB")

HELLO: Final = 1
"""To the worker: how to begin."""
FUNCTION: Final = 2
"""To the worker: a function (pickled, or which file it is in), once, before it is called."""
CALLS: Final = 3
"""To the worker: calls to make, in this order."""
PURGE: Final = 4
"""To the worker: forget the calls up to this number that have not begun."""
FORGET: Final = 9
"""To the worker: a function that is not likely to be called again."""
STOP: Final = 5
"""To the worker: end when nothing is left to do."""
READY: Final = 6
"""From the worker: it has begun; a text if its initializer failed."""
ENDED: Final = 7
"""From the worker: calls that ended."""
PURGED: Final = 8
"""From the worker: done; nothing it was told to forget will begin."""

RETURNED: Final = 0
"""How a call ended: it was not begun; or as a runtime says (`runtimes.protocol`)."""


class Hello(msgspec.Struct, array_like=True):
    """How a worker begins."""

    path: list[bytes]
    folder: bytes
    progress: bytes
    spool: bytes
    run: int
    initializer: bytes
    """Pickled (function, arguments); empty: none."""
    most_calls: int
    """It ends after so many; 0: as many as come."""
    environment: list[tuple[bytes, bytes]]
    cores: list[int]
    """It runs on these alone; empty: on all."""
    program: str
    """The name of the program that it works for."""
    slowdown: float
    """Makes a virtual node slow: after each call it waits until so many times the CPU time has passed."""


class CallFrame(msgspec.Struct, array_like=True, gc=False):
    """One call to make."""

    number: int
    function: int
    args: bytes
    spool: str
    """A spool file that holds the large buffers; empty: none."""
    content: str = ""
    """What kind of bytes the arguments are (`runtime`); empty: pickled."""


class EndFrame(msgspec.Struct, array_like=True, gc=False):
    """One call that ended."""

    number: int
    status: int
    body: bytes
    spool: str
    seconds: float
    cpu_s: float
    output: bytes
    """What it printed."""
    clock_s: float = 0.0
    """The worker's CPU clock when it ended."""
    content: str = ""
    """What kind of bytes the body is; empty: pickled."""
    setup_s: float = 0.0
    """Seconds before it, in which its function was made ready: only for the first call, and not in `seconds`."""


def frame(kind: int, body: bytes) -> bytes:
    return HEAD.pack(len(body), kind) + body


class Inbox:
    """Bytes as they come in, until they make frames."""

    def __init__(self) -> None:
        self._held = bytearray()

    def frames(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """All frames that are whole now."""
        held = self._held
        held += data
        at = 0
        while len(held) - at >= HEAD.size:
            length, kind = HEAD.unpack_from(held, at)
            end = at + HEAD.size + length
            if len(held) < end:
                break
            yield kind, bytes(memoryview(held)[at + HEAD.size : end])
            at = end
        del held[:at]
