"""Who ran when, as numbers: how many calls of each function were under way in each small step of time.

Owns the grid of steps. Overlaps with a step count by their exact fraction, so that calls far shorter than a step are
in it with their seconds. Knows nothing of power.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

MOST_CELLS: Final = 6_000_000
"""Steps times functions: what a day of fifty functions may take of memory, about 50 MB."""
FINEST_S: Final = 0.2
MARGIN_S: Final = 120.0
"""Before the first reading, for lag and averaging; a quarter of it after the last."""


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls by their place in the list of functions. `rate`: work per second, 1 unless CPU time is known."""

    start: Array
    end: Array
    function: Indices
    rate: Array


@dataclass(frozen=True, slots=True)
class Activity:
    """Calls under way, averaged over each step: one row for a step, one column for a function."""

    begin: float
    step: float
    level: Array
    total: Array
    """Of all functions."""

    @property
    def edges(self) -> Array:
        return np.asarray(self.begin + self.step * np.arange(len(self.level) + 1))


def activity(calls: Calls, functions: int, first: float, last: float, every: float, coarse: float = 0.0) -> Activity:
    """The activity around readings from `first` to `last` that come every so many seconds, in steps of at least
    `coarse` seconds."""
    begin = first - MARGIN_S - every
    seconds = last - begin + MARGIN_S / 4 + every
    step = max(min(FINEST_S, every / 4), coarse, seconds * functions / MOST_CELLS)
    steps = int(np.ceil(seconds / step)) + 1
    return on_steps(calls, functions, begin, step, steps)


def on_steps(calls: Calls, functions: int, begin: float, step: float, steps: int) -> Activity:
    """The activity on given steps."""
    edges = np.asarray(begin + step * np.arange(steps + 1), dtype=np.float64)
    level = np.empty((steps, functions))
    for each in range(functions):
        mine = calls.function == each
        level[:, each] = run_seconds(edges, calls.start[mine], calls.end[mine], calls.rate[mine]) / step
    return of_levels(begin, step, level)


def of_levels(begin: float, step: float, level: Array) -> Activity:
    return Activity(begin, step, level, np.asarray(level.sum(axis=1)))


def run_seconds(edges: Array, start: Array, end: Array, rate: Array) -> Array:
    """Seconds of calls between each two edges, times their rate."""
    found = np.diff(_ramps(edges, start, rate) - _ramps(edges, end, rate))
    tiny = 1e-9 * max(1.0, float(np.abs(found).max(initial=0.0)))
    return np.where(found > tiny, found, 0.0)


def _ramps(edges: Array, moments: Array, rate: Array) -> Array:
    """Sum over the moments passed of rate x seconds since, seen from the first edge to keep digits."""
    order = np.argsort(moments, kind="stable")
    since = moments[order] - edges[0]
    weight = np.concatenate([[0.0], np.cumsum(rate[order])])
    moment = np.concatenate([[0.0], np.cumsum(rate[order] * since)])
    passed = np.searchsorted(since, edges - edges[0])
    return np.asarray(weight[passed] * (edges - edges[0]) - moment[passed])
