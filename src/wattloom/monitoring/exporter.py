"""The exporter: what shows the latest snapshot to Prometheus, by HTTP.

Owns its pages (`/metrics`, `/healthz`, and `/` which names them). Works out nothing. The server, who may ask and how
long a caller may keep it waiting are `serving`'s.
"""

import asyncio
from time import monotonic
from typing import Final

from wattloom.monitoring.accountant import Accountant
from wattloom.monitoring.exposition import Presented
from wattloom.monitoring.sampler import INTERVAL_S, Sampler
from wattloom.monitoring.snapshot import Snapshot
from wattloom.monitoring.top_processes import Detail, Prominence, Prominent
from wattloom.serving.access import Access, check_access
from wattloom.serving.address import Address
from wattloom.serving.pages import HTML, TEXT, Answered, Asked, Gate, Pages, metrics_text
from wattloom.serving.places import Limits
from wattloom.serving.server import ServerThread, app_server

LIMITS: Final = Limits(callers=32, answered=24)
LATE: Final = 10.0
"""Intervals without a look after which something is wrong."""
PAGE: Final = b"<title>wattloom</title><p>wattloom exporter: <a href=metrics>metrics</a>, <a href=healthz>health</a>"


class Exporter:
    """Looks about once a second and answers. `start`, then `stop`; or `with`."""

    def __init__(
        self,
        accountant: Accountant,
        address: Address,
        *,
        access: Access | None = None,
        insecure: bool = False,
        detail: Detail | None = None,
        interval_s: float = INTERVAL_S,
        limits: Limits = LIMITS,
        parser: str = "",
    ) -> None:
        self._access: Final = access or Access()
        check_access(address, self._access, insecure=insecure)
        self._interval_s: Final = interval_s
        self._prominence: Final = Prominence(detail or Detail())
        pages = {"/metrics": self._metrics, "/": self._index, "/healthz": self._health}
        gate = Gate(Pages(pages), probes={"/healthz"}, admits=self._access.admits, most=limits.answered)
        server = app_server(address, gate, limits=limits, encryption=self._access.encryption(), parser=parser)
        self.address: Final = server.bind()
        """With the port that was found, where any would do."""
        self._serving: Final = ServerThread(server, "wattloom-exporter")
        self._sampler: Final = Sampler(accountant, interval_s, self._take)
        self._latest = self._sampler.latest, self._prominence.update(self._sampler.latest)
        self.presented: Final = Presented(self.latest)

    def latest(self) -> tuple[Snapshot, Prominent]:
        return self._latest

    def start(self) -> None:
        self._sampler.start()
        self._serving.start()

    def stop(self) -> None:
        """No more answers; those under way are given."""
        self._serving.stop()
        self._sampler.stop()

    def __enter__(self) -> "Exporter":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def failure(self) -> str:
        """Why this exporter is not well. Empty: it is."""
        if self._sampler.failure is not None:
            return f"looking has ended: {type(self._sampler.failure).__name__}: {self._sampler.failure}"
        late_s = monotonic() - self._latest[0].time
        return f"the last look was {late_s:.0f} s ago" if late_s > LATE * max(self._interval_s, 1.0) else ""

    def _take(self, shown: Snapshot) -> None:
        self._latest = shown, self._prominence.update(shown)

    async def _health(self, asked: Asked) -> Answered:
        """Whether it is well, everybody may know; why not, may hold more."""
        failure = self.failure
        if not failure:
            return Answered(200, TEXT, b"ok\n")
        return Answered(503, TEXT, failure.encode() if self._access.admits(asked.authorization) else b"not well\n")

    async def _metrics(self, asked: Asked) -> Answered:
        """In a thread: whoever asks for a page of thousands of processes keeps nobody waiting who asks for health."""
        body, kind = await asyncio.to_thread(metrics_text, self.presented, asked.accept)
        return Answered(200, kind, body)

    async def _index(self, asked: Asked) -> Answered:
        return Answered(200, HTML, PAGE)
