"""What nodes may draw, published on the nodes as the extended resource `wattloom.dev/milliwatts`.

Owns what is written there and when: only where it differs from what stands there. Plain tools of Kubernetes see it
(`kubectl describe node`), and pods may ask for a part of it. Which machine a node is, is `profiles`' business.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.errors import ApiError, Forbidden, Invalid, NotFound
from wattloom.kubernetes.model import kinds
from wattloom.kubernetes.model.objects import Node
from wattloom.kubernetes.model.profiles import MILLIWATTS, Found, milliwatts
from wattloom.kubernetes.model.quantity import nanos, value

LOG: Final = logging.getLogger(__name__)
AT_ONCE: Final = 2
PAUSE_S: Final = 0.02
"""After each write of a lane: nothing waits for these, and other writes come first."""
BUSY_PAUSE_S: Final = 0.1
"""The same while pods are being placed: a write wakes everybody who watches nodes, kube-scheduler among them."""
STAND_BY_S: Final = 1.0
AGAIN_S: Final = 15.0
"""After a fault."""


class WattsPublisher:
    """Told by `changed` of nodes to look at; `run` until cancelled writes what differs, while it `may`, and few while
    others are `busy`.

    `node` and `found` answer by name: the node as it was last seen, and the machine it is taken for."""

    def __init__(
        self,
        api: Api,
        node: Callable[[str], Node | None],
        found: Callable[[str], Found | None],
        *,
        may: Callable[[], bool] = lambda: True,
        busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self.written = 0
        self.failed = 0
        self._api = api
        self._node, self._found, self._may, self._busy = node, found, may, busy
        self._pending: dict[str, None] = {}
        self._more: Final = asyncio.Event()
        self._said = ""

    def __len__(self) -> int:
        return len(self._pending)

    def changed(self, name: str) -> None:
        """The node, or what is known of its machine, may be different."""
        self._pending[name] = None
        self._more.set()

    async def run(self) -> None:
        while True:
            await self._more.wait()
            while not self._may():
                await asyncio.sleep(STAND_BY_S)
            self._more.clear()
            names, self._pending = list(self._pending), {}
            queue = iter([name for name in names if self._wanted(name) is not None])
            async with asyncio.TaskGroup() as group:
                lanes = [group.create_task(self._lane(queue)) for _ in range(AT_ONCE)]
            if not all(lane.result() for lane in lanes):
                await asyncio.sleep(AGAIN_S)
                for name in queue:  # those that nobody came to
                    self.changed(name)

    async def _lane(self, queue: Iterator[str]) -> bool:
        """False: the API server does not take any now."""
        for name in queue:
            patch = self._wanted(name)
            if patch is not None and not await self._write(name, patch):
                self.changed(name)
                return False
            await asyncio.sleep(BUSY_PAUSE_S if self._busy() else PAUSE_S)
        return True

    async def _write(self, name: str, patch: dict[str, Any]) -> bool:
        try:
            await self._api.patch(kinds.NODES, patch, name, subresource="status", how="merge")
        except (NotFound, Invalid):  # it is gone, or its own problem
            self.failed += 1
            return True
        except ApiError as error:
            self.failed += 1
            self._say(error)
            return False
        self.written += 1
        return True

    def _say(self, error: ApiError) -> None:
        if str(error) != self._said:
            self._said = str(error)
            hint = " (the role needs patch on nodes/status; or --no-publish-watts)"
            without = hint if isinstance(error, Forbidden) else ""
            LOG.warning("%s is not published on nodes: %s%s", MILLIWATTS, error, without)

    def _wanted(self, name: str) -> dict[str, Any] | None:
        """The patch that puts the node right; None: it is right, or gone, or it cannot be said what it may draw."""
        try:
            return self._patch(name)
        except Exception:
            self.failed += 1
            LOG.exception("%s is not published on node %s", MILLIWATTS, name)
            return None

    def _patch(self, name: str) -> dict[str, Any] | None:
        node, found = self._node(name), self._found(name)
        if node is None or found is None:
            return None
        watts = milliwatts(found)
        if all(_amount(there) == watts for there in (node.status.capacity, node.status.allocatable)):
            return None
        amount = {MILLIWATTS: None if watts is None else str(watts)}
        return {"status": {"capacity": amount, "allocatable": amount}}


def _amount(amounts: dict[str, str]) -> int | None:
    written = amounts.get(MILLIWATTS)
    return None if written is None else value(nanos(written))
