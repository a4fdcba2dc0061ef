"""The condition on pods that wait: `PodScheduled` is false, and why, in the words of the event.

Owns these writes: only what differs, behind bindings and events, and never on a pod that was bound meanwhile. Tools
that add nodes where pods wait (cluster-autoscaler) look at it. Finds no words itself.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Final

import msgspec

from wattloom.kubernetes.client.api import CONTENT, Api
from wattloom.kubernetes.client.backoff import Backoff, Budget
from wattloom.kubernetes.client.errors import ApiError, Forbidden, Invalid, NotFound
from wattloom.kubernetes.model import kinds
from wattloom.kubernetes.model.objects import Pod
from wattloom.kubernetes.model.pods import gates
from wattloom.kubernetes.state.pod_entry import At, PodEntry

LOG: Final = logging.getLogger(__name__)
WRITERS: Final = 4
POLITE_S: Final = 0.05
MOST_POLITE_S: Final = 10.0
"""Longer than this no condition waits for bindings and events."""
PER_S: Final = 50.0
BURST: Final = 100
"""Conditions written in a second, and at once: however many pods wait, and however often their reason changes."""
UNSCHEDULABLE: Final = "Unschedulable"
NOT_FOLLOWED: Final = "SchedulerError"
"""For pods that wait for another scheduler, not for another node."""
Wanted = tuple[str, str]
"""Reason and message."""


class PodConditions:
    """`waits` says what the condition is to be; `run` until cancelled writes. While `give_way` is true, others do."""

    def __init__(self, api: Api, *, give_way: Callable[[], bool] = lambda: False) -> None:
        self.written = 0
        self.dropped = 0
        """Refused for good."""
        self._api = api
        self._give_way = give_way
        self._pending: dict[PodEntry, Wanted] = {}
        self._more: Final = asyncio.Event()
        self._budget: Final = Budget(PER_S, BURST)

    def __len__(self) -> int:
        return len(self._pending)

    def waits(self, entry: PodEntry, message: str, reason: str = UNSCHEDULABLE) -> None:
        if entry.condition != message:
            entry.condition = message
            self._pending[entry] = reason, message
            self._more.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(self._write_on())

    async def _write_on(self) -> None:
        while True:
            await self._more.wait()
            await self._let_others_go_first()
            if not self._pending:
                self._more.clear()
                continue
            if not self._budget.take(monotonic()):
                await asyncio.sleep(POLITE_S)
                continue
            entry = next(iter(self._pending))
            await self._write(entry, self._pending.pop(entry))

    async def _let_others_go_first(self) -> None:
        until = monotonic() + MOST_POLITE_S
        while self._give_way() and monotonic() < until:
            await asyncio.sleep(POLITE_S)

    async def _write(self, entry: PodEntry, wanted: Wanted) -> None:
        """Until it is written, refused, or not true any more."""
        backoff = Backoff(0.1, 10.0)
        while (pod := _waiting(entry)) is not None and entry not in self._pending:
            try:
                await self._send(pod, wanted)
            except NotFound:
                return
            except (Forbidden, Invalid) as error:
                self.dropped += 1
                LOG.warning("%s/%s: its condition is not written: %s", pod.metadata.namespace, pod.metadata.name, error)
                return
            except ApiError:  # a conflict too: the pod has changed, and what it is now will be seen
                await backoff.wait()
            else:
                self.written += 1
                return

    async def _send(self, pod: Pod, wanted: Wanted) -> None:
        meta = pod.metadata
        path = kinds.PODS.path(meta.namespace, meta.name, "status")
        body = msgspec.json.encode(_patch(pod, wanted, datetime.now(UTC)))
        await self._api.send("PATCH", path, body, content=CONTENT["strategic"])


def _waiting(entry: PodEntry) -> Pod | None:
    """The pod as it was last seen, if it still waits and nobody holds it back."""
    pod = entry.pod
    if pod is None or entry.at not in (At.ASIDE, At.QUEUED):
        return None
    return None if gates(pod) or pod.metadata.deletion_timestamp is not None else pod


def _patch(pod: Pod, wanted: Wanted, now: datetime) -> dict[str, Any]:
    """For this very state of the pod: a binding that comes first makes it void."""
    reason, message = wanted
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    if not any(each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions):
        condition["lastTransitionTime"] = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    meta = pod.metadata
    return {
        "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
        "status": {"conditions": [condition]},
    }
