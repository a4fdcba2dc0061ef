"""How many may be connected, how long one may keep a server waiting, and how much one may send.

Owns the limits, the places and the deadlines; a connection is a transport here, and what is said on it is not looked
at. Where all places are taken the caller who has kept us waiting longest leaves for whoever comes: a probe asks at
once, and so always gets in.
"""

import asyncio
from typing import Final, Protocol

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one caller, and all of them together, may take."""

    request_s: float = 10.0
    """For a whole request, and for the caller to take the answer."""
    idle_s: float = 10.0
    """Between two requests on one connection."""
    head: int = 16_384
    """Bytes of a request's head."""
    body: int = 1 << 20
    """Bytes of its content; in chunks their marks count too."""
    callers: int = 64
    answered: int = 48
    """Requests that are being worked on: the other places are kept for health and readiness."""
    goodbye_s: float = 1.0
    """For whoever is told to leave to do so."""


class Connection(Protocol):
    """What can be ended: asyncio's transports, and whoever has not shaken hands yet."""

    def close(self) -> None: ...
    def abort(self) -> None: ...
    def is_closing(self) -> bool: ...


class Places:
    """Everybody who is connected to one server."""

    def __init__(self, limits: Limits) -> None:
        self.limits: Final = limits
        self.callers: Final[dict[Caller, None]] = {}
        """In the order in which they came: the clock of an event loop tells few of them apart."""

    def take(self, transport: Connection) -> "Caller":
        caller = Caller(self, transport)
        self.callers[caller] = None
        caller.wait(self.limits.request_s)
        if len(self.callers) > self.limits.callers:
            self._send_one_away(caller)
        return caller

    def _send_one_away(self, newcomer: "Caller") -> None:
        """Whoever never asked anything goes before those who did."""
        waited_for = [each for each in self.callers if each.waited_for and each is not newcomer]
        if waited_for:
            min(waited_for, key=lambda each: (each.known, each.since)).abort()

    def end(self) -> None:
        """Whoever is waited for is told to leave."""
        for caller in tuple(self.callers):
            if caller.waited_for:
                caller.end()

    def abort(self) -> None:
        for caller in tuple(self.callers):
            caller.abort()


class Caller:
    """One connection's place, and its deadline while it is the caller's turn to go on."""

    def __init__(self, places: Places, transport: Connection) -> None:
        self.known = False
        """Whether it has had an answer before."""
        self.since = 0.0
        """When it last became the caller's turn."""
        self._places, self._transport = places, transport
        self._loop: Final = asyncio.get_running_loop()
        self._until: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waited_for(self) -> bool:
        return self._until is not None

    def wait(self, seconds: float) -> None:
        """It is the caller's turn, for so long."""
        self.since = self._loop.time()
        self._until = self.since + seconds
        if self._timer is None or self._timer.when() > self._until:
            self._set_timer(self._until)

    def work(self) -> None:
        """It is our turn."""
        self._until = None

    def end(self) -> None:
        """It is told to leave, and has a moment for it: also to take what it has not taken yet."""
        self._transport.close()
        self.wait(self._places.limits.goodbye_s)

    def abort(self) -> None:
        self.gone()
        self._transport.abort()

    def gone(self) -> None:
        self._places.callers.pop(self, None)
        self._until = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, until: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(until, self._look)

    def _look(self) -> None:
        """One timer serves many requests: most have long been answered when it goes off."""
        self._timer = None
        if self._until is None:
            return
        if self._until > self._loop.time():
            self._set_timer(self._until)
        elif self._transport.is_closing():
            self.abort()
        else:
            self.end()
