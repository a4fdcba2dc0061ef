"""A server for faults of the wire only: it plays bytes by hand, and knows nothing of Kubernetes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from wattloom.kubernetes.client.credentials import Credentials, Fixed
from wattloom.kubernetes.client.target import Target

Play = Callable[["Caller"], Awaitable[None]]


class Caller:
    """One connection that somebody opened to us. `number` counts them from 1."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number: Final = number
        self.writer: Final = writer
        self.heads: list[str] = []
        self._reader = reader

    async def request(self) -> str:
        """The head of the next request, its body read and left."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        for line in head.splitlines():
            if line.lower().startswith("content-length:"):
                await self._reader.readexactly(int(line.split(":")[1]))
        self.heads.append(head)
        return head

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, body: bytes, status: str = "200 OK", *, more: str = "") -> None:
        await self.say(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body)

    async def chunks(self, *parts: bytes, end: bool = True) -> None:
        await self.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for part in parts:
            await self.say(b"%x\r\n%s\r\n" % (len(part), part))
        if end:
            await self.say(b"0\r\n\r\n")

    async def gone(self) -> None:
        """Until the other side has left."""
        while await self._reader.read(65536):
            pass


@asynccontextmanager
async def playing(play: Play, credentials: Credentials | None = None) -> AsyncIterator[Target]:
    """Plays to every caller; leaves when the play ends."""
    callers = 0
    running: set[asyncio.Task[None]] = set()

    async def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal callers
        callers += 1
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            await play(Caller(callers, reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            running.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(welcome, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield Target(f"http://127.0.0.1:{port}", credentials or Fixed())
    finally:
        server.close()
        for task in tuple(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await server.wait_closed()
