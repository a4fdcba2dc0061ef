"""Which difference counts: whatever was recorded is so again, to the last bit; what is there beside it is no loss."""

from collections.abc import Iterator
from typing import Any


def lost(before: Any, after: Any, where: str = "") -> Iterator[str]:
    """What was there and is not now, one line each, as before and after."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            yield from lost(before[key], after.get(key, "nothing"), f"{where}.{key}" if where else key)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from lost(old, new, f"{where}[{number}]")
    elif before != after:
        yield f"{where} {before!r} -> {after!r}"
