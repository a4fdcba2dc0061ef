"""Servers that may be off: how many of each kind are on, and a bound over all such choices.

Owns the search over how many are on. For fixed numbers the instance is one without idle power, whose prices prove a
bound that is linear in the numbers: a cut that holds for all of them. The least of the highest cuts is a bound for
everything; it names the next numbers to try.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Final

import numpy as np

from wattloom.planning.exact import better
from wattloom.planning.first_solution import first_solution
from wattloom.planning.highs import solve_cuts
from wattloom.planning.instance import Deadline, Instance, Numbers, Outcome, Solution, Wholes, solution_of
from wattloom.planning.relaxation import Prices, ascend, proven, reduced

STEEPEST: Final = 100.0
"""What all servers of a kind earn in a cut, in dearest assignments, at most."""
MOST_ROUNDS: Final = 400
FAR: Final = 3
"""How many servers of a kind more or fewer the next numbers may have, at first."""
EVERY: Final = 4
"""Rounds after which the bound over all numbers is taken."""


@dataclass
class Search:
    """What is known so far."""

    instance: Instance
    constants: list[float]
    slopes: list[Numbers]
    best: Solution | None = None
    best_on: Wholes | None = None
    prices: Prices | None = None
    """Where the best was found."""
    bound: float = -inf

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.best, self.bound if self.best is None else min(self.bound, self.best.value))


def solve_switched(instance: Instance, deadline: Deadline, gap: float) -> Outcome:
    """Near the best numbers so far, and everywhere once nothing near is left; until the gap or the time is over."""
    search = Search(instance, [], [])
    root = ascend(instance, deadline)
    search.bound = root.bound
    _cut(search, root)
    on, tried, far = _first_numbers(instance, root), set[tuple[int, ...]](), FAR
    for number in range(MOST_ROUNDS):
        before = search.best
        _try(search, on, deadline)
        tried.add(tuple(on.tolist()))
        if number % EVERY == EVERY - 1:
            _next(search, 0, deadline)
        named = _next(search, far, deadline)
        while far > 0 and (named is None or tuple(named.tolist()) in tried):
            far //= 2
            named = _next(search, far, deadline)
        if deadline.over or named is None or search.outcome.gap <= gap or tuple(named.tolist()) in tried:
            break
        if search.best is before and far > 1:
            far -= 1
        on = named
    return search.outcome


def _next(search: Search, far: int, deadline: Deadline) -> Wholes | None:
    """The numbers that the cuts name: near the best ones, or (far of 0) anywhere, which is a bound as well."""
    instance = search.instance
    low, high = np.where(instance.on_cost > 0.0, 0, instance.counts), instance.counts
    near = far > 0 and search.best_on is not None
    if near and search.best_on is not None:
        low, high = np.maximum(low, search.best_on - far), np.minimum(high, search.best_on + far)
    cores = float(np.where(instance.allowed, instance.cores, np.inf).min(axis=1).sum())
    enough = instance.room.astype(float), cores
    least, named = solve_cuts(np.array(search.constants), np.array(search.slopes), low, high, enough, deadline.left)
    if not near:
        search.bound = max(search.bound, least)
    return named


def _first_numbers(instance: Instance, root: Prices) -> Wholes:
    kind = reduced(instance, root.cores, root.memory).argmin(axis=1)
    used = np.bincount(kind, weights=instance.cores[np.arange(instance.rows), kind], minlength=instance.kinds)
    wanted = np.ceil(used / np.maximum(1, instance.room)).astype(np.int64)
    return np.where(instance.on_cost > 0.0, np.minimum(instance.counts, wanted), instance.counts)


def with_numbers(instance: Instance, on: Wholes) -> Instance:
    """So many servers of each kind, and no idle power."""
    return replace(instance, counts=on, on_cost=np.zeros(instance.kinds))


def _try(search: Search, on: Wholes, deadline: Deadline) -> None:
    """A cut at these numbers, and a solution if there is one."""
    inner = with_numbers(search.instance, on)
    closed = replace(inner, cost=np.where(on > 0, inner.cost, np.inf))
    if not np.isfinite(closed.cost).any(axis=1).all():
        return
    start = None if search.prices is None else replace(search.prices, bound=-inf)
    prices = ascend(closed, deadline, start)
    least, costs = proven(closed, prices.cores, prices.memory)
    prices = replace(prices, cores=_least_for_none(inner, prices, on))
    _cut(search, prices)
    if search.best is not None and least.bound + float((search.instance.on_cost * on).sum()) >= search.best.value:
        return
    found = first_solution(closed, prices, costs, deadline)
    if found is not None:
        _keep(search, found, on, prices)


def _keep(search: Search, found: Solution, on: Wholes, prices: Prices) -> None:
    whole = solution_of(search.instance, found.kind, found.server)
    if better(search.best, whole) is whole:
        search.best, search.best_on, search.prices = whole, on, prices


def _least_for_none(inner: Instance, prices: Prices, on: Wholes) -> Numbers:
    """On kinds with no server on, the lowest price of a core at which no row would go there: the cut is steepest."""
    dark = np.flatnonzero(on == 0)
    if not len(dark) or len(dark) == inner.kinds:
        return prices.cores
    costs = reduced(inner, prices.cores, prices.memory)
    others = np.delete(costs, dark, axis=1).min(axis=1)
    cores = prices.cores.copy()
    for t in dark.tolist():
        short = (others - inner.cost[:, t]) / np.maximum(1, inner.cores[:, t])
        cores[t] = max(0.0, float(short[np.isfinite(short)].max(initial=0.0)))
    return cores


def _believable(instance: Instance, prices: Prices) -> Prices:
    """Where numbers fit nothing prices rise without end, and differences of what they come to are noise. Lower ones
    give a cut that holds as well."""
    dearest = float(np.where(np.isfinite(instance.cost), instance.cost, 0.0).max(axis=1).sum())
    most = STEEPEST * ((dearest + float((instance.on_cost * instance.counts).sum())) or 1.0)
    cores = np.minimum(prices.cores, most / np.maximum(1, instance.room * instance.counts))
    memory = np.minimum(prices.memory, most / np.maximum(1, instance.memory_room * instance.counts))
    return replace(prices, cores=cores, memory=memory)


def _cut(search: Search, prices: Prices) -> None:
    instance = search.instance
    prices = _believable(instance, prices)
    rows = reduced(instance, prices.cores, prices.memory).min(axis=1)
    earned = prices.cores * instance.room
    if instance.memory is not None:
        earned = earned + prices.memory * instance.memory_room
    search.constants.append(float(rows.sum()))
    search.slopes.append(instance.on_cost - earned)
