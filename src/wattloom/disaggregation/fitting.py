"""Watts per function under one curve: penalised, robust least squares with nothing below zero.

Owns the problem that is solved (readings, activity, what is thought before measuring) and the solution for a given
curve, lag and averaging. Choosing among curves is not done here.

Reading = idle + awake x [something runs] + curve(sum of watts_f x calls_f) x (1 + heat, slowly) + slow drift.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from wattloom.disaggregation.activity import Activity, Array
from wattloom.disaggregation.noise import fresh
from wattloom.disaggregation.quadratic import bounded
from wattloom.disaggregation.response import Reading
from wattloom.disaggregation.shapes import Shape

STEPS: Final = 25
CONVERGED: Final = 1e-5
HUBER: Final = 1.8
"""Residuals beyond so many of their usual size count less."""
ALIKE: Final = 1.5
"""Functions' watts are thought to differ from their mean by so many times the mean: weak, but it decides between those
that always run together."""
FIXED: Final = 2
"""Columns before those of functions: idle and awake."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Readings to be explained, and what is thought of them before."""

    watts: Array
    weight: Array
    """Seconds that a reading stands for, over their mean."""
    over: Activity
    reading: Reading
    drift: Array
    """Columns of slow change, one row for a reading. Where heat is among them, it is the last."""
    drift_w: Array
    """How large each may be."""
    drift_is: Array
    """And what it is thought to be."""
    heated: bool
    idle: tuple[float, float]
    """Watts and how far they may be off; exactly so if that is zero."""
    awake_w: float
    scale_w: float
    """What a busy machine draws above idle."""
    most: float
    """How many calls there are when it is busy."""
    noise_w: float
    trust: float
    """Independent readings per reading: noise that lasts makes it less than one."""
    memory: Array
    """How noise goes on from reading to reading: what is left after it is new in each."""
    awake: Array
    """Part of the time that each reading shows in which something ran."""

    @property
    def functions(self) -> int:
        return int(self.over.level.shape[1])

    def heat(self, values: Array) -> float:
        """Part of what is drawn above idle that comes slowly, on top of it."""
        return max(float(values[-1]), -0.5) if self.heated else 0.0

    @property
    def first_free(self) -> int:
        """The first value that is to be found: idle is not, if it was given."""
        return 1 if self.idle[1] == 0.0 else 0


@dataclass(frozen=True, slots=True)
class Fit:
    """A solution. `loss` is minus the logarithm of its likelihood and of what was thought before."""

    shape: Shape
    values: Array
    loss: float
    residual: Array
    slopes: Array
    """Change of each reading with each value."""
    precision: Array

    def weights(self, functions: int) -> Array:
        return self.values[FIXED : FIXED + functions]


def steps_of(problem: Problem, shape: Shape, weights: Array, with_slopes: bool) -> tuple[Array, Array | None]:
    """Watts above idle and awake in each step, and their change with each weight."""
    level = problem.over.level
    if shape.counted:
        each = shape.per_unit(problem.over.total / problem.most)
        return (level @ weights) * each, level * each[:, None] if with_slopes else None
    load = level @ weights / problem.scale_w
    slopes = level * shape.slope(load)[:, None] if with_slopes else None
    return problem.scale_w * shape.value(load), slopes


def fit(problem: Problem, shape: Shape, start: Array | None = None) -> Fit:
    """Steps of Gauss and Newton, halved when they do no good."""
    values = _start(problem) if start is None else start.copy()
    predicted, slopes = _predict(problem, shape, values)
    loss, precision = _loss(problem, values, predicted)
    for _ in range(STEPS):
        target = _newton(problem, values, predicted, slopes)
        better = _walk(problem, shape, values, target, loss)
        if better is None:
            break
        gain = loss - better[1]
        values, loss = better
        predicted, slopes = _predict(problem, shape, values)
        if gain < CONVERGED * (1.0 + abs(loss)):
            break
    loss, precision = _loss(problem, values, predicted)
    return Fit(shape, values, loss - shape.prior, problem.watts - predicted, slopes, precision)


