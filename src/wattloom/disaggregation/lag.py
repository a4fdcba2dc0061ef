"""How late the meter is, and over how many seconds it averages: found by trying.

Owns the search. For each lag and window, power is fitted linearly by who ran; the best fit wins. Curvature hardly moves
the answer, and it is left to the fit that comes after.
"""

from dataclasses import astuple
from itertools import product
from typing import Final

import numpy as np

from wattloom.disaggregation import noise
from wattloom.disaggregation.activity import Activity, Array, of_levels
from wattloom.disaggregation.noise import fresh
from wattloom.disaggregation.response import Reading, Response

EARLIEST_S: Final = -6.0
LATEST_S: Final = 10.0
LONGEST_S: Final = 12.0
USUAL_S: Final = 1.5
WITHIN_S: Final = 4.0
"""Meters are 1.5 s late, give or take 4: decides only where the readings do not."""
SHARE: Final = 0.6
"""Of a reading's noise that is thought to go on in the next one."""
MOST_READINGS: Final = 3000
MOST_FUNCTIONS: Final = 8
FINEST_S: Final = 0.05
FIRST_STEP_S: Final = 0.4
FADING_COSTS: Final = 4.0
"""How much likelier, in logarithms, readings must be with fading than without."""
MOST_FADING_S: Final = 8.0
GIVEN_WITHIN: Final = 0.5
"""Of an interval: how far the middle may be from a lag that was given. Whoever measured it took a mean's begin, middle
or end for its time, and which one is seldom known."""
BETTER: Final = 0.01
"""In logarithms: less is no reason to move."""
NO_BETTER: Final = 1e-5
"""Of the highest reading: what rounding of computers says about the lag of a flat line is not heard."""


def find_response(time: Array, watts: Array, over: Activity, every: float, lag: float | None = None) -> Response:
    """The lag, window and fading under which who ran explains most: near `lag`, if one is given."""
    search = _Search(time, watts, over, over.level, every, lag, np.array([SHARE]))
    step = max(0.5, every / 4)
    middles = np.arange(EARLIEST_S, max(LATEST_S, 2 * every) + step, step)
    best: dict[bool, list[tuple[float, Response]]] = {False: [], True: []}
    for window, fading in {(every, 0.0), (3.0, 0.0), (min(0.1, every), 0.0), (every, 1.0), (every, 3.0)}:
        behind = middles - fading + every / 2 if lag is None else lag + GIVEN_WITHIN * every * np.linspace(-1, 1, 5)
        tried = [Response.with_lag(float(at), window, fading, every) for at in behind]
        best[fading > 0].append(min(((search.score(each), each) for each in tried), key=_first))
    starts = [min(each, key=_first) for each in best.values()]
    return _simplest([search.refined(each, step / 2) for each in starts])


def refine_response(
    time: Array, watts: Array, over: Activity, columns: Array, response: Response, known: float | None, memory: Array
) -> Response:
    """A found response once more, now that curve and noise are known. `columns`: what functions drew in each step."""
    every = float(np.median(np.diff(time)))
    search = _Search(time, watts, over, columns, every, known, memory)
    plain = Response(response.lag + response.fading, response.window)
    fading = response if response.fading else Response(response.lag - 0.5, response.window, 0.5)
    starts = [search.near(plain), search.near(fading)]
    return _simplest([search.refined((search.score(each), each), FIRST_STEP_S) for each in starts])


def _simplest(found: list[tuple[float, Response]]) -> Response:
    """Fading must earn its place."""
    return min(found, key=lambda each: each[0] + (FADING_COSTS if each[1].fading > 0 else 0.0))[1]


def _first(each: tuple[float, Response]) -> float:
    return each[0]


