"""Readings of a whole machine's power, made ready: one for each moment, with the seconds it stands for.

Owns what a gap is. The energy of a gap is unknown: it is not counted, and its length is reported.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wattloom.disaggregation.activity import Activity, Array

GAP_READINGS: Final = 10.0
GAP_S: Final = 10.0
"""Readings further apart than ten usual distances, and ten seconds, have a gap between them."""

FEWEST_UPDATES: Final = 20
SELDOM: Final = 0.15


@dataclass(frozen=True, slots=True)
class Readings:
    """Watts at rising times. `stands_for`: seconds each (half the way to both neighbours)."""

    time: Array
    watts: Array
    stands_for: Array
    every: float
    gaps: Array
    """Begin and end of each gap, one row each."""

    @property
    def joules(self) -> float:
        return float(self.watts @ self.stands_for)

    @property
    def gap_s(self) -> float:
        return float(np.diff(self.gaps, axis=1).sum())

    @property
    def missed(self) -> int:
        """Readings that did not come at their usual distance, outside of gaps."""
        apart = np.diff(self.time)
        holes = apart[~np.isin(self.time[:-1], self.gaps[:, 0])] / max(self.every, 1e-12)
        return int((np.round(holes[holes > 1.5]) - 1).sum())


def readings(time: Array, watts: Array) -> Readings:
    """Readings at the same moment become their mean. At least two moments are needed."""
    time, watts = _one_each(time, watts)
    apart = np.diff(time)
    every = float(np.median(apart))
    gap = apart > max(GAP_READINGS * every, GAP_S)
    counted = np.where(gap, 0.0, apart)
    stands_for = (np.concatenate([[0.0], counted]) + np.concatenate([counted, [0.0]])) / 2
    gaps = np.column_stack([time[:-1][gap], time[1:][gap]])
    return Readings(time, watts, stands_for, every, gaps)


def _one_each(time: Array, watts: Array) -> tuple[Array, Array]:
    moments, place = np.unique(time, return_inverse=True)
    if len(moments) == len(time):
        return time, watts
    count = np.bincount(place)
    return moments, np.asarray(np.bincount(place, weights=watts) / count)


def seen_steps(found: Readings, over: Activity, lag: float) -> NDArray[np.bool_]:
    """Steps of time that the readings speak of: from the first to the last, less gaps, all of it `lag` earlier."""
    middle = over.begin + over.step * (np.arange(len(over.level)) + 0.5) + lag
    inside = (middle >= found.time[0]) & (middle <= found.time[-1])
    for begin, end in found.gaps:
        inside &= ~((middle > begin) & (middle < end))
    return np.asarray(inside)


def updates(found: Readings) -> Readings:
    """Only the readings that are new, where a meter says the same until its next one.

    Such a meter shows hardly any figure once only. Rounding also repeats figures, but not while power changes."""
    starts = np.concatenate([[0], np.flatnonzero(np.diff(found.watts) != 0.0) + 1])
    length = np.diff(np.append(starts, len(found.watts)))
    usual = int(np.median(length))
    if len(starts) < FEWEST_UPDATES or usual < 2 or (length == 1).mean() > SELDOM:
        return found
    kept = np.concatenate(
        [
            np.arange(start, start + max(count - usual // 2, 1), usual)
            for start, count in zip(starts, length, strict=True)
        ]
    )
    return readings(found.time[kept], found.watts[kept])


def grouped(found: Readings, most: int) -> tuple[Readings, int]:
    """Means of so many readings in a row that there are at most `most`; and how many that is."""
    together = int(np.ceil(len(found.time) / most))
    if together == 1:
        return found, 1
    starts = np.arange(0, len(found.time) - together + 1, together)
    watts = np.add.reduceat(found.watts, starts)[: len(starts)]
    length = np.diff(np.append(starts, len(found.time)))
    last = starts + length - 1
    stands_for = np.add.reduceat(found.stands_for, starts)
    return Readings(found.time[last], watts / length, stands_for, found.every * together, found.gaps), together
