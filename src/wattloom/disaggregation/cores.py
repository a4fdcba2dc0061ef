"""More calls than cores: whether calls took longer when there were many, and how the run would have gone without some.

Owns the number of cores that durations speak of, and the replay of calls that share them evenly. If durations do not
hang on how many calls there were, there is no such number, and calls are left where they were.
"""

from heapq import heappop, heappush
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wattloom.disaggregation.activity import Activity, Array, Calls, of_levels

MOST_CALLS: Final = 60_000
"""Of all replays together: beyond, calls are left where they were."""
LEAST_CALLS: Final = 40
SURE: Final = 12.0
"""How much likelier, in logarithms, shared cores must make the durations."""
EVENLY: Final = 0.97
"""And the variance of the logarithms of durations must fall below this share of itself."""


def shared_cores(calls: Calls, over: Activity) -> float | None:
    """The number of cores that makes a function's calls most alike in work, if sharing explains their durations."""
    total = over.total
    most = float(total.max(initial=0.0))
    if len(calls.start) < LEAST_CALLS or len(calls.start) > MOST_CALLS or most < 2.0:
        return None
    plain = _likeness(calls, calls.end - calls.start)
    tried = np.unique(np.round(np.geomspace(1.0, most, 24), 1))
    found = [(_likeness(calls, _work(calls, over, total, cores)), cores) for cores in tried if cores < 0.98 * most]
    best, cores = max(found, default=(plain, 0.0))
    gain = best - plain
    counted = len(calls.start) / 2
    return float(cores) if gain > SURE and np.exp(-gain / counted) < EVENLY else None


def _work(calls: Calls, over: Activity, total: Array, cores: float) -> Array:
    """Seconds of core that each call got."""
    pace = np.minimum(1.0, cores / np.maximum(total, 1e-9))
    done = np.concatenate([[0.0], np.cumsum(pace) * over.step])
    edges = over.edges
    return np.asarray(np.interp(calls.end, edges, done) - np.interp(calls.start, edges, done))


def _likeness(calls: Calls, work: Array) -> float:
    """Likelihood of the work if a function's calls are of one size, give or take, in logarithms."""
    size = np.log(np.maximum(work, 1e-4))
    found = 0.0
    for each in np.unique(calls.function):
        mine = size[calls.function == each]
        if len(mine) >= 5:
            middle = np.clip(mine - np.median(mine), -2.0, 2.0)
            found -= len(mine) / 2 * float(np.log(middle.var() + 1e-4))
    return found


def slowed(over: Activity, cores: float) -> Activity:
    """Calls that share cores count by their part of one."""
    pace = np.minimum(1.0, cores / np.maximum(over.total, 1e-9))
    return of_levels(over.begin, over.step, over.level * pace[:, None])


def rerun(calls: Calls, over: Activity, cores: float, kept: NDArray[np.bool_]) -> Calls:
    """Only these calls, begun when they were, done sooner since there is more room."""
    work = _work(calls, over, over.total, cores)[kept]
    start = calls.start[kept]
    order = np.argsort(start, kind="stable")
    ends = np.empty(len(start))
    ends[order] = _ends(start[order], work[order], cores)
    return Calls(start, ends, calls.function[kept], calls.rate[kept])


def _ends(start: Array, work: Array, cores: float) -> Array:
    """When calls end that share cores evenly: a clock of work done per call ticks at the common pace."""
    ends = np.empty(len(start))
    under_way: list[tuple[float, int]] = []
    now = done = 0.0
    for at, until in enumerate([*start.tolist(), np.inf]):
        while under_way:
            pace = min(1.0, cores / len(under_way))
            finish = now + (under_way[0][0] - done) / pace
            if finish > until:
                done += (until - now) * pace
                break
            done, now = under_way[0][0], finish
            ends[heappop(under_way)[1]] = finish
        now = until
        if at < len(start):
            heappush(under_way, (done + float(work[at]), at))
    return ends
