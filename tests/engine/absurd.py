"""Numbers that nobody means, and where in a value numbers stand."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

NAN, INF = float("nan"), float("inf")
WHOLE: Final = (-(10**400), -(2**63) - 1, -1, 0, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**400)
FRACTIONS: Final = (
    NAN, INF, -INF, -0.0, 5e-324, 1e-320, -1e-320, 1e-9, 0.3, 1e9, 1.1e9, 9.9e10, 1e11, 1e12, 1e19, 1e30, 1e154, 1e300,
    1e303, 1.79e308, -1.79e308,
)  # fmt: skip
Path = tuple[Any, ...]


def numbers(value: object, path: Path = ()) -> Iterator[tuple[Path, bool]]:
    """Where numbers stand in a struct, and whether they are whole ones."""
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        yield path, isinstance(value, int)
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from numbers(getattr(value, field), (*path, field))
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from numbers(each, (*path, key))
    elif isinstance(value, tuple):
        for position, each in enumerate(value):
            yield from numbers(each, (*path, position))


def with_number(value: Any, path: Path, number: float) -> Any:
    """The same with another number there."""
    if not path:
        return number
    first, *rest = path
    if isinstance(value, msgspec.Struct):
        inner = with_number(getattr(value, first), tuple(rest), number)
        return msgspec.structs.replace(value, **{first: inner})
    inner = with_number(value[first], tuple(rest), number)
    if isinstance(value, dict):
        return {**value, first: inner}
    return (*value[:first], inner, *value[first + 1 :])
