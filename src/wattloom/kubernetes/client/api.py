"""The API server as typed calls: get, list in pages, watch, post, put, patch, delete.

Owns what is asked again (throttled, credentials expired), what is raised, and what is said of an outage. Everything can
be cancelled; after `close` nothing is left. Knows no particular kind of object.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from time import monotonic
from types import TracebackType
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from wattloom.kubernetes.client.connection import Answer, Connection, Garbage, Lost
from wattloom.kubernetes.client.errors import ApiError, BadAnswer, TooManyRequests, Unreachable, error_of
from wattloom.kubernetes.client.pool import JSON, Pool
from wattloom.kubernetes.client.reading import Change, ChangeReader, Page, object_of, page_of
from wattloom.kubernetes.client.resource import Resource, query
from wattloom.kubernetes.client.target import Target

LOG: Final = logging.getLogger(__name__)


class Outage:
    """Told by each listener, under its name, when it begins and when it ends for that one."""

    def __init__(self) -> None:
        self._said = False
        self._deaf: Final[set[Hashable]] = set()

    def begins(self, listener: Hashable, error: Exception) -> None:
        news = not self._said and listener not in self._deaf
        LOG.log(logging.WARNING if news else logging.DEBUG, "the API server is not heard: %s: %s", listener, error)
        self._said = self._said or news
        self._deaf.add(listener)

    def ends(self, listener: Hashable) -> None:
        if listener in self._deaf:
            self._deaf.discard(listener)
            LOG.log(logging.INFO if self._said else logging.DEBUG, "the API server is heard again: %s", listener)
            self._said = False


T = TypeVar("T")
Patch = Literal["merge", "strategic", "json", "apply"]
CONTENT: Final[dict[Patch, str]] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
PAGE: Final = 500
LONGEST_WAIT_S: Final = 10.0
WATCH_S: Final = 300.0
"""A watch is ended by the server after about this long, and taken up again."""
SILENCE_S: Final = 150.0
"""Bookmarks come every minute or so: a watch that says nothing at all for longer is taken for dead."""


class Api:
    """One API server. `timeout_s` for one exchange, `patience_s` for all the waiting it asks for by 429 and 503."""

    def __init__(
        self,
        target: Target,
        *,
        connections: int = 64,
        timeout_s: float = 30.0,
        patience_s: float = 60.0,
        agent: str = "wattloom",
    ) -> None:
        self.target: Final = target
        self.outage: Final = Outage()
        self.throttled = 0
        """Times the server asked to be left alone for a while."""
        self._pool: Final = Pool(target, size=connections, agent=agent)
        self._timeout_s = timeout_s
        self._patience_s = patience_s

    async def __aenter__(self) -> "Api":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        await self._pool.close()

    async def get(self, resource: Resource[T], name: str, namespace: str = "", *, subresource: str = "") -> T:
        path = resource.path(namespace, name, subresource)
        return object_of(await self.send("GET", path), resource.type, path)

    async def pages(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        version: str = "",
        limit: int = PAGE,
    ) -> AsyncIterator[Page[T]]:
        """A list, page by page. Without `version` it is as new as can be; "0" takes what the server has at hand."""
        path, more = resource.path(namespace), ""
        while True:
            asked = query(
                labelSelector=labels,
                fieldSelector=fields,
                limit=limit,
                resourceVersion="" if more else version,
                **{"continue": more},
            )
            page = page_of(await self.send("GET", path + asked), resource.type, f"GET {path}")
            yield page
            more = page.more
            if not more:
                return

    async def list(
        self, resource: Resource[T], namespace: str = "", *, labels: str = "", fields: str = "", limit: int = PAGE
    ) -> Page[T]:
        """All pages as one."""
        whole = Page[T]([], "", "")
        async for page in self.pages(resource, namespace, labels=labels, fields=fields, limit=limit):
            whole = Page(whole.items + page.items, page.version, "", whole.unreadable + page.unreadable)
        return whole

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource[T],
        version: str,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        timeout_s: float = WATCH_S,
    ) -> AsyncIterator["Watch[T]"]:
        """What happens after `version`. Gone, if that is no longer known."""
        path = resource.path(namespace) + query(
            watch=True,
            allowWatchBookmarks=True,
            resourceVersion=version,
            labelSelector=labels,
            fieldSelector=fields,
            timeoutSeconds=max(1, round(timeout_s)),
        )
        connection = await self._stream(path)
        try:
            yield Watch(connection, resource.type, f"WATCH {resource.path(namespace)}", min(SILENCE_S, timeout_s + 30))
        finally:
            connection.close()

    async def post(self, resource: Resource[T], body: Any, namespace: str = "") -> T:
        path = resource.path(namespace)
        return object_of(await self.send("POST", path, _json(body)), resource.type, path)

    async def put(
        self, resource: Resource[T], body: Any, name: str, namespace: str = "", *, subresource: str = ""
    ) -> T:
        path = resource.path(namespace, name, subresource)
        return object_of(await self.send("PUT", path, _json(body)), resource.type, path)

    async def patch(
        self,
        resource: Resource[T],
        body: Any,
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        how: Patch = "merge",
        owner: str = "",
    ) -> T:
        """`owner` is the field manager, which "apply" needs."""
        path = resource.path(namespace, name, subresource) + query(fieldManager=owner)
        return object_of(await self.send("PATCH", path, _json(body), content=CONTENT[how]), resource.type, path)

    async def delete(
        self, resource: Resource[Any], name: str, namespace: str = "", *, uid: str = "", grace_s: int | None = None
    ) -> None:
        """With `uid` only that very object, never its namesake."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        await self.send("DELETE", resource.path(namespace, name), _json(options))

    async def send(
        self, method: str, path: str, body: bytes = b"", *, content: str = JSON, patience_s: float | None = None
    ) -> bytes:
        """Any request; the body of its answer. Waits where the server asks for it, and tries fresh credentials once."""
        answer = await self._pool.request(method, path, body, content=content, timeout_s=self._timeout_s)
        if answer.status < 300:
            return answer.body
        waiting = _Waiting(self, self._patience_s if patience_s is None else patience_s)
        while answer.status >= 300:
            await waiting.over(answer, f"{method} {path.partition('?')[0]}")
            answer = await self._pool.request(method, path, body, content=content, timeout_s=self._timeout_s)
        return answer.body

    async def _stream(self, path: str) -> Connection:
        waiting = _Waiting(self, self._patience_s)
        while True:
            answer, connection = await self._pool.stream(path, timeout_s=self._timeout_s)
            if answer.status == 200:
                return connection
            connection.close()
            await waiting.over(answer, f"WATCH {path.partition('?')[0]}")


