"""Two servers of which one alone is too small for what would be cheapest there: a knapsack.

Owns the case that is most frequent with two servers. The other server's room is left out of account; if what comes out
fits there too, it is the best.
"""

import numpy as np

from wattloom.planning.instance import Instance, Mask, Wholes


def fill_the_full_one(instance: Instance, kind: Wholes, full: int) -> Wholes:
    """The best assignment if only the full server had a limit, from each function's cheapest server on."""
    rows = np.flatnonzero(kind == full)
    saved = instance.cost[rows, 1 - full] - instance.cost[rows, full]
    bound = ~np.isfinite(saved)
    room = int(instance.room[full]) - int(instance.cores[rows[bound], full].sum())
    found = kind.copy()
    if room < 0:
        return found
    open_ = rows[~bound]
    found[open_[_left_out(instance.cores[open_, full].tolist(), saved[~bound].tolist(), room)]] = 1 - full
    return found


def _left_out(sizes: list[int], gains: list[float], room: int) -> list[int]:
    """Which do not go into the knapsack that gains most."""
    best = np.zeros(room + 1)
    taken: list[Mask | None] = []
    for size, gain in zip(sizes, gains, strict=True):
        if size > room:
            taken.append(None)
            continue
        with_it = best[: room + 1 - size] + gain
        better = with_it > best[size:]
        best = best.copy()
        np.maximum(best[size:], with_it, out=best[size:])
        taken.append(better)
    left, out = room, []
    for at in range(len(sizes) - 1, -1, -1):
        chosen = taken[at]
        if chosen is not None and left >= sizes[at] and chosen[left - sizes[at]]:
            left -= sizes[at]
        else:
            out.append(at)
    return out
