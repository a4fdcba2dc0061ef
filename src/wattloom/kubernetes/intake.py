"""Pods on their way to the engine: who goes next, and when.

Owns the order (priority, then age) and the pace: no more pods are decided ahead than bindings can follow, so that a
burst does not decide thousands of places on a cluster that changes meanwhile, and the event loop stays responsive.
"""

import asyncio
import logging
from collections.abc import Callable
from heapq import heappop, heappush
from time import monotonic
from typing import Final

from wattloom.kubernetes.pod_entry import PodEntry

LOG: Final = logging.getLogger(__name__)
AT_ONCE: Final = 32
"""Decisions between two looks at the network."""
Turn = tuple[tuple[int, str, str, str], int, PodEntry]


class Intake:
    """`run` until cancelled. Nothing goes on before `open`; `submit` says whether the engine was told."""

    def __init__(
        self,
        submit: Callable[[PodEntry], bool],
        under_way: Callable[[], int],
        *,
        most_under_way: int,
        per_second: float = 0.0,
    ) -> None:
        self.failed = 0
        """Pods that were left aside because of an error in this program: each is a defect, and is logged."""
        self._submit = submit
        self._under_way = under_way
        self._most = most_under_way
        self._pause_s = 1.0 / per_second if per_second else 0.0
        self._next = 0.0
        self._heap: list[Turn] = []
        self._there: set[PodEntry] = set()
        self._serial = 0
        self._open = False
        self._more: Final = asyncio.Event()

    def __len__(self) -> int:
        return len(self._there)

    def open(self) -> None:
        """Somebody decides from now on."""
        self._open = True
        self.stir()

    def close(self) -> None:
        self._open = False

    def put(self, entry: PodEntry) -> None:
        if entry not in self._there:
            self._there.add(entry)
            self._serial += 1
            heappush(self._heap, (entry.order, self._serial, entry))
            self.stir()

    def stir(self) -> None:
        """Something is different: a pod came, or a binding is done."""
        if self._open and self._heap:
            self._more.set()

    async def run(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            while self._open and self._heap and self._under_way() < self._most:
                self._some()
                await asyncio.sleep(max(0.0, self._next - monotonic()))

    def _some(self) -> None:
        turns = 1 if self._pause_s else AT_ONCE
        while turns and self._heap and self._under_way() < self._most:
            turns -= 1
            entry = heappop(self._heap)[2]
            self._there.discard(entry)
            if self._submitted(entry) and self._pause_s:
                self._next = monotonic() + self._pause_s

    def _submitted(self, entry: PodEntry) -> bool:
        """One pod that cannot be dealt with is no reason to leave all others waiting."""
        try:
            return self._submit(entry)
        except Exception:
            self.failed += 1
            pod = entry.reference
            LOG.exception("%s/%s is left aside: it could not be dealt with", pod.namespace, pod.name)
            return False
