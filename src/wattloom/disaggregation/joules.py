"""From the chosen curves to joules: counted both ways, with spreads.

Owns what comes out of this room, how many watts could as well be idle, and the draws that make spreads (always the same
ones: no chance).
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wattloom.disaggregation import cores
from wattloom.disaggregation.activity import Activity, Array, Calls, on_steps
from wattloom.disaggregation.choosing import Chosen
from wattloom.disaggregation.clocks import Clocks
from wattloom.disaggregation.drift import Drift
from wattloom.disaggregation.fitting import FIXED, Fit, Problem
from wattloom.disaggregation.footprint import Counting, marginal, shares
from wattloom.disaggregation.noise import fresh
from wattloom.disaggregation.quadratic import bounded
from wattloom.disaggregation.readings import Readings, seen_steps
from wattloom.disaggregation.response import Reading, Response

QUIET: Final = 0.01
"""Fewer calls under way than this in what a reading shows: the machine did nothing for us."""
MOST_DRAWS: Final = 60
DRAWN_CELLS: Final = 30_000_000
NO_BETTER: Final = 1e-3
"""A meter that always says the same is not taken to be better than this."""
MISFIT: Final = 0.1
BENDS: Final = 0.2
WIDER: Final = 1.5
"""What no model of ours has, part of every spread: a tenth of each figure, a fifth of what lies between marginal and
full joules (how much of a bend is whose is the model's word alone), and half as much again as the fit says. On made
runs less would do; on two recorded runs of a real desktop, functions were off by 15% and 24% on average."""
IDLE_MISFIT: Final = 0.035


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
    missed: int
    """Readings that did not come, outside of gaps."""
    curve: str
    cores: float | None
    noise_w: float
    explained: float
    """Share of the readings' variance that the model explains."""
    seconds: float
    clocks: Clocks
    idle_given_w: float | None = None

    def in_doubt(self, other: "Disaggregated", weight: float) -> "Disaggregated":
        """The same, with spreads that know of another answer that is so likely."""
        part = weight**0.5
        return replace(
            self,
            marginal_spread=np.hypot(self.marginal_spread, part * (other.marginal_j - self.marginal_j)),
            full_spread=np.hypot(self.full_spread, part * (other.full_j - self.full_j)),
            idle_spread=float(np.hypot(self.idle_spread, part * (other.idle_j - self.idle_j))),
        )

    @property
    def idle_w(self) -> float:
        if self.idle_given_w is not None:
            return self.idle_given_w
        return self.idle_j / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Count:
    """From the chosen curves to joules."""

    found: Readings
    calls: Calls
    over: Activity
    used: Activity
    response: Response
    room: float | None
    chosen: Chosen
    drift: Drift
    clocks: Clocks

    def all(self) -> Disaggregated:
        functions = self.over.level.shape[1]
        inside = seen_steps(self.found, self.over, self.response.lag)
        counting = Counting(self.chosen.problem, inside, self._without(functions))
        seen = Reading(self.used, self.found.time, self.response).of(self.used.level)
        estimates = [self._both(counting, seen, fit, fit.values) for fit in self.chosen.fits]
        middle = np.asarray(sum(w * e for w, e in zip(self.chosen.weights, estimates, strict=True)))
        idle = self._idle_watts()
        off = self._doubted(self._spread(counting, seen, middle), seen, idle)
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
        idle = self._idle(values)
        active = (self.found.watts - idle) * self.found.stands_for
        ours = shares(np.where(seen.sum(axis=1, keepdims=True) > QUIET, seen, 0.0), weights)
        total = float(idle @ self.found.stands_for)
        saved = (1.0 + counting.problem.heat(values)) * marginal(counting, fit.shape, values)
        return np.stack([saved, active @ ours, np.full(functions, total)])

    def _spread(self, counting: Counting, seen: Array, middle: Array) -> Array:
        """Standard deviations: curves drawn by their weights, values by the fit's covariance."""
        draws = int(np.clip(DRAWN_CELLS / max(self.over.level.size, 1), 12, MOST_DRAWS))
        chance = np.random.default_rng(5)
        roots = [_root(self.chosen.problem, fit) for fit in self.chosen.fits]
        squares = np.zeros_like(middle)
        for at in chance.choice(len(roots), size=draws, p=self.chosen.doubts):
            fit = self.chosen.fits[at]
            values = fit.values + roots[at] @ chance.standard_normal(len(fit.values))
            values[: FIXED + counting.problem.functions] = np.maximum(values[: FIXED + counting.problem.functions], 0.0)
            squares += (self._both(counting, seen, fit, values) - middle) ** 2
        model = np.hypot(MISFIT * middle, BENDS * (middle[1] - middle[0]))
        model[2] = IDLE_MISFIT * middle[2]
        return np.asarray(np.sqrt(WIDER**2 * squares / draws + model**2))

    def _doubted(self, off: Array, seen: Array, idle: Array) -> Array:
        """Never less than what could as well be idle's. If idle was given, there is no such doubt."""
        problem, stands_for = self.chosen.problem, self.found.stands_for
        if problem.first_free:
            return np.asarray(np.stack([off[0], off[1], np.zeros_like(off[2])]))
        # What ran before the first reading is often not in the records: readings that show it prove nothing. Nor do
        # those that would show what came after the last.
        time, response = self.found.time, self.response
        inside = (time >= time[0] + response.reaches_back) & (time - response.lag <= time[-1])
        told = seen[inside] if inside.any() else seen
        mean_w = float(idle @ stands_for / stands_for.sum())
        most_w = max(mean_w, float(np.percentile(self.found.watts, 5.0)) - mean_w)
        noise_w = max(problem.noise_w, NO_BETTER * most_w)
        calls_w, idle_w = watts_in_doubt(told, noise_w, problem.trust, most_w)
        joules = calls_w * (stands_for @ seen)
        least = np.stack([joules, joules, np.full(len(joules), idle_w * stands_for.sum())])
        return np.asarray(np.maximum(off, least))

    def _idle(self, values: Array) -> Array:
        """Watts at each reading: heat is not idle's."""
        knots = FIXED + self.over.level.shape[1]
        return np.asarray(values[0] + self.drift.at(self.found.time) @ values[knots : knots + len(self.drift.knots)])

    def _idle_watts(self) -> Array:
        values = np.asarray(sum(w * f.values for w, f in zip(self.chosen.weights, self.chosen.fits, strict=True)))
        return self._idle(values)

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
            lag_s=self.response.behind(self.found.every) + self.clocks.shift_s,
            window_s=self.response.window,
            fading_s=self.response.fading,
            gap_s=self.found.gap_s,
            missed=self.found.missed,
            curve=best.shape.name,
            cores=self.room,
            noise_w=problem.noise_w,
            explained=float(np.clip(1.0 - left, 0.0, 1.0)),
            seconds=float(stands_for.sum()),
            clocks=self.clocks,
            idle_given_w=problem.idle[0] if problem.first_free else None,
        )


