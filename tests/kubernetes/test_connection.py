"""Faults of the wire: each is played byte by byte, and each ends in an answer or an error that says what happened.

All of it in both event loops: uvloop's, and asyncio's own for whoever does not have uvloop.
"""

import asyncio

import msgspec
import pytest
from tests.kubernetes.wire_server import Caller, playing

from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.credentials import Fixed, bearer
from wattloom.kubernetes.client.errors import (
    BadAnswer,
    Forbidden,
    Gone,
    NotFound,
    ServerFault,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from wattloom.kubernetes.client.reading import Bookmark, Change, Metadata, Unreadable
from wattloom.kubernetes.client.resource import Resource
from wattloom.kubernetes.client.target import Target


class Thing(msgspec.Struct, frozen=True):
    metadata: Metadata
    size: int = 0


THINGS = Resource("", "v1", "things", Thing)


pytestmark = pytest.mark.usefixtures("loop")


def test_the_loop_is_uvloop_where_it_is_installed(loop: str) -> None:
    async def ask() -> str:
        return type(asyncio.get_running_loop()).__module__.partition(".")[0]

    assert event_loop.run(ask()) == loop


def test_one_connection_serves_one_request_after_another() -> None:
    async def play(caller: Caller) -> None:
        while True:
            await caller.request()
            await caller.answer(str(caller.number).encode())

    async def ask() -> list[bytes]:
        async with playing(play) as target, Api(target) as api:
            return [await api.send("GET", "/x") for _ in range(5)]

    assert event_loop.run(ask()) == [b"1"] * 5


def test_no_more_connections_are_opened_than_allowed_and_everyone_gets_a_turn() -> None:
    async def play(caller: Caller) -> None:
        while True:
            await caller.request()
            await asyncio.sleep(0.002)
            await caller.answer(str(caller.number).encode())

    async def ask() -> list[bytes]:
        async with playing(play) as target, Api(target, connections=3) as api:
            return await asyncio.gather(*(api.send("GET", "/x") for _ in range(40)))

    answers = event_loop.run(ask())
    assert len(answers) == 40
    assert set(answers) == {b"1", b"2", b"3"}


def test_a_turn_that_is_no_longer_wanted_is_passed_on() -> None:
    async def play(caller: Caller) -> None:
        while True:
            await caller.request()
            await asyncio.sleep(0.05)
            await caller.answer(b"done")

    async def ask() -> bytes:
        async with playing(play) as target, Api(target, connections=1) as api:
            first, second, third = (asyncio.create_task(api.send("GET", "/x")) for _ in range(3))
            await asyncio.sleep(0.02)
            second.cancel()
            first.cancel()
            await asyncio.wait([first, second])
            return await asyncio.wait_for(third, 10)

    assert event_loop.run(ask()) == b"done"


def test_an_answer_in_chunks_is_put_together() -> None:
    async def play(caller: Caller) -> None:
        await caller.request()
        await caller.chunks(b"a" * 70_000, b"b" * 70_000, b"c")

    async def ask() -> bytes:
        async with playing(play) as target, Api(target) as api:
            return await api.send("GET", "/x")

    assert event_loop.run(ask()) == b"a" * 70_000 + b"b" * 70_000 + b"c"


def test_a_get_on_a_connection_the_server_has_left_is_asked_again_and_nobody_notices() -> None:
    async def play(caller: Caller) -> None:
        await caller.request()
        await caller.answer(b"first")
        if caller.number == 1:
            await caller.request()  # taken, and never answered
            return
        await caller.gone()

    async def ask() -> tuple[bytes, bytes]:
        async with playing(play) as target, Api(target) as api:
            return await api.send("GET", "/x"), await api.send("GET", "/x")

    assert event_loop.run(ask()) == (b"first", b"first")


def test_a_post_that_was_sent_and_not_answered_is_not_sent_again() -> None:
    taken = []

    async def play(caller: Caller) -> None:
        await caller.request()
        await caller.answer(b"first")
        taken.append(await caller.request())

    async def ask() -> None:
        async with playing(play) as target, Api(target) as api:
            await api.send("POST", "/x", b"{}")
            await api.send("POST", "/x", b"{}")

    with pytest.raises(Unreachable) as caught:
        event_loop.run(ask())
    assert caught.value.sent
    assert len(taken) == 1


def test_a_post_goes_out_on_a_new_connection_when_the_old_one_is_known_to_be_closed() -> None:
    async def play(caller: Caller) -> None:
        await caller.request()
        await caller.answer(str(caller.number).encode())

    async def ask() -> tuple[bytes, bytes]:
        async with playing(play) as target, Api(target) as api:
            first = await api.send("POST", "/x", b"{}")
            await asyncio.sleep(0.05)
            return first, await api.send("POST", "/x", b"{}")

    assert event_loop.run(ask()) == (b"1", b"2")


def test_a_server_that_says_it_will_close_is_not_asked_on_that_connection_again() -> None:
    async def play(caller: Caller) -> None:
        await caller.request()
        await caller.answer(str(caller.number).encode(), more="Connection: close\r\n")
        await caller.gone()

    async def ask() -> tuple[bytes, bytes]:
        async with playing(play) as target, Api(target) as api:
            return await api.send("POST", "/x", b"{}"), await api.send("POST", "/x", b"{}")

    assert event_loop.run(ask()) == (b"1", b"2")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"", "the server closed the connection"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "the server closed the connection"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "the server closed the connection"),
    ],
)
def test_an_answer_that_breaks_off_is_an_error_and_may_have_been_carried_out(said: bytes, why: str) -> None:
    async def play(caller: Caller) -> None:
        await caller.request()
        await caller.say(said)
        caller.writer.close()
        await asyncio.sleep(0.05)

    async def ask() -> None:
        async with playing(play) as target, Api(target) as api:
            await api.send("GET", "/x")

    with pytest.raises(Unreachable, match=why) as caught:
        event_loop.run(ask())
    assert caught.value.sent


