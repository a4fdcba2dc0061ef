"""Pods bound to nodes: one request each, many under way, and the truth found out where an answer is missing.

Owns what can become of a binding. The API server gives a pod to one node once and never again, so asking it twice for
the same is harmless; what is not known is read from the pod. Does not decide who goes where.
"""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Final

import msgspec

from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.backoff import Backoff
from wattloom.kubernetes.client.errors import (
    ApiError,
    Forbidden,
    Invalid,
    NotFound,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from wattloom.kubernetes.client.resource import Resource

IN_FLIGHT: Final = 48
PATIENCE_S: Final = 60.0


class Bound(msgspec.Struct, frozen=True):
    """It is on the node asked for."""

    node: str


class AlreadyBound(msgspec.Struct, frozen=True):
    """Somebody else was faster: it is on another node."""

    node: str


class PodGone(msgspec.Struct, frozen=True):
    """It is deleted or being deleted; one of the same name is another pod."""


class NodeGone(msgspec.Struct, frozen=True):
    """The node left while the binding waited for its turn. Nothing was asked of the API server."""

    node: str


class Refused(msgspec.Struct, frozen=True):
    """The API server does not allow it, for good."""

    message: str


class Unsure(msgspec.Struct, frozen=True):
    """Neither an answer nor the pod could be had in time: it may be bound to this node or not."""

    message: str


Outcome = Bound | AlreadyBound | PodGone | NodeGone | Refused | Unsure


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Meta
    spec: _Spec


PODS: Final = Resource("", "v1", "pods", _Pod)


class Binder:
    """At most `in_flight` at once, in the order asked. `there` says whether a node is still known."""

    def __init__(
        self,
        api: Api,
        *,
        in_flight: int = IN_FLIGHT,
        patience_s: float = PATIENCE_S,
        there: Callable[[str], bool] | None = None,
    ) -> None:
        self._api = api
        self.in_flight: Final = in_flight
        self._turns = asyncio.Semaphore(in_flight)
        self._patience_s = patience_s
        self._there = there
        self._asked: dict[str, asyncio.Future[Outcome] | None] = {}
        """By uid; a future where somebody else waits for the outcome too."""

    def __len__(self) -> int:
        """Bindings asked for and not known yet."""
        return len(self._asked)

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> Outcome:
        """Never two for one pod: whoever asks while one is under way gets to know what becomes of that."""
        if uid in self._asked:
            return await asyncio.shield(self._shared(uid))
        self._asked[uid] = None
        outcome: Outcome = Unsure("nobody waited for the answer")
        try:
            async with self._turns:
                outcome = await self._bind(namespace, name, uid, node)
            return outcome
        finally:
            others = self._asked.pop(uid)
            if others is not None:
                others.set_result(outcome)

    def _shared(self, uid: str) -> asyncio.Future[Outcome]:
        asked = self._asked[uid]
        if asked is None:
            asked = self._asked[uid] = asyncio.get_running_loop().create_future()
        return asked

    async def _bind(self, namespace: str, name: str, uid: str, node: str) -> Outcome:
        path, body = PODS.path(namespace, name, "binding"), _body(namespace, name, uid, node)
        until, backoff = monotonic() + self._patience_s, Backoff(0.05, 2.0)
        while True:
            if self._there is not None and not self._there(node):
                return NodeGone(node)
            try:
                await self._api.send("POST", path, body)
            except ApiError as error:
                outcome = await self._after(error, namespace, name, uid, node)
            else:
                return Bound(node)
            if not isinstance(outcome, Unsure) or monotonic() > until:
                return outcome
            await backoff.wait()

    async def _after(self, error: ApiError, namespace: str, name: str, uid: str, node: str) -> Outcome:
        """What the error means. Unsure where asking again may tell: the same node is asked for, so it does no harm."""
        if isinstance(error, NotFound):
            return PodGone()
        if isinstance(error, Forbidden | Invalid):
            return Refused(error.message)
        if isinstance(error, TooManyRequests | Unauthorized) or (isinstance(error, Unreachable) and not error.sent):
            return Unsure(str(error))
        try:
            pod = await self._api.get(PODS, name, namespace)
        except NotFound:
            return PodGone()
        except ApiError as second:
            return Unsure(f"{error}; and the pod cannot be read: {second.message}")
        return _truth(pod, uid, node) or Unsure(str(error))


def _truth(pod: _Pod, uid: str, node: str) -> Outcome | None:
    """What became of it; None where it is free."""
    if pod.metadata.uid != uid:
        return PodGone()
    if pod.spec.node_name:
        return Bound(node) if pod.spec.node_name == node else AlreadyBound(pod.spec.node_name)
    return PodGone() if pod.metadata.deletion_timestamp is not None else None


def _body(namespace: str, name: str, uid: str, node: str) -> bytes:
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": namespace, "name": name, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
    )
