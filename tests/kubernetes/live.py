"""Our client on a real API server: shared by the tests of the client's parts."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from tests.beds.kubernetes import ControlPlane

from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.kubeconfig import target_of
from wattloom.kubernetes.client.reading import Metadata
from wattloom.kubernetes.client.resource import Resource
from wattloom.kubernetes.model.objects import Pod


class Map(msgspec.Struct, frozen=True):
    """A ConfigMap: the object that is cheapest to make."""

    metadata: Metadata
    data: dict[str, str] | None = None


MAPS = Resource("", "v1", "configmaps", Map)
PODS = Resource("", "v1", "pods", Pod)


def a_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@asynccontextmanager
async def client(plane: ControlPlane, kubeconfig: Path | None = None, **options: Any) -> AsyncIterator[Api]:
    async with Api(target_of(kubeconfig or plane.kubeconfig), **options) as api:
        yield api


async def eventually_so(truth: Callable[[], Any], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not truth():
            await asyncio.sleep(0.01)


class Relay:
    """A wire between our client and the real API server that can be cut. It passes bytes and understands none."""

    def __init__(self, host: str, port: int) -> None:
        self.answers_to_lose = 0
        """So often more, what the server says is thrown away and the wire cut."""
        self._host, self._port = host, port
        self._writers: set[asyncio.StreamWriter] = set()
        self.tasks: set[asyncio.Task[None]] = set()

    def cut(self) -> None:
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        ends = {writer}
        with suppress(OSError, ExceptionGroup, asyncio.CancelledError):
            far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
            ends.add(far_writer)
            self._writers |= ends
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, far_writer, answers=False))
                group.create_task(self._pass(far_reader, writer, answers=True))
        self._writers -= ends
        for end in ends:
            end.transport.abort()
        self.tasks.discard(task)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        while data := await reader.read(65536):
            if answers and self.answers_to_lose > 0:
                self.answers_to_lose -= 1
                break
            writer.write(data)
            await writer.drain()
        raise ConnectionAbortedError


@asynccontextmanager
async def relayed(plane: ControlPlane, folder: Path, **options: Any) -> AsyncIterator[tuple[Api, Relay]]:
    """Our client with a wire to the API server that can be cut."""
    far = target_of(plane.kubeconfig)
    relay = Relay(far.host, far.port)
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    near = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    path = folder / "relayed.yaml"
    path.write_text(plane.kubeconfig.read_text().replace(far.server, near))
    try:
        async with client(plane, path, **options) as api:
            yield api, relay
    finally:
        server.close()
        relay.cut()
        for task in tuple(relay.tasks):
            task.cancel()
        await asyncio.gather(*relay.tasks, return_exceptions=True)
        await server.wait_closed()
