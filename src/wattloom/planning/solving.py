"""Solving: the best assignment that can be found in the time given, and a bound that holds in any case.

Owns which way an instance is solved. Small ones go to HiGHS whole. For the others prices give a bound and a first
solution, the core problem proves it best, and knapsacks prove more where few large rows leave gaps. Where nothing was
found, the whole instance is asked whether there is anything at all.
"""

from dataclasses import replace
from math import inf
from typing import Final

import numpy as np

from wattloom.planning.core_problem import PER_SECOND, solve_core
from wattloom.planning.exact import better, everything, solve_exactly
from wattloom.planning.first_solution import first_solution
from wattloom.planning.instance import Deadline, Instance, Outcome, is_solution, packed, solution_of
from wattloom.planning.knapsack_bound import knapsack_bound, row_worth
from wattloom.planning.one_full_server import fill_the_full_one
from wattloom.planning.relaxation import ascend, proven
from wattloom.planning.switching import solve_switched
from wattloom.planning.two_servers import least_on_two

SHORT_S: Final = 1.0
SMALL: Final = 1_500
"""Cells of an instance that HiGHS is given whole."""
SWITCHED: Final = 20_000
"""Cells of an instance with servers that may be off that HiGHS is given whole, at last."""
MOST_STATES: Final = 40_000
"""Cores of one server times those of the other: the table of two servers."""
FEW: Final = 8
"""Rows to a server, below which what they leave free matters."""
SHARE: Final = 0.4
"""Of the time, for the core of few large rows; the rest is for their knapsacks."""


def solve(instance: Instance, deadline: Deadline, gap: float = 0.0, small: int = SMALL) -> Outcome:
    """The best solution and its bound; no need to be nearer than the gap. A bound without end: there is no solution."""
    if cannot_fit(instance):
        return Outcome(None, inf)
    if (easy := _each_at_its_best(instance)) is not None:
        return easy
    if instance.cost.size <= small and on_two_servers(instance):
        return _by_table(instance)
    if instance.cost.size <= small:
        return solve_exactly(instance, everything(instance), deadline)
    found = _switched(instance, deadline, gap) if instance.on_cost.any() else _priced(instance, deadline, gap)
    if found.solution is None and not found.proven and instance.cost.size <= PER_SECOND * deadline.left:
        return solve_exactly(instance, everything(instance), deadline)
    return found


def cannot_fit(instance: Instance) -> bool:
    """Whether it is seen at once that there is none: a row has no column, or rows need more cores than there are."""
    least = np.where(instance.allowed, instance.cores, np.inf).min(axis=1, initial=np.inf)
    return bool(instance.rows and float(least.sum()) > float((instance.room * instance.counts).sum()))


def _each_at_its_best(instance: Instance) -> Outcome | None:
    """Where all rows fit on their cheapest kinds there is nothing to solve."""
    if instance.on_cost.any() or not instance.allowed.any(axis=1).all():
        return None
    kind = instance.cost.argmin(axis=1)
    used = np.bincount(kind, weights=instance.cores[np.arange(instance.rows), kind], minlength=instance.kinds)
    if (used > instance.room * instance.counts).any():
        return None
    server, left = packed(instance, kind)
    if left or not is_solution(instance, kind, server):
        return None
    solution = solution_of(instance, kind, server)
    return Outcome(solution, solution.value)


def on_two_servers(instance: Instance) -> bool:
    """Whether a table over the cores of two servers is small enough to be the whole proof."""
    plain = instance.memory is None and not instance.on_cost.any()
    two = instance.kinds == 2 and bool((instance.counts == 1).all())
    return plain and two and instance.rows > 0 and int(instance.room.prod()) <= MOST_STATES


def _by_table(instance: Instance) -> Outcome:
    """If only one server is too full, by its knapsack; else, or if that leaves the other too full, by both."""
    nowhere = np.zeros(instance.rows, dtype=np.int64)
    kind = instance.cost.argmin(axis=1)
    over = np.bincount(kind, weights=instance.cores[np.arange(instance.rows), kind], minlength=2) > instance.room
    if over[0] != over[1]:
        kind = fill_the_full_one(instance, kind, int(over[1]))
        if is_solution(instance, kind, nowhere):
            solution = solution_of(instance, kind, nowhere)
            return Outcome(solution, solution.value)
    found = least_on_two(instance.cores, instance.cost, (int(instance.room[0]), int(instance.room[1])))
    if found is None:
        return Outcome(None, inf)
    solution = solution_of(instance, found, nowhere)
    return Outcome(solution, solution.value)


def _priced(instance: Instance, deadline: Deadline, gap: float) -> Outcome:
    """Without idle power."""
    prices = ascend(instance, deadline, near=max(1e-7, 0.05 * min(gap, 0.01)))
    prices, costs = proven(instance, prices.cores, prices.memory)
    if prices.bound > dearest(instance):
        return Outcome(None, inf)
    first = first_solution(instance, prices, costs, deadline)
    found = Outcome(first, prices.bound if first is None else min(first.value, prices.bound))
    if found.gap <= gap or found.proven:
        return found
    few = instance.rows < FEW * int(instance.counts.sum())
    found = solve_core(instance, prices, costs, first, deadline.part(SHARE) if few else deadline, gap)
    if few and not found.proven and found.gap > gap and found.solution is not None:
        enough = found.solution.value / (1.0 + gap)
        more = knapsack_bound(instance, row_worth(costs), found.solution.value, deadline, enough)
        found = replace(found, bound=min(found.solution.value, max(found.bound, more)))
    return found


def _switched(instance: Instance, deadline: Deadline, gap: float) -> Outcome:
    """With servers that may be off: numbers that are on first; small ones then whole."""
    small = instance.cost.size <= min(SWITCHED, PER_SECOND * deadline.left)
    found = solve_switched(instance, deadline.part(0.5) if small else deadline, gap)
    if found.proven or found.gap <= gap or not small:
        return found
    whole = solve_exactly(instance, everything(instance), deadline, found.solution)
    if whole.solution is None:
        return whole
    best = better(found.solution, whole.solution)
    return Outcome(best, min(best.value, max(found.bound, whole.bound)))


def dearest(instance: Instance) -> float:
    """No solution costs more."""
    rows = np.where(instance.allowed, instance.cost, -np.inf).max(axis=1)
    return float(rows.sum()) * (1.0 + 1e-9) + float((instance.on_cost * instance.counts).sum()) + 1e-9


def fits(instance: Instance) -> bool:
    """Whether there is any solution, as far as a short search finds one."""
    free = replace(instance, cost=np.where(instance.allowed, 0.0, np.inf), on_cost=np.zeros(instance.kinds))
    free = replace(free, cost=np.where(free.cores <= free.room, free.cost, np.inf))
    return solve(free, Deadline(lambda: 0.0, SHORT_S), gap=inf).solution is not None
