"""A part of the product at work in a thread of the test, in the event loop that users get."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from wattloom.kubernetes.client import event_loop


class Part(Protocol):
    async def run(self) -> None: ...

    def stop(self) -> None: ...


P = TypeVar("P", bound=Part)


class InThread(Generic[P]):
    """`make` is called in the thread; `part` is what it made."""

    def __init__(self, make: Callable[[], P]) -> None:
        self.part: P
        self.error: BaseException | None = None
        self._made = threading.Event()
        self._loop = (event_loop.fastest() or asyncio.new_event_loop)()
        self._thread = threading.Thread(target=self._run, args=(make,))

    def _run(self, make: Callable[[], P]) -> None:
        async def live() -> None:
            self.part = make()
            self._made.set()
            await self.part.run()

        try:
            self._loop.run_until_complete(live())
        except BaseException as error:
            self.error = error
        finally:
            self._made.set()
            self._loop.close()

    def start(self) -> None:
        self._thread.start()
        self._made.wait(30)

    def call(self, work: Callable[[], Any]) -> Any:
        """In its own thread, between two of its steps."""

        async def do() -> Any:
            return work()

        return asyncio.run_coroutine_threadsafe(do(), self._loop).result(30)

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self.part.stop)
        self._thread.join(60)
        assert not self._thread.is_alive()

    def wait(self, seconds: float = 60.0) -> BaseException | None:
        """Until it ends by itself; what it raised."""
        self._thread.join(seconds)
        assert not self._thread.is_alive()
        return self.error
