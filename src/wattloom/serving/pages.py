"""What stands before every app, and pages: small apps that are asked by GET.

Owns who is let in (`Gate`) and what a page is asked and answers. Works nothing out itself. A target that is no address,
a missing token and too much at once are refused here, so that no app meets them.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry

LOG: Final = logging.getLogger(__name__)
TEXT: Final = "text/plain; charset=utf-8"
HTML: Final = "text/html; charset=utf-8"
JSON: Final = "application/json"
MOST_FIELDS: Final = 16
"""Of a query."""
NO_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")
BODIES: Final = (b"content-length", b"transfer-encoding")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Asked(NamedTuple):
    """A request: its path, its query, the form of answer it prefers, and what it has of authorization."""

    path: str
    query: dict[str, str]
    accept: str
    authorization: bytes = b""


class Answered(NamedTuple):
    status: int
    kind: str
    body: bytes


Page = Callable[[Asked], Awaitable[Answered]]


class Gate:
    """An app behind which another one is asked only what makes sense, by those who may, so many at once.

    `probes` are paths for everybody, also when all others are busy. `admits` is told the header `Authorization`.
    """

    def __init__(
        self, app: App, *, probes: Collection[str], admits: Callable[[bytes], bool], most: int, close: bool = False
    ) -> None:
        self._app, self._probes, self._admits = app, probes, admits
        self._most, self._close = most, close
        self._answered = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            refused = self._refused(scope)
            if refused is not None:
                await reply(send, refused, close=self._close or _has_content(scope))
            else:
                await self._pass_on(scope, receive, send)
        except asyncio.CancelledError:
            pass  # only the server's end does that, to callers who are gone; uvicorn would write a traceback

    def _refused(self, scope: Scope) -> Answered | None:
        try:
            _mend_target(scope)
        except ValueError as wrong:
            return Answered(400, TEXT, f"this cannot be asked: {wrong}\n".encode())
        if scope["path"] in self._probes:
            return None
        if not self._admits(header(scope, b"authorization")):
            return Answered(401, TEXT, b"a token is needed: Authorization: Bearer TOKEN\n")
        if self._answered >= self._most:
            return Answered(503, TEXT, b"too many ask at once\n")
        return None

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def told(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        counted = int(scope["path"] not in self._probes)
        self._answered += counted
        try:
            await self._app(scope, receive, told)
        except Exception:
            LOG.exception("%a could not be answered", scope["path"])
            if not begun:
                words = b"this could not be worked out: the program's own log says why\n"
                await reply(send, Answered(500, TEXT, words), close=True)
        finally:
            self._answered -= counted


class Pages:
    """An app of pages, each at its path, that are asked by GET and read no content."""

    def __init__(self, pages: Mapping[str, Page], *, close: bool = False) -> None:
        """`close`: one answer, and the connection is closed."""
        self._pages, self._close = pages, close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answer(scope)
        except _NotAsked as wrong:
            answer = Answered(400, TEXT, f"this cannot be asked: {wrong}\n".encode())
        await reply(send, answer, close=self._close or _has_content(scope))

    async def _answer(self, scope: Scope) -> Answered:
        if scope["method"] not in ("GET", "HEAD"):
            raise _NotAsked("only GET")
        page = self._pages.get(scope["path"])
        if page is None:
            return Answered(404, TEXT, f"there is {', '.join(self._pages)}\n".encode())
        accept = header(scope, b"accept").decode("latin-1")
        return await page(Asked(scope["path"], _query(scope), accept, header(scope, b"authorization")))


class _NotAsked(Exception):
    """In words, why something cannot be asked of a page."""


async def reply(send: Send, answer: Answered, *, close: bool = False) -> None:
    """`close`: the connection too, as where content was sent that nobody has read: it is no request of its own."""
    headers = [(b"content-type", answer.kind.encode()), (b"content-length", b"%d" % len(answer.body))]
    if answer.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def metrics_text(collector: Collector, accept: str = "") -> tuple[bytes, str]:
    """What a program counts, for Prometheus: text and its type, in the form that the reader prefers."""
    encoder, kind = choose_encoder(accept)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return encoder(registry), kind


def header(scope: Scope, wanted: bytes) -> bytes:
    """The last one of that name; empty where there is none."""
    found: list[tuple[bytes, bytes]] = scope["headers"]
    return next((value for name, value in reversed(found) if name == wanted), b"")


def _has_content(scope: Scope) -> bool:
    return any(name in BODIES for name, _ in scope["headers"])


def _mend_target(scope: Scope) -> None:
    """An address with scheme and host is that of its path. ValueError: it is none."""
    text = scope["raw_path"].decode("latin-1")
    whole = f"{text}?{scope['query_string'].decode('latin-1')}"
    if not (whole.isascii() and whole.isprintable()) or NO_ESCAPE.search(whole):
        raise ValueError("the address is no address")
    url = urlsplit(text)
    if url.scheme:
        url.port  # noqa: B018 - looks whether it is a number
        scope["path"], scope["raw_path"] = unquote(url.path), url.path.encode()


def _query(scope: Scope) -> dict[str, str]:
    try:
        found = parse_qs(scope["query_string"].decode("latin-1"), errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError as wrong:
        raise _NotAsked(f"{wrong}") from None
    query = {name: values[-1] for name, values in found.items()}
    if not all(f"{name}{value}".isprintable() for name, value in query.items()):
        raise _NotAsked("the query has control characters in it")
    return query
