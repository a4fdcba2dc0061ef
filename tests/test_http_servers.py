"""One table of attacks for every HTTP server of ours, through a socket: none hangs, grows or keeps others out.

A new server is one more entry of `SERVERS`; it knows nothing of the attacks.
"""

import asyncio
import logging
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from queue import Queue
from typing import Any, Final, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.metering.scripted import Scripted
from tests.metering.trees import machine
from tests.monitoring.scripted import ScriptedCensus

from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.extender import http as extender_http
from wattloom.monitoring import exporter
from wattloom.monitoring.accountant import Accountant
from wattloom.serving.access import Access
from wattloom.serving.address import Address
from wattloom.serving.pages import TEXT, Answered, Asked, Gate, Receive, Scope, Send, reply
from wattloom.serving.places import Limits
from wattloom.serving.server import app_server, page_server

TOKEN: Final = "a-token-of-enough-length"
AUTHORIZATION: Final = f"Host: a\r\nAuthorization: Bearer {TOKEN}"
PROBE: Final = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
LONG: Final = b"x" * 8_000_000
PATIENCE_S: Final = 1.0
"""What the servers have here; users' have more."""
SLACK_S: Final = 15.0
"""On a busy machine. What hangs, hangs for longer."""
ENDLESS: Final = 32 << 20
"""Bytes. Nobody takes so many before a token was seen; what the system itself keeps is far less."""


class Served(NamedTuple):
    port: int
    probe: bytes
    """A request that is answered with 200, whoever else there is."""
    long: bytes
    """One whose answer is longer than what the system keeps for a caller that does not read."""
    most_callers: int


# -- the servers -------------------------------------------------------------------------------------------------------


@contextmanager
def in_a_loop(make: Callable[[], Any]) -> Iterator[int]:
    """The port of a server of asyncio, which `make` makes; it lives in a thread of its own."""
    started: Queue[tuple[int, Callable[[], object]]] = Queue()

    async def live() -> None:
        server, loop, over = make(), asyncio.get_running_loop(), asyncio.Event()
        await server.start()
        started.put((server.port, lambda: loop.call_soon_threadsafe(over.set)))
        await over.wait()
        await server.stop()

    thread = threading.Thread(target=lambda: event_loop.run(live()))
    thread.start()
    port, end = started.get(timeout=SLACK_S)
    try:
        yield port
    finally:
        end()
        thread.join(SLACK_S)
        assert not thread.is_alive()


@contextmanager
def the_extender(patch: pytest.MonkeyPatch, patience_s: float) -> Iterator[Served]:
    limits = msgspec.structs.replace(extender_http.LIMITS, request_s=patience_s, callers=24)
    verbs = {"filter": lambda body, last=False: b"{}", "long": lambda body, last=False: LONG}
    probe = f"POST /filter HTTP/1.1\r\n{AUTHORIZATION}\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    with in_a_loop(lambda: extender_http.ExtenderServer("127.0.0.1:0", verbs, token=TOKEN, limits=limits)) as port:
        yield Served(port, probe, probe.replace(b"filter", b"long"), 24)


