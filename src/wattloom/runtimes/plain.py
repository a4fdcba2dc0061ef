"""Arguments and results that every language understands: JSON, or bytes.

Owns how a call from Python becomes one of these. What JSON has no word for is refused and named, never bent: a NaN is
no null, bytes are no text.
"""

import json
from math import isfinite
from pickle import PickleBuffer
from typing import Any, Final

import msgspec

from wattloom.runtimes.packing import LARGE, Packed
from wattloom.runtimes.protocol import BYTES, JSON, RAISED, UNSENDABLE, VALUE, Outcome
from wattloom.runtimes.raised import FunctionFailed, Raised

BYTES_LIKE: Final = (bytes, bytearray, memoryview)
DEEPEST: Final = 100
PLAIN: Final = "numbers, text, true, false, None, and lists and dicts (with text as keys) of these"


def pack_plain(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Packed, str]:
    """A call's arguments and their content type. Raises TypeError that names what cannot be sent."""
    if len(args) == 1 and not kwargs and isinstance(args[0], BYTES_LIKE):
        return packed(bytes(args[0])), BYTES
    whole = [*args, kwargs] if kwargs else list(args)
    try:
        body = json.dumps(whole, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise TypeError(_who(args, kwargs, problem)) from problem
    return packed(body), JSON


def packed(body: bytes) -> Packed:
    return Packed(b"", [PickleBuffer(body)]) if len(body) >= LARGE else Packed(body, [])


def whole_of(body: bytes, buffers: list[memoryview]) -> bytes | memoryview:
    """What was packed."""
    return body or (buffers[-1] if buffers else b"")


def _who(args: tuple[Any, ...], kwargs: dict[str, Any], problem: Exception) -> str:
    named = {f"argument {position + 1}": value for position, value in enumerate(args)}
    named |= {f"argument {name!r}": value for name, value in kwargs.items()}
    for name, value in named.items():
        wrong = _what_is_wrong(value, 0)
        if wrong:
            return f"{name} {wrong}: a function of another language takes {PLAIN}, or bytes as its only argument"
    return f"the arguments cannot be written as JSON: {problem}"


def _what_is_wrong(value: Any, depth: int) -> str:
    """In words; empty: nothing."""
    if depth > DEEPEST:
        return "is nested too deep, or holds itself"
    if isinstance(value, float) and not isfinite(value):
        return f"has {value}, which JSON has no word for"
    if isinstance(value, dict):
        odd = next((key for key in value if not isinstance(key, str | int | float | bool | None)), None)
        if odd is not None:
            return f"has a key of type {type(odd).__name__}"
        return next(filter(None, (_what_is_wrong(each, depth + 1) for each in value.values())), "")
    if isinstance(value, list | tuple):
        return next(filter(None, (_what_is_wrong(each, depth + 1) for each in value)), "")
    return "" if isinstance(value, str | int | float | bool | None) else f"is or has {type(value).__name__}"


# -- outcomes ----------------------------------------------------------------------------------------------------------


def value(body: bytes, content: str) -> Outcome:
    return Outcome(VALUE, packed(body), content)


def failed(told: Raised) -> Outcome:
    return Outcome(RAISED, Packed(msgspec.json.encode(told), []), JSON)


def unsendable(text: str) -> Outcome:
    return Outcome(UNSENDABLE, Packed(text.encode(errors="replace"), []), JSON)


def outcome_of(problem: BaseException, runtime: str) -> Outcome:
    """Of whatever a runtime has raised."""
    if isinstance(problem, FunctionFailed):
        return failed(problem.told)
    return failed(Raised(type(problem).__qualname__, str(problem), runtime=runtime))
