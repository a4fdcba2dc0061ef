"""How idle changes slowly, as fans and temperature do: a line with a bend every few minutes.

Owns the columns of that line. Around idle watts that were given it has a mean of zero: they stay what they are.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from wattloom.disaggregation.activity import Array
from wattloom.disaggregation.readings import Readings

DRIFT_KNOT_S: Final = 300.0
MOST_KNOTS: Final = 12


@dataclass(frozen=True, slots=True)
class Drift:
    """From the first to the last reading. `mean`: of each column, taken off."""

    knots: Array
    mean: Array

    def at(self, time: Array) -> Array:
        """One row for each moment."""
        return _columns(time, self.knots) - self.mean


def drift_of(found: Readings, idle_is_given: bool) -> Drift:
    first, last = float(found.time[0]), float(found.time[-1])
    count = int(np.clip((last - first) / DRIFT_KNOT_S + 1, 2, MOST_KNOTS))
    knots = np.linspace(first, last, count)
    weight = found.stands_for / found.stands_for.sum()
    return Drift(knots, weight @ _columns(found.time, knots) if idle_is_given else np.zeros(count))


def _columns(time: Array, knots: Array) -> Array:
    return np.column_stack([np.interp(time, knots, row) for row in np.eye(len(knots))])
