"""How far the meter's clock and the calls' are apart: a search over minutes, before the fine one over seconds.

Owns the coarse search, its bounds and what must be said about the answer: that it lies at the edge of the search, or
that another moment explains the readings about as well (as with calls at even distances). For each second of shift,
power is fitted by who ran, nothing below zero, slow change taken out of both; the best few are tried finely in `lag`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from wattloom.disaggregation import noise
from wattloom.disaggregation.activity import Activity, Array, Calls, activity, on_steps
from wattloom.disaggregation.lag import EARLIEST_S, LATEST_S, Scored, few, rescored, search_response
from wattloom.disaggregation.quadratic import bounded
from wattloom.disaggregation.readings import Readings

WIDEST_S: Final = 600.0
"""Clocks are looked for so far apart, either way."""
LEAST_COMMON: Final = 1 / 3
"""Of the call seconds that the readings could show at best: shifts that leave less than that of them are not tried."""
MOST_ROWS: Final = 2400
WINDOWS_S: Final = (0.0, 6.0, 20.0, 60.0)
"""Means that meters make: each smears the calls before they are compared."""
STEPS_A_WINDOW: Final = 3.0
KNOT_S: Final = 300.0
RIDGE: Final = 1e-4
CLOSELY: Final = 250
MOST_TRIED: Final = 4
SEPARATE_S: Final = 4.0
"""Closer ones are the same moment, found twice."""
WORTH: Final = 0.5
"""Of the best's share: those that explain less are not tried finely."""
AS_GOOD: Final = 4.0
"""In logarithms: a rival so near to the best could as well be the truth."""
FAR_COSTS: Final = 10.0
"""In logarithms: the best of a thousand shifts gains about so much by chance. Less is no reason to think that clocks
differ by more than meters are late."""
NEAR_COSTS: Final = 0.5
MOST_RIVALS: Final = 2
EDGE_S: Final = 15.0
"""So near to the end of the search, what was found may be the flank of something beyond it."""


@dataclass(frozen=True, slots=True)
class Rival:
    """Another shift that explains the readings about as well, and how likely it is beside the best."""

    shift_s: float
    weight: float


@dataclass(frozen=True, slots=True)
class Clocks:
    """Seconds to add to the calls' times so that they are the meter's, but for a few. `at_edge`: of the search."""

    shift_s: float = 0.0
    window_s: float | None = None
    at_edge: bool = False
    rivals: tuple[Rival, ...] = ()

    def shifted(self, calls: Calls) -> Calls:
        return shifted(calls, self.shift_s)


def shifted(calls: Calls, seconds: float) -> Calls:
    return calls if not seconds else replace(calls, start=calls.start + seconds, end=calls.end + seconds)


def find_clocks(found: Readings, calls: Calls, functions: int) -> Clocks:
    """The shift under which who ran explains most. Small ones are believed sooner than large ones."""
    tried = candidates(found, calls, functions)
    first = [_finely(found, calls, functions, each) for each in tried]
    # Noise that lasts makes fewer readings of many: what any shift gains by it is not to be taken for evidence. So they
    # are compared by what is new in each reading, under the memory that the best of them leaves.
    likeliest = int(np.argmin([each.score for each in first]))
    left = _again(found, calls, functions, tried[likeliest][0], first[likeliest], np.zeros(0))
    memory = noise.memory(left.residual)
    again = [
        _again(found, calls, functions, shift, each, memory) for each, (shift, _, _) in zip(first, tried, strict=True)
    ]
    scored = list(zip(again, tried, strict=True))
    trust = noise.independent(min(again, key=lambda each: each.score).residual)
    costs = [trust * each.score + _unlikely(each, shift) for each, (shift, _, _) in scored]
    best = int(np.argmin(costs))
    chosen, (shift, window, at_edge) = scored[best]
    apart_s = max(SEPARATE_S, chosen.response.window / 2)
    rivals = [
        Rival(elsewhere, float(np.exp(costs[best] - costs[at])))
        for at, (other, (elsewhere, _, _)) in enumerate(scored)
        if costs[at] - costs[best] < AS_GOOD
        and abs(elsewhere + other.response.centre - shift - chosen.response.centre) > apart_s
    ]
    return Clocks(shift, window, at_edge, tuple(sorted(rivals, key=lambda each: -each.weight)[:MOST_RIVALS]))


def _unlikely(found: Scored, shift: float) -> float:
    if not shift:
        return 0.0
    return NEAR_COSTS if EARLIEST_S <= shift + found.response.centre <= LATEST_S else FAR_COSTS


def _again(found: Readings, calls: Calls, functions: int, shift: float, scored: Scored, memory: Array) -> Scored:
    time, watts, over = _looked_at(found, calls, functions, shift)
    return rescored(time, watts, over, found.every, scored.response, memory, shift)


def _looked_at(found: Readings, calls: Calls, functions: int, shift: float) -> tuple[Array, Array, Activity]:
    part = liveliest(found)
    time, watts = found.time[part], found.watts[part]
    over = activity(shifted(calls, shift), functions, float(time[0]), float(time[-1]), found.every)
    return time, watts, over


def _finely(found: Readings, calls: Calls, functions: int, tried: tuple[float, float, bool]) -> Scored:
    shift, window, _ = tried
    time, watts, over = _looked_at(found, calls, functions, shift)
    return search_response(time, watts, over, found.every, shift=shift, window=window, quickly=True)


# -- the coarse search -------------------------------------------------------------------------------------------------


