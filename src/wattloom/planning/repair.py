"""Repair: from rows at their cheapest prices to a solution that fits, and from there to a better one.

Owns the moves: rows leave what is too full at the least loss, fill what is free, and trade places. Knows prices only as
costs that hold them.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from wattloom.planning.instance import Deadline, Instance, Numbers, Solution, Wholes, is_solution, packed, solution_of

ROUNDS: Final = 60
MOST_ROWS: Final = 4_000
"""That one round of moves looks at."""


@dataclass
class Loads:
    """Where rows are, and what is free on each server of each kind; on places that a kind has not, nothing is."""

    kind: Wholes
    server: Wholes
    cores: Wholes
    memory: Wholes


def repaired(instance: Instance, costs: Numbers, kind: Wholes, deadline: Deadline) -> Solution | None:
    """A solution near to rows on these kinds; None: none was found."""
    kind = _unloaded(instance, costs, kind.copy(), deadline)
    server, left = packed(instance, kind)
    loads = loads_of(instance, kind, server)
    for i in sorted(left, key=lambda row: (-int(instance.cores[row].min()), row)):
        if not _insert(instance, costs, loads, i) and not _eject(instance, costs, loads, i):
            return None
    improve(instance, loads, deadline)
    if not is_solution(instance, loads.kind, loads.server):
        return None
    return solution_of(instance, loads.kind, loads.server)


# -- kinds that are too full -------------------------------------------------------------------------------------------


def _unloaded(instance: Instance, costs: Numbers, kind: Wholes, deadline: Deadline) -> Wholes:
    """Rows move from kinds that are too full to such as have room, those first that lose least for each core."""
    for _ in range(ROUNDS):
        free, held = _free_by_kind(instance, kind)
        full = (free < 0) | (held < 0)
        rows = np.flatnonzero(full[kind])
        if not len(rows) or deadline.over or not _move_out(instance, costs, kind, rows, free, held):
            break
    return kind


def _free_by_kind(instance: Instance, kind: Wholes) -> tuple[Wholes, Wholes]:
    rows = np.arange(instance.rows)
    used = np.bincount(kind, weights=instance.cores[rows, kind], minlength=instance.kinds).astype(np.int64)
    free = instance.room * instance.counts - used
    if instance.memory is None:
        return free, np.zeros(instance.kinds, dtype=np.int64)
    held = np.bincount(kind, weights=instance.memory[rows, kind], minlength=instance.kinds)
    return free, np.sign(instance.memory_room * instance.counts.astype(float) - held).astype(np.int64)


def _move_out(instance: Instance, costs: Numbers, kind: Wholes, rows: Wholes, free: Wholes, held: Wholes) -> bool:
    """One round; False: nobody could move."""
    own = costs[rows, kind[rows]]
    rows = (
        rows[np.argsort(costs[rows].min(axis=1) - own, kind="stable")[-MOST_ROWS:]] if len(rows) > MOST_ROWS else rows
    )
    own = costs[rows, kind[rows]]
    there = np.where((instance.cores[rows] <= free) & (held >= 0), costs[rows], np.inf)
    there[np.arange(len(rows)), kind[rows]] = np.inf
    to = there.argmin(axis=1)
    sizes = np.maximum(1, instance.cores[rows, kind[rows]])
    loss = (there[np.arange(len(rows)), to] - own) / sizes
    moved = False
    for at in np.argsort(loss, kind="stable").tolist():
        if not np.isfinite(loss[at]):
            break
        i, t, s = int(rows[at]), int(to[at]), int(kind[rows[at]])
        if (free[s] >= 0 and held[s] >= 0) or free[t] < instance.cores[i, t]:
            continue
        free[s] += instance.cores[i, s]
        free[t] -= instance.cores[i, t]
        kind[i], moved = t, True
        if instance.memory is not None and held[s] < 0:
            held[s] = _free_by_kind(instance, kind)[1][s]
    return moved


# -- single servers ----------------------------------------------------------------------------------------------------


def loads_of(instance: Instance, kind: Wholes, server: Wholes) -> Loads:
    """Rows without a server (-1) use nothing."""
    width = int(instance.counts.max(initial=1))
    there = np.arange(width) < instance.counts[:, None]
    cores = np.where(there, instance.room[:, None], -1)
    memory = np.where(there, instance.memory_room[:, None], -1)
    placed = np.flatnonzero(server >= 0)
    np.subtract.at(cores, (kind[placed], server[placed]), instance.cores[placed, kind[placed]])
    if instance.memory is not None:
        np.subtract.at(memory, (kind[placed], server[placed]), instance.memory[placed, kind[placed]])
    return Loads(kind, server, cores, memory)


def _memory_of(instance: Instance, i: int, t: int) -> int:
    return 0 if instance.memory is None else int(instance.memory[i, t])


def _server_for(instance: Instance, loads: Loads, i: int, t: int) -> int:
    """The fullest server of a kind that has room; -1: none has."""
    fits = loads.cores[t] >= instance.cores[i, t]
    if instance.memory is not None:
        fits &= loads.memory[t] >= instance.memory[i, t]
    places = np.flatnonzero(fits)
    return int(places[loads.cores[t, places].argmin()]) if len(places) else -1


def _put(instance: Instance, loads: Loads, i: int, t: int, server: int) -> None:
    _take(instance, loads, i)
    loads.kind[i], loads.server[i] = t, server
    loads.cores[t, server] -= instance.cores[i, t]
    loads.memory[t, server] -= _memory_of(instance, i, t)


def _take(instance: Instance, loads: Loads, i: int) -> None:
    t, server = int(loads.kind[i]), int(loads.server[i])
    if server >= 0:
        loads.cores[t, server] += instance.cores[i, t]
        loads.memory[t, server] += _memory_of(instance, i, t)
    loads.server[i] = -1


def _insert(instance: Instance, costs: Numbers, loads: Loads, i: int) -> bool:
    """On the cheapest kind that has a server with room."""
    room = loads.cores.max(axis=1)
    fitting = np.flatnonzero((instance.cores[i] <= room) & np.isfinite(costs[i]))
    for t in fitting[np.argsort(costs[i, fitting], kind="stable")].tolist():
        server = _server_for(instance, loads, i, t)
        if server >= 0:
            _put(instance, loads, i, t, server)
            return True
    return False


def _eject(instance: Instance, costs: Numbers, loads: Loads, i: int) -> bool:
    """One row makes room and goes elsewhere, at the least loss of both."""
    room = loads.cores.max(axis=1)
    best: tuple[float, int, int, int] | None = None
    for j in np.flatnonzero(loads.server >= 0).tolist():
        t, server = int(loads.kind[j]), int(loads.server[j])
        if not np.isfinite(costs[i, t]) or loads.cores[t, server] + instance.cores[j, t] < instance.cores[i, t]:
            continue
        if loads.memory[t, server] + _memory_of(instance, j, t) < _memory_of(instance, i, t):
            continue
        others = np.where(instance.cores[j] <= room, costs[j], np.inf)
        others[t] = np.inf if instance.counts[t] == 1 else others[t]
        to = int(others.argmin())
        loss = float(others[to] - costs[j, t] + costs[i, t])
        if np.isfinite(loss) and (best is None or loss < best[0]) and _server_for(instance, loads, j, to) >= 0:
            best = loss, j, to, server
    if best is None:
        return False
    _, j, to, server = best
    t = int(loads.kind[j])
    if to == t and _server_for(instance, loads, j, to) == server:
        return False
    _put(instance, loads, j, to, _server_for(instance, loads, j, to))
    _put(instance, loads, i, t, server)
    return True


def improve(instance: Instance, loads: Loads, deadline: Deadline) -> None:
    """Rows go where they are cheaper, as long as one does."""
    rows = np.arange(instance.rows)
    for _ in range(ROUNDS):
        room = loads.cores.max(axis=1)
        gain = np.where(instance.cores <= room, instance.cost, np.inf) - instance.cost[rows, loads.kind][:, None]
        to = gain.argmin(axis=1)
        most = gain[rows, to]
        moved = False
        for i in np.argsort(most, kind="stable").tolist():
            if most[i] >= -1e-12:
                break
            server = _server_for(instance, loads, i, int(to[i]))
            if server >= 0:
                _put(instance, loads, i, int(to[i]), server)
                moved = True
        if not moved or deadline.over:
            return
