"""HiGHS, through scipy: linear and mixed-integer programs of an instance, whole or of some of its columns.

Owns the models and the scaling. The only module that knows scipy, which is an extra.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final

import numpy as np

from wattloom.errors import MissingExtra
from wattloom.planning.instance import Instance, Mask, Numbers, Wholes

MOST_COLUMNS: Final = 2_500_000
"""That a program is made of: beyond, memory would be the limit."""
LEAST_SHARE: Final = 1e-6
"""Of the largest cost: what HiGHS takes for nothing must not be more than the sum of all."""
OPTIMAL, LIMIT, INFEASIBLE = 0, 1, 2


@dataclass(frozen=True)
class Answer:
    """What HiGHS has found of a program."""

    kind: Wholes | None
    """None: no solution was found."""
    bound: float
    """Infinite: there is none."""
    on: Wholes | None = None


def scipy_optimize() -> Any:
    try:
        from scipy import optimize
    except ImportError as problem:
        raise MissingExtra("Solving for the best plan", "planning") from problem
    return optimize


def _sparse() -> Any:
    from scipy import sparse

    return sparse


@dataclass(frozen=True)
class _Program:
    row: Wholes
    kind: Wholes
    costs: Numbers
    scale: float
    matrix: Any
    low: Numbers
    high: Numbers
    switched: Wholes
    """Kinds with a column for how many servers are on."""


def _program(instance: Instance, mask: Mask, ordered: Wholes | None = None) -> _Program:
    """Rows are on one server each; then cores of each kind, bytes of each kind, and equal servers in order of load."""
    sparse = _sparse()
    row, kind = np.nonzero(mask)
    many, n, kinds = len(row), instance.rows, instance.kinds
    at = np.arange(many)
    switched = np.flatnonzero(instance.on_cost > 0.0)
    on = np.arange(many, many + len(switched))
    given = instance.cores[row, kind].astype(float)
    values, rows, columns = [np.ones(many), given], [row, n + kind], [at, at]
    low, high = [np.ones(n), np.full(kinds, -np.inf)], [np.ones(n), (instance.room * instance.counts).astype(float)]
    high[1][switched] = 0.0
    values.append(-instance.room[switched].astype(float))
    rows.append(n + switched)
    columns.append(on)
    below = n + kinds
    if instance.memory is not None:
        unit = np.maximum(instance.memory_room, 1).astype(float)
        values += [instance.memory[row, kind] / unit[kind], -np.ones(len(switched))]
        rows += [below + kind, below + switched]
        columns += [at, on]
        limits = instance.counts.astype(float)
        limits[switched] = 0.0
        low.append(np.full(kinds, -np.inf))
        high.append(limits)
        below += kinds
    if ordered is not None:
        for first in np.flatnonzero(ordered[1:] == ordered[:-1]).tolist():
            for t, sign in ((first, -1.0), (first + 1, 1.0)):
                mine = np.flatnonzero(kind == t)
                values.append(sign * given[mine])
                rows.append(np.full(len(mine), below))
                columns.append(mine)
            low.append(np.array([-np.inf]))
            high.append(np.zeros(1))
            below += 1
    for place, t in enumerate(switched.tolist()):  # what uses no core there still needs it on
        mine = np.flatnonzero((kind == t) & (given == 0.0))
        values += [np.ones(len(mine)), -np.ones(len(mine))]
        rows += [below + np.arange(len(mine))] * 2
        columns += [mine, np.full(len(mine), many + place)]
        low.append(np.full(len(mine), -np.inf))
        high.append(np.zeros(len(mine)))
        below += len(mine)
    costs = np.concatenate([instance.cost[row, kind], instance.on_cost[switched]])
    smallest = np.where(mask, instance.cost, np.inf).min(axis=1, initial=np.inf)
    largest = float(np.abs(costs).max(initial=0.0))
    total = max(float(np.abs(smallest[np.isfinite(smallest)]).sum()), LEAST_SHARE * largest)
    scale = 1e4 / total if total > 0.0 else 1.0
    matrix = sparse.csr_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(below, many + len(switched))
    )
    return _Program(row, kind, costs, scale, matrix, np.concatenate(low), np.concatenate(high), switched)


def solve_whole_numbers(
    instance: Instance, mask: Mask, seconds: float, *, single: Wholes | None = None, relaxed_rows: bool = False
) -> Answer:
    """The best assignment to kinds that uses only columns of the mask; a kind is one large server, or `single` names
    the kind that each column is a server of. With `relaxed_rows`, only servers are whole."""
    optimize = scipy_optimize()
    if not mask.any(axis=1).all():
        return Answer(None, inf)
    if int(mask.sum()) > MOST_COLUMNS or seconds <= 0.0:
        return Answer(None, -inf)
    made = _program(instance, mask, single)
    upper = np.ones(made.matrix.shape[1])
    upper[len(made.row) :] = instance.counts[made.switched]
    whole = np.ones(made.matrix.shape[1])
    whole[: len(made.row)] = 0 if relaxed_rows else 1
    try:
        found = optimize.milp(
            made.costs * made.scale,
            integrality=whole,
            bounds=optimize.Bounds(np.zeros(len(upper)), upper),
            constraints=optimize.LinearConstraint(made.matrix, made.low, made.high),
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
    except MemoryError:  # what was found before is kept
        return Answer(None, -inf)
    if found.status == INFEASIBLE:
        return Answer(None, inf)
    bound = getattr(found, "mip_dual_bound", None)
    bound = -inf if bound is None or not np.isfinite(bound) else float(bound) / made.scale
    if found.x is None:
        return Answer(None, bound)
    kind = np.zeros(instance.rows, dtype=np.int64)
    parts = found.x[: len(made.row)]
    best = np.lexsort((parts,))
    kind[made.row[best]] = made.kind[best]
    on = np.zeros(instance.kinds, dtype=np.int64)
    on[made.switched] = np.round(found.x[len(made.row) :]).astype(np.int64)
    return Answer(kind, bound, on)


def missing_room(instance: Instance) -> tuple[list[int], list[int]]:
    """The fewest cores, and bytes, by which each kind of servers would have to be larger for all to fit in sum."""
    optimize = scipy_optimize()
    made = _program(replace(instance, on_cost=np.zeros(instance.kinds)), instance.allowed)
    n, kinds = instance.rows, instance.kinds
    limits = made.matrix.shape[0] - n
    matrix = _sparse().hstack(
        [made.matrix, _sparse().vstack([_sparse().csr_matrix((n, limits)), -_sparse().eye(limits)])]
    )
    unit = np.ones(limits)
    unit[kinds:] = 1e3
    found = optimize.linprog(
        np.concatenate([np.zeros(len(made.row)), unit]),
        A_ub=matrix.tocsr()[n:],
        b_ub=made.high[n:],
        A_eq=matrix.tocsr()[:n],
        b_eq=np.ones(n),
        method="highs",
        options={"time_limit": 10.0},
    )
    if found.status != OPTIMAL:
        return [0] * kinds, [0] * kinds
    extra = found.x[len(made.row) :]
    bytes_ = extra[kinds:] * instance.memory_room if instance.memory is not None else np.zeros(kinds)
    return [int(np.ceil(more - 1e-6)) for more in extra[:kinds]], [int(np.ceil(more - 1e-6)) for more in bytes_]


def solve_cuts(
    constants: Numbers, slopes: Numbers, low: Wholes, high: Wholes, enough: tuple[Numbers, float], seconds: float
) -> tuple[float, Wholes | None]:
    """Whole numbers between low and high, enough by their weights and the sum of these, at which the highest of some
    planes is least; and a bound of that."""
    optimize = scipy_optimize()
    if seconds <= 0.0:
        return -inf, None
    largest = max(float(np.abs(constants).max()), 1e-6 * float(np.abs(slopes).max()), 1e-300)
    scale = 1e4 / largest  # steep planes through nothing must not overflow
    many, width = slopes.shape
    weights, least = enough
    matrix = np.vstack([np.column_stack([slopes * scale, -np.ones(many)]), np.concatenate([-weights, [0.0]])])
    found = optimize.milp(
        np.concatenate([np.zeros(width), [1.0]]),
        integrality=np.concatenate([np.ones(width), [0.0]]),
        bounds=optimize.Bounds(np.concatenate([low, [-np.inf]]), np.concatenate([high, [np.inf]])),
        constraints=optimize.LinearConstraint(
            matrix, np.full(many + 1, -np.inf), np.concatenate([-constants * scale, [-least]])
        ),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
    bound = getattr(found, "mip_dual_bound", None)
    if bound is None or not np.isfinite(bound):
        return -inf, None
    return float(bound) / scale, None if found.x is None else np.round(found.x[:width]).astype(np.int64)
