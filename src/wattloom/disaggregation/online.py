"""Watts per function while work goes on: a filter that is told of one interval after the other.

Owns the filter: a random walk of idle watts and of each function's watts, corrected by what the meter says (Kalman's
gain), never below zero. It forgets slowly, so that it follows functions that change. Clocks are the caller's: seconds
of running must be those of the time that the watts are of. Each interval's joules are shared out without loss.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from wattloom.disaggregation.activity import Array

FIRST_DOUBT: Final = 3.0
"""A function never seen before is thought to draw what others do, give or take three times that."""
WILD: Final = 3.0
"""An error of so many of its usual sizes counts as one of that size."""
LEARNING: Final = 0.05
"""Weight of the newest error in the usual size of errors."""
SURPLUS: Final = 2.0
"""Watts so many usual errors above what was expected are somebody else's."""
MISFIT: Final = 0.1
IDLE_MISFIT: Final = 0.035
"""Of a function's watts and of idle's: no linear model of a machine is better than this; part of every spread."""
MOST_LASTING: Final = 0.9
"""Of an error that goes on in the next reading: more is not believed."""
USUAL_SHARE: Final = 0.02
"""The size of errors before there were any, as a share of the first reading."""


@dataclass(frozen=True, slots=True)
class IntervalShares:
    """Where the joules of an interval went: functions + idle + unattributed = meter."""

    functions: dict[str, float]
    idle_j: float
    unattributed_j: float

    @property
    def meter_j(self) -> float:
        return sum(self.functions.values()) + self.idle_j + self.unattributed_j


@dataclass(frozen=True, slots=True)
class WattsNow:
    """Watts of one running call, and one standard deviation."""

    watts: float
    spread: float


class PowerFilter:
    """Fed with (seconds, watts, seconds that each function ran), it knows watts per function at any time."""

    __slots__ = ("_covariance", "_error_w", "_last_off", "_lasting", "_names", "_size", "_values", "half_life_s")

    def __init__(self, half_life_s: float = 600.0, idle_w: float | None = None) -> None:
        self.half_life_s = half_life_s
        """After so many seconds, doubt has grown by as much as half a figure."""
        self._names: dict[str, int] = {}
        self._values: Array = np.array([0.0 if idle_w is None else idle_w])
        self._covariance: Array = np.array([[np.inf if idle_w is None else (0.05 * idle_w) ** 2]])
        self._error_w: float | None = None
        self._last_off = self._lasting = 0.0
        self._size = 1e-12

    @property
    def idle(self) -> WattsNow:
        return self._now(0)

    def of(self, function: str) -> WattsNow | None:
        """None: it was never seen running."""
        at = self._names.get(function)
        return None if at is None else self._now(at)

    def _now(self, at: int) -> WattsNow:
        """Errors that last tell less than their number says, and the model has its own: both are in the spread."""
        watts = float(self._values[at])
        share = min(max(self._lasting / self._size, 0.0), MOST_LASTING)
        lasting = (1.0 + share) / (1.0 - share)
        model = (MISFIT if at else IDLE_MISFIT) * watts
        return WattsNow(watts, float(np.sqrt(lasting * self._covariance[at, at] + model**2)))

    def feed(self, seconds: float, watts: float, ran: Mapping[str, float]) -> IntervalShares:
        """Learn from an interval, and share its joules out. `ran`: seconds, several calls at once counted severally."""
        if not seconds > 0.0 or not np.isfinite(watts):
            return IntervalShares({}, 0.0, 0.0)
        self._begin(watts)
        for name in ran:
            self._know(name, watts, ran, seconds)
        load = np.zeros(len(self._values))
        load[0] = 1.0
        for name, run_s in ran.items():
            load[self._names[name]] = max(run_s, 0.0) / seconds
        self._forget(seconds)
        self._correct(load, watts)
        return self._share(seconds, watts, load, ran)

    def pause(self, seconds: float) -> None:
        """Time without readings: nothing is learnt or shared out, and doubt grows as it always does."""
        if seconds > 0.0:
            self._forget(seconds)

    # -- learning ------------------------------------------------------------------------------------------------------

    def _begin(self, watts: float) -> None:
        if self._error_w is None:
            self._error_w = USUAL_SHARE * abs(watts) + 1e-3
        if not np.isfinite(self._covariance[0, 0]):
            self._values[0] = watts / 2
            self._covariance[0, 0] = (watts / 2) ** 2 + 1e-6

    def _know(self, name: str, watts: float, ran: Mapping[str, float], seconds: float) -> None:
        """A place for a function that was never seen before."""
        if name in self._names:
            return
        known = self._values[1:]
        running = max(sum(ran.values()) / seconds, 1.0)
        guess = float(known.mean()) if len(known) else max(watts - float(self._values[0]), 0.1 * abs(watts)) / running
        guess = max(guess, 1e-3)
        count = len(self._values)
        self._names[name] = count
        self._values = np.append(self._values, guess)
        grown = np.zeros((count + 1, count + 1))
        grown[:count, :count] = self._covariance
        grown[count, count] = (FIRST_DOUBT * guess) ** 2
        self._covariance = grown

    def _forget(self, seconds: float) -> None:
        """Doubt grows with time: figures walk."""
        step = 0.25 * np.maximum(np.abs(self._values), 0.02 * self._values.max()) ** 2 * seconds / self.half_life_s
        step[0] *= 0.01
        self._covariance[np.diag_indices(len(step))] += step

    def _correct(self, load: Array, watts: float) -> None:
        assert self._error_w is not None
        off = watts - float(load @ self._values)
        doubt = self._covariance @ load
        expected = float(load @ doubt) + self._error_w**2
        limit = WILD * float(np.sqrt(expected))
        gain = doubt / expected
        self._values = np.maximum(self._values + gain * float(np.clip(off, -limit, limit)), 0.0)
        left = np.eye(len(load)) - np.outer(gain, load)
        self._covariance = left @ self._covariance @ left.T + self._error_w**2 * np.outer(gain, gain)
        clipped = float(np.clip(off, -limit, limit))
        self._lasting += LEARNING * (clipped * self._last_off - self._lasting)
        self._size += LEARNING * (clipped**2 - self._size)
        self._last_off = clipped
        # The error before times the error after is, on average, the meter's own: either alone is not.
        after = watts - float(load @ self._values)
        square = float(np.clip(off * after, 0.0, (2 * WILD * self._error_w) ** 2))
        self._error_w = float(np.sqrt((1 - LEARNING) * self._error_w**2 + LEARNING * square)) + 1e-6

    # -- sharing -------------------------------------------------------------------------------------------------------

    def _share(self, seconds: float, watts: float, load: Array, ran: Mapping[str, float]) -> IntervalShares:
        """Idle first; then functions by what they are thought to draw; what is far beyond that is nobody's."""
        assert self._error_w is not None
        meter = watts * seconds
        idle = min(float(self._values[0]), max(watts, 0.0)) * seconds
        drawn = load[1:] * self._values[1:]
        expected = float(drawn.sum())
        if expected <= 0.0:
            return IntervalShares(dict.fromkeys(ran, 0.0), idle, meter - idle)
        active = min(meter - idle, (expected + SURPLUS * self._error_w) * seconds)
        shares = {name: active * float(drawn[self._names[name] - 1]) / expected for name in ran}
        return IntervalShares(shares, idle, meter - idle - sum(shares.values()))
