"""What changes slowly: idle, as a line with a bend every few minutes, and heat, which follows what was drawn.

Owns the columns of both. Around idle watts that were given the line has a mean of zero: they stay what they are. Heat
is fans and leakage: it comes minutes after the work, is drawn because of it, and would else be taken for idle's drift.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from wattloom.disaggregation.activity import Array
from wattloom.disaggregation.fitting import Fit, Problem, steps_of
from wattloom.disaggregation.readings import Readings
from wattloom.disaggregation.response import faded

DRIFT_KNOT_S: Final = 300.0
MOST_KNOTS: Final = 12
HEATS_S: Final = 120.0
"""Seconds until two thirds of the heat are there."""
USUAL_HEAT: Final = 0.02
HEAT_WITHIN: Final = 0.05
"""Of what is drawn above idle: thought of before measuring, and how far that may be off."""


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


def with_heat(problem: Problem, best: Fit) -> Problem:
    """The same problem with heat in it, which follows what this fit says was drawn."""
    watts, _ = steps_of(problem, best.shape, best.weights(problem.functions), False)
    watts = watts + best.values[1] * np.minimum(problem.over.total, 1.0)
    slow = problem.reading.of(faded(watts, HEATS_S / problem.over.step))
    return replace(
        problem,
        drift=np.column_stack([problem.drift, slow]),
        drift_w=np.append(problem.drift_w, HEAT_WITHIN),
        drift_is=np.append(problem.drift_is, USUAL_HEAT),
        heated=True,
    )


def _columns(time: Array, knots: Array) -> Array:
    return np.column_stack([np.interp(time, knots, row) for row in np.eye(len(knots))])
