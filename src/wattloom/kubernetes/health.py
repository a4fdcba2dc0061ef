"""The scheduler's own small web server: health, readiness, metrics, and why a pod went where it went.

Owns who may ask: programs on this machine (also `kubectl port-forward`, which comes from within the pod) may ask
everything; from elsewhere only whether it is well, unless they bring the token. Works nothing out itself.
"""

import asyncio
import errno
import hmac
import ssl
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from wattloom.errors import InputError

DEFAULT: Final = "127.0.0.1:10262"
PATIENCE_S: Final = 10.0
MOST_BYTES: Final = 16_384
MOST_CALLERS: Final = 64
SHORTEST_TOKEN: Final = 16
TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
STATUS: Final = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 503: "Service Unavailable"}


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
        self._callers = 0

    async def start(self) -> None:
        try:
            self._server = await asyncio.start_server(
                self._serve, self._host or None, self._port, limit=MOST_BYTES, ssl=self._encryption
            )
        except OSError as problem:
            raise cannot_listen(self._field, self._host, self._port, problem) from None

    @property
    def port(self) -> int:
        """IPv4's, where both kinds of addresses have one of their own."""
        assert self._server is not None
        return int(min(self._server.sockets, key=lambda each: each.family).getsockname()[1])

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._callers += 1
        try:
            if self._callers <= MOST_CALLERS:
                async with asyncio.timeout(PATIENCE_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                answer = await self._answer(head.decode("latin-1"), writer.get_extra_info("peername"))
                writer.write(_bytes(answer, body=not head.startswith(b"HEAD ")))
                async with asyncio.timeout(PATIENCE_S):
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._callers -= 1
            writer.close()

    async def _answer(self, head: str, peer: object) -> Answered:
        first, *lines = head.split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or words[0] not in ("GET", "HEAD"):
            return Answered(400, TEXT, b"only GET\n")
        headers = {name.strip().lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
        url = urlsplit(words[1])
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        asked = Asked(url.path, query, headers.get("accept", ""))
        if url.path in self._open:
            return await self._open[url.path](asked)
        if not self._may(peer, headers.get("authorization", "")):
            return Answered(401, TEXT, b"a token is needed: Authorization: Bearer TOKEN\n")
        page = self._pages.get(url.path)
        if page is None:
            return Answered(404, TEXT, f"there is {', '.join((*self._open, *self._pages))}\n".encode())
        return await page(asked)

    def _may(self, peer: object, authorization: str) -> bool:
        if isinstance(peer, tuple) and ip_address(str(peer[0]).partition("%")[0]).is_loopback:
            return True
        expected = f"Bearer {self._token}".encode()
        return bool(self._token) and hmac.compare_digest(authorization.encode("latin-1"), expected)


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
