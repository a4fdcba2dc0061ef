"""Lagrangian relaxation: cores and bytes have prices, each row goes where it is cheapest, and the sum is a bound.

Owns prices, the bound they prove, and their ascent. A bound is always taken over all columns; the ascent itself looks
at the few of each row that can matter.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from wattloom.planning.instance import Deadline, Instance, Numbers, Wholes

CANDIDATES: Final = 12
"""Columns of each row that the ascent looks at, where there are many."""
WHOLE_STEPS: Final = 120
ROUNDS: Final = 2
NEAR: Final = 0.002
"""How far above the best bound the ascent aims once it is near, as a part of it."""
STEPS: Final = 260
SLOW, SWIFT, FARTHEST = 0.05, 0.5, 0.5
"""Gains, in parts of what was aimed at, below which the aim was too far and above which it may be farther."""
SMALL: Final = 200_000
"""Cells up to which all columns are looked at in every step."""


@dataclass(frozen=True)
class Prices:
    """Of a core and of a byte on each kind, and the bound they prove."""

    cores: Numbers
    memory: Numbers
    bound: float


def reduced(instance: Instance, cores: Numbers, memory: Numbers) -> Numbers:
    """What each row costs on each kind with what it uses there."""
    found = instance.cost + cores * instance.cores
    if instance.memory is not None and memory.any():
        found += memory * instance.memory
    return found


def bound_of(instance: Instance, smallest: Numbers, cores: Numbers, memory: Numbers) -> float:
    """Rows at their cheapest, less what all servers could take for their room."""
    return float(smallest.sum() - (instance.counts * _earned(instance, cores, memory)).sum())


def _earned(instance: Instance, cores: Numbers, memory: Numbers) -> Numbers:
    """Of one server of each kind: the price of its room, less what being on costs; nothing if that is more."""
    full = cores * instance.room
    if instance.memory is not None:
        full = full + memory * instance.memory_room
    return np.maximum(0.0, full - instance.on_cost)


def proven(instance: Instance, cores: Numbers, memory: Numbers) -> tuple[Prices, Numbers]:
    """The bound of these prices, over all columns, and the costs with prices."""
    found = reduced(instance, cores, memory)
    return Prices(cores, memory, bound_of(instance, found.min(axis=1), cores, memory)), found


@dataclass
class _Ascent:
    """Prices on their way: Polyak's steps towards a target a little above the best bound so far."""

    cores: Numbers
    memory: Numbers
    best: float
    best_cores: Numbers
    best_memory: Numbers
    reach: float = 0.02
    least: float = 1e-9
    """Where it ends."""
    stuck: int = 0


def ascend(instance: Instance, deadline: Deadline, start: Prices | None = None, near: float = 1e-7) -> Prices:
    """Good prices, and the bound they prove; `near` to the best bound there is, as a part of it, is enough."""
    zero = np.zeros(instance.kinds)
    floor = np.where(instance.room > 0, instance.on_cost / np.maximum(instance.room, 1), 0.0)
    state = _Ascent(
        floor if start is None else start.cores, zero if start is None else start.memory, -np.inf, zero, zero
    )
    if start is not None:
        state.reach = NEAR
    state.least = 0.01 * near
    if instance.cost.size <= SMALL:
        _climb(instance, state, STEPS, deadline)
    else:
        _climb_by_sample(instance, state, deadline, near)
    found, _ = proven(instance, state.best_cores, state.best_memory)
    return found if start is None or found.bound > start.bound else start


