"""Events on pods, in words, written behind the scheduler's back.

Owns the writers. Every event is written in the end, as long as the process lives: what cannot be written now is tried
again, what the API server refuses for good is dropped and counted. Bindings go first, and pods that wait have no more
than a budget. Finds no words itself.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Final

import msgspec

from wattloom.kubernetes.client.api import CONTENT, Api
from wattloom.kubernetes.client.backoff import Backoff
from wattloom.kubernetes.client.errors import ApiError, Conflict, Forbidden, Invalid, NotFound
from wattloom.kubernetes.client.event_aggregator import Counted, EventAggregator, Line, Pod
from wattloom.kubernetes.client.resource import Resource

LOG: Final = logging.getLogger(__name__)
WRITERS: Final = 8
LATE_S: Final = 1.0
EVENTS: Final = Resource("events.k8s.io", "v1", "events", dict[str, Any])


class EventRecorder:
    """`run` until cancelled; `drain` first, to have all that was told written.

    While `give_way` is true only one of the `writers` goes on; `go_on` is for whoever knows that it no longer is.
    """

    def __init__(
        self,
        api: Api,
        *,
        controller: str = "wattloom",
        instance: str = "wattloom",
        writers: int = WRITERS,
        repeat_s: float = 10.0,
        give_way: Callable[[], bool] = lambda: False,
    ) -> None:
        self.written = 0
        self.dropped = 0
        """Refused for good."""
        self._api = api
        self._book = EventAggregator(controller, instance, repeat_s=repeat_s)
        self._writers = writers
        self._give_way = give_way
        self._busy = 0
        self._resting: deque[asyncio.Future[None]] = deque()
        """Writers without work."""
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        """Told, and not written yet."""
        return len(self._book) + self._busy

    def scheduled(self, pod: Pod, note: str) -> None:
        self._book.tell(pod, "Scheduled", note, "Normal", "Binding", datetime.now(UTC), monotonic())
        self._stir(1)

    def failed(self, pod: Pod, note: str) -> None:
        """It waits, and why. The same words told again are counted on the event that is there."""
        self._book.repeat(pod, "FailedScheduling", note, "Warning", "Scheduling", datetime.now(UTC), monotonic())
        self._stir(1)

    def tell(self, pod: Pod, reason: str, note: str, *, action: str, warning: bool = False) -> None:
        """Anything else, once."""
        kind = "Warning" if warning else "Normal"
        self._book.tell(pod, reason, note, kind, action, datetime.now(UTC), monotonic())
        self._stir(1)

    def go_on(self) -> None:
        """Nobody need be given way to any more."""
        if self._resting and len(self._book) and not self._give_way():
            self._stir(len(self._book))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self._writers):
                group.create_task(self._write_on())
            group.create_task(self._look_for_late())

    async def drain(self) -> None:
        """Until all that was told up to now is written or dropped."""
        while self._book.late(monotonic(), all=True) or len(self):
            self._stir(len(self._book))
            await self._idle.wait()

    def _stir(self, writers: int) -> None:
        """There is work for so many."""
        if not len(self):
            return
        self._idle.clear()
        if self._busy and self._give_way():
            return
        while writers and self._resting:
            writer = self._resting.popleft()
            if not writer.done():
                writer.set_result(None)
                writers -= 1

    async def _look_for_late(self) -> None:
        while True:
            await asyncio.sleep(LATE_S)
            self._book.late(monotonic())
            self._stir(len(self._book))

    async def _write_on(self) -> None:
        while True:
            line = None if self._busy and self._give_way() else self._book.take(monotonic())
            if line is None:
                await self._rest()
                continue
            self._busy += 1
            try:
                await self._write(line)
            finally:
                self._book.done(line)
                self._busy -= 1

    async def _rest(self) -> None:
        if not len(self):
            self._idle.set()
        more: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._resting.append(more)
        await more

    async def _write(self, line: Line) -> None:
        """Until it is written or refused."""
        backoff = Backoff(0.1, 10.0)
        while True:
            try:
                await self._send(line)
            except (Forbidden, Invalid, NotFound) as error:
                self.dropped += 1
                LOG.warning("an event on %s/%s is dropped: %s", line.pod.namespace, line.pod.name, error)
                line.written_note, line.written_count, line.written_at = line.note, line.count, monotonic()
                return
            except ApiError as error:
                if not backoff.times:
                    LOG.info("an event on %s/%s waits: %s", line.pod.namespace, line.pod.name, error)
                await backoff.wait()
            else:
                self.written += 1
                return

    async def _send(self, line: Line) -> None:
        note, count = line.note, line.count
        if line.written_note != note or not await self._counted(line):
            await self._create(line)
        line.written_note, line.written_count, line.written_at = note, count, monotonic()

    async def _counted(self, line: Line) -> bool:
        """On the event that is there. False where it is no longer: events are kept for an hour only."""
        path = EVENTS.path(line.pod.namespace, line.event)
        try:
            body = msgspec.json.encode(Counted(self._book.series(line)))
            await self._api.send("PATCH", path, body, content=CONTENT["merge"])
        except NotFound:
            line.event = ""
            return False
        return True

    async def _create(self, line: Line) -> None:
        self._book.name(line)
        try:
            await self._api.send("POST", EVENTS.path(line.pod.namespace), msgspec.json.encode(self._book.fresh(line)))
        except Conflict as error:
            if not error.exists:  # it exists where an earlier try had come through after all
                raise
