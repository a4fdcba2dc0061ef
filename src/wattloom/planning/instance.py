"""What a solver sees: numbers only. Functions are rows, kinds of equal servers are columns.

Owns the instance, a solution of it with its check, and what a solver gives back. Knows nothing of names or units.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import fsum, inf
from typing import Final

import numpy as np
import numpy.typing as npt

from wattloom.planning.packing import pack

Numbers = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Clock = Callable[[], float]
"""Seconds from some moment on. Who asks for a plan brings it."""

PROVEN: Final = 1e-9
"""A plan this near to the bound, as a part of it, is best: floats that are added up differ by as much."""


@dataclass(frozen=True)
class Instance:
    """Each row goes to one server of one column."""

    cost: Numbers
    """Infinite: not allowed."""
    cores: Wholes
    memory: Wholes | None
    """None: nobody counts it."""
    room: Wholes
    """Cores of one server."""
    memory_room: Wholes
    counts: Wholes
    on_cost: Numbers
    """Of each server that anything runs on."""

    @property
    def rows(self) -> int:
        return int(self.cost.shape[0])

    @property
    def kinds(self) -> int:
        return int(self.cost.shape[1])

    @property
    def allowed(self) -> Mask:
        return np.isfinite(self.cost)


@dataclass(frozen=True)
class Solution:
    """A column and one of its servers for each row."""

    kind: Wholes
    server: Wholes
    value: float


@dataclass(frozen=True)
class Outcome:
    """The best that was found, and below what nothing can be."""

    solution: Solution | None
    bound: float
    """Infinite: there is no solution, and that is proven."""

    @property
    def gap(self) -> float:
        """As a part of the bound."""
        if self.solution is None:
            return inf
        above = max(0.0, self.solution.value - self.bound)
        return above / abs(self.bound) if self.bound else (inf if above else 0.0)

    @property
    def proven(self) -> bool:
        return self.bound == inf or self.gap <= PROVEN


class Deadline:
    """When to stop."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self.begun = clock()
        self._end = self.begun + seconds

    @property
    def left(self) -> float:
        return max(0.0, self._end - self._clock())

    @property
    def over(self) -> bool:
        return self._clock() >= self._end

    def part(self, share: float) -> "Deadline":
        """A share of what is left."""
        return Deadline(self._clock, share * self.left)

    @property
    def spent(self) -> float:
        return self._clock() - self.begun


def value_of(instance: Instance, kind: Wholes, server: Wholes) -> float:
    """What a solution costs: of all rows, and of all servers that anything runs on."""
    rows = fsum(instance.cost[np.arange(instance.rows), kind].tolist())
    if not instance.on_cost.any():
        return rows
    used = set(zip(kind.tolist(), server.tolist(), strict=True))
    return rows + fsum(float(instance.on_cost[t]) for t, _ in sorted(used))


def solution_of(instance: Instance, kind: Wholes, server: Wholes) -> Solution:
    return Solution(kind, server, value_of(instance, kind, server))


def is_solution(instance: Instance, kind: Wholes, server: Wholes) -> bool:
    """Whether all rows are where they may be, and no server has more than it has room for."""
    rows = np.arange(instance.rows)
    if instance.rows and not (instance.allowed[rows, kind].all() and (server < instance.counts[kind]).all()):
        return False
    width = int(instance.counts.max(initial=1))
    at = kind * width + server
    size = instance.kinds * width
    used = np.bincount(at, weights=instance.cores[rows, kind], minlength=size).reshape(instance.kinds, width)
    if (used > instance.room[:, None]).any():
        return False
    if instance.memory is None:
        return True
    held = np.bincount(at, weights=instance.memory[rows, kind], minlength=size).reshape(instance.kinds, width)
    return not bool((held > instance.memory_room[:, None]).any())


def packed(instance: Instance, kind: Wholes) -> tuple[Wholes, list[int]]:
    """A server of its kind for each row, and the rows for which there was none (-1)."""
    server, left = np.zeros(instance.rows, dtype=np.int64), []
    for t in range(instance.kinds):
        rows = np.flatnonzero(kind == t)
        sizes = _sizes(instance, rows, t)
        room = int(instance.room[t]), int(instance.memory_room[t])
        found, missing = pack(sizes, _bins(instance, sizes, t), room)
        if missing and instance.on_cost[t]:
            found, missing = pack(sizes, int(instance.counts[t]), room)
        server[rows] = found
        left += rows[missing].tolist()
    return server, left


def _sizes(instance: Instance, rows: Wholes, t: int) -> list[tuple[int, int]]:
    memory = np.zeros(len(rows), dtype=np.int64) if instance.memory is None else instance.memory[rows, t]
    return list(zip(instance.cores[rows, t].tolist(), memory.tolist(), strict=True))


def _bins(instance: Instance, sizes: list[tuple[int, int]], t: int) -> int:
    """All servers of the kind; where each that is on costs, as few as could do."""
    if not instance.on_cost[t]:
        return int(instance.counts[t])
    cores, memory = (sum(size[which] for size in sizes) for which in (0, 1))
    fewest = max(-(-cores // int(instance.room[t])), -(-memory // int(instance.memory_room[t])), 1)
    return min(int(instance.counts[t]), fewest)


def by_server(instance: Instance) -> tuple[Instance, Wholes, Wholes]:
    """Each server a column of its own; and which kind and which server of it a column is."""
    kind = np.repeat(np.arange(instance.kinds), instance.counts)
    server = np.concatenate([np.arange(count) for count in instance.counts.tolist()] or [np.zeros(0, dtype=np.int64)])
    single = replace(
        instance,
        cost=instance.cost[:, kind],
        cores=instance.cores[:, kind],
        memory=None if instance.memory is None else instance.memory[:, kind],
        room=instance.room[kind],
        memory_room=instance.memory_room[kind],
        counts=np.ones(len(kind), dtype=np.int64),
        on_cost=instance.on_cost[kind],
    )
    return single, kind, server.astype(np.int64)
