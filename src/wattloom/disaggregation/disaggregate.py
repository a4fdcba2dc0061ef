"""Whole-machine power to functions: the one entrance to this room.

Owns the order of things: readings made ready, lag found, curves weighed, joules counted both ways, spreads drawn.
Arithmetic on arrays only: no files, no clocks, no chance (the draws are always the same).
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wattloom.disaggregation import cores
from wattloom.disaggregation.activity import Activity, Array, Calls, activity, on_steps
from wattloom.disaggregation.choosing import Chosen, choose, pilot
from wattloom.disaggregation.fitting import FIXED, Fit, Problem, steps_of
from wattloom.disaggregation.footprint import Counting, marginal, shares
from wattloom.disaggregation.lag import find_response, lively, refine_response
from wattloom.disaggregation.noise import fresh
from wattloom.disaggregation.readings import Readings, grouped, readings, seen_steps, updates
from wattloom.disaggregation.response import Reading, Response

MOST_ROWS: Final = 8000
"""More readings than that are joined, and steps of time are coarser."""
STEPS_A_ROW: Final = 5
QUIET: Final = 0.01
"""Fewer calls under way than this in what a reading shows: the machine did nothing for us."""
QUIET_DOUBT: Final = 0.1
"""How far off idle may be where such readings, even one, show it; as a share of what a busy machine draws above it."""
DRIFT_KNOT_S: Final = 300.0
MOST_KNOTS: Final = 12
MOST_DRAWS: Final = 60
DRAWN_CELLS: Final = 30_000_000
MISFIT: Final = 0.035
"""No model of ours is better than this; part of every spread."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What may be known beforehand."""

    idle_w: float | None = None
    lag_s: float | None = None


@dataclass(frozen=True, slots=True)
class Disaggregated:
    """Joules of each function, counted both ways, with one standard deviation. `metered`: calls that readings show."""

    metered: Array
    marginal_j: Array
    marginal_spread: Array
    full_j: Array
    full_spread: Array
    idle_share_j: Array
    """Each function's part of idle, by the seconds it ran."""
    idle_j: float
    idle_spread: float
    meter_j: float
    unclaimed_j: float
    """Above idle while nothing of ours ran."""
    lag_s: float
    window_s: float
    fading_s: float
    gap_s: float
    curve: str
    cores: float | None
    noise_w: float
    explained: float
    """Share of the readings' variance that the model explains."""
    seconds: float


def disaggregate(
    time: Array, watts: Array, calls: Calls, functions: int, wanted: Wanted | None = None
) -> Disaggregated:
    """Who drew what. `time` does not fall; there are at least two moments and one call."""
    wanted = wanted or Wanted()
    found = readings(time, watts)
    shown = updates(found)
    span = float(found.time[0]), float(found.time[-1])
    rows, together = grouped(shown, MOST_ROWS)
    coarse = rows.every / STEPS_A_ROW if together > 1 else 0.0
    over = activity(calls, functions, *span, found.every, coarse)
    room = cores.shared_cores(calls, over)
    used = over if room is None else cores.slowed(over, room)
    response = _response(shown, calls, used, room, wanted)
    problem, best = pilot(_problem(shown, span, used, response, wanted))
    if together == 1:
        response = _refined(shown, problem, best, response, wanted)
        again = _problem(shown, span, used, response, wanted)
        problem, _ = pilot(replace(again, noise_w=problem.noise_w, memory=problem.memory))
    return _Count(found, calls, over, used, response, room, choose(problem, few=together > 1)).all()


def _response(found: Readings, calls: Calls, used: Activity, room: float | None, wanted: Wanted) -> Response:
    """Lag and averaging, from a lively stretch in fine steps."""
    part = lively(found.time, used)
    time = found.time[part]
    if len(time) < len(found.time):
        fine = activity(calls, used.level.shape[1], float(time[0]), float(time[-1]), found.every)
        used = fine if room is None else cores.slowed(fine, room)
    return find_response(time, found.watts[part], used, found.every, wanted.lag_s)


