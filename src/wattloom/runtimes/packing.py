"""How calls and results become bytes.

Owns the pickling: plain values the fast way, everything else by cloudpickle, so that lambdas, closures and what is
defined in a script come along; large buffers (arrays) stay out of the pickle and are written once, to a spool file that
the other side maps. Knows no socket and no journal.
"""

import io
import pickle
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from math import log2
from types import ModuleType
from typing import Any, Final

import cloudpickle

from wattloom.bounds import MOST_SIZE_CLASS

LARGE: Final = 64 * 1024
"""Buffers and pickles from this size on go through a spool file."""
PLAIN: Final = frozenset({int, float, str, bool, bytes, complex, type(None)})
"""Values of these types need no cloudpickle, which is slow to begin."""
MOST_NAMED: Final = 3
MARK_BYTES: Final = 16

Buffers = list["pickle.PickleBuffer"]


class Packed:
    """Something pickled, with its large buffers beside it."""

    __slots__ = ("body", "buffers")

    def __init__(self, body: bytes, buffers: Buffers) -> None:
        self.body = body
        self.buffers = buffers

    @property
    def raw(self) -> list[memoryview]:
        """The large buffers, as bytes."""
        return [buffer.raw() for buffer in self.buffers]


def pack(value: Any) -> Packed:
    """Pickle anything. Raises whatever pickling raises."""
    if is_plain(value):
        return Packed(pickle.dumps(value, 5), [])
    buffers: Buffers = []

    def beside(buffer: pickle.PickleBuffer) -> bool:
        if buffer.raw().nbytes < LARGE:
            return True
        buffers.append(buffer)
        return False

    out = io.BytesIO()
    cloudpickle.CloudPickler(out, protocol=5, buffer_callback=beside).dump(value)
    body = out.getvalue()
    if len(body) >= LARGE:
        buffers.append(pickle.PickleBuffer(body))
        body = b""
    return Packed(body, buffers)


def pack_whole(value: Any) -> bytes:
    """Pickle anything with its buffers inside: to be kept."""
    return bytes(cloudpickle.dumps(value, protocol=5))


def pack_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Packed:
    """The arguments of a call."""
    if not kwargs and all(map(is_plain, args)):
        return Packed(pickle.dumps((args, kwargs), 5), [])
    return pack((args, kwargs))


def is_plain(value: Any) -> bool:
    kind = type(value)
    return kind in PLAIN and not ((kind is bytes or kind is str) and len(value) >= LARGE)


def unpack(body: bytes, buffers: list[memoryview]) -> Any:
    """The inverse of `pack`."""
    if not body:
        return pickle.loads(buffers[-1], buffers=buffers[:-1])
    return pickle.loads(body, buffers=buffers)


def mark_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """What tells the arguments of a call from others, in every process alike; empty if some are no plain values. Of
    others nothing can be told: equal ones are pickled differently from process to process."""
    if not all(type(each) in PLAIN for each in (*args, *kwargs.values())):
        return b""
    return blake2b(repr((args, sorted(kwargs.items()))).encode(errors="replace"), digest_size=MARK_BYTES).digest()


def size_class(args: tuple[Any, ...], packed: Packed) -> int:
    """How big a call is: its bytes, or the largest whole number among its arguments if that is more. Four classes to a
    doubling."""
    size = len(packed.body)
    for buffer in packed.buffers:
        size += buffer.raw().nbytes
    for each in args:
        if type(each) is int and each > size:
            size = each
    return min(int(4.0 * log2(size)), MOST_SIZE_CLASS) if size > 1 else 1


# -- what cannot be sent -----------------------------------------------------------------------------------------------


def used_by(function: Callable[..., Any]) -> dict[str, Any]:
    """Variables from outside that a function uses, of those that are no functions or modules."""
    code, found = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    if code is None:
        return {}
    used = {name: found[name] for name in code.co_names if name in found}
    for name, cell in zip(code.co_freevars, getattr(function, "__closure__", None) or (), strict=False):
        with suppress(ValueError):
            used[name] = cell.cell_contents
    return {name: value for name, value in used.items() if not callable(value) and not isinstance(value, ModuleType)}


def who_cannot_be_sent(named: dict[str, Any], problem: BaseException) -> str:
    """A sentence that names what cannot be pickled."""
    culprits = [f"{name} ({type(value).__qualname__})" for name, value in named.items() if not _sendable(value)]
    precise = [each for each in culprits if not each.startswith("function ")]
    found = ", ".join((precise or culprits)[:MOST_NAMED]) or "the call"
    why = str(problem) or type(problem).__name__
    return (
        f"{found} cannot be sent to a worker process: {why}. Make it inside the function, or pass what it is made from"
    )


def _sendable(value: Any) -> bool:
    try:
        pack(value)
    except Exception:
        return False
    return True


def named_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """What a call consists of, by name, for messages."""
    name = getattr(function, "__qualname__", repr(function))
    named = {f"{used}, which {name} uses,": value for used, value in used_by(function).items()}
    named[f"function {name}"] = function
    named |= {f"argument {position + 1}": value for position, value in enumerate(args)}
    named |= {f"argument {name!r}": value for name, value in kwargs.items()}
    return named
