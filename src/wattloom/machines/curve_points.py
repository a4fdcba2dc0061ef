"""How points that are known between idle and full load bend a machine's power curve.

Owns the spline through known points and what the machines that were learned from say of the way a curve runs beside its
spline: `curve_model`'s terms over all of them at once. Needs numpy, so it is loaded only where points are given or the
model is trained. Knows no processor, no watts and no file.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wattloom.machines.curve_model import FLOOR, INNER, LOADS, Alike, CurveModel, Kernel, Situation, Spread, spread_of
from wattloom.machines.curve_model import alike as alike_by

Matrix = NDArray[np.float64]

POINT_ERROR: Final = 1e-7
"""Variance of the logarithm that a given point may have."""


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


# -- many machines at once ---------------------------------------------------------------------------------------------


def alike(a: Situation, b: Situation, kernel: Kernel) -> Alike:
    """Between every machine of one lot and every one of another."""
    return alike_by(a.of(np.s_[:, None]), b.of(np.s_[None, :]), kernel, np.exp)


def covariance(a: Situation, b: Situation, kernel: Kernel) -> Matrix:
    """Of the shapes of machines, no point between idle and full load being known."""
    trend, kin = alike(a, b, kernel)
    found: Matrix = trend + kin
    return found


def covariance_around(known: Alike, gap: Matrix, kernel: Kernel) -> Matrix:
    """Of what is left around a spline, for machines so far apart at the points that are known."""
    trend: Matrix = kernel.points_trend * known.trend * np.exp(-gap / kernel.points_trend_l)
    kin: Matrix = kernel.points_kin * known.kin * np.exp(-gap / kernel.points_kin_l)
    return trend + kin


# -- shapes ------------------------------------------------------------------------------------------------------------


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


# -- what the learned model tells --------------------------------------------------------------------------------------


def shape_with_points(
    model: CurveModel, asked: Situation, sure: str, shares: Mapping[float, float]
) -> tuple[list[float], list[float]]:
    """Logarithms at 10 ... 90% and their standard deviations. `shares`: of the way from idle to full draw, by loads in
    percent."""
    told = bool(asked.maker >= 0)
    kernel = model.kernel if told else model.kernel.without_maker()
    one = Situation(*(np.array([getattr(asked, name)]) for name in asked.__struct_fields__))
    loads = sorted(shares)
    points = Points(loads, np.array([[shares[load] for load in loads]]), np.exp(one.idle[:, None]))
    logs = with_points(_learned(model, told), alike(one, _seen(model), kernel), points, kernel)
    return logs[0].tolist(), left_over(spread_of(model, sure, told), loads).tolist()


def left_over(held: Spread, loads: Sequence[float]) -> Matrix:
    """Standard deviations at 10 ... 90% once the watts at `loads` are known."""
    spread = np.array(held.covariance)
    if not loads:
        return held.alone * np.sqrt(np.diag(spread))
    reads = readings(loads)[:, 1:-1]
    gain = spread @ reads.T @ np.linalg.inv(reads @ spread @ reads.T + POINT_ERROR * np.eye(len(reads)))
    left = np.diag(spread - gain @ reads @ spread)
    return held.with_points * np.sqrt(np.maximum(left, 0.0))


@lru_cache(maxsize=8)
def _learned(model: CurveModel, told: bool) -> Learned:
    seen = _seen(model)
    if not told:
        return _learned(model, True)._replace(among=alike(seen, seen, model.kernel.without_maker()))
    among = alike(seen, seen, model.kernel)
    weights = np.frombuffer(model.weights, dtype="<f4").astype(np.float64).reshape(-1, INNER)
    return Learned(among, np.array(model.mean) + (among.trend + among.kin) @ weights, np.exp(seen.idle[:, None]))


@lru_cache(maxsize=8)
def _seen(model: CurveModel) -> Situation:
    return Situation(*(np.array(model.situations[name]) for name in Situation.__struct_fields__))
