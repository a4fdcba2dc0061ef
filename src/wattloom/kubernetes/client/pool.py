"""The connections to one API server: a bounded number for requests, and one for each stream.

Owns opening, reuse and closing, the heads of requests, and what is sent again. Knows nothing of objects or retries
that wait: those are `api`'s.
"""

import asyncio
import ssl
from collections import deque
from typing import Final

from wattloom.errors import InputError
from wattloom.kubernetes.client.connection import Answer, Connection, Garbage, Lost
from wattloom.kubernetes.client.errors import BadAnswer, Unauthorized, Unreachable
from wattloom.kubernetes.client.target import Target

JSON: Final = "application/json"
CONNECT_S: Final = 10.0
AGAIN: Final = frozenset(("GET",))
"""Asking twice is the same as asking once, so a connection that proves stale does not matter."""


class Pool:
    """At most `size` requests are under way at once; the others wait their turn, first come first served."""

    def __init__(self, target: Target, *, size: int = 64, agent: str = "wattloom") -> None:
        self.target: Final = target
        self._size = size
        self._opened = 0
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()
        agent = "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in agent)
        self._head = f" HTTP/1.1\r\nHost: {target.authority}\r\nUser-Agent: {agent}\r\nAccept: {JSON}\r\n"
        self._closing = False

    async def request(
        self, method: str, path: str, body: bytes = b"", *, content: str = JSON, timeout_s: float = 30.0
    ) -> Answer:
        """One exchange. Sent a second time only where a kept connection proved stale and that can do no harm."""
        data = await self._written(method, path, body, content)
        connection = await self._take(method, path)
        while True:
            kept = connection.used
            try:
                answer = await connection.exchange(data, timeout_s)
            except Garbage as error:
                raise BadAnswer(f"{method} {path}", str(error)) from None
            except Lost as lost:
                harmless = not lost.sent or (method in AGAIN and not lost.answered and not connection.timed_out)
                if self._closing or not (kept and harmless):
                    raise Unreachable(f"{method} {path}", str(lost), sent=lost.sent) from None
            else:
                self._give_back(connection)
                return answer
            # The lost one has left its place by now or will: this one takes it.
            connection = await self._take(method, path, fresh=True)

    async def stream(self, path: str, *, timeout_s: float = 30.0) -> tuple[Answer, Connection]:
        """A GET whose answer goes on: a connection of its own, which the caller closes."""
        data = await self._written("GET", path, b"", "")
        connection = await self._open("GET", path)
        try:
            return await connection.open_stream(data, timeout_s), connection
        except Garbage as error:
            raise BadAnswer(f"GET {path}", str(error)) from None
        except Lost as lost:
            raise Unreachable(f"GET {path}", str(lost), sent=lost.sent) from None

    async def close(self) -> None:
        """Every connection is closed, also under requests that wait for their answer: those fail."""
        self._closing = True
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        for connection in tuple(self._all):
            connection.close()
        if self._all:
            await asyncio.wait([connection.closed for connection in self._all])

    async def _written(self, method: str, path: str, body: bytes, content: str) -> bytes:
        try:
            who = await self.target.credentials.authorization()
        except InputError as error:  # a token file that is gone, a plugin that fails: may be well again later
            raise Unauthorized(f"{method} {path}", str(error)) from None
        head = f"{method} {self.target.prefix}{path}{self._head}"
        if who:
            head += f"Authorization: {who}\r\n"
        if content and method != "GET":
            head += f"Content-Type: {content}\r\nContent-Length: {len(body)}\r\n"
        return head.encode("latin-1") + b"\r\n" + body

    async def _take(self, method: str, path: str, *, fresh: bool = False) -> Connection:
        while True:
            while self._idle and not fresh:
                connection = self._idle.pop()
                if connection.alive:
                    return connection
            if self._opened < self._size:
                return await self._open_one(method, path)
            given = await self._turn()
            if given is not None and given.alive:
                return given

    async def _turn(self) -> Connection | None:
        waiter: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():  # what was given is passed on
                given = waiter.result()
                self._next(None) if given is None else self._give_back(given)
            raise

    def _give_back(self, connection: Connection) -> None:
        if connection.alive and not self._next(connection):
            self._idle.append(connection)

    def _next(self, connection: Connection | None) -> bool:
        """Whose turn it is gets the connection, or the word that there is a place to open one."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return True
        return False

    async def _open_one(self, method: str, path: str) -> Connection:
        self._opened += 1
        try:
            connection = await self._open(method, path)
        except BaseException:
            self._place_free()
            raise
        connection.pooled = True
        if connection.closed.done():  # it was lost before it was ours
            self._place_free()
        return connection

    def _place_free(self) -> None:
        self._opened -= 1
        self._next(None)

    def _leave(self, connection: Connection) -> None:
        self._all.discard(connection)
        if connection.pooled:
            if connection in self._idle:
                self._idle.remove(connection)
            self._place_free()

    async def _open(self, method: str, path: str) -> Connection:
        target, loop = self.target, asyncio.get_running_loop()
        if self._closing:
            raise Unreachable(f"{method} {path}", "the client is closed", sent=False)
        try:
            context = await target.tls()
        except InputError as error:
            raise Unauthorized(f"{method} {path}", str(error)) from None
        try:
            async with asyncio.timeout(CONNECT_S):
                _, connection = await loop.create_connection(
                    lambda: Connection(loop, self._leave),
                    target.host,
                    target.port,
                    ssl=context,
                    server_hostname=target.server_name if context else None,
                )
        except (OSError, TimeoutError) as error:
            raise Unreachable(f"{method} {path}", _no_way(target, error), sent=False) from None
        if self._closing:
            connection.close()
        if not connection.closed.done():
            self._all.add(connection)
        return connection


def _no_way(target: Target, error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return f"{target.server} does not answer in {CONNECT_S:g} s"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{target.server} is not who it should be: {error.verify_message} (is the CA that of this cluster?)"
    return f"{target.server} cannot be reached: {error.strerror or error}"
