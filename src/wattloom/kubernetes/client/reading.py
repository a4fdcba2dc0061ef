"""From the bytes of an answer to typed objects: single objects, pages of a list, lines of a watch.

Owns the decoders and what becomes of an object that does not fit its type. Sends nothing.
"""

from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from wattloom.kubernetes.client.errors import ApiError, BadAnswer, error_of, status_in

T = TypeVar("T")
Kind = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "UNREADABLE"]
OBJECTS: Final = (b'{"type":"ADDED"', b'{"type":"MODIFIED"', b'{"type":"DELETED"')


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Bookmark(msgspec.Struct, frozen=True):
    """Nothing happened up to here: a watch may go on from this version."""

    metadata: Metadata


class Unreadable(msgspec.Struct, frozen=True):
    """An object that is there and does not fit the type it is read as."""

    metadata: Metadata
    problem: str


Change = tuple[Kind, T | Bookmark | Unreadable]


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A part of a list. `version` is that of the whole list, the same on each page."""

    items: list[T]
    version: str
    more: str
    """The mark under which the next page is asked for; "" on the last."""
    unreadable: tuple[Unreadable, ...] = ()


class _ListMeta(msgspec.Struct, frozen=True, rename={"more": "continue", "resource_version": "resourceVersion"}):
    resource_version: str = ""
    more: str = ""


class _List(msgspec.Struct, Generic[T], frozen=True):
    metadata: _ListMeta
    items: list[T] | None = None


class _Event(msgspec.Struct, Generic[T], frozen=True, gc=False):
    type: str
    object: T


class _Named(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()


_DECODERS: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}


def _decoder(type: Any) -> msgspec.json.Decoder[Any]:
    """Made once for each type: making one takes longer than using it."""
    found = _DECODERS.get(type)
    if found is None:
        found = _DECODERS[type] = msgspec.json.Decoder(type)
    return found


def object_of(body: bytes, type: type[T], what: str) -> T:
    try:
        found: T = _decoder(type).decode(body)
    except msgspec.MsgspecError as error:
        raise BadAnswer(what, f"the answer cannot be read as {type.__name__}: {error}") from None
    return found


def page_of(body: bytes, type: type[T], what: str) -> Page[T]:
    """One page of a list. Objects that cannot be read are set apart, the others are not held back by them."""
    try:
        read: _List[T] = _decoder(_List[type]).decode(body)  # type: ignore[valid-type]
    except msgspec.MsgspecError:
        return _page_one_by_one(body, type, what)
    return Page(read.items or [], read.metadata.resource_version, read.metadata.more)


def _page_one_by_one(body: bytes, type: type[T], what: str) -> Page[T]:
    read: _List[msgspec.Raw] = object_of(body, _List[msgspec.Raw], what)
    items: list[T] = []
    unreadable: list[Unreadable] = []
    for raw in read.items or ():
        try:
            items.append(_decoder(type).decode(raw))
        except msgspec.MsgspecError as error:
            unreadable.append(_unreadable(raw, str(error)))
    return Page(items, read.metadata.resource_version, read.metadata.more, tuple(unreadable))


class ChangeReader(Generic[T]):
    """Lines of a watch to changes."""

    def __init__(self, type: type[T], what: str) -> None:
        self._typed: Final = _decoder(_Event[type])  # type: ignore[valid-type]
        self._what = what
        self._rest = b""

    def changes(self, data: bytes) -> list[Change[T]]:
        """What the bytes tell. A line that is not whole yet is kept for the next time. ERROR is raised."""
        lines = (self._rest + data if self._rest else data).split(b"\n")
        self._rest = lines.pop()
        return [self._change(line) for line in lines if line]

    def _change(self, line: bytes) -> Change[T]:
        if line.startswith(OBJECTS):
            try:
                event = self._typed.decode(line)
            except msgspec.MsgspecError as error:
                return self._odd(line, str(error))
            return event.type, event.object
        return self._odd(line, "")

    def _odd(self, line: bytes, problem: str) -> Change[T]:
        event = object_of(line, _Event[msgspec.Raw], self._what)
        if event.type == "ERROR":
            raise self._error(event.object)
        if event.type == "BOOKMARK":
            return "BOOKMARK", Bookmark(object_of(event.object, _Named, self._what).metadata)
        if not problem:  # the same, written by something that orders or spaces its JSON otherwise
            try:
                typed = self._typed.decode(line)
            except msgspec.MsgspecError as error:
                problem = str(error)
            else:
                return typed.type, typed.object
        return "UNREADABLE", _unreadable(event.object, problem)

    def _error(self, raw: msgspec.Raw) -> ApiError:
        status = status_in(raw)
        return error_of(self._what, status.code if status else 500, bytes(raw))


def _unreadable(raw: msgspec.Raw, problem: str) -> Unreadable:
    try:
        named: _Named = _decoder(_Named).decode(raw)
    except msgspec.MsgspecError:
        named = _Named()
    return Unreadable(named.metadata, problem)