def _climb_by_sample(instance: Instance, state: _Ascent, deadline: Deadline, near: float) -> None:
    """Prices of some rows on as much less room are nearly those of all: with them it is seen which columns matter."""
    stride = -(-instance.cost.size // SMALL)
    _climb(_sample(instance, stride), state, WHOLE_STEPS, deadline)
    for _ in range(ROUNDS):
        few = _few_columns(instance, state)
        state.best, state.reach, state.stuck = -np.inf, NEAR, 0
        state.cores, state.memory = state.best_cores, state.best_memory
        _climb_few(instance, few, state, STEPS, deadline)
        if deadline.over or proven(instance, state.best_cores, state.best_memory)[0].bound >= state.best * (1.0 - near):
            return


def _sample(instance: Instance, stride: int) -> Instance:
    """Each so-many-th row, with the room it has in the mean."""
    room = np.maximum(1, instance.room * instance.counts // stride)
    return replace(
        instance,
        cost=np.ascontiguousarray(instance.cost[::stride]),
        cores=np.ascontiguousarray(instance.cores[::stride]),
        memory=None if instance.memory is None else np.ascontiguousarray(instance.memory[::stride]),
        room=room,
        memory_room=np.maximum(1, instance.memory_room // stride * instance.counts),
        counts=np.ones(instance.kinds, dtype=np.int64),
        on_cost=instance.on_cost * instance.counts / stride,
    )


def _climb(instance: Instance, state: _Ascent, steps: int, deadline: Deadline) -> None:
    rows = np.arange(instance.rows)
    for _ in range(steps):
        costs = reduced(instance, state.cores, state.memory)
        kind = costs.argmin(axis=1)
        bound = bound_of(instance, costs[rows, kind], state.cores, state.memory)
        if not _step(instance, state, bound, kind, rows) or deadline.over:
            return


def _few_columns(instance: Instance, state: _Ascent) -> Wholes:
    costs = reduced(instance, state.best_cores, state.best_memory)
    return np.argpartition(costs, min(CANDIDATES, instance.kinds - 1), axis=1)[:, :CANDIDATES]


def _climb_few(instance: Instance, few: Wholes, state: _Ascent, steps: int, deadline: Deadline) -> None:
    rows = np.arange(instance.rows)
    cost = np.take_along_axis(instance.cost, few, axis=1)
    cores = np.take_along_axis(instance.cores, few, axis=1).astype(float)
    memory = None if instance.memory is None else np.take_along_axis(instance.memory, few, axis=1).astype(float)
    for _ in range(steps):
        costs = cost + state.cores[few] * cores
        if memory is not None:
            costs += state.memory[few] * memory
        at = costs.argmin(axis=1)
        bound = bound_of(instance, costs[rows, at], state.cores, state.memory)
        if not _step(instance, state, bound, few[rows, at], rows) or deadline.over:
            return


def _step(instance: Instance, state: _Ascent, bound: float, kind: Wholes, rows: Wholes) -> bool:
    """One step; False: there is nowhere to go."""
    if bound > state.best:
        gained = (bound - state.best) / (state.reach * abs(bound)) if bound else 1.0
        state.stuck = state.stuck + 1 if gained < SLOW else 0
        if SWIFT < gained < np.inf:
            state.reach = min(2.0 * state.reach, FARTHEST)
        state.best, state.best_cores, state.best_memory = bound, state.cores, state.memory
    else:
        state.stuck += 1
    if state.stuck >= 5:
        state.reach, state.stuck = 0.5 * state.reach, 0
        state.cores, state.memory = state.best_cores, state.best_memory
    if state.reach < state.least:
        return False
    slope, held = _slopes(instance, state, kind, rows)
    scale, held_scale = 1.0 / np.maximum(1, instance.room * np.maximum(1, instance.counts)), 1.0 / instance.memory_room
    slope, held = slope * scale, held * held_scale
    length = float((slope**2).sum() + (held**2).sum())
    if length == 0.0:
        return False
    size = (state.best + state.reach * abs(state.best) - bound) / length
    state.cores = np.maximum(0.0, state.cores + size * slope * scale)
    if instance.memory is not None:
        state.memory = np.maximum(0.0, state.memory + size * held * held_scale)
    return True


def _slopes(instance: Instance, state: _Ascent, kind: Wholes, rows: Wholes) -> tuple[Numbers, Numbers]:
    """How much more is used of each kind than there is; where on costs more than is earned, there is nothing."""
    on = (_earned(instance, state.cores, state.memory) > 0.0) | (instance.on_cost == 0.0)
    used = _sums(instance.cores[rows, kind], kind, instance.kinds)
    used = used - np.where(on, instance.room * instance.counts, 0)
    used[(state.cores <= 0.0) & (used < 0.0)] = 0.0
    if instance.memory is None:
        return used, np.zeros(instance.kinds)
    held = _sums(instance.memory[rows, kind], kind, instance.kinds)
    held = held - np.where(on, instance.memory_room.astype(float) * instance.counts, 0.0)
    held[(state.memory <= 0.0) & (held < 0.0)] = 0.0
    return used, held


def _sums(sizes: Wholes, kind: Wholes, kinds: int) -> Numbers:
    found = np.zeros(kinds)
    found += np.bincount(kind, weights=sizes, minlength=kinds)
    return found
