"""Whole-machine power to functions: the one entrance to this room.

Owns the order of things: readings made ready, clocks and lag found, curves weighed; and what is thought before fitting.
Joules are then counted in `joules`. Arithmetic on arrays only: no files, no clocks, no chance.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from wattloom.disaggregation import cores
from wattloom.disaggregation.activity import Activity, Array, Calls, activity
from wattloom.disaggregation.choosing import choose, pilot
from wattloom.disaggregation.clocks import Clocks, find_clocks
from wattloom.disaggregation.drift import Drift, drift_of, with_heat
from wattloom.disaggregation.fitting import Fit, Problem, steps_of
from wattloom.disaggregation.joules import QUIET, Count, Disaggregated
from wattloom.disaggregation.lag import EARLIEST_S, LATEST_S, find_response, lively, refine_response
from wattloom.disaggregation.readings import Readings, grouped, readings, updates
from wattloom.disaggregation.response import Reading, Response

MOST_ROWS: Final = 8000
"""More readings than that are joined, and steps of time are coarser."""
STEPS_A_ROW: Final = 5
FEW: Final = 3
SPEAKS: Final = 0.3
ALONE: Final = 0.1
"""How far idle may be from quiet readings, as a share of what a busy machine draws above it. Fewer than three would be
taken for wild ones by the fit, and are held on to."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What may be known beforehand. Idle is used as given; the lag to half a reading interval, see `lag`."""

    idle_w: float | None = None
    lag_s: float | None = None


def disaggregate(
    time: Array,
    watts: Array,
    calls: Calls,
    functions: int,
    wanted: Wanted | None = None,
    clocks: Clocks | None = None,
) -> Disaggregated:
    """Who drew what. `time` does not fall; there are at least two moments and one call. `clocks`: if they were looked
    for already."""
    wanted = wanted or Wanted()
    found = readings(time, watts)
    clocks = clocks or clocks_of(updates(found), calls, functions, wanted.lag_s)
    best = _at(found, clocks, calls, functions, wanted)
    for rival in clocks.rivals:
        other = _at(found, replace(clocks, shift_s=rival.shift_s, rivals=()), calls, functions, wanted)
        best = best.in_doubt(other, rival.weight / (1.0 + rival.weight))
    return best


def clocks_of(shown: Readings, calls: Calls, functions: int, lag: float | None) -> Clocks:
    """As the readings say, or by the lag that was given."""
    if lag is None:
        return find_clocks(shown, calls, functions)
    return Clocks(0.0 if EARLIEST_S <= lag <= LATEST_S else lag)


def _at(found: Readings, clocks: Clocks, calls: Calls, functions: int, wanted: Wanted) -> Disaggregated:
    """With the calls' clock set to the meter's."""
    calls = clocks.shifted(calls)
    shown = updates(found)
    span = float(found.time[0]), float(found.time[-1])
    drift = drift_of(found, wanted.idle_w is not None)
    rows, together = grouped(shown, MOST_ROWS)
    coarse = rows.every / STEPS_A_ROW if together > 1 else 0.0
    over = activity(calls, functions, *span, found.every, coarse)
    room = cores.shared_cores(calls, over)
    used = over if room is None else cores.slowed(over, room)
    response = _response(shown, calls, used, room, wanted, clocks)
    problem, best = pilot(_problem(shown, drift, used, response, wanted))
    if together == 1:
        response = _refined(shown, problem, best, response, wanted, clocks)
        again = _problem(shown, drift, used, response, wanted)
        problem, best = pilot(replace(again, noise_w=problem.noise_w, memory=problem.memory))
    chosen = choose(with_heat(problem, best), few=together > 1)
    return Count(found, calls, over, used, response, room, chosen, drift, clocks).all()


def _response(
    found: Readings, calls: Calls, used: Activity, room: float | None, wanted: Wanted, clocks: Clocks
) -> Response:
    """Lag and averaging, from a lively stretch in fine steps."""
    part = lively(found.time, used)
    time = found.time[part]
    if len(time) < len(found.time):
        fine = activity(calls, used.level.shape[1], float(time[0]), float(time[-1]), found.every)
        used = fine if room is None else cores.slowed(fine, room)
    near = _left(wanted, clocks)
    return find_response(
        time, found.watts[part], used, found.every, near, shift=clocks.shift_s, window=clocks.window_s or 0.0
    )


def _left(wanted: Wanted, clocks: Clocks) -> float | None:
    """Of a lag that was given, what the clocks do not make up for."""
    return None if wanted.lag_s is None else wanted.lag_s - clocks.shift_s


def _problem(found: Readings, drift: Drift, over: Activity, response: Response, wanted: Wanted) -> Problem:
    rows, together = grouped(found, MOST_ROWS)
    wide = Response(response.lag, response.window + (together - 1) * found.every, response.fading)
    reading = Reading(over, rows.time, wide)
    low, high = np.percentile(rows.watts, [1.0, 97.0])
    if wanted.idle_w is not None:
        low = min(low, wanted.idle_w)
    scale = max(float(high - low), 1e-3 * max(float(high), 1e-3))
    running = reading.of(over.total)
    return Problem(
        watts=rows.watts,
        weight=np.ones(len(rows.watts)),
        over=over,
        reading=reading,
        drift=drift.at(rows.time),
        drift_w=np.full(len(drift.knots), 0.02 * scale + 1e-3),
        drift_is=np.zeros(len(drift.knots)),
        heated=False,
        idle=_idle(rows.watts, running, scale, wanted.idle_w),
        awake_w=0.15 * scale,
        scale_w=scale,
        most=max(float(np.percentile(running, 97.0)), 0.2),
        noise_w=0.1 * scale + 1e-6,
        trust=0.5,
        memory=np.zeros(0),
        awake=reading.of(np.minimum(over.total, 1.0)),
    )


def _refined(
    found: Readings, problem: Problem, best: Fit, response: Response, wanted: Wanted, clocks: Clocks
) -> Response:
    """The response again, from what functions drew under the best curve so far."""
    drawn, slopes = steps_of(problem, best.shape, best.weights(problem.functions), True)
    assert slopes is not None
    # Around a bent curve, power is what was drawn and changes along the slopes: the slopes alone are another machine.
    around = [] if best.shape.linear else [drawn]
    columns = np.column_stack([*around, slopes, np.minimum(problem.over.total, 1.0)])
    part = lively(found.time, problem.over)
    watts = problem.watts[part]
    near = _left(wanted, clocks)
    return refine_response(
        found.time[part], watts, problem.over, columns, response, near, problem.memory, clocks.shift_s
    )


def _idle(watts: Array, running: Array, scale: float, known: float | None) -> tuple[float, float]:
    """Idle watts as they are thought to be, and how far off."""
    if known is not None:
        return known, 0.0
    low, lowest = np.percentile(watts, [5.0, 1.0])
    quiet = watts[running < QUIET]
    if len(quiet) and np.median(quiet) <= low + 0.05 * scale:  # else others were at work in the quiet
        return float(np.median(quiet)), (SPEAKS if len(quiet) >= FEW else ALONE) * scale
    return max(0.3 * lowest, lowest - 0.5 * scale), max(0.5 * scale, 0.25 * lowest)