@pytest.mark.parametrize("said", [b"SSH-2.0-OpenSSH_9.6\r\n", b"\x15\x03\x01\x00\x02\x02", b"HTTP/1.1 oops\r\n\r\n"])
def test_an_answer_that_is_no_http_is_called_so(said: bytes) -> None:
    async def play(caller: Caller) -> None:
        await caller.request()
        await caller.say(said)
        await caller.gone()

    async def ask() -> None:
        async with playing(play) as target, Api(target) as api:
            await api.send("GET", "/x")

    with pytest.raises(BadAnswer, match="no HTTP"):
        event_loop.run(ask())


def test_an_answer_that_is_no_json_says_what_was_expected() -> None:
    async def play(caller: Caller) -> None:
        await caller.request()
        await caller.answer(b"<html>login</html>")
        await caller.gone()

    async def ask() -> None:
        async with playing(play) as target, Api(target) as api:
            await api.get(THINGS, "one", "space")

    with pytest.raises(BadAnswer, match="cannot be read as Thing"):
        event_loop.run(ask())


def test_a_server_that_never_answers_is_given_up_after_the_timeout() -> None:
    async def play(caller: Caller) -> None:
        await caller.request()
        await caller.gone()

    async def ask() -> None:
        async with playing(play) as target, Api(target, timeout_s=0.1) as api:
            await api.send("GET", "/x")

    with pytest.raises(Unreachable, match=r"no answer in 0\.1 s") as caught:
        event_loop.run(ask())
    assert caught.value.sent


def test_the_timeout_counts_from_each_request_also_where_the_connection_served_others_before() -> None:
    async def play(caller: Caller) -> None:
        for _ in range(3):
            await caller.request()
            await asyncio.sleep(0.1)
            await caller.answer(b"in time")
        await caller.request()
        await caller.gone()

    async def ask() -> tuple[list[bytes], float]:
        clock = asyncio.get_running_loop().time
        async with playing(play) as target, Api(target, timeout_s=1.0) as api:
            answers = [await api.send("POST", "/x", b"{}") for _ in range(3)]
            begun = clock()
            with pytest.raises(Unreachable, match="no answer in 1 s"):
                await api.send("POST", "/x", b"{}")
            return answers, clock() - begun

    answers, waited = event_loop.run(ask())
    assert answers == [b"in time"] * 3
    assert waited > 0.9


