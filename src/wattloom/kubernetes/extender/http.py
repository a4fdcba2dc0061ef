"""The extender's wire: HTTP/1.1 as kube-scheduler speaks it, a question at a time, on connections that stay open.

Owns parsing, and what is said to what is no question. Knows neither pods nor nodes: a verb is a function from body to
body. Places, deadlines, sizes, tokens and TLS are `serving`'s, as of every server; the protocol is its own, for speed.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from typing import Final, Protocol, cast

import httptools
import msgspec

from wattloom.errors import InputError
from wattloom.serving.access import Access, check_token
from wattloom.serving.address import parse_address
from wattloom.serving.places import Caller, Limits, Places
from wattloom.serving.server import Server

LOG: Final = logging.getLogger(__name__)


class Verb(Protocol):
    """A body for a body. None: it is to be asked once more in a moment, and that is the last time."""

    def __call__(self, body: bytes, last: bool = False) -> bytes | None: ...


MOMENT_S: Final = 0.02
LIMITS: Final = Limits(request_s=30.0, idle_s=900.0, head=65_536, body=64 << 20, callers=256)
"""A pod, and the names of far more nodes than a cluster has; connections that kube-scheduler keeps open."""
HEAD: Final = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%b\r\n"
OK: Final = b"200 OK"


class ExtenderServer:
    """`observe` is told the seconds that each answer took."""

    def __init__(
        self,
        address: str,
        verbs: Mapping[str, Verb],
        *,
        token: str = "",
        encryption: ssl.SSLContext | None = None,
        observe: Callable[[float], None] = lambda seconds: None,
        limits: Limits = LIMITS,
    ) -> None:
        where = parse_address(address)
        check_token(token)
        knows_callers = encryption is not None and encryption.verify_mode is ssl.CERT_REQUIRED
        if not (where.loopback or token or knows_callers):
            raise InputError("listen", f"{address} is open to other machines: give --client-ca with TLS, or a token")
        self.verbs: Final = {f"/{name}".encode(): verb for name, verb in verbs.items()}
        self.observe: Final = observe
        self.may: Final = Access(token).admits
        self._server: Final = Server(
            where, lambda places: _Connection(self, places), limits=limits, encryption=encryption
        )

    async def start(self) -> None:
        await self._server.start()

    @property
    def port(self) -> int:
        return self._server.port

    async def stop(self) -> None:
        """Every connection is closed when this returns."""
        await self._server.stop()


class _Connection(asyncio.Protocol):
    """Called back by its parser."""

    def __init__(self, server: ExtenderServer, places: Places) -> None:
        self._server, self._places, self._limits = server, places, places.limits
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._caller: Caller
        self._url = b""
        self._authorization = b""
        self._quiet = 0
        """Bytes since the parser last knew what to do with them: it keeps a line until it is whole."""
        self._head = 0
        self._size = 0
        self._body = bytearray()
        self._waits = False
        """Whether a question is being looked at a second time."""
        self._turned_away = False
        """Whether it may not ask: what else it sends is thrown away."""
        self._reads = True
        """Whether it takes its answers."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its class
        self._caller = self._places.take(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._caller.gone()

    def pause_writing(self) -> None:
        """It does not read: nothing more is taken from it until it does."""
        self._reads = False
        self._caller.wait(self._limits.request_s)
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._reads = True
        if not self._transport.is_closing():
            self._caller.wait(self._limits.idle_s)
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._quiet += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(b"400 Bad Request", "nothing but HTTP/1.1 is spoken here")
        except httptools.HttpParserError as error:
            self._refuse(b"400 Bad Request", f"this is no HTTP: {error}")
        if self._quiet > self._limits.head:
            self._refuse(b"431 Request Header Fields Too Large", "the head is too long")

    # -- what the parser calls ---------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._waits or not self._reads:  # nobody who waits for answers, or takes them, asks again meanwhile
            self._end()
        elif self._caller.known:  # the first one's time began with the connection
            self._caller.wait(self._limits.request_s)
        self._url = self._authorization = b""
        self._head = self._size = 0
        self._body = bytearray()

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._limit_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._limit_head(len(name) + len(value))
        if name.lower() == b"authorization":
            self._authorization = value
        elif name.lower() == b"content-length" and value.isdigit() and int(value[:20]) > self._limits.body:
            self._refuse(b"413 Content Too Large", "the question is too long")

    def on_headers_complete(self) -> None:
        """Nothing is kept of what somebody sends who may not ask. He is heard out, else he would not read why."""
        self._quiet = 0
        if not self._transport.is_closing() and not self._server.may(self._authorization):
            self._turned_away = True
            self._say_last(b"401 Unauthorized", "a token is needed: https://wattloom:TOKEN@HOST:PORT")

    def on_body(self, body: bytes) -> None:
        self._quiet = 0
        self._size += len(body)
        if self._size > self._limits.body:
            self._refuse(b"413 Content Too Large", "the question is too long")
        elif not self._turned_away:
            self._body += body

    def on_message_complete(self) -> None:
        self._quiet = 0
        if self._turned_away:
            self._end()
        if self._transport.is_closing():
            return
        verb = self._server.verbs.get(self._url.partition(b"?")[0])
        if verb is None:
            there = ", ".join(name.decode() for name in self._server.verbs)
            self._send(b"404 Not Found", _problem(f"there is {there}"))
        elif self._parser.get_method() != b"POST":
            self._send(b"405 Method Not Allowed", _problem("questions are sent by POST"))
        else:
            self._answer(verb, bytes(self._body), last=False)

    def _answer(self, verb: Verb, body: bytes, *, last: bool) -> None:
        begun = perf_counter()
        self._waits = False
        try:
            answer = verb(body, last)
        except Exception:
            LOG.exception("a question could not be answered")
            self._refuse(b"500 Internal Server Error", "this could not be worked out: the extender's log says why")
            return
        if answer is not None:
            self._server.observe(perf_counter() - begun)
            self._send(OK, answer)
        elif not self._transport.is_closing():
            self._waits = True
            self._caller.work()
            asyncio.get_running_loop().call_later(MOMENT_S, partial(self._answer, verb, body, last=True))

    def _limit_head(self, more: int) -> None:
        self._head += more
        if self._head > self._limits.head:
            self._refuse(b"431 Request Header Fields Too Large", "the head is too long")

    def _refuse(self, status: bytes, problem: str) -> None:
        if not self._transport.is_closing():
            if not self._turned_away:
                self._say_last(status, problem)
            self._end()

    def _end(self) -> None:
        self._transport.close()
        self._caller.wait(self._limits.request_s)

    def _say_last(self, status: bytes, problem: str) -> None:
        body = _problem(problem)
        self._transport.write(HEAD % (status, len(body), b"Connection: close\r\n") + body)

    def _send(self, status: bytes, body: bytes) -> None:
        if self._transport.is_closing():
            return
        keep = self._parser.should_keep_alive()
        self._transport.write(HEAD % (status, len(body), b"" if keep else b"Connection: close\r\n") + body)
        self._body = bytearray()
        self._caller.known = True
        if self._reads:
            self._caller.wait(self._limits.idle_s)
        if not keep:
            self._end()


def _problem(words: str) -> bytes:
    return msgspec.json.encode({"Error": f"wattloom: {words}"})
