"""Demands, servers and profiles for tests of planning, and brute force beside them."""

from collections.abc import Sequence
from itertools import product
from math import inf

from wattloom.planning.plan import Plan, Server
from wattloom.workload.function_profile import FunctionProfile, FunctionProfiles, exact

ARM = Server(name="arm", machine="arm", cores=16, arch="aarch64", idle_w=60.0)
X86 = Server(name="x86", machine="x86", cores=12, arch="x86_64", idle_w=90.0)


def profile(function: str, machine: str, per_core_s: float, joules: float | None) -> FunctionProfile:
    return FunctionProfile(
        function=function,
        machine=machine,
        per_core_s=exact(per_core_s),
        joules=None if joules is None else exact(joules),
    )


def table(rows: dict[str, dict[str, tuple[float, float | None]]]) -> FunctionProfiles:
    """E and W by function and machine."""
    return FunctionProfiles(
        tuple(profile(name, machine, *figures) for name, by in rows.items() for machine, figures in by.items())
    )


def kept(plan: Plan) -> bool:
    """Whether every function has its rate and no server gives out more than it has."""
    rates: dict[str, float] = {}
    cores: dict[str, int] = {}
    memory: dict[str, int] = {}
    bytes_of = {each.function: each.memory for each in plan.demand}
    for each in plan.assignments:
        rates[each.function] = rates.get(each.function, 0.0) + each.rate
        cores[each.server] = cores.get(each.server, 0) + each.cores
        memory[each.server] = memory.get(each.server, 0) + each.cores * bytes_of[each.function]
        if each.cores * each.per_core_s < each.rate * (1 - 1e-9):
            return False
    reached = all(abs(rates[each.function] - each.rate) <= 1e-9 * max(1.0, each.rate) for each in plan.demand)
    fits = all(cores.get(each.name, 0) <= each.cores for each in plan.servers)
    holds = all(not each.memory or memory.get(each.name, 0) <= each.memory for each in plan.servers)
    return reached and fits and holds


def brute_force(
    cost: Sequence[Sequence[float]],
    cores: Sequence[Sequence[int]],
    room: Sequence[int],
    on_cost: Sequence[float],
    memory: Sequence[Sequence[int]] | None = None,
    memory_room: Sequence[int] | None = None,
) -> float:
    """The least cost of all assignments; infinite: there is none."""
    best = inf
    for places in product(range(len(room)), repeat=len(cost)):
        used, held = [0] * len(room), [0] * len(room)
        total = 0.0
        for i, t in enumerate(places):
            used[t] += cores[i][t]
            held[t] += memory[i][t] if memory is not None else 0
            total += cost[i][t]
        if any(a > b for a, b in zip(used, room, strict=True)):
            continue
        if memory_room is not None and any(a > b for a, b in zip(held, memory_room, strict=True)):
            continue
        best = min(best, total + sum(on_cost[t] for t in set(places)))
    return best
