"""Chance by seed: the same seed gives the same bytes, everywhere and in every version of Python.

Owns the stream that the inputs of the suite are made of, and the error of a result that is wrong.
"""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from wattloom.errors import WattloomError

T = TypeVar("T")


class WrongResult(WattloomError):
    """A function of the suite ended with a result that is wrong."""


def expect(right: bool, what: str) -> None:
    """Raise WrongResult with these words unless it is right."""
    if not right:
        raise WrongResult(what)


class Chance:
    """Numbers out of a hash over a name and a seed."""

    def __init__(self, name: str, seed: int) -> None:
        self._name = f"{name}:{seed}"
        self._drawn = 0

    def bytes(self, count: int) -> bytes:
        self._drawn += 1
        return hashlib.shake_256(f"{self._name}:{self._drawn}".encode()).digest(count)

    def below(self, end: int, count: int) -> list[int]:
        """So many whole numbers from 0 to below the end, which is far below 2**32."""
        return [int(each) % end for each in np.frombuffer(self.bytes(4 * count), "<u4")]

    def pick(self, among: Sequence[T], count: int) -> list[T]:
        return [among[at] for at in self.below(len(among), count)]
