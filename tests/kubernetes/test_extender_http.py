"""The extender's wire: whole questions, odd ones, and callers who may not ask."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from wattloom.errors import InputError
from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.extender import http as extender_http
from wattloom.kubernetes.extender.http import LIMITS, ExtenderServer
from wattloom.serving.places import Limits

TOKEN = "a-token-that-is-long"
CONNECTION = extender_http._Connection
pytestmark = pytest.mark.usefixtures("loop")


def echo(body: bytes, last: bool = False) -> bytes | None:
    if body == b"wait" and not last:
        return None
    return json.dumps({"got": body.decode(), "last": last}).encode()


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[ExtenderServer]:
    server = ExtenderServer("127.0.0.1:0", {"filter": echo}, **options)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def exchange(server: ExtenderServer, *questions: bytes, pause_s: float = 0.0) -> list[tuple[int, Any]]:
    """Answers to questions on one connection, until it is closed or all are there."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    answers: list[tuple[int, Any]] = []
    try:
        async with asyncio.timeout(20):
            for question in questions:
                writer.write(question)
                await asyncio.sleep(pause_s)
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
                answers.append((int(head.split()[1]), json.loads(await reader.readexactly(length))))
                if len(answers) == len(questions) and "connection: close" not in head.lower():
                    return answers
    except (asyncio.IncompleteReadError, ConnectionError):
        return answers
    finally:
        writer.close()


def question(body: bytes = b"hello", path: str = "/filter", method: str = "POST", **headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {text}" for name, text in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await work()

    event_loop.run(whole())


def test_questions_are_answered_one_after_another_on_one_connection() -> None:
    async def work() -> None:
        async with serving() as server:
            first, second = await exchange(server, question(b"one"), question(b"two"), pause_s=0.1)
            assert (first, second) == ((200, {"got": "one", "last": False}), (200, {"got": "two", "last": False}))

    run(work)


def test_a_question_may_come_in_pieces_or_in_chunks() -> None:
    async def work() -> None:
        async with serving() as server:
            whole = question(b"x" * 100_000)
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            for at in range(0, len(whole), 7_919):
                writer.write(whole[at : at + 7_919])
                await asyncio.sleep(0)
            assert b"200 OK" in await asyncio.wait_for(reader.readline(), 20)
            writer.close()
            chunked = b"POST /filter HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
            assert await exchange(server, chunked) == [(200, {"got": "abcde", "last": False})]

    run(work)


def test_a_question_may_be_looked_at_twice() -> None:
    async def work() -> None:
        async with serving() as server:
            assert await exchange(server, question(b"wait")) == [(200, {"got": "wait", "last": True})]

    run(work)


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        (b"what?\r\n\r\n", 400, "no HTTP"),
        (b"\x16\x03\x01\x02\x00\x01", 400, "no HTTP"),
        (question(path="/bind"), 404, "there is /filter"),
        (question(method="GET", body=b""), 405, "POST"),
        (question(Big="x" * 70_000), 431, "too long"),
    ],
)
def test_what_is_no_question_is_refused_in_words(asked: bytes, status: int, words: str) -> None:
    async def work() -> None:
        async with serving() as server:
            found = (await exchange(server, asked))[0]
            assert found[0] == status
            assert words in found[1]["Error"]
            assert (await exchange(server, question()))[0][0] == 200

    run(work)


def limits(**few: Any) -> Limits:
    return msgspec.structs.replace(LIMITS, **few)


def test_a_question_that_is_too_long_is_refused() -> None:
    async def work() -> None:
        async with serving(limits=limits(body=1000)) as server:
            assert (await exchange(server, question(b"x" * 1001)))[0][0] == 413

    run(work)


def test_half_a_question_is_not_waited_for_and_the_one_who_never_asked_leaves_first() -> None:
    async def work() -> None:
        async with serving(limits=limits(request_s=5.0, callers=2)) as server:
            pairs = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(3)]
            assert await asyncio.wait_for(pairs[0][0].read(), 20) == b""
            pairs[1][1].write(question()[:-3])
            pairs[2][1].write(question())
            assert b"200 OK" in await asyncio.wait_for(pairs[2][0].readline(), 20)
            await pairs[2][0].readuntil(b"}")
            assert await asyncio.wait_for(pairs[1][0].read(), 20) == b""
            pairs += [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
            assert await asyncio.wait_for(pairs[3][0].read(), 20) == b""
            pairs[2][1].write(question())  # who has asked before stays
            assert b"200 OK" in await asyncio.wait_for(pairs[2][0].readline(), 20)
            for _, writer in pairs:
                writer.close()

    run(work)


def test_with_a_token_only_those_who_bring_it_are_answered() -> None:
    async def work() -> None:
        async with serving(token=TOKEN) as server:
            basic = base64.b64encode(f"wattloom:{TOKEN}".encode()).decode()
            assert (await exchange(server, question()))[0][0] == 401
            for authorization, status in (
                ("Bearer wrong", 401),
                ("Basic !!!", 401),
                (f"Basic {basic[:-8]}", 401),
                (f"Bearer {TOKEN}", 200),
                (f"Basic {basic}", 200),
            ):
                asked = question(Authorization=authorization)
                assert (await exchange(server, asked))[0][0] == status, authorization

    run(work)


def test_who_may_not_ask_is_refused_before_he_has_sent_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[extender_http._Connection] = []

    def make(*given: Any) -> extender_http._Connection:
        made.append(CONNECTION(*given))
        return made[-1]

    monkeypatch.setattr(extender_http, "_Connection", make)

    async def work() -> None:
        async with serving(token=TOKEN) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            whole = question(b"x" * 1_000_000)
            writer.write(whole[:500_000])
            async with asyncio.timeout(20):
                assert b"401" in await reader.readline()
            assert not made[0]._body  # nothing of it is kept
            writer.write(whole[500_000:])
            async with asyncio.timeout(20):
                assert b"token is needed" in await reader.read()
            writer.close()

    run(work)


def test_other_machines_may_ask_only_if_they_can_be_known() -> None:
    for open_to_all in (":10263", "0.0.0.0:10263", "[::]:10263", "10.0.0.1:10263"):
        with pytest.raises(InputError, match="open to other machines"):
            ExtenderServer(open_to_all, {})
    ExtenderServer(":10263", {}, token=TOKEN)
    with pytest.raises(InputError, match="at least 16 characters"):
        ExtenderServer(":10263", {}, token="short")
    with pytest.raises(InputError, match="must be HOST:PORT"):
        ExtenderServer("nowhere", {})
