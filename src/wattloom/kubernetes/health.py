"""The scheduler's own small web server: health, readiness, metrics, and why a pod went where it went.

Owns who may ask, and how long a caller may keep it waiting. Where it listens on loopback alone every program of this
machine may ask everything (also `kubectl port-forward`, which comes from within the pod); on any other address whoever
comes may only ask whether it is well, unless he brings the token. Works nothing out itself.
"""

import asyncio
import errno
import hmac
import logging
import re
import ssl
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from wattloom.errors import InputError

LOG: Final = logging.getLogger(__name__)
DEFAULT: Final = "127.0.0.1:10262"
PATIENCE_S: Final = 10.0
"""For a whole head, and for the caller to take the answer."""
MOST_BYTES: Final = 16_384
"""Of a head."""
MOST_CALLERS: Final = 64
MOST_ANSWERED: Final = 48
"""Callers whose answer is being worked out: the other places are kept for health and readiness."""
GOODBYE_S: Final = 0.01
"""For the event loop to bring those whose connection it has taken already, and to close them."""
MOST_FIELDS: Final = 16
SHORTEST_TOKEN: Final = 16
TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
STATUS: Final = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
NO_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")
FIELD: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\0\r\n]*")
"""A line of a head, as HTTP has it."""


class Asked(NamedTuple):
    """A request: its path, its query, and the form of answer it prefers."""

    path: str
    query: dict[str, str]
    accept: str


class Answered(NamedTuple):
    status: int
    kind: str
    body: bytes


Page = Callable[[Asked], Awaitable[Answered]]


class WebServer:
    """`open` pages are for everybody, `pages` for those who may."""

    def __init__(
        self,
        address: str,
        open: dict[str, Page],
        pages: dict[str, Page],
        *,
        token: str = "",
        encryption: ssl.SSLContext | None = None,
        field: str = "http",
    ) -> None:
        """`field` is what a wrong address is blamed on."""
        self._host, self._port = parse_address(address, field)
        self._field = field
        if token and len(token) < SHORTEST_TOKEN:
            raise InputError("token", f"must have at least {SHORTEST_TOKEN} characters")
        self._open, self._pages = open, pages
        self._token = token
        self._encryption = encryption
        self._server: asyncio.Server | None = None
        self._slow: dict[asyncio.StreamWriter, None] = {}
        """Whoever keeps us waiting, for a request or to take the answer; the longest first."""
        self._answered = 0
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        try:
            self._server = await asyncio.start_server(
                self._came,
                self._host or None,
                self._port,
                limit=MOST_BYTES,
                ssl=self._encryption,
                ssl_handshake_timeout=PATIENCE_S if self._encryption is not None else None,
            )
        except OSError as problem:
            raise cannot_listen(self._field, self._host, self._port, problem) from None

    @property
    def port(self) -> int:
        """IPv4's, where both kinds of addresses have one of their own."""
        assert self._server is not None
        return int(min(self._server.sockets, key=lambda each: each.family).getsockname()[1])

    async def stop(self) -> None:
        """Every connection is closed when this returns, also of those who came in the last moment."""
        if self._server is not None:
            self._server.close()
            await asyncio.sleep(GOODBYE_S)
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.wait(self._serving)
            await asyncio.sleep(GOODBYE_S)

    # -- a caller ----------------------------------------------------------------------------------------------------

    def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._make_room()
        self._slow[writer] = None
        try:
            head = await _head(reader)
            self._slow.pop(writer, None)
            answer = await self._answer(head)
            self._slow[writer] = None
            await _send(writer, _bytes(answer, body=not head.startswith(b"HEAD ")))
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass
        finally:
            self._slow.pop(writer, None)
            writer.transport.abort()  # what he did not take by now he will not

    def _make_room(self) -> None:
        """Who has kept us waiting longest leaves for whoever comes: probes ask at once, and so always get in."""
        if len(self._slow) + self._answered >= MOST_CALLERS and self._slow:
            slowest = next(iter(self._slow))
            del self._slow[slowest]
            slowest.transport.abort()

    async def _answer(self, head: bytes) -> Answered:
        if len(head) > MOST_BYTES:
            return Answered(431, TEXT, b"the head is too long\n")
        try:
            asked, authorization = _parsed(head.decode("latin-1"))
        except ValueError as wrong:
            return Answered(400, TEXT, f"this cannot be asked: {wrong}\n".encode())
        if asked.path in self._open:
            return await self._worked_out(self._open[asked.path], asked)
        if not self._may(authorization):
            return Answered(401, TEXT, b"a token is needed: Authorization: Bearer TOKEN\n")
        page = self._pages.get(asked.path)
        if page is None:
            return Answered(404, TEXT, f"there is {', '.join((*self._open, *self._pages))}\n".encode())
        if self._answered >= MOST_ANSWERED:
            return Answered(503, TEXT, b"too many ask at once\n")
        return await self._worked_out(page, asked)

    async def _worked_out(self, page: Page, asked: Asked) -> Answered:
        self._answered += 1
        try:
            return await page(asked)
        except Exception:
            LOG.exception("%s could not be answered", asked.path)
            return Answered(500, TEXT, b"this could not be worked out: the scheduler's own log says why\n")
        finally:
            self._answered -= 1

    def _may(self, authorization: str) -> bool:
        """Who comes from loopback to an address that others reach too may be a proxy that brings anybody."""
        if is_loopback(self._host):
            return True
        expected = f"Bearer {self._token}".encode()
        return bool(self._token) and hmac.compare_digest(authorization.encode("latin-1"), expected)


