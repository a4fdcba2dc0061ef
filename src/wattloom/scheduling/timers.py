"""When the engine wants to be asked again: back-off, waits, patience and idle nodes.

Owns the times and nothing of what they mean. The engine has no clock: backends send a tick at `next`.
"""

from heapq import heappop, heappush
from typing import NamedTuple


class Timer(NamedTuple):
    """Something due. `mark` tells whether it still means what it meant when it was set."""

    time: float
    serial: int
    kind: str
    name: str
    mark: float


class Timers:
    """Timers in order of time, then of setting."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._serial: int = 0
        self.pending: dict[str, int] = {}
        """How many there are of each kind."""

    def set(self, time: float, kind: str, name: str, mark: float = 0.0) -> None:
        self._serial += 1
        self.pending[kind] = self.pending.get(kind, 0) + 1
        heappush(self._heap, Timer(time, self._serial, kind, name, mark))

    def due(self, time: float) -> Timer | None:
        """The next timer that is due, taken out."""
        if self._heap and self._heap[0].time <= time:
            timer = heappop(self._heap)
            self.pending[timer.kind] -= 1
            return timer
        return None

    @property
    def next(self) -> float | None:
        return self._heap[0].time if self._heap else None
