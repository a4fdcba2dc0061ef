"""Joules of each function, once the watts are known: what leaving it out would have saved, or its full share.

Owns the two ways of counting.

Marginal: the model's energy of the run less that of the same run without the function. With a bent curve these do not
add up to what was drawn above idle; the rest is nobody's alone.

Full: what was measured above idle is shared, reading by reading, in proportion to watts_f x calls_f (for a curve of the
summed load this is the price of Aumann and Shapley). It adds up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wattloom.disaggregation.activity import Activity, Array
from wattloom.disaggregation.fitting import FIXED, Problem
from wattloom.disaggregation.shapes import Shape


@dataclass(frozen=True, slots=True)
class Counting:
    """What joules are counted over. `inside`: the steps that readings show. `without`: the activity of a run without
    each function, where that is another than the same calls with some left out."""

    problem: Problem
    inside: slice | NDArray[np.bool_]
    without: Sequence[Activity] | None = None


def marginal(over: Counting, shape: Shape, values: Array) -> Array:
    """Joules that leaving out each function saves."""
    problem = over.problem
    weights = values[FIXED : FIXED + problem.functions]
    if over.without is not None:
        return _replayed(over, shape, values)
    level = problem.over.level[over.inside]
    total = problem.over.total[over.inside]
    drawn = level @ weights
    whole = _draw(problem, shape, drawn, total, values[1]).sum()
    saved = np.empty(len(weights))
    for each, weight in enumerate(weights):
        mine = level[:, each]
        rest = _draw(problem, shape, drawn - weight * mine, total - mine, values[1])
        saved[each] = whole - rest.sum()
    return np.asarray(np.maximum(saved, 0.0) * problem.over.step)


def _draw(problem: Problem, shape: Shape, drawn: Array, total: Array, awake_w: float) -> Array:
    """Watts above idle from summed watts and the number of calls."""
    drawn, total = np.maximum(drawn, 0.0), np.maximum(total, 0.0)
    awake = awake_w * np.minimum(total, 1.0)
    if shape.counted:
        return np.asarray(drawn * shape.per_unit(total / problem.most) + awake)
    return np.asarray(problem.scale_w * shape.value(drawn / problem.scale_w) + awake)


def _replayed(over: Counting, shape: Shape, values: Array) -> Array:
    assert over.without is not None
    problem = over.problem
    weights = values[FIXED : FIXED + problem.functions]
    whole = _joules(problem, over.inside, problem.over, shape, weights, values[1])
    rest = [_joules(problem, over.inside, each, shape, weights, values[1]) for each in over.without]
    return np.maximum(whole - np.array(rest), 0.0)


def _joules(
    problem: Problem, inside: slice | NDArray[np.bool_], over: Activity, shape: Shape, weights: Array, awake_w: float
) -> float:
    level = over.level[inside]
    return float(_draw(problem, shape, level @ weights, level.sum(axis=1), awake_w).sum() * over.step)


def shares(seen: Array, weights: Array) -> Array:
    """Each function's part of each reading: by watts x calls; if all that ran draw nothing, by calls; zero if none ran.

    `seen`: calls of each function under way in the time that each reading shows."""
    drawn = seen * weights
    summed = drawn.sum(axis=1, keepdims=True)
    running = seen.sum(axis=1, keepdims=True)
    by_watts = np.divide(drawn, summed, out=np.zeros_like(drawn), where=summed > 1e-12)
    by_calls = np.divide(seen, running, out=np.zeros_like(seen), where=running > 1e-12)
    return np.asarray(np.where(summed > 1e-12, by_watts, by_calls))
