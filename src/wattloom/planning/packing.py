"""Packing: functions that are to go to servers of one kind, on single servers.

Owns the bins. Equal servers are one column while a plan is sought; here each function gets its server, if all fit.
"""

from collections.abc import Sequence
from typing import Final

Size = tuple[int, int]
"""Cores and bytes."""
MOST_STEPS: Final = 20_000
"""Of the search for a packing, before it is given up."""


def pack(sizes: Sequence[Size], bins: int, room: Size) -> tuple[list[int], list[int]]:
    """A bin for each size (-1: none), and which sizes are left over: best fit, the largest first, then a search."""
    order = sorted(range(len(sizes)), key=lambda at: (-sizes[at][0], -sizes[at][1], at))
    found, left = _best_fit(sizes, order, bins, room)
    if not left or bins == 1:
        return found, left
    if len(sizes) <= 60:
        searched = _searched(sizes, order, bins, room)
        if searched is not None:
            return searched, []
    return found, left


def _best_fit(sizes: Sequence[Size], order: Sequence[int], bins: int, room: Size) -> tuple[list[int], list[int]]:
    free = [[room[0], room[1]] for _ in range(bins)]
    by_room: dict[int, list[int]] = {room[0]: list(range(bins))}
    found, left = [-1] * len(sizes), []
    for at in order:
        cores, memory = sizes[at]
        place = _tightest(by_room, free, cores, memory)
        if place is None:
            left.append(at)
            continue
        found[at] = place
        by_room[free[place][0]].remove(place)
        free[place][0] -= cores
        free[place][1] -= memory
        by_room.setdefault(free[place][0], []).append(place)
    return found, left


def _tightest(by_room: dict[int, list[int]], free: list[list[int]], cores: int, memory: int) -> int | None:
    for room in sorted(room for room, places in by_room.items() if room >= cores and places):
        fitting = [place for place in by_room[room] if free[place][1] >= memory]
        if fitting:
            return min(fitting)
    return None


def _searched(sizes: Sequence[Size], order: Sequence[int], bins: int, room: Size) -> list[int] | None:
    """Depth first, the largest first; bins that are equally full are one. None: there is none, or it took too long."""
    free = [[room[0], room[1]] for _ in range(bins)]
    found = [-1] * len(sizes)
    steps = [MOST_STEPS]
    return found if _place(0, sizes, order, free, found, steps) else None


def _place(
    depth: int, sizes: Sequence[Size], order: Sequence[int], free: list[list[int]], found: list[int], steps: list[int]
) -> bool:
    if depth == len(order):
        return True
    steps[0] -= 1
    if steps[0] < 0:
        return False
    at = order[depth]
    cores, memory = sizes[at]
    tried: set[tuple[int, int]] = set()
    for place in sorted(range(len(free)), key=lambda place: free[place]):
        key = free[place][0], free[place][1]
        if key in tried or key[0] < cores or key[1] < memory:
            continue
        tried.add(key)
        free[place][0] -= cores
        free[place][1] -= memory
        found[at] = place
        if _place(depth + 1, sizes, order, free, found, steps):
            return True
        free[place][0] += cores
        free[place][1] += memory
    found[at] = -1
    return False
