"""A time limit for an HTTP answer as a whole, from its first byte to its last.

Owns how http.client is made to keep it: the limits of sockets hold for each piece anew. Knows nothing of what is asked.
"""

import io
import socket
from collections.abc import Callable
from http.client import HTTPResponse
from time import monotonic
from typing import Any


class _Raw(io.RawIOBase):
    """A socket's bytes until a moment: a server that sends one byte a second does not keep us for ever."""

    def __init__(self, sock: socket.socket, end: float) -> None:
        self._sock, self._end = sock, end
        self._inner = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._end - monotonic()
        if left <= 0.0:
            raise TimeoutError("the answer takes too long")
        self._sock.settimeout(left)
        return self._inner.readinto(buffer)

    def close(self) -> None:
        self._inner.close()
        super().close()


class _Until:
    """As much of a socket as an HTTPResponse uses."""

    def __init__(self, sock: socket.socket, end: float) -> None:
        self._sock, self._end = sock, end

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Raw(self._sock, self._end))


def answers_until(end: float) -> Callable[..., HTTPResponse]:
    """What an HTTPConnection makes of its socket: an answer that must be read by `end`."""

    def answer(sock: socket.socket, *args: Any, **more: Any) -> HTTPResponse:
        return HTTPResponse(_Until(sock, end), *args, **more)  # type: ignore[arg-type]

    return answer
