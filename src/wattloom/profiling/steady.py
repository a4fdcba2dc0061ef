"""Whether a figure has come to rest.

Owns the test. Knows neither meters nor clocks: points are handed in.
"""

from collections.abc import Sequence
from math import sqrt

import msgspec


class SteadyState(msgspec.Struct, frozen=True):
    """When a figure counts as settled."""

    window_s: float
    """The last so many seconds are looked at."""
    tolerance: float
    """How much of its mean may drift within the window."""
    least: float = 0.0
    """A drift no larger than this is none, whatever the mean."""
    points: int = 5
    """So many there must be."""


def settled(points: Sequence[tuple[float, float]], steady: SteadyState) -> bool:
    """Whether (seconds, figure) points no longer drift: their slope over the window is within the tolerance, or no
    larger than twice what noise alone would make of it."""
    if not points:
        return False
    last = points[-1][0]
    window = [point for point in points if point[0] >= last - steady.window_s]
    if len(window) < steady.points or last - points[0][0] < 0.9 * steady.window_s:
        return False
    drift, error = _drift(window, steady.window_s)
    mean = sum(figure for _, figure in window) / len(window)
    return abs(drift) <= max(steady.tolerance * abs(mean), steady.least, 2.0 * error)


def _drift(points: Sequence[tuple[float, float]], seconds: float) -> tuple[float, float]:
    """By how much a straight line through the points moves in so many seconds, and its standard error."""
    count = len(points)
    mean_x, mean_y = (sum(column) / count for column in zip(*points, strict=True))
    width = sum((x - mean_x) ** 2 for x, _ in points)
    if width == 0.0:
        return 0.0, 0.0
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / width
    rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
    return slope * seconds, sqrt(rest / max(count - 2, 1) / width) * seconds
