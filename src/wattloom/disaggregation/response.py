"""What a slow meter makes of power: it comes late, and it is a mean over some seconds.

Owns lag and averaging as one linear operation from steps of time to readings.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from wattloom.disaggregation.activity import Activity, Array, Indices

LASTING: Final = 10.0
"""So many times `fading` after it, power is forgotten."""


@dataclass(frozen=True, slots=True)
class Response:
    """A reading at t is the mean over the `window` seconds before t - `lag`, of power that takes `fading` seconds to
    show two thirds of a change."""

    lag: float
    window: float
    fading: float = 0.0

    def behind(self, every: float) -> float:
        """The lag as it is reported: how old the middle of the newest second (or interval) is that a reading shows.

        Some meters name a mean by its begin and some by its end; so this is half an interval off at most."""
        return self.lag + min(self.window, every) / 2

    @staticmethod
    def with_lag(behind: float, window: float, fading: float, every: float) -> "Response":
        """One whose reported lag is this."""
        return Response(behind - min(window, every) / 2, window, fading)

    @property
    def reaches_back(self) -> float:
        """Seconds before a reading in which activity may still show in it."""
        return self.lag + self.window + LASTING * self.fading

    @property
    def centre(self) -> float:
        """How much older the middle of what a reading shows is than the reading."""
        return self.lag + self.window / 2 + self.fading


class Reading:
    """Steps to readings, for one response; made once and applied to many columns."""

    __slots__ = ("_fading", "_high", "_low", "_step")

    def __init__(self, over: Activity, time: Array, response: Response) -> None:
        window = max(response.window, over.step)
        until = time - response.lag - response.window / 2 + window / 2
        self._high = _position(over, until)
        self._low = _position(over, until - window)
        self._step = over.step / window
        self._fading = response.fading / over.step

    def of(self, steps: Array) -> Array:
        """Of one value, or one row of values, for each step."""
        shape = (len(steps) + 1, *steps.shape[1:])
        summed = np.zeros(shape)
        np.cumsum(faded(steps, self._fading), axis=0, out=summed[1:])
        return np.asarray((_at(summed, self._high) - _at(summed, self._low)) * self._step)


def faded(steps: Array, fading: float) -> Array:
    """Each step shows those before it, less and less. The geometric sum is made by doubling: 1 + a, then + a^2 ..."""
    if fading < 0.2:
        return steps
    share = float(np.exp(-1.0 / fading))
    found = steps * (1.0 - share)
    back = 1
    while back < LASTING * fading and back < len(steps):
        added = found.copy()
        added[back:] += share**back * found[:-back]
        found, back = added, 2 * back
    return found


def _position(over: Activity, moments: Array) -> tuple[Indices, Array]:
    """Which edge lies before a moment, and the part of a step after it."""
    place = np.clip((moments - over.begin) / over.step, 0.0, len(over.level) - 1e-9)
    whole = np.floor(place)
    return whole.astype(np.intp), place - whole


def _at(summed: Array, place: tuple[Indices, Array]) -> Array:
    edge, part = place
    weight = part if summed.ndim == 1 else part[:, None]
    return np.asarray(summed[edge] * (1 - weight) + summed[edge + 1] * weight)
