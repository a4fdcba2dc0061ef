"""uvicorn's two protocols with what they have not: one deadline and one size for a whole request, and places.

Owns what becomes of a connection: whose turn it is, when it is left, and what is said to bytes that are no request. The
parsing is uvicorn's, by httptools where that is installed and by h11 elsewhere. Knows no page.
"""

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from wattloom.serving.pages import TEXT, App
from wattloom.serving.places import Caller, Limits, Places

LOG: Final = logging.getLogger("wattloom.serving.wire")
"""Nonsense that somebody sends is answered, and is not worth a line in anybody's log."""
LOG.setLevel(logging.ERROR)


class _Guarded(asyncio.Protocol):
    """What is mixed into either of uvicorn's protocols. `cycle` is uvicorn's: a request whose head is whole."""

    cycle: Any
    transport: asyncio.Transport
    flow: Any

    def __init__(self, places: Places, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self.logger, self.access_log = LOG, False
        self._places, self._limits = places, places.limits
        self._caller: Caller | None = None
        self._latest: Any = None
        """The cycle that was looked at last."""
        self._in_body = False
        self._taken = 0
        """Bytes of the head, or of the body, that is being read."""
        self._idle = False
        """Whether a request has been answered, and nothing of another one is here."""
        self._deaf = False
        """Whether what else is sent is thrown away: an answer is under way, and is the last."""

    # -- what asyncio calls ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._caller = self._places.take(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._caller is not None:
            self._caller.gone()
        for cycle in self._unanswered():
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._idle:
            self._idle = False
            self._wait(self._limits.request_s)
        while data and not self._deaf and not self.transport.is_closing():
            room = self._room
            self._taken += min(room, len(data))
            super().data_received(data[:room])
            data = data[room:]
            self._look()

    def eof_received(self) -> bool:
        """Who has said all he had to say may wait for the answer, or be gone: he has a moment, and the app is told."""
        cycle = self.cycle
        if cycle is None or cycle.more_body or cycle.response_started:
            return False
        cycle.keep_alive = False
        self._wait(self._limits.goodbye_s)
        return self.transport.get_extra_info("ssl_object") is None  # TLS knows no half of a connection

    def pause_writing(self) -> None:
        super().pause_writing()
        assert self._caller is not None
        self._caller.wait(self._limits.request_s)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._whose_turn()

    # -- what uvicorn calls ------------------------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        super().on_response_complete()  # type: ignore[misc]
        self._unset_keepalive_if_required()  # type: ignore[attr-defined]
        assert self._caller is not None
        self._caller.known = True
        self._look()
        if self.cycle.response_complete and self._in_body:
            self._end()  # nobody reads the rest of it, and it is no request of its own
        else:
            self._whose_turn()

    def send_400_response(self, msg: str) -> None:
        self._refuse(HTTPStatus.BAD_REQUEST, "this is no HTTP/1.1 that can be understood")

    # -- ours --------------------------------------------------------------------------------------------------------

    @property
    def _room(self) -> int:
        """Bytes that are taken at once: one more than may be, so that it shows."""
        return (self._limits.body if self._in_body else self._limits.head) + 1 - self._taken

    def _look(self) -> None:
        """At how far the parser is, after everything it was given."""
        if self.transport.is_closing() or self._deaf:
            return
        self._see()
        if self._room <= 0:
            self._refuse_size()
        else:
            self._whose_turn()

    def _see(self) -> None:
        if self.cycle is not self._latest:
            self._latest, self._in_body = self.cycle, True
            self._taken = max(len(self.cycle.body), _declared(self.cycle.scope["headers"]))
            if self._taken <= self._limits.body:
                self._taken = len(self.cycle.body)
        if self._in_body and not self.cycle.more_body and self._room > 0:
            self._in_body, self._taken = False, 0

    def _whose_turn(self) -> None:
        """It is the caller's until he has sent all of a request, and while he does not take the answer."""
        assert self._caller is not None
        if self.flow.write_paused or self._in_body or self._latest is None:
            return
        if self.transport.is_closing():
            self._caller.wait(self._limits.request_s)
        elif not self.cycle.response_complete:
            self._caller.work()
        elif not self._caller.waited_for or self._taken == 0:
            self._idle = self._taken == 0
            self._wait(self._limits.idle_s if self._idle else self._limits.request_s)

    def _wait(self, seconds: float) -> None:
        if not self.flow.write_paused:
            assert self._caller is not None
            self._caller.wait(seconds)

    def _refuse_size(self) -> None:
        if self._in_body:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the content is too long")
        else:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the head is too long")

    def _refuse(self, status: HTTPStatus, words: str) -> None:
        """The last word; after the answer that is under way, if there is one, and then without a word."""
        self._deaf = True
        self._see()
        if self._in_body:
            said = self.cycle.response_started
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        elif said := bool(self._unanswered()):
            for cycle in self._unanswered():
                cycle.keep_alive = False
            return
        if not said and not self.transport.is_closing():
            self.transport.write(refusal(status, words))
        self._end()

    def _end(self) -> None:
        assert self._caller is not None
        self.transport.close()
        self._caller.wait(self._limits.request_s)

    def _unanswered(self) -> list[Any]:
        """Requests whose heads are whole and that have no whole answer."""
        return [self.cycle] if self.cycle is not None and not self.cycle.response_complete else []


class GuardedH11(_Guarded, H11Protocol):  # type: ignore[misc]  # it answers eof_received, uvicorn's never does
    """By h11, which is all Python and always there."""


def connecting(
    app: App, limits: Limits, tasks: set[asyncio.Task[None]], parser: str = ""
) -> Callable[[Places], asyncio.Protocol]:
    """What makes the protocol of a connection to an app. `parser`: `h11` or `httptools`; empty: the faster one here."""
    made = _protocol_class(parser)
    config = Config(
        app,
        http=made,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        proxy_headers=False,
        h11_max_incomplete_event_size=2 * limits.head,  # ours is met first, and says what is wrong
    )
    state = ServerState()
    state.tasks = tasks
    return lambda places: made(places, config=config, server_state=state, app_state={})


def _protocol_class(parser: str) -> type[_Guarded]:
    if parser == "h11":
        return GuardedH11
    try:
        from wattloom.serving.httptools_protocol import GuardedHttpTools
    except ModuleNotFoundError:
        if parser:
            raise
        return GuardedH11
    return GuardedHttpTools


def refusal(status: HTTPStatus, words: str, kind: str = TEXT) -> bytes:
    """An answer in the protocol's own words, after which the connection is closed."""
    body = f"{words}\n".encode()
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode("latin-1") + body


def _declared(headers: list[tuple[bytes, bytes]]) -> int:
    """The content's length as its head has it, as far as it is one."""
    return max((int(value[:20]) for name, value in headers if name == b"content-length" and value.isdigit()), default=0)
