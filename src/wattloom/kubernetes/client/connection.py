"""One HTTP/1.1 connection to an API server: a request at a time, its answer whole or as a stream.

Owns the wire: parsing, timeouts of an exchange, back pressure of a stream. Knows no pool and nothing of Kubernetes.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Final, NamedTuple, cast

from wattloom.errors import MissingExtra

try:
    import httptools
except ModuleNotFoundError as missing:
    raise MissingExtra("Kubernetes", "kubernetes") from missing

HELD: Final = 1 << 20
"""Bytes of a stream nobody has read yet after which the server is made to wait."""
KEEP_ALIVE: Final = ((socket.TCP_KEEPIDLE, 20), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 4))
"""A server that is gone without a word is noticed after 40 s, also by a stream that only listens."""


class Answer(NamedTuple):
    status: int
    body: bytes
    retry_after_s: float | None


class Lost(Exception):
    """The exchange broke off. `sent` where the request went out, `answered` where a part of the answer had come."""

    def __init__(self, why: str, *, sent: bool = True, answered: bool = False) -> None:
        super().__init__(why)
        self.sent = sent
        self.answered = answered


class Garbage(Exception):
    """What came is no HTTP."""


class Connection(asyncio.Protocol):
    """Made by `loop.create_connection`. `left` is called once, when it is closed for whatever reason."""

    def __init__(self, loop: asyncio.AbstractEventLoop, left: Callable[["Connection"], None]) -> None:
        self.alive = False
        self.used = False
        self.pooled = False
        self.timed_out = False
        self.closed: Final[asyncio.Future[None]] = loop.create_future()
        self._loop = loop
        self._left = left
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport
        self._waiter: asyncio.Future[None] | None = None
        self._deadline = 0.0
        self._patience_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._parts: list[bytes] = []
        self._held = 0
        self._status = 0
        self._retry_after_s: float | None = None
        self._streaming = False
        self._ended = True
        self._answered = False
        self._failure: Exception | None = None

    async def exchange(self, request: bytes, timeout_s: float) -> Answer:
        """Send, and wait for the whole answer. After anything but an answer the connection is closed."""
        self._begin(request, streaming=False)
        await self._wait(timeout_s)
        parts = self._parts
        return Answer(self._status, parts[0] if len(parts) == 1 else b"".join(parts), self._retry_after_s)

    async def open_stream(self, request: bytes, timeout_s: float) -> Answer:
        """Send, and wait for the head of the answer; `read` gives its body. Other answers than 200 come whole."""
        self._begin(request, streaming=True)
        await self._wait(timeout_s)
        return Answer(self._status, b"" if self._streaming else b"".join(self._parts), self._retry_after_s)

    async def read(self, timeout_s: float) -> bytes:
        """What has come of the stream since; b"" at its end."""
        if not self._parts and not self._ended:
            self._waiter = self._loop.create_future()
            if self._failure is not None:
                self._wake()
            await self._wait(timeout_s)
        parts, self._parts = self._parts, []
        if self._held > HELD and self.alive:
            self._transport.resume_reading()
        self._held = 0
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """At once. TLS is not taken leave of: an answer may be under way, and nobody wants it."""
        if self.alive:
            self.alive = False
            self._transport.abort()

    def _begin(self, request: bytes, *, streaming: bool) -> None:
        self._parts = []
        self._retry_after_s = None
        self._streaming = streaming
        self._ended = self._answered = False
        self._waiter = self._loop.create_future()
        self.used = True
        if not self.alive:
            self._fail(Lost("the connection was closed", sent=False))
            return
        self._transport.write(request)

    async def _wait(self, timeout_s: float) -> None:
        waiter = self._waiter
        assert waiter is not None
        self._be_patient(timeout_s)
        try:
            await waiter
        except BaseException:
            self.close()
            raise
        finally:
            self._waiter = None

    def _be_patient(self, timeout_s: float) -> None:
        # One timer serves many exchanges: it finds out when it rings whether anybody is late, and goes on if not.
        self._patience_s = timeout_s
        deadline = self._deadline = self._loop.time() + timeout_s
        if self._timer is not None:
            if self._timer.when() <= deadline:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._waiter is None or not self.alive:
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._ring)
            return
        self.timed_out = True
        self._fail(Lost(f"no answer in {self._patience_s:g} s", answered=self._answered))
        self.close()

    def _fail(self, why: Exception) -> None:
        self._failure = self._failure or why
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        if self._failure is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(self._failure)

    # The transport's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.alive = True
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEP_ALIVE:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)

    def data_received(self, data: bytes) -> None:
        if self._ended:  # a word nobody asked for: the server takes its leave
            self.close()
            return
        self._answered = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(Garbage(f"the answer is no HTTP: {error}"))
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.alive = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._ended:
            why = f"the connection was lost: {exc}" if exc else "the server closed the connection"
            self._fail(Lost(why, answered=self._answered))
        if not self.closed.done():
            self.closed.set_result(None)
        self._left(self)

    # The parser's side.

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(name) == 11 and name.lower() == b"retry-after" and value.strip().isdigit():
            self._retry_after_s = float(value)

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        if self._streaming:
            self._streaming = self._status == 200
            if self._streaming:
                self._wake()

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)
        if self._streaming:
            self._held += len(body)
            if self._held > HELD and self.alive:
                self._transport.pause_reading()
            self._wake()

    def on_message_complete(self) -> None:
        if self._status < 200:  # "early hints" and their like: the answer is still to come
            return
        self._ended = True
        if not self._parser.should_keep_alive() or self._streaming:
            self.close()
        self._wake()
