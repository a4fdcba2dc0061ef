"""The time of a run: seconds since it began, by a clock that cannot be set.

Owns the present moment of a turn: all that is done in one happens at one time. One thread alone.
"""

from time import monotonic, time
from typing import Final


class RunClock:
    """Looked at once or twice a turn."""

    def __init__(self, began: float) -> None:
        self._began: Final = began
        """By the monotonic clock."""
        self.now: float = 0.0
        """As this turn sees it."""

    def look(self) -> float:
        """What time it is; the turn goes on from there."""
        self.now = monotonic() - self._began
        return self.now

    def unix(self) -> float:
        """The turn's time as the world counts."""
        return time() - (monotonic() - self._began - self.now)
