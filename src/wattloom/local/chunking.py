"""Many calls as one, for `map(..., chunksize=)`: the caller knows that they are short.

Owns the chunk, which runs in the worker, and what comes back from it: every result up to the first exception.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from wattloom.local.errors import with_its_traceback

Chunk = tuple[tuple[Any, ...], ...]


class Many:
    """A function over the arguments of many calls."""

    def __init__(self, function: Callable[..., Any], size: int) -> None:
        self.func: Final = function
        self.size: Final = size

    def __call__(self, chunk: Chunk) -> "Results":
        values: list[Any] = []
        try:
            values.extend(self.func(*args) for args in chunk)
        except Exception as problem:
            trace = problem.__traceback__
            text = "".join(traceback.format_exception(type(problem), problem, trace.tb_next if trace else None))
            problem.__traceback__ = None
            return Results(values, problem, text)
        return Results(values)

    def __reduce__(self) -> tuple[Any, ...]:
        return Many, (self.func, self.size)


class Results:
    """What a chunk came to."""

    __slots__ = ("problem", "text", "values")

    def __init__(self, values: list[Any], problem: Exception | None = None, text: str = "") -> None:
        self.values = values
        self.problem = problem
        self.text = text

    def __reduce__(self) -> tuple[Any, ...]:
        return Results, (self.values, self.problem, self.text)


def chunks(calls: Iterable[tuple[Any, ...]], size: int) -> Iterator[tuple[Chunk]]:
    """Arguments for `Many`, so many calls in each."""
    left = iter(calls)
    while chunk := tuple(islice(left, size)):
        yield (chunk,)


def one_by_one(found: Iterator[Results]) -> Iterator[Any]:
    """The results of all chunks; the exception in its place."""
    try:
        for results in found:
            values, problem, text = results.values, results.problem, results.text
            del results
            values.reverse()
            while values:
                yield values.pop()
            if problem is not None:
                raise with_its_traceback(problem, text)
    finally:
        close = getattr(found, "close", None)
        if close is not None:
            close()
