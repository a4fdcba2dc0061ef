"""Joules in whole grains: parts that add up to their whole, to the last bit.

Owns the grain and how a whole is cut into grains. Every account in the tree splits what a meter counted by this.
"""

from collections.abc import Mapping
from math import floor
from typing import Final, TypeVar

from wattloom.units import Joules

GRAIN_J: Final = 2.0**-24
"""Sums are kept in whole multiples of this (60 nJ), so that they add up to the last bit for 500 MJ."""

K = TypeVar("K")


def to_grain(joules: float) -> Joules:
    """Rounded down to a whole multiple of the grain."""
    return Joules(floor(joules / GRAIN_J) * GRAIN_J)


def in_grains(parts: Mapping[K, float], whole_j: float) -> tuple[dict[K, float], float]:
    """Each part rounded down, and what is left of the whole (whole grains): together they are the whole. Where the
    parts are more than it, the largest gives way."""
    found: dict[K, float] = {who: to_grain(joules) for who, joules in parts.items()}
    left = whole_j - sum(found.values())
    if left < 0.0:  # products of many figures may be some grains too high
        found[max(found, key=lambda who: found[who])] += left
        left = 0.0
    return found, left