def _start(problem: Problem) -> Array:
    """Every call draws the same."""
    values = np.zeros(FIXED + problem.functions + problem.drift.shape[1])
    values[0] = problem.idle[0] if problem.first_free else min(problem.idle[0], float(problem.watts.min()))
    values[FIXED : FIXED + problem.functions] = problem.scale_w / problem.most
    return values


def _predict(problem: Problem, shape: Shape, values: Array) -> tuple[Array, Array]:
    functions = problem.functions
    watts, slopes = steps_of(problem, shape, values[FIXED : FIXED + functions], True)
    assert slopes is not None
    seen = problem.reading.of(slopes)
    drawn = seen @ values[FIXED : FIXED + functions] if shape.linear else problem.reading.of(watts)
    design = np.column_stack([np.ones(len(seen)), problem.awake, seen, problem.drift])
    rest = problem.drift @ values[FIXED + functions :]
    return values[0] + values[1] * problem.awake + drawn + rest, design


def _predicted(problem: Problem, shape: Shape, values: Array) -> Array:
    functions = problem.functions
    watts, _ = steps_of(problem, shape, values[FIXED : FIXED + functions], False)
    seen = problem.reading.of(watts) + values[1] * problem.awake
    return np.asarray(values[0] + seen + problem.drift @ values[FIXED + functions :])


def _prior(problem: Problem, values: Array) -> tuple[Array, Array]:
    """Precision and centre of what is thought before."""
    functions, count = problem.functions, len(values)
    weights = values[FIXED : FIXED + functions]
    mean = max(float(weights.mean()), 1e-3 * problem.scale_w / problem.most)
    precision = np.zeros((count, count))
    precision[0, 0] = 0.0 if problem.first_free else problem.idle[1] ** -2
    precision[1, 1] = problem.awake_w**-2
    apart = (np.eye(functions) - 1.0 / functions) / (ALIKE * mean) ** 2
    apart += np.eye(functions) * 1e-4 / mean**2
    precision[FIXED : FIXED + functions, FIXED : FIXED + functions] = apart
    at = np.arange(FIXED + functions, count)
    precision[at, at] = problem.drift_w**-2
    centre = np.zeros(count)
    centre[0] = problem.idle[0]
    centre[at] = problem.drift_is
    return precision, centre


def losses(problem: Problem, residual: Array) -> Array:
    """Of each reading."""
    size = np.abs(fresh(residual, problem.memory)) / problem.noise_w
    huber = np.where(size <= HUBER, size**2 / 2, HUBER * size - HUBER**2 / 2)
    return np.asarray(problem.trust * problem.weight[len(problem.memory) :] * huber)


def _loss(problem: Problem, values: Array, predicted: Array) -> tuple[float, Array]:
    precision, centre = _prior(problem, values)
    off = values - centre
    return float(losses(problem, problem.watts - predicted).sum() + off @ precision @ off / 2), precision


def _newton(problem: Problem, values: Array, predicted: Array, slopes: Array) -> Array:
    """Where the loss would be least if everything were as straight as here."""
    residual = fresh(problem.watts - predicted, problem.memory)
    slopes = fresh(slopes, problem.memory)
    size = np.abs(residual) / problem.noise_w
    weight = (
        problem.weight[len(problem.memory) :]
        * problem.trust
        / problem.noise_w**2
        * np.minimum(1.0, HUBER / np.maximum(size, 1e-12))
    )
    precision, centre = _prior(problem, values)
    weighted = slopes * weight[:, None]
    square = weighted.T @ slopes + precision
    linear = weighted.T @ (residual + slopes @ values) + precision @ centre
    floor = np.full(len(values), -np.inf)
    floor[: FIXED + problem.functions] = 0.0
    free = problem.first_free
    pull = linear[free:] - square[free:, :free] @ values[:free]
    return np.concatenate([values[:free], bounded(square[free:, free:], pull, floor[free:])])


def _walk(problem: Problem, shape: Shape, values: Array, target: Array, loss: float) -> tuple[Array, float] | None:
    """The first point on the way to the target that is better than here."""
    for share in (1.0, 0.5, 0.25, 0.1, 0.03):
        tried = values + share * (target - values)
        found, _ = _loss(problem, tried, _predicted(problem, shape, tried))
        if found < loss:
            return tried, found
    return None