def _problem(found: Readings, span: tuple[float, float], over: Activity, response: Response, wanted: Wanted) -> Problem:
    rows, together = grouped(found, MOST_ROWS)
    wide = Response(response.lag, response.window + (together - 1) * found.every, response.fading)
    reading = Reading(over, rows.time, wide)
    low, high = np.percentile(rows.watts, [1.0, 97.0])
    scale = max(float(high - low), 1e-3 * max(float(high), 1e-3))
    running = reading.of(over.total)
    return Problem(
        watts=rows.watts,
        weight=np.ones(len(rows.watts)),
        over=over,
        reading=reading,
        drift=_knots(rows.time, *span),
        drift_w=0.02 * scale + 1e-3,
        idle=_idle(rows.watts, running, scale, wanted.idle_w),
        awake_w=0.15 * scale,
        scale_w=scale,
        most=max(float(np.percentile(running, 97.0)), 0.2),
        noise_w=0.1 * scale + 1e-6,
        trust=0.5,
        memory=np.zeros(0),
        awake=reading.of(np.minimum(over.total, 1.0)),
    )


def _refined(found: Readings, problem: Problem, best: Fit, response: Response, wanted: Wanted) -> Response:
    """The response again, from what functions drew under the best curve so far."""
    drawn, slopes = steps_of(problem, best.shape, best.weights(problem.functions), True)
    assert slopes is not None
    # Around a bent curve, power is what was drawn and changes along the slopes: the slopes alone are another machine.
    around = [] if best.shape.linear else [drawn]
    columns = np.column_stack([*around, slopes, np.minimum(problem.over.total, 1.0)])
    part = lively(found.time, problem.over)
    watts = problem.watts[part]
    return refine_response(found.time[part], watts, problem.over, columns, response, wanted.lag_s, problem.memory)


def _knots(time: Array, first: float, last: float) -> Array:
    """Columns of a line from first to last with bends every few minutes."""
    count = int(np.clip((last - first) / DRIFT_KNOT_S + 1, 2, MOST_KNOTS))
    knots = np.linspace(first, last, count)
    return np.column_stack([np.interp(time, knots, row) for row in np.eye(count)])


def _idle(watts: Array, running: Array, scale: float, known: float | None) -> tuple[float, float]:
    """Idle watts as they are thought to be, and how far off."""
    if known is not None:
        return known, 0.002 * abs(known) + 0.05
    low, lowest = np.percentile(watts, [5.0, 1.0])
    quiet = watts[running < QUIET]
    if len(quiet) and np.median(quiet) <= low + 0.05 * scale:  # else others were at work in the quiet
        return float(np.median(quiet)), QUIET_DOUBT * scale
    return max(0.3 * lowest, lowest - 0.5 * scale), max(0.5 * scale, 0.25 * lowest)


