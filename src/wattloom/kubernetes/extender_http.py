"""The extender's wire: HTTP/1.1 as kube-scheduler speaks it, a question at a time, on connections that stay open.

Owns parsing, limits and who may ask. Knows neither pods nor nodes: a verb is a function from body to body.
"""

import asyncio
import hmac
import logging
import ssl
from base64 import b64decode
from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic, perf_counter
from typing import Final, Protocol, cast

import httptools
import msgspec

from wattloom.errors import InputError
from wattloom.kubernetes.health import SHORTEST_TOKEN, cannot_listen, is_loopback, parse_address

LOG: Final = logging.getLogger(__name__)


class Verb(Protocol):
    """A body for a body. None: it is to be asked once more in a moment, and that is the last time."""

    def __call__(self, body: bytes, last: bool = False) -> bytes | None: ...


MOMENT_S: Final = 0.02
MOST_BODY: Final = 64 << 20
"""Bytes: a pod, and the names of far more nodes than a cluster has."""
MOST_HEAD: Final = 65_536
"""Bytes: of a head, and of anything else that is neither a head nor content, as ends of chunked questions."""
MOST_CALLERS: Final = 256
HALF_S: Final = 30.0
"""A question that is not whole after so long is not waited for."""
IDLE_S: Final = 900.0
SWEEP_S: Final = 5.0
GOODBYE_S: Final = 1.0
TURN_S: Final = 0.01
"""In which the event loop gets to what is already there."""
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
    ) -> None:
        self._host, self._port = parse_address(address, "listen")
        if token and len(token) < SHORTEST_TOKEN:
            raise InputError("token", f"must have at least {SHORTEST_TOKEN} characters")
        knows_callers = encryption is not None and encryption.verify_mode is ssl.CERT_REQUIRED
        if not (is_loopback(self._host) or token or knows_callers):
            raise InputError("listen", f"{address} is open to other machines: give --client-ca with TLS, or a token")
        self.verbs: Final = {f"/{name}".encode(): verb for name, verb in verbs.items()}
        self.observe: Final = observe
        self.callers: Final[set[_Caller]] = set()
        self._token = token
        self._encryption = encryption
        self._server: asyncio.Server | None = None
        self._sweeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: _Caller(self),
                self._host,
                self._port,
                ssl=self._encryption,
                ssl_handshake_timeout=HALF_S if self._encryption is not None else None,
                backlog=128,
            )
        except OSError as problem:
            raise cannot_listen("listen", self._host, self._port, problem) from None
        self._sweeping = loop.create_task(self._sweep())

    @property
    def port(self) -> int:
        """IPv4's, where both kinds of addresses have one of their own."""
        assert self._server is not None
        return int(min(self._server.sockets, key=lambda each: each.family).getsockname()[1])

    async def stop(self) -> None:
        """Every connection is closed when this returns; encrypted ones have a moment to say so."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._server is not None:
            self._server.close()
        await asyncio.sleep(TURN_S)  # those who were let in last get here
        for caller in tuple(self.callers):
            caller.end()
        until = monotonic() + GOODBYE_S
        while self.callers and monotonic() < until:
            await asyncio.sleep(TURN_S)
        for caller in tuple(self.callers):
            caller.abort()
        await asyncio.sleep(TURN_S)  # and those who were thrown out are gone

    def may(self, authorization: bytes) -> bool:
        """kube-scheduler sends what stands before the @ in urlPrefix, as basic authorization."""
        if not self._token:
            return True
        kind, _, given = authorization.partition(b" ")
        if kind.lower() == b"basic":
            try:
                given = b64decode(given, validate=True).partition(b":")[2]
            except ValueError:
                return False
        return hmac.compare_digest(given, self._token.encode())

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            now = monotonic()
            for caller in tuple(self.callers):
                caller.look(now)

    def make_room(self, newcomer: "_Caller") -> None:
        """Whoever never asked anything, and keeps a place for longest, leaves for whoever comes."""
        if len(self.callers) > MOST_CALLERS:
            min(self.callers - {newcomer}, key=lambda each: (each.known, each.since)).abort()


class _Caller(asyncio.Protocol):
    """One connection; called back by its parser."""

    def __init__(self, server: ExtenderServer) -> None:
        self.since = monotonic()
        """When it last began or ended a question, or was told the last word."""
        self.known = False
        """Whether it has asked something before that it may ask."""
        self._half = True
        """Whether a question is awaited: the first one, or the rest of one."""
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
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
        self._server.callers.add(self)
        self._server.make_room(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.callers.discard(self)

    def end(self) -> None:
        if not self._transport.is_closing():
            self.since = monotonic()
            self._transport.close()

    def abort(self) -> None:
        self._server.callers.discard(self)
        self._transport.abort()

    def look(self, now: float) -> None:
        """Whoever keeps us waiting for too long is left; at once, if not even the last word is taken."""
        waited_s = now - self.since
        if waited_s > HALF_S and (self._transport.is_closing() or not self._reads):
            self.abort()
        elif waited_s > (HALF_S if self._half else IDLE_S):
            self.end()

    def pause_writing(self) -> None:
        """It does not read: nothing more is taken from it until it does."""
        self._reads = False
        self.since = monotonic()
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._reads = True
        self.since = monotonic()
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._quiet += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(b"400 Bad Request", "nothing but HTTP/1.1 is spoken here")
        except httptools.HttpParserError as error:
            self._refuse(b"400 Bad Request", f"this is no HTTP: {error}")
        if self._quiet > MOST_HEAD:
            self._refuse(b"431 Request Header Fields Too Large", "the head is too long")

    # -- what the parser calls ---------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._waits or not self._reads:  # nobody who waits for answers, or takes them, asks again meanwhile
            self.end()
        self._half = True
        self.since = monotonic()
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
        elif name.lower() == b"content-length" and value.isdigit() and int(value[:20]) > MOST_BODY:
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
        if self._size > MOST_BODY:
            self._refuse(b"413 Content Too Large", "the question is too long")
        elif not self._turned_away:
            self._body += body

    def on_message_complete(self) -> None:
        self._half = False
        self._quiet = 0
        if self._turned_away:
            self.end()
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
            asyncio.get_running_loop().call_later(MOMENT_S, partial(self._answer, verb, body, last=True))

    def _limit_head(self, more: int) -> None:
        self._head += more
        if self._head > MOST_HEAD:
            self._refuse(b"431 Request Header Fields Too Large", "the head is too long")

    def _refuse(self, status: bytes, problem: str) -> None:
        if not self._transport.is_closing():
            if not self._turned_away:
                self._say_last(status, problem)
            self.end()

    def _say_last(self, status: bytes, problem: str) -> None:
        body = _problem(problem)
        self._transport.write(HEAD % (status, len(body), b"Connection: close\r\n") + body)

    def _send(self, status: bytes, body: bytes) -> None:
        if self._transport.is_closing():
            return
        keep = self._parser.should_keep_alive()
        self._transport.write(HEAD % (status, len(body), b"" if keep else b"Connection: close\r\n") + body)
        self._body = bytearray()
        self.known = True
        if self._reads:
            self.since = monotonic()
        if not keep:
            self.end()


def _problem(words: str) -> bytes:
    return msgspec.json.encode({"Error": f"wattloom: {words}"})


def server_encryption(certificate: str, key: str, client_ca: str = "") -> ssl.SSLContext:
    """For a server; with `client_ca` only callers with a certificate of that authority may ask."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
        if client_ca:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as problem:
        raise InputError("tls", f"cannot be used: {problem.strerror or problem}; PEM files are needed") from None
    return context
