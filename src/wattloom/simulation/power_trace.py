"""The cluster's draw over time, in a bounded number of equal steps.

Owns the trace. It keeps joules per step, not samples, so nothing between two steps is lost; when the run outgrows it,
steps are joined in pairs.
"""

from typing import Final

MOST_STEPS: Final = 2048


class PowerTrace:
    """Joules per step of virtual time."""

    __slots__ = ("joules", "peak", "step_s", "until", "watts")

    def __init__(self) -> None:
        self.step_s: float = 0.0625
        self.joules: list[float] = []
        self.watts: float = 0.0
        self.until: float = 0.0
        """How far it is drawn."""
        self.peak: float = 0.0
        """The most watts that lasted for any time."""

    def change(self, time: float, watts: float) -> None:
        """From this moment the cluster draws so much."""
        self._draw_until(time)
        self.watts = watts

    def add(self, time: float, joules: float) -> None:
        """Joules that take no time count in the step that leads up to their moment."""
        self._draw_until(time)
        if not self.joules:
            self.joules.append(0.0)
        self.joules[-1] += joules

    def _draw_until(self, time: float) -> None:
        if self.until < time and self.watts > self.peak:
            self.peak = self.watts
        while self.until < time:
            while time > self.step_s * MOST_STEPS:
                self._join()
            step = int(self.until / self.step_s)
            while step >= len(self.joules):
                self.joules.append(0.0)
            end = min(time, (step + 1) * self.step_s)
            if end <= self.until:
                end = min(time, (step + 2) * self.step_s)
            self.joules[step] += self.watts * (end - self.until)
            self.until = end

    def _join(self) -> None:
        if len(self.joules) % 2:
            self.joules.append(0.0)
        self.joules = [self.joules[i] + self.joules[i + 1] for i in range(0, len(self.joules), 2)]
        self.step_s *= 2.0

    def series(self, end: float) -> list[tuple[float, float]]:
        """(begin of step, mean watts in it) up to the end."""
        self._draw_until(end)
        result: list[tuple[float, float]] = []
        for step, joules in enumerate(self.joules):
            begin = step * self.step_s
            if begin >= end:
                break
            result.append((begin, joules / (min(end, begin + self.step_s) - begin)))
        return result