@dataclass(frozen=True, slots=True)
class _Count:
    """From the chosen curves to joules."""

    found: Readings
    calls: Calls
    over: Activity
    used: Activity
    response: Response
    room: float | None
    chosen: Chosen

    def all(self) -> Disaggregated:
        functions = self.over.level.shape[1]
        inside = seen_steps(self.found, self.over, self.response.lag)
        counting = Counting(self.chosen.problem, inside, self._without(functions))
        seen = Reading(self.used, self.found.time, self.response).of(self.used.level)
        estimates = [self._both(counting, seen, fit, fit.values) for fit in self.chosen.fits]
        middle = np.asarray(sum(w * e for w, e in zip(self.chosen.weights, estimates, strict=True)))
        off = self._spread(counting, seen, middle)
        idle = self._idle_watts()
        return self._result(inside, middle, off, idle, seen)

    def _without(self, functions: int) -> list[Activity] | None:
        """Runs without each function, where calls would have been done sooner."""
        if self.room is None or len(self.calls.start) * functions > cores.MOST_CALLS * 4:
            return None
        made = []
        for each in range(functions):
            rest = cores.rerun(self.calls, self.over, self.room, self.calls.function != each)
            steps = on_steps(rest, functions, self.over.begin, self.over.step, len(self.over.level))
            made.append(cores.slowed(steps, self.room))
        return made

    def _both(self, counting: Counting, seen: Array, fit: Fit, values: Array) -> Array:
        """Marginal and full joules, a row each, and idle joules in a third."""
        functions = counting.problem.functions
        weights = values[FIXED : FIXED + functions]
        idle = values[0] + self._drift() @ values[FIXED + functions :]
        active = (self.found.watts - idle) * self.found.stands_for
        ours = shares(np.where(seen.sum(axis=1, keepdims=True) > QUIET, seen, 0.0), weights)
        total = float(idle @ self.found.stands_for)
        return np.stack([marginal(counting, fit.shape, values), active @ ours, np.full(functions, total)])

    def _spread(self, counting: Counting, seen: Array, middle: Array) -> Array:
        """Standard deviations: curves drawn by their weights, values by the fit's covariance."""
        draws = int(np.clip(DRAWN_CELLS / max(self.over.level.size, 1), 12, MOST_DRAWS))
        chance = np.random.default_rng(5)
        roots = [_root(self.chosen.problem, fit) for fit in self.chosen.fits]
        squares = np.zeros_like(middle)
        for at in chance.choice(len(roots), size=draws, p=self.chosen.weights):
            fit = self.chosen.fits[at]
            values = fit.values + roots[at] @ chance.standard_normal(len(fit.values))
            values[: FIXED + counting.problem.functions] = np.maximum(values[: FIXED + counting.problem.functions], 0.0)
            squares += (self._both(counting, seen, fit, values) - middle) ** 2
        return np.asarray(np.sqrt(squares / draws + (MISFIT * middle) ** 2))

    def _drift(self) -> Array:
        return _knots(self.found.time, float(self.found.time[0]), float(self.found.time[-1]))

    def _idle_watts(self) -> Array:
        functions = self.over.level.shape[1]
        values = np.asarray(sum(w * f.values for w, f in zip(self.chosen.weights, self.chosen.fits, strict=True)))
        return np.asarray(values[0] + self._drift() @ values[FIXED + functions :])

    def _result(self, inside: NDArray[np.bool_], middle: Array, off: Array, idle: Array, seen: Array) -> Disaggregated:
        best = self.chosen.best
        stands_for = self.found.stands_for
        running = seen.sum(axis=1)
        busy = np.minimum(running, 1.0)[:, None] * shares(seen, np.ones(seen.shape[1]))
        nobody = running <= QUIET
        problem = self.chosen.problem
        left = np.var(best.residual) / max(float(np.var(problem.watts)), 1e-12)
        return Disaggregated(
            metered=_metered(self.calls, self.over, inside),
            marginal_j=middle[0],
            marginal_spread=off[0],
            full_j=middle[1],
            full_spread=off[1],
            idle_share_j=np.asarray((idle * stands_for) @ busy),
            idle_j=float(idle @ stands_for),
            idle_spread=float(off[2][0]),
            meter_j=self.found.joules,
            unclaimed_j=float(((self.found.watts - idle) * stands_for)[nobody].sum()),
            lag_s=self.response.behind(self.found.every),
            window_s=self.response.window,
            fading_s=self.response.fading,
            gap_s=self.found.gap_s,
            curve=best.shape.name,
            cores=self.room,
            noise_w=problem.noise_w,
            explained=float(np.clip(1.0 - left, 0.0, 1.0)),
            seconds=float(stands_for.sum()),
        )


def _root(problem: Problem, fit: Fit) -> Array:
    """A square root of the covariance of the fit's values."""
    new = fresh(fit.slopes, problem.memory)
    square = new.T @ new * (problem.trust / problem.noise_w**2) + fit.precision
    return np.linalg.inv(np.linalg.cholesky(square)).T


def _metered(calls: Calls, over: Activity, inside: NDArray[np.bool_]) -> Array:
    """How many calls of each function the readings show, parts of calls as parts."""
    functions = over.level.shape[1]
    counted = np.concatenate([[0.0], np.cumsum(inside) * over.step])
    covered = np.interp(calls.end, over.edges, counted) - np.interp(calls.start, over.edges, counted)
    length = calls.end - calls.start
    middle = np.clip(((calls.start - over.begin) / over.step).astype(np.intp), 0, len(inside) - 1)
    part = np.where(length > over.step, covered / np.maximum(length, over.step), inside[middle])
    summed = np.bincount(calls.function, weights=np.clip(part, 0.0, 1.0), minlength=functions)
    return np.asarray(summed, dtype=np.float64)
