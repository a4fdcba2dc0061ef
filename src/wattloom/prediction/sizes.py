"""Whether the size of a function's arguments explains how long it takes, and how long it takes by size.

Owns the figures by size class for one function on one machine. Sizes come in classes, four to a doubling. Seconds are
looked at by their logarithms, so that one outlier among thousands proves nothing.
"""

from math import exp, log
from typing import Final

from wattloom.bounds import LATEST_S

ENOUGH: Final = 30
"""Runs before sizes are believed to explain anything."""
PER_CLASS: Final = 3
"""Runs of a class before its own mean counts."""
EXPLAINS: Final = 0.5
"""Share of the spread that must lie between the classes, and not within them; half as much to be given up again."""
LOOK_EVERY: Final = 16
SHORTEST_S: Final = 1e-9
LONGEST_LOG: Final = log(LATEST_S)
"""Beyond, or as much below 1 s, a line through what was seen says nothing any more."""


class BySize:
    """Online means by size class."""

    __slots__ = ("_classes", "_count", "_squares", "_sum", "explains")

    def __init__(self) -> None:
        self._classes: dict[int, list[float]] = {}
        """Runs, and the sum of the logarithms of their seconds."""
        self._count: int = 0
        self._sum: float = 0.0
        self._squares: float = 0.0
        self.explains: bool = False

    def add(self, size: int, seconds: float) -> bool:
        """Take one more run in; True when it turns out that sizes matter, or that they do not."""
        value = log(max(seconds, SHORTEST_S))
        known = self._classes.get(size)
        if known is None:
            known = [0.0, 0.0]
            self._classes[size] = known
        known[0] += 1.0
        known[1] += value
        self._count += 1
        self._sum += value
        self._squares += value * value
        if self._count < ENOUGH or self._count % LOOK_EVERY:
            return False
        before = self.explains
        self.explains = self._between() >= (EXPLAINS / 2.0 if before else EXPLAINS)
        return self.explains != before

    def _between(self) -> float:
        """Share of the spread that lies between classes; each class pays for its mean with one run."""
        mean = self._sum / self._count
        whole = self._squares - self._count * mean * mean
        classes = [each for each in self._classes.values() if each[0] >= PER_CLASS]
        if whole <= 0.0 or len(classes) < 2:
            return 0.0
        spread = whole / self._count
        between = sum(runs * (total / runs - mean) ** 2 - spread for runs, total in classes)
        return between / whole

    def seconds(self, size: int) -> float | None:
        """Expected for a call of this size: its class's own mean, or on the line through the known ones."""
        known = self._classes.get(size)
        if known is not None and known[0] >= PER_CLASS:
            return exp(known[1] / known[0])
        return self._on_the_line(size)

    def _on_the_line(self, size: int) -> float | None:
        points = [(at, total / runs, runs) for at, (runs, total) in self._classes.items() if runs >= PER_CLASS]
        if len(points) < 2:
            return None
        weight = sum(runs for _, _, runs in points)
        middle = sum(at * runs for at, _, runs in points) / weight
        level = sum(value * runs for _, value, runs in points) / weight
        spread = sum(runs * (at - middle) ** 2 for at, _, runs in points)
        slope = sum(runs * (at - middle) * (value - level) for at, value, runs in points) / spread
        line = level + slope * (size - middle)
        return exp(line) if abs(line) <= LONGEST_LOG else None
