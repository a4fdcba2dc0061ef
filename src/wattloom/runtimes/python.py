"""Python in a worker: pickled functions, called with what was pickled, or with JSON or bytes.

Owns unpacking, the call itself, and how its value or exception is sent back.
"""

import json
import traceback
from pickle import PickleBuffer
from typing import Any

import msgspec

from wattloom.runtimes.packing import LARGE, Packed, pack, unpack
from wattloom.runtimes.protocol import BYTES, JSON, PICKLE, RAISED, UNSENDABLE, VALUE, Outcome
from wattloom.runtimes.raised import Raised, with_its_traceback


class PythonRuntime:
    """The interpreter of this process."""

    def load(self, blob: bytes) -> Any:
        return unpack(blob, [])

    def call(self, function: Any, body: bytes, buffers: list[memoryview], content: str) -> Outcome:
        try:
            if content == PICKLE:
                args, kwargs = unpack(body, buffers)
            else:
                args, kwargs = _decoded(body, buffers, content)
            value = function(*args, **kwargs)
        except BaseException as problem:
            return self.failed(problem, content)
        try:
            return Outcome(VALUE, pack(value) if content == PICKLE else _encoded(value, content), content)
        except BaseException as problem:
            return _unsendable(f"the result ({type(value).__qualname__}) cannot be sent back: {problem}")

    def failed(self, problem: BaseException, content: str) -> Outcome:
        """The exception and its traceback, as far as they can be sent."""
        text = _told(problem)
        kind = type(problem).__qualname__
        if content != PICKLE:
            return Outcome(RAISED, Packed(msgspec.json.encode(Raised(kind, str(problem), text)), []), JSON)
        try:
            problem.__traceback__ = None
            packed = pack((problem, text))
            with_its_traceback(*unpack(packed.body, packed.raw))  # some can be pickled and not unpickled
            return Outcome(RAISED, packed)
        except BaseException as wrong:
            return _unsendable(f"its exception ({kind}) cannot be sent back ({wrong}); this is what it said:\n{text}")

    def processes(self) -> list[int]:
        return []

    def close(self) -> None:
        """There are none."""


def _decoded(body: bytes, buffers: list[memoryview], content: str) -> tuple[list[Any], dict[str, Any]]:
    whole: bytes | memoryview = body or (buffers[-1] if buffers else b"")
    if content == BYTES:
        return [whole], {}
    if content != JSON:
        raise TypeError(f"Python does not know the content type {content}")
    found = msgspec.json.decode(whole)
    return ([], found) if isinstance(found, dict) else (list(found), {})


def _encoded(value: Any, content: str) -> Packed:
    body = bytes(memoryview(value)) if content == BYTES else _json(value)
    return Packed(b"", [PickleBuffer(body)]) if len(body) >= LARGE else Packed(body, [])


def _json(value: Any) -> bytes:
    body = msgspec.json.encode(value)
    if b"null" in body:  # so it writes a NaN
        json.dumps(msgspec.to_builtins(value), allow_nan=False)
    return body


def decoded_value(body: bytes, buffers: list[memoryview], content: str) -> Any:
    """What a call ended with, on the other side."""
    if content == PICKLE:
        return unpack(body, buffers)
    whole: bytes | memoryview = body or (buffers[-1] if buffers else b"")
    return msgspec.json.decode(whole) if content == JSON else bytes(whole)


def _unsendable(text: str) -> Outcome:
    return Outcome(UNSENDABLE, Packed(text.encode(errors="replace"), []))


def _told(problem: BaseException) -> str:
    """An exception with its traceback, without our own frame; or what is wrong with it, if it cannot even be told."""
    trace = problem.__traceback__
    try:
        return "".join(traceback.format_exception(type(problem), problem, trace.tb_next if trace else None))
    except Exception as wrong:
        return f"{type(problem).__qualname__} (its traceback cannot be written: {type(wrong).__qualname__})\n"
