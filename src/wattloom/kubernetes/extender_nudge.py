"""A word to kube-scheduler that there is room again for pods that were refused.

Owns the annotation `wattloom.dev/freed` on nodes. kube-scheduler asks again about a pod when something changes in the
cluster, such as a pod that leaves. If it hears of that before we do, it is refused for a reason that no longer holds,
and would let the pod wait for minutes: a change of a node makes it ask once more.
"""

import asyncio
import logging
from datetime import UTC, datetime
from typing import Final

from wattloom.kubernetes import kinds
from wattloom.kubernetes.api import Api
from wattloom.kubernetes.errors import ApiError

LOG: Final = logging.getLogger(__name__)
ANNOTATION: Final = "wattloom.dev/freed"
EVERY_S: Final = 1.0
"""Nudges are no closer than this."""


class Nudge:
    """Told of refusals and of load that left; `run` until cancelled. Nothing is written where nobody was refused."""

    def __init__(self, api: Api) -> None:
        self.given = 0
        self._api = api
        self._refused = False
        self._node = ""
        self._due: Final = asyncio.Event()

    def refused(self) -> None:
        self._refused = True

    def freed(self, node: str) -> None:
        if self._refused:
            self._node = node
            self._due.set()

    async def run(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            self._refused = False
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            try:
                patch = {"metadata": {"annotations": {ANNOTATION: now}}}
                await self._api.patch(kinds.NODES, patch, self._node, subresource="status")
                self.given += 1
            except ApiError as error:  # the node has left, which is a change too; or we may not
                LOG.debug("kube-scheduler was not told that there is room on %s: %s", self._node, error)
            await asyncio.sleep(EVERY_S)
