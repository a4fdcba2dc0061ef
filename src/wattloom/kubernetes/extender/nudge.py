"""A word to kube-scheduler that there is room again for pods that were refused.

Owns the annotation `wattloom.dev/freed` on nodes. kube-scheduler asks again about a pod when something changes in the
cluster, such as a pod that leaves. If it hears of that before we do, it is refused for a reason that no longer holds,
and would let the pod wait for minutes; of a profile that was mended it hears nothing at all. A change of a node makes
it ask once more.
"""

import asyncio
import logging
from datetime import UTC, datetime
from typing import Final

from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.backoff import Backoff
from wattloom.kubernetes.client.errors import ApiError, Forbidden, NotFound
from wattloom.kubernetes.model import kinds

LOG: Final = logging.getLogger(__name__)
ANNOTATION: Final = "wattloom.dev/freed"
EVERY_S: Final = 1.0
"""Nudges are no closer than this."""


class Nudge:
    """Told of refusals and of nodes on which there is room; `run` until cancelled. Nothing is written where nobody was
    refused, and what could not be written is tried again."""

    def __init__(self, api: Api, backoff: Backoff | None = None) -> None:
        self.given = 0
        self._api = api
        self._backoff = backoff or Backoff(EVERY_S)
        self._refused = 0
        """Refusals since the last nudge."""
        self._node = ""
        self._mute = False
        """Whether it was said that nobody may be told."""
        self._due: Final = asyncio.Event()

    def refused(self) -> None:
        self._refused += 1

    def freed(self, node: str) -> None:
        if self._refused:
            self._node = node
            self._due.set()

    async def run(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            if await self._give(self._node, self._refused):
                self._backoff.reset()
                await asyncio.sleep(EVERY_S)
            else:
                await self._backoff.wait()
                self._due.set()

    async def _give(self, node: str, refused: int) -> bool:
        """For the refusals so far; those that come meanwhile wait for the next one. False: it is to be tried again."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            patch = {"metadata": {"annotations": {ANNOTATION: now}}}
            await self._api.patch(kinds.NODES, patch, node, subresource="status")
        except NotFound:  # we shall be told that it has left, and then of another
            return True
        except Forbidden as error:
            if not self._mute:
                self._mute = True
                words = "refused pods wait until kube-scheduler asks again by itself, which may take minutes: %s"
                LOG.warning(words, error)
            return True
        except ApiError as error:
            LOG.debug("kube-scheduler was not told that there is room on %s: %s", node, error)
            return False
        self._refused -= refused
        self.given += 1
        return True
