"""The guarded protocol by httptools: faster than h11, and installed with `wattloom[kubernetes]` alone."""

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wattloom.serving.protocol import _Guarded


class GuardedHttpTools(_Guarded, HttpToolsProtocol):  # type: ignore[misc]  # as GuardedH11
    """uvicorn queues requests that come before the one ahead of them is answered; `cycle` is the last of them."""

    _running: Any = None

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _unanswered(self) -> list[Any]:
        cycles = [self._running, *(cycle for cycle, _ in self.pipeline), self.cycle]
        return [cycle for cycle in cycles if cycle is not None and not cycle.response_complete]
