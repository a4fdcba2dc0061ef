"""CPU time that waits for the meter: looks come every second or so, readings when the source has one.

Owns the looks since the last reading and cuts them at the time of the next, which may lie before the last look. Pure;
who ran is whatever the caller tells apart.
"""

from typing import Final, Generic, TypeVar

MOST: Final = 60
"""Looks kept apart. Where the meter is silent for longer, old ones are put together."""

K = TypeVar("K")


class Look(Generic[K]):
    """Who ran for how long between two times."""

    __slots__ = ("begin", "busy_s", "end", "used")

    def __init__(self, begin: float, end: float, used: dict[K, float], busy_s: float) -> None:
        self.begin = begin
        self.end = end
        self.used = used
        self.busy_s = busy_s

    def add(self, other: "Look[K]") -> None:
        self.begin, self.end = min(self.begin, other.begin), max(self.end, other.end)
        self.busy_s += other.busy_s
        for who, seconds in other.used.items():
            self.used[who] = self.used.get(who, 0.0) + seconds

    def cut(self, time: float) -> "Look[K]":
        """The part before a time; this is the rest then. Everybody is taken to have run evenly."""
        share = (time - self.begin) / (self.end - self.begin)
        before = {who: seconds * share for who, seconds in self.used.items()}
        first = Look(self.begin, time, before, self.busy_s * share)
        self.used = {who: seconds - before[who] for who, seconds in self.used.items()}
        self.begin, self.busy_s = time, self.busy_s - first.busy_s
        return first


class Looks(Generic[K]):
    """Looks in their order."""

    __slots__ = ("_looks",)

    def __init__(self) -> None:
        self._looks: list[Look[K]] = []

    def add(self, look: Look[K]) -> None:
        self._looks.append(look)
        if len(self._looks) > MOST:
            self._looks[0].add(self._looks.pop(1))

    def take_until(self, time: float) -> Look[K]:
        """All that was before a time, as one; it is not here any more."""
        taken: Look[K] = Look(time, time, {}, 0.0)
        while self._looks and self._looks[0].end <= time:
            taken.add(self._looks.pop(0))
        if self._looks and self._looks[0].begin < time:
            taken.add(self._looks[0].cut(time))
        return taken
