"""A server of one app, by both parsers: whole requests, their sizes, who may ask, TLS, and its end."""

import asyncio
import base64
import logging
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from wattloom.errors import InputError
from wattloom.kubernetes.client import event_loop
from wattloom.serving.access import Access, brings, check_token, server_encryption
from wattloom.serving.address import Address, listen
from wattloom.serving.pages import TEXT, Answered, Gate, Receive, Scope, Send, reply
from wattloom.serving.places import Limits
from wattloom.serving.server import Server, app_server

TOKEN = "a-token-of-enough-length"
HERE = Address("127.0.0.1", 0)
PROBE = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
LIMITS = Limits(body=1000, callers=8, answered=2)
PATIENCE_S = 20.0


class Recorded:
    """An app that keeps what it was sent. `/wait` waits until `go`, `/broken` raises."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.go = asyncio.Event()
        self.waiting = self.disconnected = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnected += 1
                return
            body, more = body + message["body"], message["more_body"]
        if scope["path"] == "/wait":
            self.waiting += 1
            await self.go.wait()
        if scope["path"] == "/gone":
            self.waiting += 1
            self.disconnected += (await receive())["type"] == "http.disconnect"
            return
        if scope["path"] == "/broken":
            raise RuntimeError("the app's own mistake")
        self.bodies.append(body)
        await reply(send, Answered(200, TEXT, scope["path"].encode()))


@asynccontextmanager
async def serving(app: Recorded, parser: str, **options: Any) -> AsyncIterator[Server]:
    gate = Gate(app, probes={"/healthz"}, admits=options.pop("admits", lambda _: True), most=LIMITS.answered)
    server = app_server(HERE, gate, limits=LIMITS, parser=parser, **options)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def request(path: str, body: bytes = b"", *headers: str, close: bool = True) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", *headers]
    lines += ["Connection: close"] if close else []
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def said(server: Server, *sent: bytes, encryption: ssl.SSLContext | None = None) -> bytes:
    """All that is answered until the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=encryption)
    try:
        async with asyncio.timeout(PATIENCE_S):
            for part in sent:
                writer.write(part)
                await writer.drain()
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():
            await asyncio.sleep(0.01)


@pytest.fixture(params=["h11", "httptools"])
def parser(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def run(
    work: Callable[[Recorded], Awaitable[None]], loop: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> None:
    async def whole() -> None:
        await work(Recorded())

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(whole())


def test_a_whole_request_reaches_the_app_in_pieces_or_in_chunks(parser: str) -> None:
    async def work(app: Recorded) -> None:
        async with serving(app, parser) as server:
            whole = request("/one", b"x" * 900)
            assert (await said(server, *(whole[at : at + 97] for at in range(0, len(whole), 97)))).endswith(b"/one")
            head = b"POST /two HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            assert (await said(server, head + b"3\r\nabc\r\n", b"2\r\nde\r\n0\r\n\r\n")).endswith(b"/two")
        assert app.bodies == [b"x" * 900, b"abcde"]

    run(work)


def test_requests_follow_each_other_on_one_connection_also_without_waiting(parser: str) -> None:
    async def work(app: Recorded) -> None:
        async with serving(app, parser) as server:
            sent = [request(f"/no{number}", b"%d" % number, close=number == 5) for number in range(6)]
            together = await said(server, b"".join(sent))
            assert [together.count(f"/no{number}".encode()) for number in range(6)] == [1] * 6
        assert app.bodies == [b"%d" % number for number in range(6)]

    run(work)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (request("/x", b"x" * 1001), 413),
        (
            b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            + (b"64\r\n" + b"a" * 100 + b"\r\n") * 11,
            413,
        ),
        (request("/x", b"", f"Big: {'x' * 20_000}"), 431),
        (request("/x", b"", *(f"A{number}: b" for number in range(3000))), 431),
        (request("/x", b"", f"Big: {'x' * 15_000}"), 200),
        (request("/x", b"x" * 1000), 200),
    ],
    ids=["declared", "chunked", "long-line", "many-lines", "head-within", "body-within"],
)
def test_a_request_has_one_size_for_its_head_and_one_for_its_content(parser: str, sent: bytes, status: int) -> None:
    async def work(app: Recorded) -> None:
        async with serving(app, parser) as server:
            answer = await said(server, sent)
            assert answer.startswith(f"HTTP/1.1 {status}".encode()), answer[:200]
            assert len(app.bodies) == (status == 200)

    run(work)


def test_probes_are_answered_when_all_others_are_busy(parser: str) -> None:
    async def work(app: Recorded) -> None:
        async with serving(app, parser) as server:
            busy = [asyncio.create_task(said(server, request("/wait"))) for _ in range(LIMITS.answered)]
            await until(lambda: app.waiting == LIMITS.answered)
            assert b" 503 " in await said(server, request("/more"))
            assert b" 200 " in await said(server, request("/healthz"))
            app.go.set()
            assert all(b" 200 " in answer for answer in await asyncio.gather(*busy))

    run(work)


