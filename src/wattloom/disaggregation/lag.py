"""How late the meter is, and over how many seconds it averages: found by trying.

Owns the fine search, over seconds: clocks that are further apart are `clocks`'. For each lag and window, power is
fitted linearly by who ran; the best fit wins. Curvature hardly moves the answer, and it is left to the fit that comes
after.
"""

from dataclasses import astuple, dataclass
from itertools import product
from typing import Final

import numpy as np

from wattloom.disaggregation import noise
from wattloom.disaggregation.activity import Activity, Array, of_levels
from wattloom.disaggregation.noise import fresh
from wattloom.disaggregation.response import Reading, Response

EARLIEST_S: Final = -6.0
LATEST_S: Final = 10.0
LONGEST_S: Final = 75.0
"""Controllers of servers show means of up to a minute."""
USUAL_S: Final = 1.5
WITHIN_S: Final = 4.0
TAILS: Final = 1.5
"""Meters are 1.5 s late, give or take 4, and clocks are off by minutes now and then (the more, the higher this power of
a Cauchy distribution): decides only where the readings do not."""
BESIDE_S: Final = 3.0
"""Around a shift of clocks that was found in steps of a second, lags are tried so far either way."""
SHARE: Final = 0.6
"""Of a reading's noise that is thought to go on in the next one."""
MOST_READINGS: Final = 3000
MOST_FUNCTIONS: Final = 8
FINEST_S: Final = 0.05
QUICK_S: Final = 0.2
FIRST_STEP_S: Final = 0.4
FADING_COSTS: Final = 4.0
"""How much likelier, in logarithms, readings must be with fading than without."""
MOST_FADING_S: Final = 20.0
GIVEN_WITHIN: Final = 0.5
"""Of an interval: how far the middle may be from a lag that was given. Whoever measured it took a mean's begin, middle
or end for its time, and which one is seldom known."""
BETTER: Final = 0.01
"""In logarithms: less is no reason to move."""
NO_BETTER: Final = 1e-5
"""Of the highest reading: what rounding of computers says about the lag of a flat line is not heard."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A response, how well it explains the readings (less is better) and what it leaves."""

    score: float
    response: Response
    residual: Array


def find_response(
    time: Array,
    watts: Array,
    over: Activity,
    every: float,
    lag: float | None = None,
    *,
    shift: float = 0.0,
    window: float = 0.0,
) -> Response:
    """The lag, window and fading under which who ran explains most: near `lag`, if one is given."""
    return search_response(time, watts, over, every, lag, shift=shift, window=window).response


def search_response(
    time: Array,
    watts: Array,
    over: Activity,
    every: float,
    lag: float | None = None,
    *,
    shift: float = 0.0,
    window: float = 0.0,
    quickly: bool = False,
) -> Scored:
    """The same with its score. `shift`: seconds that were added to the calls' times already; then the lag is near zero.
    `window`: a mean that is worth trying first. `quickly`: without fading, to compare shifts with each other."""
    search = _Search(time, watts, over, over.level, every, lag, np.array([SHARE]), shift)
    step = max(0.5, every / 4)
    middles = _middles(every, step, shift)
    best: dict[bool, list[tuple[float, Response]]] = {False: []} if quickly else {False: [], True: []}
    means = {(every, 0.0), (3.0, 0.0), (min(0.1, every), 0.0), (every, 1.0), (every, 3.0), (window or every, 0.0)}
    for wide, fading in sorted(each for each in means if not (quickly and each[1])):
        behind = middles - fading + every / 2 if lag is None else lag + GIVEN_WITHIN * every * np.linspace(-1, 1, 5)
        tried = [Response.with_lag(float(at), wide, fading, every) for at in behind]
        best[fading > 0].append(min(((search.score(each), each) for each in tried), key=_first))
    starts = [min(each, key=_first) for each in best.values()]
    finest = QUICK_S if quickly else FINEST_S
    score, response = _simplest([search.refined(each, max(step, window / 8) / 2, finest) for each in starts])
    return Scored(score, response, search.residual(response))