def candidates(found: Readings, calls: Calls, functions: int) -> list[tuple[float, float, bool]]:
    """Shifts worth trying, each with the mean under which it was best and whether it is at the edge of the search. No
    shift at all is always among them."""
    step = max(1.0, found.every)
    moments, watts = _on_grid(found, step)
    widest = WIDEST_S + max(WINDOWS_S)
    begin = float(moments[0]) - widest - step
    steps = round((float(moments[-1]) - begin + widest) / step) + 2
    level = on_steps(calls, functions, begin, step, steps)
    columns = np.column_stack([few(level.level), np.minimum(level.total, 1.0)])
    shifts = _sensible(found, calls, step)
    project = _without_drift(moments)
    flat = project(watts)
    sums: list[tuple[Array, Array]] = []
    places: list[tuple[float, float]] = []
    for window in (each for each in WINDOWS_S if not 0.0 < each <= 2 * step):
        smeared = _smeared(columns, round(window / step))
        for shift in shifts[:: max(int(window / step / STEPS_A_WINDOW), 1)]:
            at = np.round((moments - shift - begin) / step).astype(np.intp) - 1
            shown = project(smeared[np.clip(at, 0, steps - 1)])
            sums.append((shown.T @ shown, shown.T @ flat))
            places.append((float(shift), window))
    shares = _explained(np.stack([each[0] for each in sums]), np.stack([each[1] for each in sums]), flat)
    return _peaks([(share, *place) for share, place in zip(shares.tolist(), places, strict=True)], shifts, step)


def _on_grid(found: Readings, step: float) -> tuple[Array, Array]:
    """Means of readings at even distances, of a stretch that is not too long; wild ones clipped."""
    part = liveliest(found)
    time, watts = found.time[part], found.watts[part]
    watts = np.clip(watts, *np.percentile(watts, [0.5, 99.5]))
    cell = np.floor((time - time[0]) / step).astype(np.intp)
    count = np.bincount(cell)
    filled = np.flatnonzero(count)
    mean = np.bincount(cell, weights=watts)[filled] / count[filled]
    return np.asarray(time[0] + step * (filled + 1.0)), np.asarray(mean)


def liveliest(found: Readings) -> slice:
    """The readings that change most, of so many in a row as are looked at; all of them if they are few."""
    most = MOST_ROWS * max(round(1.0 / found.every), 1)
    if len(found.time) <= most:
        return slice(0, len(found.time))
    starts = np.arange(0, len(found.time) - most + 1, most // 2)
    at = int(max(starts, key=lambda start: float(np.std(found.watts[start : start + most]))))
    return slice(at, at + most)


def _sensible(found: Readings, calls: Calls, step: float) -> Array:
    """Shifts that leave enough of the calls within the readings; none at all is one of them."""
    shifts: Array = np.asarray(step * np.arange(-round(WIDEST_S / step), round(WIDEST_S / step) + 1), dtype=np.float64)
    first, last = float(found.time[0]), float(found.time[-1])
    end = np.minimum(calls.end, last + 2 * WIDEST_S)
    some = slice(None, None, max(len(end) // 2000, 1))
    common = np.array(
        [
            np.clip(np.minimum(end[some] + by, last) - np.maximum(calls.start[some] + by, first), 0.0, None).sum()
            for by in shifts
        ]
    )
    return np.asarray(shifts[(common >= LEAST_COMMON * common.max()) | (shifts == 0.0)])


def _without_drift(moments: Array) -> Callable[[Array], Array]:
    """What is left of columns when slow change is taken out."""
    count = int(np.clip((moments[-1] - moments[0]) / KNOT_S + 1, 2, 12))
    knots = np.linspace(moments[0], moments[-1], count)
    slow = np.column_stack([np.interp(moments, knots, row) for row in np.eye(count)])
    basis, _ = np.linalg.qr(slow)

    def project(columns: Array) -> Array:
        return np.asarray(columns - basis @ (basis.T @ columns))

    return project


def _smeared(columns: Array, steps: int) -> Array:
    """The mean over so many steps that end with each."""
    if steps < 2:
        return columns
    summed = np.concatenate([np.zeros((steps, columns.shape[1])), np.cumsum(columns, axis=0)])
    return np.asarray((summed[steps:] - summed[:-steps]) / steps)


def _explained(squares: Array, linears: Array, watts: Array) -> Array:
    """Share of the variance that each of these least squares explains, nothing below zero. Without that bound it can
    only be more: so it is enough to look closely at those that are best without it."""
    whole = max(float(watts @ watts), 1e-12)
    size = np.sqrt(np.maximum(np.einsum("ijj->ij", squares), 1e-9 * max(float(squares.max()), 1e-9)))
    linears = linears / size
    squares = squares / (size[:, :, None] * size[:, None, :]) + RIDGE * np.eye(squares.shape[1])
    most = (linears * np.linalg.solve(squares, linears[:, :, None])[:, :, 0]).sum(axis=1)
    found = np.zeros(len(linears))
    for at in np.argsort(-most)[:CLOSELY]:
        if (linears[at] > 0.0).any():
            values = bounded(squares[at], linears[at], np.zeros(len(linears[at])))
            found[at] = float(linears[at] @ values) / whole
    return found


def _peaks(explained: list[tuple[float, float, float]], shifts: Array, step: float) -> list[tuple[float, float, bool]]:
    """The best, far enough from each other, and no shift at all."""
    made: list[tuple[float, float, bool]] = [(0.0, 0.0, False)]
    ordered = sorted(explained, reverse=True)
    for share, shift, window in ordered:
        if len(made) > MOST_TRIED or share < WORTH * ordered[0][0] or share <= 0.0:
            break
        near = [each for each in made[1:] if abs(each[0] - shift) < max(SEPARATE_S, 2 * step, each[1] / 2, window / 2)]
        if near:
            continue
        outermost = min(shift - shifts[0], shifts[-1] - shift) < max(EDGE_S, 2 * step)
        made.append((shift, window, bool(outermost)))
    return made
