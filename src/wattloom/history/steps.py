"""Work in steps: a generator that yields now and then and returns its result, so that others may have their turn.

Owns the two words for it. Who has others waiting (an event loop) pauses between steps as long as it likes.
"""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]


def at_once(steps: Steps[T]) -> T:
    """All steps without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
