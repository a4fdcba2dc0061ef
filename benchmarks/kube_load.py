"""Pods created and removed for the Kubernetes benchmark.

Owns the load: as fast as the API server takes it from several connections, or at a steady rate. The client is the
product's own, for every scheduler alike: it is the one that takes least of the machine that all share.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

import msgspec
from tests.beds.kubernetes import Api as PlainApi
from tests.beds.kubernetes import ApiRefused

from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.kubeconfig import target_of

CONNECTIONS = 24


class Created(NamedTuple):
    """When the first pod was sent, and when the API server had taken each."""

    begun: float
    taken: dict[str, float]

    @property
    def per_second(self) -> float:
        return len(self.taken) / max(1e-9, max(self.taken.values()) - self.begun)


def create(kubeconfig: Path, path: str, bodies: Sequence[dict[str, Any]], per_second: float | None = None) -> Created:
    """Post every body to the path, in this order. Written out before the clock begins."""
    ready = [(body["metadata"]["name"], msgspec.json.encode(body)) for body in bodies]
    return asyncio.run(_create(kubeconfig, path, ready, per_second))


async def _create(kubeconfig: Path, path: str, ready: list[tuple[str, bytes]], per_second: float | None) -> Created:
    taken: dict[str, float] = {}
    queue = iter(enumerate(ready))
    async with Api(target_of(kubeconfig), connections=CONNECTIONS, agent="benchmark-load") as api:
        await api.send("GET", "/version")
        begun = monotonic()

        async def post_on() -> None:
            for number, (name, body) in queue:
                if per_second is not None:
                    await asyncio.sleep(begun + number / per_second - monotonic())
                await api.send("POST", path, body)
                taken[name] = monotonic()

        async with asyncio.TaskGroup() as group:
            for _ in range(CONNECTIONS):
                group.create_task(post_on())
    return Created(begun, taken)


def remove(api: PlainApi, namespace: str) -> None:
    """Every pod and event of a namespace, and see them gone."""
    for path in (f"/api/v1/namespaces/{namespace}/pods", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"):
        while api.get(f"{path}?limit=1")["items"]:
            try:
                api.delete(path, gracePeriodSeconds=0)
            except (ApiRefused, OSError):  # many take longer than one request may: the rest by the next
                sleep(0.5)