def rescored(
    time: Array, watts: Array, over: Activity, every: float, response: Response, memory: Array, shift: float
) -> Scored:
    """A response that was found, by what is new in each reading under another memory of noise."""
    search = _Search(time, watts, over, over.level, every, None, memory, shift)
    return Scored(search.score(response), response, search.residual(response))


def _middles(every: float, step: float, shift: float) -> Array:
    if shift:
        near = max(BESIDE_S, 1.5 * every)
        return np.arange(-near, near + step, step)
    return np.arange(EARLIEST_S, max(LATEST_S, 2 * every) + step, step)


def refine_response(
    time: Array,
    watts: Array,
    over: Activity,
    columns: Array,
    response: Response,
    known: float | None,
    memory: Array,
    shift: float = 0.0,
) -> Response:
    """A found response once more, now that curve and noise are known. `columns`: what functions drew in each step."""
    every = float(np.median(np.diff(time)))
    search = _Search(time, watts, over, columns, every, known, memory, shift)
    plain = Response(response.lag + response.fading, response.window)
    fading = response if response.fading else Response(response.lag - 0.5, response.window, 0.5)
    starts = [search.near(plain), search.near(fading)]
    return _simplest([search.refined((search.score(each), each), FIRST_STEP_S) for each in starts])[1]


def _simplest(found: list[tuple[float, Response]]) -> tuple[float, Response]:
    """Fading must earn its place."""
    return min(found, key=lambda each: each[0] + (FADING_COSTS if each[1].fading > 0 else 0.0))


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

    __slots__ = ("columns", "every", "known", "least_w", "memory", "over", "shift", "time", "watts")

    def __init__(
        self,
        time: Array,
        watts: Array,
        over: Activity,
        columns: Array,
        every: float,
        known: float | None,
        memory: Array,
        shift: float,
    ) -> None:
        self.time, self.watts, self.every, self.known, self.memory = time, watts, every, known, memory
        self.shift = shift
        self.least_w = NO_BETTER * float(np.abs(watts).max())
        first = max(0, int((time[0] - over.begin - LONGEST_S - 30.0) / over.step))
        last = int((time[-1] - over.begin + 10.0) / over.step) + 2
        level = over.level[first:last]
        self.over = of_levels(over.begin + first * over.step, over.step, level)
        self.columns = few(columns[first:last])

    def score(self, response: Response) -> float:
        """Half the readings times the logarithm of the noise, squared; less is better."""
        residual = self.residual(response)
        return len(residual) * float(np.log(noise.size(residual) + self.least_w)) + self._unusual(response)

    def residual(self, response: Response) -> Array:
        seen = Reading(self.over, self.time, response).of(self.columns)
        table = np.column_stack([np.ones(len(seen)), seen])
        return _residual(fresh(table, self.memory), fresh(self.watts, self.memory))

    def _unusual(self, response: Response) -> float:
        if self.known is None:
            off = (response.centre + self.shift - self.every / 2 - USUAL_S) / WITHIN_S
            return TAILS * float(np.log1p(off**2 / (2 * TAILS)))
        return ((response.behind(self.every) - self.known) / (GIVEN_WITHIN * self.every)) ** 2 / 2

    def near(self, response: Response) -> Response:
        """The same, as close to a lag that was given as it must be."""
        if self.known is None:
            return response
        most = GIVEN_WITHIN * self.every
        behind = min(max(response.behind(self.every), self.known - most), self.known + most)
        return Response.with_lag(behind, response.window, response.fading, self.every)

    def refined(self, best: tuple[float, Response], step: float, finest: float = FINEST_S) -> tuple[float, Response]:
        """Smaller and smaller steps around the best."""
        score, at = best
        while step > finest:
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


def few(level: Array) -> Array:
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