def _root(problem: Problem, fit: Fit) -> Array:
    """A square root of the covariance of the fit's values."""
    new = fresh(fit.slopes, problem.memory)
    square = new.T @ new * (problem.trust / problem.noise_w**2) + fit.precision
    free = problem.first_free
    found = np.zeros_like(square)
    found[free:, free:] = np.linalg.inv(np.linalg.cholesky(square[free:, free:])).T
    return found


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


TINY: Final = 1e-9
"""Keeps the small system solvable where functions always run together."""


def watts_in_doubt(seen: Array, noise_w: float, trust: float, most_w: float) -> tuple[Array, float]:
    """Watts per call of each function that may be idle's, and watts of idle that may be functions'.

    `seen`: calls under way in what each reading shows. `most_w`: no more than that can be either's. Tried are all
    functions together (those that take turns are idle's twin only as a sum) and each alone."""
    functions = seen.shape[1]
    square, linear = seen.T @ seen, seen.sum(axis=0)
    level = np.trace(square) / functions
    if level <= 0.0:
        return np.zeros(functions), 0.0
    together = bounded(square + TINY * level * np.eye(functions), linear, np.zeros(functions))
    alone = np.diag(np.divide(linear, np.diag(square), out=np.zeros(functions), where=np.diag(square) > TINY * level))
    found, idle = np.zeros(functions), 0.0
    for per_watt in (together, *alone):
        left = float(((1.0 - seen @ per_watt) ** 2).sum()) * trust
        watts = min(noise_w / max(left, 1e-18) ** 0.5, most_w)
        found, idle = np.maximum(found, watts * per_watt), max(idle, watts)
    return found, idle