def test_what_an_app_cannot_answer_is_a_status_and_a_word_in_the_log(
    parser: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(app: Recorded) -> None:
        async with serving(app, parser) as server:
            assert b" 500 " in await said(server, request("/broken"))

    run(work)
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "the app's own mistake" in caplog.text


def test_an_end_gives_answers_that_are_under_way_and_ends_those_that_are_not_given_in_time(
    parser: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(app: Recorded) -> None:
        async with serving(app, parser) as server:
            soon = asyncio.create_task(said(server, request("/wait")))
            idle = asyncio.create_task(said(server, b"POST"))
            await until(lambda: app.waiting == 1 and len(server.places.callers) == 2)
            asyncio.get_running_loop().call_later(0.2, app.go.set)
            await server.stop()
            assert await idle == b""
            assert b" 200 " in await soon
        app.go.clear()
        async with serving(app, parser) as server:
            never = asyncio.create_task(said(server, request("/wait")))
            await until(lambda: app.waiting == 2)
        assert await never == b""

    run(work)
    assert caplog.records == []


@pytest.mark.parametrize("more", [b"", request("/next")], ids=["alone", "pipelined"])
def test_an_app_is_told_that_its_caller_is_gone(parser: str, more: bytes) -> None:
    async def work(app: Recorded) -> None:
        async with serving(app, parser) as server:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(request("/gone", close=False) + more)
            await until(lambda: app.waiting == 1)
            writer.transport.abort()
            async with asyncio.timeout(PATIENCE_S):
                while not app.disconnected:
                    await asyncio.sleep(0.01)

    run(work)


# -- who may ask -------------------------------------------------------------------------------------------------------


def test_the_token_is_asked_of_everything_but_probes(parser: str) -> None:
    async def work(app: Recorded) -> None:
        async with serving(app, parser, admits=Access(TOKEN).admits) as server:
            refused = await said(server, request("/x", b"x" * 900))
            assert b" 401 " in refused
            assert b"www-authenticate: bearer" in refused.lower()
            assert app.bodies == []
            assert b" 200 " in await said(server, request("/x", b"", f"Authorization: Bearer {TOKEN}"))
            assert b" 200 " in await said(server, request("/healthz"))

    run(work)


@pytest.mark.parametrize(
    ("authorization", "may"),
    [
        (f"Bearer {TOKEN}".encode(), True),
        (b"Basic " + base64.b64encode(f"anybody:{TOKEN}".encode()), True),
        (b"Basic " + base64.b64encode(TOKEN.encode()), False),
        (b"Basic !", False),
        (f"Bearer {TOKEN}x".encode(), False),
        (TOKEN.encode(), False),
        (b"Bearer \xff", False),
        (b"", False),
    ],
)
def test_a_token_is_brought_as_bearer_or_as_a_password(authorization: bytes, may: bool) -> None:
    assert brings(TOKEN, authorization) is may


@pytest.mark.parametrize("token", ["short", "of-enough-length-but-ä"])
def test_a_token_that_could_be_guessed_or_not_be_sent_is_refused(token: str) -> None:
    with pytest.raises(InputError):
        check_token(token)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 300, "a..b", "a\0b"])
def test_a_host_that_is_none_is_refused_in_words(host: str) -> None:
    with pytest.raises(InputError, match="cannot listen at"):
        listen(Address(host, 0))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, made = folder / "key.pem", folder / "cert.pem"
    words = f"req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {made} -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    if subprocess.run(["openssl", *words.split(), *names], capture_output=True, check=False).returncode:
        pytest.skip("NOT TESTED: TLS. The program openssl is missing (Debian: apt-get install openssl).")
    return made, key


@pytest.mark.parametrize("loop", [None, event_loop.fastest()], ids=["asyncio", "fastest"])
def test_callers_who_never_shake_hands_keep_nobody_out(
    loop: Any, parser: str, certificate: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    """They take places as all others do, and are left in time."""
    made, key = certificate
    trusting = ssl.create_default_context(cafile=str(made))

    async def work(app: Recorded) -> None:
        async with serving(app, parser, encryption=server_encryption(made, key)) as server:
            silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(3 * LIMITS.callers)]
            for _, writer in silent[::2]:
                writer.write(PROBE)  # which is no TLS
            for number in range(4):
                answer = await said(server, request("/x", b"%d" % number), encryption=trusting)
                assert b" 200 " in answer, number
            assert len(server.places.callers) <= LIMITS.callers + 1
            for _, writer in silent:
                writer.transport.abort()
        assert app.bodies == [b"0", b"1", b"2", b"3"]

    run(work, loop)
    assert caplog.records == []
