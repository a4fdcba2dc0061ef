"""A server: its sockets, its life and its end, in an event loop of the program or in a thread of its own.

Owns starting and stopping, and TLS. uvicorn's protocols serve apps; its `Server` does not, which handles signals, ends
processes and wakes ten times a second.
"""

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Mapping
from socket import socket
from threading import Event, Thread
from typing import Final

from wattloom.serving.access import brings, check_token
from wattloom.serving.address import BACKLOG, Address, listen, parse_address
from wattloom.serving.pages import App, Gate, Page, Pages
from wattloom.serving.places import Limits, Places
from wattloom.serving.protocol import connecting

TURN_S: Final = 0.01
"""In which the event loop gets to what is already there."""


class Server:
    """`start`, then `stop`. `bind` alone says where it will be.

    `connect` makes the protocol of a connection, which takes its place itself. What it works on is in `tasks`, which
    do not outlive the server.
    """

    def __init__(
        self,
        address: Address,
        connect: Callable[[Places], asyncio.Protocol],
        *,
        limits: Limits,
        tasks: set[asyncio.Task[None]] | None = None,
        encryption: ssl.SSLContext | None = None,
        field: str = "listen",
    ) -> None:
        """`field` is the option that a wrong address is blamed on."""
        self._wanted, self._connect, self._field = address, connect, field
        self._encryption: Final = encryption
        self._tasks: Final = set() if tasks is None else tasks
        self._sockets: list[socket] = []
        self._listening: list[asyncio.Server] = []
        self._letting_in: list[asyncio.Task[None]] = []
        self.places: Final = Places(limits)
        self.port = address.port
        """IPv4's, where any would do and both kinds of addresses have one of their own."""

    def bind(self) -> Address:
        """From now on callers are waited for. With the port that was found, where any would do."""
        if not self._sockets:
            self._sockets = listen(self._wanted, self._field)
            self.port = int(self._sockets[0].getsockname()[1])
        return Address(self._wanted.host, self.port)

    async def start(self) -> None:
        self.bind()
        loop = asyncio.get_running_loop()
        for each in self._sockets:
            if self._encryption is None:
                self._listening.append(await loop.create_server(self._connection, sock=each, backlog=BACKLOG))
            else:
                self._letting_in.append(self._begin(self._let_in(each, self._encryption)))

    async def stop(self) -> None:
        """Every connection is closed when this returns. What is being worked out has a moment."""
        loop = asyncio.get_running_loop()
        for each in self._sockets:
            loop.remove_reader(each)  # asyncio breaks if a server is closed while it lets somebody in
        await asyncio.sleep(TURN_S)
        self.close()
        await asyncio.sleep(TURN_S)  # uvloop brings those whom it let in last
        self.places.end()
        until = loop.time() + self.places.limits.goodbye_s
        while self.places.callers and loop.time() < until:
            await asyncio.sleep(TURN_S)
        self.places.abort()
        await asyncio.sleep(TURN_S)  # and those who were thrown out are gone
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def close(self) -> None:
        """Nobody else is let in."""
        for task in self._letting_in:
            task.cancel()
        for server in self._listening:
            server.close()
        for each in self._sockets:
            each.close()
        self._listening, self._sockets = [], []

    def _connection(self) -> asyncio.Protocol:
        return self._connect(self.places)

    # -- before hands are shaken -------------------------------------------------------------------------------------

    def _begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _let_in(self, listening: socket, encryption: ssl.SSLContext) -> None:
        """asyncio would give nobody a place before he has shaken hands, and so anybody any number of them."""
        while True:
            try:
                plain, _ = await asyncio.get_running_loop().sock_accept(listening)
            except OSError:  # nobody can be let in now, as where too many files are open
                await asyncio.sleep(self.places.limits.goodbye_s)
            else:
                stranger = _Stranger(plain)
                stranger.task = self._begin(self._shake_hands(stranger, encryption))
                stranger.task.add_done_callback(stranger.forget)

    async def _shake_hands(self, stranger: "_Stranger", encryption: ssl.SSLContext) -> None:
        caller = self.places.take(stranger)
        stranger.begun = True
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._connection,
                stranger.plain,
                ssl=encryption,
                ssl_handshake_timeout=self.places.limits.request_s,
            )
        except (OSError, asyncio.CancelledError):
            pass  # what it says is no TLS, or not in time, or its place is somebody else's
        finally:
            caller.gone()


class _Stranger:
    """Somebody who has not shaken hands yet: a connection, as places see it."""

    def __init__(self, plain: socket) -> None:
        self.plain = plain
        self.begun = False
        self.task: asyncio.Task[None] | None = None

    def close(self) -> None:
        if self.task is not None:
            self.task.cancel()

    abort = close

    def forget(self, ended: asyncio.Task[None]) -> None:
        if not self.begun:  # else it is its transport's
            self.plain.close()

    def is_closing(self) -> bool:
        return self.task is None or self.task.done()


class ServerThread:
    """A server with an event loop of its own, for a program that has none. `start`, then `stop`."""

    def __init__(self, server: Server, name: str) -> None:
        self._server: Final = server
        self._started: Final = Event()
        self._end: Callable[[], object] = lambda: None
        self._thread: Final = Thread(target=lambda: asyncio.run(self._live()), name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._started.wait()

    def stop(self) -> None:
        """Nobody is connected when this returns; also if it was never started."""
        if self._thread.is_alive():
            self._end()
            self._thread.join()
        self._server.close()

    async def _live(self) -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        self._end = lambda: loop.call_soon_threadsafe(over.set)
        try:
            await self._server.start()
        finally:
            self._started.set()
        await over.wait()
        await self._server.stop()


def app_server(
    address: Address,
    app: App,
    *,
    limits: Limits,
    encryption: ssl.SSLContext | None = None,
    field: str = "listen",
    parser: str = "",
) -> Server:
    """A server of an ASGI app. Whoever may ask it is a `Gate`'s question."""
    tasks: set[asyncio.Task[None]] = set()
    connect = connecting(app, limits, tasks, parser)
    return Server(address, connect, limits=limits, tasks=tasks, encryption=encryption, field=field)


def page_server(
    address: str,
    open: Mapping[str, Page],
    pages: Mapping[str, Page],
    *,
    token: str = "",
    field: str = "http",
    limits: Limits | None = None,
    parser: str = "",
) -> Server:
    """A program's own small web server: `open` pages are for everybody, `pages` for those who may.

    On loopback every program of this machine may ask everything (also `kubectl port-forward`, which comes from within
    the pod). On any other address whoever comes may ask only for what is open, unless he brings the token: also one who
    comes from loopback, who may be a proxy that brings anybody.
    """
    where, limits = parse_address(address, field), limits or Limits()
    check_token(token)
    gate = Gate(
        Pages({**open, **pages}, close=True),
        probes=open,
        admits=lambda authorization: where.loopback or (bool(token) and brings(token, authorization)),
        most=limits.answered,
        close=True,
    )
    return app_server(where, gate, limits=limits, field=field, parser=parser)