def test_a_server_that_is_not_there_is_named_and_surely_was_not_asked() -> None:
    async def ask() -> None:
        async with Api(Target("http://127.0.0.1:9", Fixed())) as api:
            await api.send("POST", "/x", b"{}")

    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9 cannot be reached") as caught:
        event_loop.run(ask())
    assert not caught.value.sent


def test_a_request_that_is_cancelled_takes_its_connection_with_it() -> None:
    async def play(caller: Caller) -> None:
        head = await caller.request()
        if "/slow" in head:
            await asyncio.sleep(0.1)
        await caller.answer(head.split()[1].encode())
        await caller.gone()

    async def ask() -> bytes:
        async with playing(play) as target, Api(target, connections=1) as api:
            slow = asyncio.create_task(api.send("GET", "/slow"))
            await asyncio.sleep(0.03)
            slow.cancel()
            return await api.send("GET", "/fast")  # must not be given the slow one's answer

    assert event_loop.run(ask()) == b"/fast"


def test_closing_ends_requests_under_way_and_those_that_wait_for_their_turn() -> None:
    async def play(caller: Caller) -> None:
        await caller.request()
        await caller.gone()

    async def ask() -> list[object]:
        async with playing(play) as target:
            api = Api(target, connections=1)
            asked = [asyncio.create_task(api.send("GET", "/x")) for _ in range(3)]
            await asyncio.sleep(0.05)
            await api.close()
            return list(await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 10))

    assert [type(each) for each in event_loop.run(ask())] == [Unreachable] * 3


def test_throttling_is_waited_for_as_long_as_the_server_asks() -> None:
    async def play(caller: Caller) -> None:
        for _ in range(2):
            await caller.request()
            await caller.answer(b"slow down", "429 Too Many Requests", more="Retry-After: 0\r\n")
        await caller.request()
        await caller.answer(b"", "503 Service Unavailable", more="retry-after: 0\r\n")
        await caller.request()
        await caller.answer(b"well")
        await caller.gone()

    async def ask() -> tuple[bytes, int]:
        async with playing(play) as target, Api(target) as api:
            return await api.send("POST", "/x", b"{}"), api.throttled

    assert event_loop.run(ask()) == (b"well", 3)


def test_throttling_is_not_waited_for_beyond_patience() -> None:
    async def play(caller: Caller) -> None:
        await caller.request()
        await caller.answer(b"slow down", "429 Too Many Requests", more="Retry-After: 7\r\n")
        await caller.gone()

    async def ask() -> None:
        async with playing(play) as target, Api(target, patience_s=1) as api:
            await api.send("GET", "/x")

    with pytest.raises(TooManyRequests, match="slow down") as caught:
        event_loop.run(ask())
    assert caught.value.retry_after_s == 7


def test_credentials_that_are_refused_are_read_again_once() -> None:
    class Rotating(Fixed):
        times = 1

        async def authorization(self) -> str:
            return bearer(f"token-{self.times}")

        def renew(self) -> None:
            self.times += 1

    good = "Authorization: Bearer token-2"

    async def play(caller: Caller) -> None:
        while True:
            welcome = good in await caller.request()
            await caller.answer(b"{}", "200 OK" if welcome else "401 Unauthorized")

    async def ask(credentials: Fixed) -> bytes:
        async with playing(play, credentials) as target, Api(target) as api:
            return await api.send("GET", "/x")

    assert event_loop.run(ask(Rotating())) == b"{}"
    with pytest.raises(Unauthorized, match="does not accept the credentials"):
        event_loop.run(ask(Fixed(bearer("token-9"))))


@pytest.mark.parametrize(
    ("status", "kind"), [("404 Not Found", NotFound), ("403 Forbidden", Forbidden), ("500 Oops", ServerFault)]
)
def test_other_answers_are_errors_of_their_own_kind(status: str, kind: type[Exception]) -> None:
    async def play(caller: Caller) -> None:
        await caller.request()
        await caller.answer(b'{"kind":"Status","message":"told so","reason":"R"}', status)
        await caller.gone()

    async def ask() -> None:
        async with playing(play) as target, Api(target) as api:
            await api.send("GET", "/x")

    with pytest.raises(kind, match="told so"):
        event_loop.run(ask())