@contextmanager
def the_web_server(patch: pytest.MonkeyPatch, patience_s: float) -> Iterator[Served]:
    async def page(asked: Asked) -> Answered:
        return Answered(200, TEXT, b"ok\n")

    async def long(asked: Asked) -> Answered:
        return Answered(200, TEXT, LONG)

    pages = {"/why": page, "/long": long}
    with in_a_loop(lambda: page_server("127.0.0.1:0", {"/healthz": page}, pages, limits=few(patience_s))) as port:
        yield Served(port, PROBE, b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n", 24)


def few(patience_s: float) -> Limits:
    """What our servers have, made small enough to be reached."""
    return Limits(request_s=patience_s, idle_s=patience_s, callers=24, answered=16)


@contextmanager
def the_exporter(patch: pytest.MonkeyPatch, patience_s: float, parser: str = "h11") -> Iterator[Served]:
    patch.setattr(exporter, "PAGE", LONG)
    accountant = Accountant(
        ScriptedCensus(), Scripted(), machine(provenance="measured"), node="n1", policy="node", own_pid=99
    )
    accountant.sample(time.monotonic())
    access = Access(TOKEN)
    options: dict[str, Any] = {"access": access, "interval_s": 60, "limits": few(patience_s), "parser": parser}
    with exporter.Exporter(accountant, Address("127.0.0.1", 0), **options) as serving:
        yield Served(serving.address.port, PROBE, f"GET / HTTP/1.1\r\n{AUTHORIZATION}\r\n\r\n".encode(), 24)


@contextmanager
def an_app(patch: pytest.MonkeyPatch, patience_s: float, parser: str) -> Iterator[Served]:
    """One that reads what it is sent, as an API does, behind a token."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await reply(send, Answered(200, TEXT, LONG if scope["path"] == "/long" else b"ok\n"))

    limits = few(patience_s)
    gate = Gate(app, probes={"/healthz", "/filter"}, admits=Access(TOKEN).admits, most=limits.answered)
    with in_a_loop(lambda: app_server(Address("127.0.0.1", 0), gate, limits=limits, parser=parser)) as port:
        yield Served(port, PROBE, f"GET /long HTTP/1.1\r\n{AUTHORIZATION}\r\n\r\n".encode(), 24)


SERVERS: Final[dict[str, Any]] = {
    "extender": the_extender,
    "web-server": the_web_server,
    "exporter": the_exporter,
    "app-h11": partial(an_app, parser="h11"),
    "app-httptools": partial(an_app, parser="httptools"),
}


@pytest.fixture
def patience_s() -> float:
    return PATIENCE_S


@pytest.fixture(params=SERVERS)
def served(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    patience_s: float,
) -> Iterator[Served]:
    """A server that must still answer after the attack, and has written neither traceback nor warning."""
    caplog.set_level(logging.WARNING)
    with ExitStack() as held, SERVERS[request.param](monkeypatch, patience_s) as served:
        yield served
        assert ask(served) == 200
        held.enter_context(calling(served, GET))  # and is still there when it ends
    assert [record.getMessage() for record in caplog.records] == []
    assert "Traceback" not in capfd.readouterr().err


# -- callers -----------------------------------------------------------------------------------------------------------


@contextmanager
def calling(served: Served, sent: bytes = b"") -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", served.port), timeout=SLACK_S) as caller:
        with suppress(OSError):
            caller.sendall(sent)
        yield caller


def ask(served: Served) -> int:
    """The status that a probe gets, or 0 where it was turned away."""
    with calling(served, served.probe) as caller, suppress(OSError):
        return status_of(caller.recv(4096))
    return 0


def status_of(answer: bytes) -> int:
    """0: none. Anything else than HTTP is an error."""
    if not answer:
        return 0
    version, status, *_ = answer.split(maxsplit=2)
    assert version in (b"HTTP/1.1", b"HTTP/1.0"), answer[:100]
    return int(status)


def heard(caller: socket.socket) -> bytes:
    """All that is said until the connection is closed; TimeoutError if it never is."""
    parts = []
    with suppress(ConnectionError):
        while part := caller.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def is_left(caller: socket.socket, unsaid: bytes = b"") -> bool:
    """Whether the server closes the connection in time, though a byte of `unsaid` comes now and then."""
    caller.settimeout(0.05)
    limit = time.monotonic() + PATIENCE_S + SLACK_S
    while time.monotonic() < limit:
        try:
            if unsaid:
                caller.sendall(unsaid[:1])
                unsaid = unsaid[1:] + unsaid[:1]
            if not caller.recv(4096):
                return True
        except TimeoutError:
            pass
        except OSError:
            return True
    return False


# -- slow and silent ---------------------------------------------------------------------------------------------------

HEAD: Final = b"POST /filter HTTP/1.1\r\nHost: a\r\n"
GET: Final = b"GET /metrics HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.parametrize(
    ("said", "unsaid"),
    [
        (b"", b""),
        (b"", b"GET /metrics HTTP/1.1 and so on and on"),
        (GET, b"X-Long: and so on, "),
        (GET, b"A: b\r\n"),
        (b"", b"\r\n"),
        (HEAD + b"Content-Length: 1000000\r\n\r\n", b"a"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
    ],
    ids=["silent", "request-line", "header-line", "headers", "empty-lines", "body", "chunks"],
)
def test_a_request_has_one_deadline_however_it_trickles(served: Served, said: bytes, unsaid: bytes) -> None:
    with calling(served, said) as caller:
        assert is_left(caller, unsaid)


@pytest.mark.parametrize("said", [b"", b"G", GET, GET + b"X: y"], ids=["silent", "a-byte", "a-line", "half-a-line"])
def test_silent_callers_never_keep_a_probe_out(served: Served, said: bytes) -> None:
    """As many as there are places, and more, renewed as fast as they are sent away."""
    with ExitStack() as held:
        callers = [held.enter_context(calling(served, said)) for _ in range(served.most_callers)]
        for _ in range(40):
            assert ask(served) == 200
            callers.append(held.enter_context(calling(served, said)))
        assert ask(served) == 200


def test_callers_who_trickle_never_keep_a_probe_out(served: Served) -> None:
    over = threading.Event()

    def trickle() -> None:
        while not over.is_set():
            with suppress(OSError), calling(served, GET + b"X: ") as caller:
                while not over.wait(0.02):
                    caller.sendall(b"a")

    threads = [threading.Thread(target=trickle) for _ in range(served.most_callers + 8)]
    for thread in threads:
        thread.start()
    try:
        answers = []
        for _ in range(20):
            time.sleep(0.1)
            answers.append(ask(served))
        assert answers == [200] * 20
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_callers_who_never_read_are_left_and_keep_nobody_out(served: Served) -> None:
    """They ask for more than they are ready to take."""
    with ExitStack() as held:
        callers = []
        for _ in range(served.most_callers):
            caller = held.enter_context(calling(served))
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            caller.settimeout(0.02)
            callers.append(caller)
            for _ in range(20):
                if hung_up(caller, served.long):
                    break
        assert ask(served) == 200
        limit = time.monotonic() + PATIENCE_S + SLACK_S
        while callers and time.monotonic() < limit:
            callers = [caller for caller in callers if not hung_up(caller)]
            time.sleep(0.05)
        assert callers == []


def hung_up(caller: socket.socket, said: bytes = b"\r\n") -> bool:
    """Whether the other side is gone, found out without reading."""
    try:
        caller.sendall(said)
    except TimeoutError:
        return False
    except OSError:
        return True
    return False


# -- without end -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("patience_s", [60.0])
@pytest.mark.parametrize(
    ("said", "unsaid"),
    [
        (b"GET /", b"a" * 4096),
        (GET + b"X: ", b"a" * 4096),
        (GET, b"A: b\r\n" * 700),
        (b"", b"\r\n" * 2000),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;x=", b"a" * 4096),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"a" * 4096),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"A: b\r\n" * 700),
        (HEAD + b"Content-Length: 99999999999\r\n\r\n", b"a" * 4096),
    ],
    ids=[
        "request-line",
        "header-line",
        "headers",
        "empty-lines",
        "chunk-extension",
        "trailer-line",
        "trailers",
        "body",
    ],
)
def test_nothing_without_end_is_taken(served: Served, said: bytes, unsaid: bytes) -> None:
    """By a server that has a minute for each: it is the bytes that count."""
    began = time.monotonic()
    with calling(served, said) as caller:
        taken = 0
        with suppress(ConnectionError):
            while taken < ENDLESS:
                caller.sendall(unsaid)
                taken += len(unsaid)
    assert taken < ENDLESS
    assert time.monotonic() - began < SLACK_S


# -- what is no request ------------------------------------------------------------------------------------------------

BAD: Final = {
    "no-host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "open-bracket": b"GET http://[ HTTP/1.1\r\nHost: a\r\n\r\n",
    "open-bracket-without-scheme": b"GET //[::1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "nul": b"GET /why?pod=a/b\0 HTTP/1.1\r\nHost: a\r\n\r\n",
    "escaped-nul": b"GET /why?pod=a/b%00 HTTP/1.1\r\nHost: a\r\n\r\n",
    "bad-escape": b"GET /why?pod=%zz HTTP/1.1\r\nHost: a\r\n\r\n",
    "cut-escape": b"GET /why?pod=a%2 HTTP/1.1\r\nHost: a\r\n\r\n",
    "no-utf-8": b"GET /why?pod=%ff%fe HTTP/1.1\r\nHost: a\r\n\r\n",
    "bytes": b"GET /\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n",
    "absurd-port": b"GET http://a:99999999999999999999/healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    "no-port": b"GET http://a:port/healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    "no-version": b"GET /healthz\r\n\r\n",
    "absurd-version": b"GET /healthz HTTP/9.9999999999999\r\n\r\n",
    "no-method": b" /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    "odd-method": b"BREW /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    "connect": b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "upgrade": b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "http-2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "header-without-colon": b"GET /healthz HTTP/1.1\r\nHost: a\r\nnothing\r\n\r\n",
    "header-with-nul": b"GET /healthz HTTP/1.1\r\nHost: a\r\nA: \0\r\n\r\n",
    "authorization-bytes": b"GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \xff\xfe\r\n\r\n",
    "accept-bytes": b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: \xff;q=x\r\n\r\n",
    "negative-length": HEAD + b"Content-Length: -1\r\n\r\n{}",
    "huge-length": HEAD + b"Content-Length: 99999999999999999999999999999999\r\n\r\n{}",
    "no-length": HEAD + b"Content-Length: many\r\n\r\n{}",
    "two-lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "length-and-chunks": HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad-chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "huge-chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffffff\r\n",
    "body-of-a-get": b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /",
    "pipelined": b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 50,
}


def ends(served: Served, sent: bytes) -> bytes:
    """What is answered to one who says no more after this: all there is, in time."""
    with calling(served, sent) as caller:
        with suppress(OSError):
            caller.shutdown(socket.SHUT_WR)
        return heard(caller)


@pytest.mark.parametrize("sent", BAD.values(), ids=BAD)
def test_what_is_no_request_is_refused_without_a_word_in_the_log(served: Served, sent: bytes) -> None:
    assert status_of(ends(served, sent)) not in (500, 502, 503, 504)  # 501 and 505 are right for some


@pytest.mark.parametrize("kind", ["open-bracket", "open-bracket-without-scheme"])
def test_an_address_that_is_none_is_answered(served: Served, kind: str) -> None:
    assert 400 <= status_of(ends(served, BAD[kind])) < 500


PIECES: Final = st.sampled_from(
    (b"GET |POST |/healthz|/why?pod=|http://|[|]|%|\0| |\r\n|\n|:|@|//|\xff|HTTP/1.1|Content-Length|Transfer-Encoding|"
     b"chunked|-1|99999999999999999999999999999999|Expect: 100-continue").split(b"|")
)  # fmt: skip
MADE: Final = st.one_of(
    st.lists(st.one_of(PIECES, st.binary(max_size=6)), max_size=25).map(b"".join),
    st.tuples(st.sampled_from(list(BAD.values())), st.integers(0, 200), st.binary(max_size=4)).map(
        lambda made: made[0][: made[1]] + made[2] + made[0][made[1] + len(made[2]) :]
    ),
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(sent=st.lists(MADE, min_size=1, max_size=4))
def test_no_made_up_request_hangs_or_breaks_a_server(served: Served, sent: list[bytes]) -> None:
    status_of(ends(served, b"".join(sent)))
    status_of(ends(served, b"".join(sent) + b"\r\n\r\n"))


def test_requests_cut_anywhere_leave_nothing_behind(served: Served) -> None:
    drawn = random.Random(7)
    for _ in range(60):
        cut = served.probe[: drawn.randrange(len(served.probe))]
        with calling(served, cut) as caller:
            if drawn.random() < 0.5:
                caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset, not a goodbye
    assert ask(served) == 200


def test_an_extender_that_ends_as_callers_come_in_ends_at_once() -> None:
    """Some have been let in and not been heard of yet: nothing of them keeps the event loop from closing."""
    program = """
import asyncio, socket
from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.extender import http as extender_http

async def live(turns):
    server = extender_http.ExtenderServer("127.0.0.1:0", {})
    await server.start()
    callers = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    for _ in range(turns):
        await asyncio.sleep(0)
    await server.stop()
    return callers

for turns in 4 * (0, 1, 2, 3):
    for caller in event_loop.run(live(turns)):
        caller.close()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