async def _head(reader: asyncio.StreamReader) -> bytes:
    """As far as it is looked at: longer than allowed where it has no end within that."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return await reader.read(MOST_BYTES + 1)


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    async with asyncio.timeout(PATIENCE_S):
        writer.write(data)
        await writer.drain()
        writer.close()
        await writer.wait_closed()


def _parsed(head: str) -> tuple[Asked, str]:
    """What is asked, and the authorization with it. ValueError: in words, why that cannot be."""
    first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or words[0] not in ("GET", "HEAD") or not words[2].startswith("HTTP/1."):
        raise ValueError("only GET")
    if not all(FIELD.fullmatch(line) for line in lines):
        raise ValueError("a line of the head is no NAME: TEXT")
    headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
    path, query = _target(words[1])
    return Asked(path, query, headers.get("accept", "")), headers.get("authorization", "")


def _target(text: str) -> tuple[str, dict[str, str]]:
    if not (text.isascii() and text.isprintable()) or NO_ESCAPE.search(text):
        raise ValueError("the address is no address")
    url = urlsplit(text)
    found = parse_qs(url.query, errors="strict", max_num_fields=MOST_FIELDS)
    query = {name: values[-1] for name, values in found.items()}
    if not all(f"{name}{value}".isprintable() for name, value in query.items()):
        raise ValueError("the query has control characters in it")
    return url.path, query


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can come there."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def cannot_listen(option: str, host: str, port: int, problem: OSError) -> InputError:
    """In words: asyncio's own are long, and say nothing of the option that helps."""
    if problem.errno == errno.EADDRINUSE:
        return InputError(option, f"port {port} is taken by another program: --{option} HOST:PORT takes another one")
    return InputError(option, f"cannot listen at {host}:{port}: {problem.strerror or problem}")


def parse_address(text: str, field: str = "http") -> tuple[str, int]:
    """`HOST:PORT`, `[HOST]:PORT` or `:PORT`: an empty host is every address of this machine, of IPv4 and of IPv6."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise InputError(field, f"must be HOST:PORT, as in {DEFAULT}, not {text!r}")
    return host.strip("[]"), int(port)


def _bytes(answer: Answered, *, body: bool) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status} {STATUS[answer.status]}\r\nContent-Type: {answer.kind}\r\n"
        f"Content-Length: {len(answer.body)}\r\nConnection: close\r\n"
    )
    if answer.status == 401:
        head += "WWW-Authenticate: Bearer\r\n"
    return f"{head}\r\n".encode("latin-1") + (answer.body if body else b"")
