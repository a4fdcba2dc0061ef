"""Two servers: the assignment that costs least, by dynamic programming over the whole cores that are left; and
functions placed one by one, for many problems side by side.

Made for studies that solve the same small problem thousands of times: a server has tens or hundreds of cores, so there
are few states. Memory, servers that may be off and more than two servers are the solver's business.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Real = NDArray[np.float64]


def least_on_two(cores: Whole, cost: Real, capacity: tuple[int, int]) -> Whole | None:
    """Each function's server, 0 or 1. `cores` and `cost` have a row for each function and a column for each server.

    Of equally good ones it is the first in the order of the functions, server 0 before server 1. None: nothing fits.
    """
    best = np.zeros((capacity[0] + 1, capacity[1] + 1))
    """Least cost of the functions from here on, by cores that are left on each server."""
    on_second: list[NDArray[np.bool_]] = []
    for (first, second), (first_cost, second_cost) in zip(cores[::-1], cost[::-1], strict=True):
        there, here = np.full_like(best, np.inf), np.full_like(best, np.inf)
        here[first:] = best[: max(0, len(best) - first)] + first_cost
        there[:, second:] = best[:, : max(0, best.shape[1] - second)] + second_cost
        on_second.append(there < here)
        best = np.minimum(here, there)
    if not np.isfinite(best[capacity]):
        return None
    return _traced(cores, on_second[::-1], capacity)


def _traced(cores: Whole, on_second: list[NDArray[np.bool_]], capacity: tuple[int, int]) -> Whole:
    left = list(capacity)
    chosen = np.zeros(len(cores), dtype=np.int64)
    for number, choice in enumerate(on_second):
        server = int(choice[left[0], left[1]])
        chosen[number] = server
        left[server] -= int(cores[number, server])
    return chosen


def one_by_one(turns: Sequence[int], cores: Whole, capacity: tuple[int, int]) -> Whole:
    """Each function's server: that whose turn it is, or else the other; -1 where neither has room, and from there on.

    The last two axes of `cores` are functions and servers; those before them are problems, solved side by side.
    """
    left = np.broadcast_to(np.array(capacity), (*cores.shape[:-2], 2)).copy()
    chosen = np.full(cores.shape[:-1], -1)
    lost = np.zeros(cores.shape[:-2], dtype=np.bool_)
    for number, turn in enumerate(turns):
        needed = cores[..., number, :]
        fits = needed <= left
        server = np.where(fits[..., turn], turn, 1 - turn)
        lost |= ~fits.any(axis=-1)
        chosen[..., number] = np.where(lost, -1, server)
        taken = np.stack([server == 0, server == 1], axis=-1) & ~lost[..., None]
        left -= needed * taken
    return chosen
