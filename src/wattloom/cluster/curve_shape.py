"""Shapes of power curves, and how points that are known bend them.

Owns shares and logarithms of watts, the spline through known points, and what machines that were learned from say of
the way a curve runs beside its spline. Knows no processor and no file.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from wattloom.cluster.curve_kernel import Alike, Kernel, Matrix, covariance_around

LOADS: Final = tuple(range(0, 101, 10))
INNER: Final = 9
"""Levels between idle and full load."""
FLOOR: Final = 0.7
"""Shapes are compared as logarithms of what is drawn above this share of idle, over the same at full load. Machines of
one processor differ most in how deep they sleep. Of 0, 0.3, 0.5 and 0.7 the best from idle and max on most splits."""


class Learned(NamedTuple):
    """Machines that were learned from."""

    among: Alike
    """How alike they are among themselves."""
    logs: Matrix
    """What the process says of each: their curves without what is theirs alone."""
    ratios: Matrix
    """Idle over full draw, a column."""


class Points(NamedTuple):
    """What is known of machines between idle and full load."""

    loads: Sequence[float]
    """Percent, rising; the same for all."""
    shares: Matrix
    """Of the way from idle to full draw: a row for each machine."""
    ratios: Matrix


def logs_of(shares: Matrix, ratios: Matrix) -> Matrix:
    """From shares of the way from idle to full draw to logarithms as in `FLOOR`."""
    logs: Matrix = np.log(((1.0 - FLOOR) * ratios + (1.0 - ratios) * shares) / (1.0 - FLOOR * ratios))
    return logs


def shares_of(logs: Matrix, ratios: Matrix) -> Matrix:
    """Back to shares, at eleven loads, never falling."""
    inner = (np.exp(logs) * (1.0 - FLOOR * ratios) - (1.0 - FLOOR) * ratios) / (1.0 - ratios)
    shares = np.pad(np.clip(inner, 0.0, 1.0), ((0, 0), (1, 1)), constant_values=(0.0, 1.0))
    rising: Matrix = np.maximum.accumulate(shares, axis=1)
    return rising


def spline(loads: Sequence[float], shares: Matrix) -> Matrix:
    """The monotone cubic through idle, full load and what is known at `loads` (rising), at the nine inner levels."""
    x = np.array([0.0, *loads, 100.0])
    y = np.pad(shares, ((0, 0), (1, 1)), constant_values=(0.0, 1.0))
    step = np.diff(x)
    rise = np.diff(y, axis=1) / step
    slope = _slopes(step, rise)
    at = np.array(LOADS[1:-1], dtype=np.float64)
    part = np.searchsorted(x, at, side="right") - 1
    t, h = (at - x[part]) / step[part], step[part]
    bend = slope[:, part] * (1.0 - t) - slope[:, part + 1] * t + rise[:, part] * (2.0 * t - 1.0)
    curve: Matrix = y[:, part] + rise[:, part] * h * t + h * t * (1.0 - t) * bend
    return curve


def _slopes(step: Matrix, rise: Matrix) -> Matrix:
    """Where two stretches meet, their weighted harmonic mean (0 beside a flat one); at the ends, a parabola's."""
    if len(step) == 1:
        return np.repeat(rise, 2, axis=1)
    before, after = step[:-1] + 2.0 * step[1:], 2.0 * step[:-1] + step[1:]
    left, right = rise[:, :-1], rise[:, 1:]
    both = before * right + after * left
    inner = (before + after) * left * right / np.where(both > 0.0, both, 1.0)
    first = _end(step[0], step[1], rise[:, 0], rise[:, 1])
    last = _end(step[-1], step[-2], rise[:, -1], rise[:, -2])
    return np.column_stack([first, inner, last])


def _end(own: float, next_: float, rise: Matrix, next_rise: Matrix) -> Matrix:
    slope: Matrix = np.maximum(((2.0 * own + next_) * rise - own * next_rise) / (own + next_), 0.0)
    return slope


def readings(loads: Sequence[float]) -> Matrix:
    """How points read the eleven levels, a row each: by straight interpolation."""
    return np.array([[max(0.0, 1.0 - abs(load - level) / 10.0) for level in LOADS] for load in loads])


def with_points(learned: Learned, between: Alike, points: Points, kernel: Kernel) -> Matrix:
    """Logarithms at 10 ... 90% of machines of which points are known: their spline, and how others run beside theirs.

    Machines that agree at the points and in what they are made of are expected to agree between the points.
    """
    curves = shares_of(learned.logs, learned.ratios)
    read = curves @ readings(points.loads).T
    beside = logs_of(curves[:, 1:-1], learned.ratios) - logs_of(spline(points.loads, read), learned.ratios)
    mean = beside.mean(axis=0)
    among = covariance_around(learned.among, _gap(read, read), kernel)
    weights = np.linalg.solve(among + kernel.points_noise_v * np.eye(len(read)), beside - mean)
    told = mean + covariance_around(between, _gap(points.shares, read), kernel) @ weights
    logs: Matrix = logs_of(spline(points.loads, points.shares), points.ratios) + told
    return logs


def _gap(a: Matrix, b: Matrix) -> Matrix:
    apart: Matrix = np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2))
    return apart
