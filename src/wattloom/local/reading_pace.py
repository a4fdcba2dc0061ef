"""How often the executor's meter is read: as often as it has something to tell, and no oftener than we can bear.

Owns that arithmetic. Knows neither clocks nor meters. Unlike `metering.pace`, which asks a source for its news, this is
about who pays: an interval should be short while calls come and go, and may be long while nothing changes.
"""

from collections import deque
from typing import Final

USUAL_S: Final = 0.5
"""While calls come and go. In shorter intervals the meter's lag and steps weigh more; 0.25 s was no better on the rig
for calls of 2 and 200 ms, and better for those of 2 s, in single runs."""
SLOWEST_S: Final = 2.0
"""While nothing changes, or the meter has nothing new sooner."""
DEAREST_S: Final = 5.0
"""If a reading is so dear that even the slowest pace takes more than our share."""
OUR_SHARE: Final = 0.01
"""Of the time, for reading."""
SLOWER: Final = 1.5
REMEMBERED: Final = 8
"""Readings of which the cheapest counts: the first one loads modules, and a busy machine delays one now and then."""


class ReadingPace:
    """The seconds until the next reading."""

    __slots__ = ("_took_s", "_wait_s", "least_s", "usual_s")

    def __init__(self) -> None:
        self._took_s: Final[deque[float]] = deque([0.0], maxlen=REMEMBERED)
        self.least_s = USUAL_S
        """While calls wait for a figure that the meter did not have."""
        self.usual_s = USUAL_S
        """While calls come and go."""
        self._wait_s = USUAL_S

    def was_read(self, took_s: float, period_s: float = 0.0) -> None:
        """What a reading took, and how often the meter has a new figure."""
        self._took_s.append(took_s)
        self.least_s = max(USUAL_S, min(min(self._took_s) / OUR_SHARE, DEAREST_S))
        self.usual_s = max(self.least_s, min(period_s, SLOWEST_S))

    def next_s(self, changed: bool) -> float:
        """`changed`: whether calls began or ended since the last reading."""
        slower_s = self.usual_s if changed else min(self._wait_s * SLOWER, SLOWEST_S)
        self._wait_s = max(slower_s, self.usual_s)
        return self._wait_s