class _Waiting:
    """What can be waited for after a refusal is waited for here; everything else is raised."""

    def __init__(self, api: Api, patience_s: float) -> None:
        self._api = api
        self._until = monotonic() + patience_s
        self._times = 0
        self._renewed = False

    async def over(self, answer: Answer, what: str) -> None:
        error: ApiError = error_of(what, answer.status, answer.body, answer.retry_after_s)
        if answer.status == 401 and not self._renewed:
            self._renewed = True
            self._api.target.credentials.renew()
            return
        if not isinstance(error, TooManyRequests):
            raise error
        self._api.throttled += 1
        wait_s = max(error.retry_after_s, 0.1 * 2.0**self._times)
        wait_s = min(wait_s, LONGEST_WAIT_S) * random.uniform(1.0, 1.3)
        if monotonic() + wait_s > self._until:
            raise error
        self._times += 1
        await asyncio.sleep(wait_s)


class Watch(Generic[T]):
    """A watch that is open: `changes` in batches as they come, or one by one with `async for`."""

    def __init__(self, connection: Connection, type: type[T], what: str, silence_s: float) -> None:
        self._connection = connection
        self._reader: Final = ChangeReader(type, what)
        self._what = what
        self._silence_s = silence_s

    async def changes(self) -> list[Change[T]]:
        """At least one; none at the end."""
        while True:
            try:
                data = await self._connection.read(self._silence_s)
            except Garbage as error:
                raise BadAnswer(self._what, str(error)) from None
            except Lost as lost:
                raise Unreachable(self._what, str(lost), sent=True) from None
            if not data:
                return []
            if found := self._reader.changes(data):
                return found

    async def __aiter__(self) -> AsyncIterator[Change[T]]:
        while found := await self.changes():
            for change in found:
                yield change


def _json(body: Any) -> bytes:
    return body if isinstance(body, bytes) else msgspec.json.encode(body)
