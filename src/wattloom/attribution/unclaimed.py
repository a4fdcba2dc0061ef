"""Busy CPU time nobody has claimed yet, while calls run that may.

The CPU time of a call's subprocesses often shows only when the call ends, after the intervals in which it was spent are
closed. Owns the joules that are held back for that, and gives them up as unattributed when no running call is as old.
"""

from collections import deque
from typing import Final

MOST_INTERVALS: Final = 600
"""A call that runs for longer must not hold back the joules of everything else for ever."""


class Unclaimed:
    """Seconds and joules of the last intervals, newest first."""

    __slots__ = ("_intervals",)

    def __init__(self) -> None:
        self._intervals: deque[tuple[float, float]] = deque()

    @property
    def joules(self) -> float:
        return sum(joules for _, joules in self._intervals)

    def add(self, seconds: float, joules: float) -> None:
        self._intervals.appendleft((seconds, joules))

    def take(self, seconds: float) -> tuple[float, float]:
        """As many seconds as there are, evenly out of all intervals, and their joules."""
        there = sum(seconds for seconds, _ in self._intervals)
        if there <= 0.0:
            return 0.0, 0.0
        share = min(seconds / there, 1.0)
        taken = self.joules * share
        self._intervals = deque((s * (1.0 - share), j * (1.0 - share)) for s, j in self._intervals)
        return there * share, taken

    def release(self, keep: int) -> None:
        """Give up all but the newest so many intervals."""
        keep = min(keep, MOST_INTERVALS)
        while len(self._intervals) > keep:
            self._intervals.pop()
