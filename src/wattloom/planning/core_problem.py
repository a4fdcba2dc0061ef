"""The core problem: only columns whose reduced cost is within the gap can be in a better solution.

Owns the proof by growing cores. A core of small reduced costs is solved exactly; as soon as what was found is no
further above the bound than the core reaches, everything outside of it is proven to be worse.
"""

from dataclasses import replace
from math import inf
from typing import Final

import numpy as np

from wattloom.planning.exact import better, solve_exactly
from wattloom.planning.instance import (
    Deadline,
    Instance,
    Mask,
    Numbers,
    Outcome,
    Solution,
    Wholes,
    is_solution,
    solution_of,
)
from wattloom.planning.relaxation import Prices

FIRST: Final = 0.25
"""Of the gap: how far the first core reaches."""
MOST_MORE: Final = 4
"""Columns of the first core beside the cheapest, for each row in the mean."""
GROWTH: Final = 3.0
PER_SECOND: Final = 5_000
"""Columns that HiGHS may be given for each second that is left: it looks at its clock too seldom for more."""


def solve_core(
    instance: Instance, prices: Prices, costs: Numbers, known: Solution | None, deadline: Deadline, gap: float = 0.0
) -> Outcome:
    """The best solution, proven if time was enough; no need to be nearer than the gap. `costs` hold the prices."""
    above = costs - costs.min(axis=1, keepdims=True)
    best, bound = known, prices.bound
    reach = _first_reach(above, _above(best, bound))
    while not deadline.over and not Outcome(best, bound).proven and Outcome(best, bound).gap > gap:
        widest = _above(best, prices.bound) * (1.0 + 1e-9)
        reach = min(reach, widest)
        mask = instance.allowed & (above <= reach)
        if int(mask.sum()) - instance.rows > PER_SECOND * deadline.left:
            break
        last = reach >= widest or bool((mask == instance.allowed).all())
        found = _solved(instance, mask, deadline if last else deadline.part(0.5))
        if found.solution is not None:
            best = better(best, found.solution)
        outside = prices.bound + float(above[~mask & instance.allowed].min(initial=inf))
        bound = max(bound, min(found.bound, outside))
        bound = bound if best is None else min(bound, best.value)
        if last:
            break
        reach = max(GROWTH * reach, 1e-12)
    return Outcome(best, bound)


def _above(best: Solution | None, bound: float) -> float:
    return inf if best is None else max(0.0, best.value - bound)


def _first_reach(above: Numbers, gap: float) -> float:
    """A part of the gap, and no further than there are a few columns to a row."""
    finite = above[np.isfinite(above) & (above <= gap)]
    most = (1 + MOST_MORE) * above.shape[0]
    if len(finite) <= most:
        return FIRST * gap if gap < inf else float(finite.max(initial=0.0))
    return min(FIRST * gap, float(np.partition(finite, most)[most]))


def _solved(instance: Instance, mask: Mask, deadline: Deadline) -> Outcome:
    """Exactly, within the mask. Rows with one column left are put there first."""
    few = mask.sum(axis=1)
    if (few == 0).any():
        return Outcome(None, inf)
    decided = few == 1
    if not decided.any() or (instance.counts > 1).any():
        return solve_exactly(instance, mask, deadline)
    rows, kind = np.flatnonzero(decided), mask[decided].argmax(axis=1)
    rest = _less(instance, rows, kind)
    if (rest.room < 0).any() or (rest.memory_room < 0).any():
        return Outcome(None, inf)
    undecided = np.flatnonzero(~decided)
    spent = float(instance.cost[rows, kind].sum())
    inner = replace(
        rest,
        cost=rest.cost[undecided],
        cores=rest.cores[undecided],
        memory=None if rest.memory is None else rest.memory[undecided],
    )
    found = solve_exactly(inner, mask[undecided], deadline)
    if found.solution is None:
        return Outcome(None, found.bound + spent)
    whole = np.empty(instance.rows, dtype=np.int64)
    whole[rows], whole[undecided] = kind, found.solution.kind
    server = np.zeros(instance.rows, dtype=np.int64)
    if not is_solution(instance, whole, server):
        return Outcome(None, found.bound + spent)
    solution = solution_of(instance, whole, server)
    above = max(0.0, found.solution.value - found.bound)
    return Outcome(solution, solution.value - above)


def _less(instance: Instance, rows: Wholes, kind: Wholes) -> Instance:
    used = np.bincount(kind, weights=instance.cores[rows, kind], minlength=instance.kinds).astype(np.int64)
    memory_room = instance.memory_room
    if instance.memory is not None:
        held = np.bincount(kind, weights=instance.memory[rows, kind], minlength=instance.kinds)
        memory_room = memory_room - held.astype(np.int64)
    return replace(instance, room=instance.room - used, memory_room=memory_room)
