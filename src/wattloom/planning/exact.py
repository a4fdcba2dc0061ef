"""Exact solving of an instance, or of some of its columns, by HiGHS.

Owns the two steps: kinds first, where equal servers are one; then, only if what came out cannot be packed on single
servers, each server by itself.
"""

from math import inf

import numpy as np

from wattloom.planning.highs import solve_whole_numbers
from wattloom.planning.instance import (
    Deadline,
    Instance,
    Mask,
    Outcome,
    Solution,
    by_server,
    is_solution,
    packed,
    solution_of,
)


def solve_exactly(instance: Instance, mask: Mask, deadline: Deadline, known: Solution | None = None) -> Outcome:
    """The best solution within the mask, and a bound that holds within it."""
    answer = solve_whole_numbers(instance, mask, deadline.left)
    bound = answer.bound
    if bound == inf:
        return Outcome(known, known.value if known is not None else inf)
    best = known
    if answer.kind is not None:
        server, left = packed(instance, answer.kind)
        if not left and is_solution(instance, answer.kind, server):
            best = better(best, solution_of(instance, answer.kind, server))
    if best is not None and Outcome(best, bound).proven:
        return Outcome(best, min(bound, best.value))
    if (instance.counts > 1).any():
        best, bound = _server_by_server(instance, mask, deadline, best, bound)
    return Outcome(best, bound if best is None else min(bound, best.value))


def _server_by_server(
    instance: Instance, mask: Mask, deadline: Deadline, best: Solution | None, bound: float
) -> tuple[Solution | None, float]:
    single, kind, server = by_server(instance)
    answer = solve_whole_numbers(single, mask[:, kind], deadline.left, single=kind)
    if answer.kind is not None:
        found_kind, found_server = kind[answer.kind], server[answer.kind]
        if is_solution(instance, found_kind, found_server):
            best = better(best, solution_of(instance, found_kind, found_server))
    if answer.bound == inf and best is not None:
        return best, best.value
    return best, max(bound, answer.bound)


def better(one: Solution | None, other: Solution) -> Solution:
    """The cheaper one; the first of two that cost the same."""
    return other if one is None or other.value < one.value else one


def everything(instance: Instance) -> Mask:
    return np.isfinite(instance.cost)
