"""The extender's wire: HTTP/1.1 as kube-scheduler speaks it, a question at a time, on connections that stay open.

Owns parsing, limits and who may ask. Knows neither pods nor nodes: a verb is a function from body to body.
"""

import asyncio
import hmac
import ssl
from base64 import b64decode
from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import ip_address
from time import monotonic, perf_counter
from typing import Final, Protocol, cast

import httptools
import msgspec

from wattloom.errors import InputError
from wattloom.kubernetes.health import SHORTEST_TOKEN, cannot_listen, parse_address


class Verb(Protocol):
    """A body for a body. None: it is to be asked once more in a moment, and that is the last time."""

    def __call__(self, body: bytes, last: bool = False) -> bytes | None: ...


MOMENT_S: Final = 0.02
MOST_BODY: Final = 64 << 20
"""Bytes: a pod, and the names of far more nodes than a cluster has."""
MOST_HEAD: Final = 65_536
MOST_CALLERS: Final = 256
HALF_S: Final = 30.0
"""A question that is not whole after so long is not waited for."""
IDLE_S: Final = 900.0
SWEEP_S: Final = 5.0
GOODBYE_S: Final = 1.0
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
        if not (_is_loopback(self._host) or token or knows_callers):
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
                lambda: _Caller(self), self._host, self._port, ssl=self._encryption, backlog=128
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
        for caller in tuple(self.callers):
            caller.end()
        until = monotonic() + GOODBYE_S
        while self.callers and monotonic() < until:
            await asyncio.sleep(0.01)
        for caller in tuple(self.callers):
            caller.abort()

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
                if now - caller.since > (HALF_S if caller.half else IDLE_S):
                    caller.end()


class _Caller(asyncio.Protocol):
    """One connection; called back by its parser."""

    def __init__(self, server: ExtenderServer) -> None:
        self.since = monotonic()
        """When it last began or ended a question."""
        self.half = True
        """Whether a question is awaited: the first one, or the rest of one."""
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._url = b""
        self._authorization = b""
        self._head = 0
        self._size = 0
        self._parts: list[bytes] = []
        self._waits = False
        """Whether a question is being looked at a second time."""
        self._turned_away = False
        """Whether it may not ask: what else it sends is thrown away."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its class
        self._server.callers.add(self)
        if len(self._server.callers) > MOST_CALLERS:
            self.end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.callers.discard(self)

    def end(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(b"400 Bad Request", "nothing but HTTP/1.1 is spoken here")
        except httptools.HttpParserError as error:
            self._refuse(b"400 Bad Request", f"this is no HTTP: {error}")

    # -- what the parser calls ---------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._waits:  # nobody who waits for answers asks again meanwhile
            self.end()
        self.half = True
        self.since = monotonic()
        self._url = self._authorization = b""
        self._head = self._size = 0
        self._parts = []

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._limit_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._limit_head(len(name) + len(value))
        if name.lower() == b"authorization":
            self._authorization = value

    def on_headers_complete(self) -> None:
        """Nothing is kept of what somebody sends who may not ask. He is heard out, else he would not read why."""
        if not self._transport.is_closing() and not self._server.may(self._authorization):
            self._turned_away = True
            self._say_last(b"401 Unauthorized", "a token is needed: https://wattloom:TOKEN@HOST:PORT")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > MOST_BODY:
            self._refuse(b"413 Content Too Large", "the question is too long")
        elif not self._turned_away:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        self.half = False
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
            self._answer(verb, self._parts[0] if len(self._parts) == 1 else b"".join(self._parts), last=False)

    def _answer(self, verb: Verb, body: bytes, *, last: bool) -> None:
        begun = perf_counter()
        self._waits = False
        answer = verb(body, last)
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
        self._parts = []
        self.since = monotonic()
        if not keep:
            self.end()


def _problem(words: str) -> bytes:
    return msgspec.json.encode({"Error": f"wattloom: {words}"})


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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
