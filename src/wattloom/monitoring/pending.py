"""CPU time that waits for the meter: looks come every second, readings when the source has one.

Owns the looks since the last reading and cuts them at the time of the next, which may lie before the last look. Pure.
"""

from typing import Final

import msgspec

from wattloom.monitoring.process import Process
from wattloom.monitoring.whereabouts import Place

MOST: Final = 60
"""Looks kept apart. Where the meter is silent for longer, old ones are put together."""


class Departed(msgspec.Struct, frozen=True, gc=False):
    """Processes that came and went unseen, of one place and one parent."""

    place: Place
    parent: str

    @property
    def key(self) -> str:
        return f"exited:{self.place.group}:{self.parent}"


Who = Process | Departed


class Stretch:
    """Who ran for how long between two times."""

    __slots__ = ("begin", "busy_s", "end", "used")

    def __init__(self, begin: float, end: float, used: dict[Who, float], busy_s: float) -> None:
        self.begin = begin
        self.end = end
        self.used = used
        self.busy_s = busy_s

    def add(self, other: "Stretch") -> None:
        self.begin, self.end = min(self.begin, other.begin), max(self.end, other.end)
        self.busy_s += other.busy_s
        for who, seconds in other.used.items():
            self.used[who] = self.used.get(who, 0.0) + seconds

    def cut(self, time: float) -> "Stretch":
        """The part before a time; this is the rest then. Everybody is taken to have run evenly."""
        share = (time - self.begin) / (self.end - self.begin)
        before = {who: seconds * share for who, seconds in self.used.items()}
        first = Stretch(self.begin, time, before, self.busy_s * share)
        self.used = {who: seconds - before[who] for who, seconds in self.used.items()}
        self.begin, self.busy_s = time, self.busy_s - first.busy_s
        return first


class Pending:
    """Looks in their order."""

    def __init__(self) -> None:
        self._looks: list[Stretch] = []

    def add(self, look: Stretch) -> None:
        self._looks.append(look)
        if len(self._looks) > MOST:
            self._looks[0].add(self._looks.pop(1))

    def take_until(self, time: float) -> Stretch:
        """All that was before a time, as one; it is not here any more."""
        taken = Stretch(time, time, {}, 0.0)
        while self._looks and self._looks[0].end <= time:
            taken.add(self._looks.pop(0))
        if self._looks and self._looks[0].begin < time:
            taken.add(self._looks[0].cut(time))
        return taken

    def clear(self) -> None:
        self._looks.clear()
