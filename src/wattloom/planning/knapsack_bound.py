"""A bound for few large rows: each server fills itself as well as it can, and rows have prices.

Owns the relaxation of "each row once" (cores alone have prices in `relaxation`), which sees that whole functions leave
gaps on a server. Each server is a knapsack, solved for all kinds at once; bytes are left out, and the bound still
holds.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from wattloom.planning.instance import Deadline, Instance, Mask, Numbers

MOST_CELLS: Final = 400_000
MOST_ROOM: Final = 4_096
"""Cores of a server, beyond which its knapsack would be too large a table."""
STEPS: Final = 400
TINY: Final = 1e-9


@dataclass(frozen=True)
class Filled:
    """Of one server of each kind: what it earns at best, and with which rows."""

    worth: Numbers
    chosen: Mask


def knapsack_bound(
    instance: Instance, worth: Numbers, target: float, deadline: Deadline, enough: float = np.inf
) -> float:
    """The best bound that prices of rows prove, from these on: it aims at the target, and stops where it is enough."""
    if instance.cost.size > MOST_CELLS or int(instance.room.max(initial=0)) > MOST_ROOM:
        return -np.inf
    best, reach, stuck = -np.inf, 1.0, 0
    start = worth
    for _ in range(STEPS):
        bound, slope = _evaluate(instance, worth)
        stuck = 0 if bound > best + 1e-7 * abs(best) else stuck + 1
        if bound > best:
            best, start = bound, worth
        if stuck >= 8:
            reach, stuck, worth = 0.5 * reach, 0, start
            if reach < 0.02:
                break
            continue
        length = float((slope**2).sum())
        if length == 0.0 or deadline.over or best >= min(target, enough):
            break
        worth = worth + reach * max(target - bound, 1e-9 * abs(target)) / length * slope
    return best


def _evaluate(instance: Instance, worth: Numbers) -> tuple[float, Numbers]:
    """The bound of these prices, and how often each row is taken too seldom (or, negative, too often)."""
    found = filled(instance, worth)
    earned = np.maximum(0.0, found.worth - instance.on_cost)
    bound = float(worth.sum() - (instance.counts * earned).sum())
    taken = found.chosen & (found.worth > instance.on_cost)
    return bound, 1.0 - (taken * instance.counts).sum(axis=1)


def filled(instance: Instance, worth: Numbers) -> Filled:
    """The best filling of each kind's server with rows of this worth."""
    profit = np.where(instance.allowed, worth[:, None] - instance.cost, -1.0)
    sizes = instance.cores.astype(float)
    density = np.where(profit > 0.0, profit / np.maximum(sizes, TINY), -1.0)
    order = np.argsort(-density, axis=0, kind="stable")
    gains = np.maximum(0.0, np.take_along_axis(profit, order, axis=0))
    gains[np.take_along_axis(density, order, axis=0) < 0.0] = 0.0
    used = np.cumsum(np.where(gains > 0.0, np.take_along_axis(sizes, order, axis=0), 0.0), axis=0)
    within = used <= instance.room
    broken = np.minimum(within.sum(axis=0), instance.rows - 1)
    columns = np.arange(instance.kinds)
    price = np.maximum(0.0, np.take_along_axis(density, order, axis=0)[broken, columns])
    price = np.where(within.all(axis=0), 0.0, price)
    greedy = np.where(within, gains, 0.0).sum(axis=0)
    inside = np.where(within, np.take_along_axis(sizes, order, axis=0) * (gains > 0.0), 0.0).sum(axis=0)
    loose = (instance.room - inside) * price
    surplus = np.where(profit > 0.0, profit - price * sizes, -np.inf)
    sure, open_ = surplus > loose + TINY, np.abs(surplus) <= loose + TINY
    return _dynamic(instance, profit, sure, open_, greedy)


def _dynamic(instance: Instance, profit: Numbers, sure: Mask, open_: Mask, greedy: Numbers) -> Filled:
    """Rows that are sure to be in are in; of the open ones a table over cores takes the best."""
    columns = np.arange(instance.kinds)
    room = (instance.room - (sure * instance.cores).sum(axis=0)).astype(np.int64)
    most = int(room.max(initial=0))
    lengths = open_.sum(axis=0)
    rows = np.argsort(~open_, axis=0, kind="stable")[: int(lengths.max(initial=0))]
    table = np.zeros((instance.kinds, most + 1))
    cores = np.arange(most + 1)
    taken = np.zeros((len(rows), instance.kinds, most + 1), dtype=bool)
    for step, row in enumerate(rows):
        size = instance.cores[row, columns]
        gain = np.where(step < lengths, profit[row, columns], -np.inf)
        before = cores - size[:, None]
        with_it = (
            np.where(before >= 0, np.take_along_axis(table, np.maximum(before, 0), axis=1), -np.inf) + gain[:, None]
        )
        taken[step] = with_it > table
        table = np.maximum(table, with_it)
    chosen = sure.copy()
    at = np.clip(room, 0, most)
    worth = (np.where(sure, profit, 0.0)).sum(axis=0) + table[columns, at]
    for step in range(len(rows) - 1, -1, -1):
        mine = taken[step, columns, at]
        chosen[rows[step][mine], columns[mine]] = True
        at = at - np.where(mine, instance.cores[rows[step], columns], 0)
    return Filled(np.maximum(worth, greedy), chosen)


def row_worth(costs: Numbers) -> Numbers:
    """Prices of rows to begin with: what each costs at its cheapest, prices of cores included."""
    found: Numbers = costs.min(axis=1)
    return found