async def _watched(target: Target) -> list[Change[Thing]]:
    async with Api(target) as api, api.watch(THINGS, "5", "space") as watch:
        return [change async for change in watch]


def test_a_watch_gives_changes_also_when_a_line_comes_in_pieces() -> None:
    lines = (
        b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"6"},"size":1}}\n'
        b'{"type":"BOOKMARK","object":{"kind":"Thing","metadata":{"resourceVersion":"9"}}}\n'
        b'{ "type": "DELETED", "object": {"metadata":{"name":"a","resourceVersion":"10"},"size":1}}\n'
        b'{"type":"MODIFIED","object":{"metadata":{"name":"b","resourceVersion":"11"},"size":"big"}}\n'
    )

    async def play(caller: Caller) -> None:
        head = await caller.request()
        assert head.startswith(
            "GET /api/v1/namespaces/space/things?watch=true&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds="
        )
        assert "gzip" not in head
        await caller.chunks(*(lines[at : at + 7] for at in range(0, len(lines), 7)))
        await caller.gone()

    async def ask() -> list[Change[Thing]]:
        async with playing(play) as target:
            return await _watched(target)

    first, second, third, fourth = event_loop.run(ask())
    assert first == ("ADDED", Thing(Metadata("a", resource_version="6"), 1))
    assert second == ("BOOKMARK", Bookmark(Metadata(resource_version="9")))
    assert third == ("DELETED", Thing(Metadata("a", resource_version="10"), 1))
    assert fourth[0] == "UNREADABLE"
    assert isinstance(fourth[1], Unreadable)
    assert fourth[1].metadata.name == "b"
    assert "$.object.size" in fourth[1].problem


def test_a_watch_that_is_told_its_version_is_gone_says_so() -> None:
    async def play(caller: Caller) -> None:
        await caller.request()
        await caller.chunks(b'{"type":"ERROR","object":{"kind":"Status","message":"too old","code":410}}\n')
        await caller.gone()

    async def ask() -> None:
        async with playing(play) as target:
            await _watched(target)

    with pytest.raises(Gone, match="too old"):
        event_loop.run(ask())


def test_a_watch_that_is_cut_gives_what_came_and_then_an_error() -> None:
    async def play(caller: Caller) -> None:
        await caller.request()
        line = b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n'
        await caller.chunks(line + b'{"type":"ADD', end=False)

    async def ask() -> list[str]:
        async with playing(play) as target, Api(target) as api, api.watch(THINGS, "5") as watch:
            seen = [kind for kind, _ in await watch.changes()]
            with pytest.raises(Unreachable):
                await watch.changes()
        return list(map(str, seen))

    assert event_loop.run(ask()) == ["ADDED"]


def test_a_watch_that_falls_silent_is_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wattloom.kubernetes.client.api.SILENCE_S", 0.1)

    async def play(caller: Caller) -> None:
        await caller.request()
        await caller.chunks(b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n', end=False)
        await caller.gone()

    async def ask() -> None:
        async with playing(play) as target, Api(target) as api, api.watch(THINGS, "5") as watch:
            assert len(await watch.changes()) == 1
            await watch.changes()

    with pytest.raises(Unreachable, match=r"no answer in 0\.1 s"):
        event_loop.run(ask())


def test_a_watcher_that_does_not_read_makes_the_server_wait_instead_of_filling_memory() -> None:
    sent = 0
    line = b'{"type":"ADDED","object":{"metadata":{"name":"a"},"note":"' + b"x" * 60_000 + b'"}}\n'

    async def play(caller: Caller) -> None:
        nonlocal sent
        await caller.request()
        await caller.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(500):
            await caller.say(b"%x\r\n%s\r\n" % (len(line), line))
            sent += 1
        await caller.say(b"0\r\n\r\n")
        await caller.gone()

    async def ask() -> tuple[int, int]:
        async with playing(play) as target, Api(target) as api, api.watch(THINGS, "5") as watch:
            await asyncio.sleep(0.5)
            before = sent
            return before, len([kind async for kind, _ in watch])

    before, read = event_loop.run(ask())
    assert before < 300
    assert read == 500