def lively(time: Array, over: Activity) -> slice:
    """The stretch of readings in which work changes most; all of them if they are few."""
    if len(time) <= MOST_READINGS:
        return slice(0, len(time))
    total = Reading(over, time, Response(0.0, float(np.median(np.diff(time))))).of(over.total)
    starts = np.arange(0, len(time) - MOST_READINGS + 1, MOST_READINGS // 2)
    at = int(max(starts, key=lambda start: float(np.std(total[start : start + MOST_READINGS]))))
    return slice(at, at + MOST_READINGS)


class _Search:
    """Scores of lags and windows on one stretch of readings."""

    __slots__ = ("columns", "every", "known", "least_w", "memory", "over", "time", "watts")

    def __init__(
        self,
        time: Array,
        watts: Array,
        over: Activity,
        columns: Array,
        every: float,
        known: float | None,
        memory: Array,
    ) -> None:
        self.time, self.watts, self.every, self.known, self.memory = time, watts, every, known, memory
        self.least_w = NO_BETTER * float(np.abs(watts).max())
        first = max(0, int((time[0] - over.begin - 30.0) / over.step))
        last = int((time[-1] - over.begin + 10.0) / over.step) + 2
        level = over.level[first:last]
        self.over = of_levels(over.begin + first * over.step, over.step, level)
        self.columns = _few(columns[first:last])

    def score(self, response: Response) -> float:
        """Half the readings times the logarithm of the noise, squared; less is better."""
        seen = Reading(self.over, self.time, response).of(self.columns)
        table = np.column_stack([np.ones(len(seen)), seen])
        table, watts = fresh(table, self.memory), fresh(self.watts, self.memory)
        residual = _residual(table, watts)
        return len(watts) * float(np.log(noise.size(residual) + self.least_w)) + self._unusual(response) ** 2 / 2

    def _unusual(self, response: Response) -> float:
        if self.known is None:
            return (response.centre - self.every / 2 - USUAL_S) / WITHIN_S
        return (response.behind(self.every) - self.known) / (GIVEN_WITHIN * self.every)

    def near(self, response: Response) -> Response:
        """The same, as close to a lag that was given as it must be."""
        if self.known is None:
            return response
        most = GIVEN_WITHIN * self.every
        behind = min(max(response.behind(self.every), self.known - most), self.known + most)
        return Response.with_lag(behind, response.window, response.fading, self.every)

    def refined(self, best: tuple[float, Response], step: float) -> tuple[float, Response]:
        """Smaller and smaller steps around the best."""
        score, at = best
        while step > FINEST_S:
            tried = [(self.score(each), each) for each in self._around(at, step)]
            nearest = min(tried, key=lambda each: each[0], default=(np.inf, at))
            if nearest[0] < score - BETTER:
                score, at = nearest
            else:
                step /= 2
        return score, at

    def _around(self, at: Response, step: float) -> list[Response]:
        """All neighbours: the three go together along narrow valleys. Without fading there is none."""
        fadings = (0.0, step, -step) if at.fading > 0 else (0.0,)
        made = {
            self.near(Response(at.lag + late, max(at.window + wide, 0.1), max(at.fading + fade, 0.0)))
            for late, wide, fade in product((0.0, step, -step), (0.0, step, -step), fadings)
        }
        return [each for each in sorted(made, key=astuple) if self._sensible(each) and each != at]

    def _sensible(self, at: Response) -> bool:
        late = max(LATEST_S, 2 * self.every)
        soon_enough = self.known is not None or EARLIEST_S - self.every <= at.lag <= late
        return soon_enough and at.window <= max(LONGEST_S, self.every) and at.fading <= MOST_FADING_S


def _few(level: Array) -> Array:
    """The functions that vary most, and all others in one column."""
    if level.shape[1] <= MOST_FUNCTIONS:
        return level
    order = np.argsort(-level.std(axis=0), kind="stable")
    kept, others = order[: MOST_FUNCTIONS - 1], order[MOST_FUNCTIONS - 1 :]
    return np.column_stack([level[:, kept], level[:, others].sum(axis=1)])


def _residual(table: Array, watts: Array) -> Array:
    """Of a fit that lets go of wild readings."""
    weight = np.ones(len(watts))
    residual = watts
    for _ in range(3):
        weighted = table * weight[:, None]
        square = weighted.T @ table
        square[np.diag_indices(len(square))] += 1e-9 * (1.0 + np.diag(square))
        residual = watts - table @ np.linalg.solve(square, weighted.T @ watts)
        usual = noise.MAD * float(np.median(np.abs(residual))) + 1e-12
        weight = np.minimum(1.0, 2.0 * usual / np.maximum(np.abs(residual), 1e-12))
    return residual
