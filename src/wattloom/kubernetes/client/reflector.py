"""One kind of object kept in step with the API server: a list, then a watch from there, for as long as it runs.

Owns what was known last and the difference to what is now, so that nobody who listens has to care whether a change
came by a watch or by a list after the watch was lost. Does not know what the objects mean.
"""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, cast

from wattloom.kubernetes.client.api import PAGE, Api, Watch
from wattloom.kubernetes.client.backoff import Backoff
from wattloom.kubernetes.client.errors import ApiError, Gone, NotFound, TooManyRequests, Unreachable
from wattloom.kubernetes.client.reading import Bookmark, Change, Unreadable
from wattloom.kubernetes.client.resource import Resource

LOG: Final = logging.getLogger(__name__)
BRIEF_S: Final = 1.0
"""A watch that ends sooner and has said nothing is a fault, not the end of its time."""


class Meta(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


class HasMeta(Protocol):
    @property
    def metadata(self) -> Meta: ...


T = TypeVar("T", bound=HasMeta)
Listened = TypeVar("Listened", contravariant=True)
Key = tuple[str, str]


class Listener(Protocol[Listened]):
    """Told in order, in the event loop, one at a time. What it raises is logged and does not end the stream."""

    def changed(self, object: Listened, old: Listened | None) -> None:
        """New where `old` is None. An object deleted and made again under its name is `deleted` in between."""

    def deleted(self, object: Listened) -> None:
        """Its last known state."""

    def unreadable(self, object: Unreadable) -> None:
        """It is there and does not fit its type. What was known of it before stays known."""


class Living(NamedTuple):
    """Fields by which objects are listed and watched that may be over before they are deleted.

    A watch tells what an object was before it ceased to match, never what it became. So what may cease is left out of
    `watched`, and `over` says of each object whether it has."""

    listed: str
    watched: str
    over: Callable[[Any], bool]


class Counts:
    """What happened so far."""

    def __init__(self) -> None:
        self.lists = self.restarts = self.expired = self.failures = self.unreadable = 0


class Reflector(Generic[T]):
    """`run` until cancelled; `synced` is set once the first list has been told whole.

    An object that is over (see `Living`) is told as deleted, with its last state, and not kept: nothing grows with
    their number. `slim` makes what is kept of an object (for `old`, and for `deleted` after a list) smaller than what
    is told.
    """

    def __init__(
        self,
        api: Api,
        resource: Resource[T],
        listener: Listener[T],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str | Living = "",
        slim: Callable[[T], T] | None = None,
        page: int = PAGE,
        backoff: Backoff | None = None,
    ) -> None:
        self.resource: Final = resource
        self.synced: Final = asyncio.Event()
        self.counts: Final = Counts()
        self.failure: ApiError | None = None
        """Why it is out of step, while it is."""
        self.heard = 0
        """Goes up with every word of the API server: what is known is no older than the last one."""
        self._api = api
        self._listener = listener
        self._namespace, self._labels = namespace, labels
        self._fields = fields if isinstance(fields, Living) else Living(fields, fields, lambda _: False)
        self._slim = slim
        self._page = page
        self._backoff = backoff or Backoff()
        self._known: dict[Key, T] = {}
        self._version = ""
        self._outage: Final = api.outage
        self._complained = ""
        """Of what, in its own name, since it was last in step."""
        self._failing_since: float | None = None
        self._open_since: float | None = None
        """While a watch is open."""

    def __len__(self) -> int:
        return len(self._known)

    @property
    def failing_s(self) -> float:
        """For how long nothing could be heard. A kind that the API server does not have cannot change."""
        now = monotonic()
        if self._failing_since is None or isinstance(self.failure, NotFound):
            return 0.0
        if self._open_since is not None and now - self._open_since >= BRIEF_S:
            return 0.0
        return now - self._failing_since

    async def run(self) -> None:
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._follow()
            except ApiError as error:
                await self._after(error)

    async def _after(self, error: ApiError) -> None:
        """A watch that was cut goes on from where it was; after anything else it begins anew with a list."""
        if not isinstance(error, Unreachable | TooManyRequests):
            self._version = ""
        self.counts.restarts += 1
        if isinstance(error, Gone):
            self.counts.expired += 1
            LOG.debug("%s: %s: listing again", self.resource, error.message)
            if not self._backoff.times:
                self._backoff.times = 1
                return
        else:
            self.counts.failures += 1
            self._complain(error)
            self.failure = error
            if self._failing_since is None:
                self._failing_since = monotonic()
        await self._backoff.wait()

    def _complain(self, error: ApiError) -> None:
        """Of each thing once. That the server is not heard is no matter of this kind of object."""
        if isinstance(error, Unreachable):
            self._outage.begins(self.resource, error)
            return
        self._outage.ends(self.resource)
        if self._complained != str(error):
            self._complained = str(error)
            LOG.warning("%s: %s", self.resource, error)

    async def _list(self) -> None:
        seen: set[Key] = set()
        version, page_size = "", self._page if self._backoff.times < 3 else 0  # pages may expire faster than they come
        async for page in self._api.pages(
            self.resource, self._namespace, labels=self._labels, fields=self._fields.listed, limit=page_size
        ):
            for object in page.items:
                seen.add(_key(object))
                self._take(object)
            for broken in page.unreadable:
                seen.add((broken.metadata.namespace, broken.metadata.name))
                self._broken(broken)
            version = page.version
        for key in [key for key in self._known if key not in seen]:
            self._drop(self._known.pop(key))
        self.counts.lists += 1
        self.heard += 1
        self._version = version
        self._well()
        self.synced.set()

    async def _follow(self) -> None:
        begun = monotonic()
        async with self._api.watch(
            self.resource, self._version, self._namespace, labels=self._labels, fields=self._fields.watched
        ) as watch:
            self._open_since = monotonic()
            heard = asyncio.get_running_loop().call_later(BRIEF_S, self._outage.ends, self.resource)
            try:
                said = await self._hear(watch)
            finally:
                heard.cancel()
                if monotonic() - self._open_since >= BRIEF_S:
                    self._failing_since = None
                self._open_since = None
        if not said and monotonic() - begun < BRIEF_S:
            raise Unreachable(f"WATCH {self.resource}", "ended at once without a word", sent=True)

    async def _hear(self, watch: Watch[T]) -> bool:
        said = False
        while changes := await watch.changes():
            if not said:
                self._well()
            said = True
            for change in changes:
                self._change(change)
            self.heard += 1
        return said

    def _well(self) -> None:
        self._outage.ends(self.resource)
        if self._complained:
            self._complained = ""
            LOG.info("%s: in step again", self.resource)
        self.failure = self._failing_since = None
        self._backoff.reset()

    def _change(self, change: Change[T]) -> None:
        kind, found = change
        if kind == "BOOKMARK":
            self._version = cast(Bookmark, found).metadata.resource_version or self._version
        elif kind == "UNREADABLE":
            self._broken(cast(Unreadable, found))
        else:
            object = cast(T, found)
            self._version = object.metadata.resource_version or self._version
            if self._fields.over(object):
                self._lay_off(object)
            elif kind == "DELETED":
                self._known.pop(_key(object), None)
                self._drop(object)
            else:
                self._take(object)

    def _lay_off(self, object: T) -> None:
        """It is over. Later changes of it, and of those that were never told, are nobody's business."""
        old = self._known.pop(_key(object), None)
        if old is not None:
            self._drop(object if old.metadata.uid == object.metadata.uid else old)

    def _take(self, object: T) -> None:
        key, meta = _key(object), object.metadata
        old = self._known.get(key)
        if old is not None:
            if old.metadata.resource_version == meta.resource_version:
                return
            if old.metadata.uid != meta.uid:
                self._drop(old)
                old = None
        self._known[key] = object if self._slim is None else self._slim(object)
        try:
            self._listener.changed(object, old)
        except Exception:
            LOG.exception("%s %s: what was made of a change failed", self.resource, _named(*key))

    def _drop(self, object: T) -> None:
        try:
            self._listener.deleted(object)
        except Exception:
            LOG.exception("%s %s: what was made of a deletion failed", self.resource, _named(*_key(object)))

    def _broken(self, broken: Unreadable) -> None:
        meta = broken.metadata
        self._version = meta.resource_version if self._version else ""
        self.counts.unreadable += 1
        name = _named(meta.namespace, meta.name)
        LOG.warning("%s %s cannot be read: %s", self.resource, name, broken.problem)
        try:
            self._listener.unreadable(broken)
        except Exception:
            LOG.exception("%s %s: what was made of it failed", self.resource, name)


def _key(object: HasMeta) -> Key:
    return object.metadata.namespace, object.metadata.name


def _named(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name
