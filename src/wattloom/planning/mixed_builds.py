"""Functions with several builds, where one build costs less and another needs fewer cores.

Owns which build is taken then. A server that gives each function its cheapest cost at its fewest cores is a relaxation:
its bound holds for all choices of builds. What it puts where is kept with lean builds, and with cheap ones while there
is room.
"""

from dataclasses import replace

import numpy as np

from wattloom.planning.instance import Deadline, Instance, Outcome, Solution, solution_of
from wattloom.planning.problem import Problem
from wattloom.planning.solving import solve

Found = tuple[Problem, Outcome]
"""A problem with the builds that are taken, and what was found for it."""


def solve_mixed(cheap: Problem, lean: Problem, deadline: Deadline, gap: float) -> list[Found]:
    """Plans with their bound over all choices of builds, one of which is the best that was found."""
    relaxed = replace(cheap, cores=lean.cores, memory=lean.memory).instance
    found = solve(relaxed, deadline.part(0.5), gap)
    if found.solution is None:
        return [(lean, found)]
    mixed = [mixed_builds(cheap, lean, found.solution, by_core=each) for each in (True, False)]
    placed = [(each, _placed(each.instance, found.solution, found.bound)) for each in mixed]
    if any(outcome.proven or outcome.gap <= gap for _, outcome in placed):
        return placed
    other = solve(cheap.instance, deadline, gap)
    return placed if other.solution is None else [*placed, (cheap, Outcome(other.solution, found.bound))]


def _placed(instance: Instance, solution: Solution, bound: float) -> Outcome:
    return Outcome(solution_of(instance, solution.kind, solution.server), bound)


def mixed_builds(cheap: Problem, lean: Problem, solution: Solution, *, by_core: bool) -> Problem:
    """Lean builds where they were put, and cheap ones as long as their servers have room: what saves most comes first,
    in all or by a core."""
    rows, kind = np.arange(len(cheap.demand)), solution.kind
    at = list(zip(kind.tolist(), solution.server.tolist(), strict=True))
    more = (cheap.cores - lean.cores)[rows, kind]
    bytes_more = (cheap.memory - lean.memory)[rows, kind]
    cores = {place: int(cheap.capacity[place[0]]) for place in at}
    memory = {place: int(cheap.memory_capacity[place[0]]) for place in at}
    for i, place in enumerate(at):
        cores[place] -= int(lean.cores[i, place[0]])
        memory[place] -= int(lean.memory[i, place[0]])
    saved = (lean.cost[rows, kind] - cheap.cost[rows, kind]) / (np.maximum(more, 1) if by_core else 1)
    taken: list[int] = []
    for i in np.argsort(-saved, kind="stable").tolist():
        if more[i] <= cores[at[i]] and bytes_more[i] <= memory[at[i]]:
            cores[at[i]] -= int(more[i])
            memory[at[i]] -= int(bytes_more[i])
            taken.append(i)
    return _with_cells(lean, cheap, taken, kind[taken].tolist())


def _with_cells(lean: Problem, cheap: Problem, rows: list[int], kinds: list[int]) -> Problem:
    """Lean, but for these cells."""
    copies = {name: getattr(lean, name).copy() for name in ("cost", "cores", "memory", "watts", "per_core_s")}
    for name, values in copies.items():
        values[rows, kinds] = getattr(cheap, name)[rows, kinds]
    cells = set(zip(rows, kinds, strict=True))
    variant = {cell: name for cell, name in lean.variant.items() if cell not in cells}
    variant |= {cell: cheap.variant[cell] for cell in cells if cell in cheap.variant}
    return replace(lean, variant=variant, **copies)
