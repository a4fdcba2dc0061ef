"""What stands in the way where nothing fits, and what would help.

Owns the sentences: functions that no server may hold, cores or bytes that are too few and by how much, rates that would
fit.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Final

import numpy as np

from wattloom.errors import InputError, MissingExtra
from wattloom.planning.highs import missing_room
from wattloom.planning.instance import Deadline, Instance
from wattloom.planning.problem import Problem, cores_needed, why_not

MOST_NAMED: Final = 3
STEPS: Final = 12


class NoPlan(InputError):
    """There is no plan, or none was found in time; says which, and what would help."""


def refuse_homeless(problem: Problem) -> None:
    """Functions that no server can hold are named first."""
    homeless = np.flatnonzero(~np.isfinite(problem.cost).any(axis=1)).tolist()
    if not homeless:
        return
    i = homeless[0]
    reasons = dict.fromkeys(f"{kind.server.name}: {why_not(problem, i, t)}" for t, kind in enumerate(problem.kinds))
    said = "; ".join(list(reasons)[:MOST_NAMED]) + (
        f"; {len(reasons) - MOST_NAMED} more" if len(reasons) > MOST_NAMED else ""
    )
    others = f" ({len(homeless) - 1:,} more functions likewise)" if len(homeless) > 1 else ""
    too_large = any(" cores, has " in reason or " bytes, has " in reason for reason in reasons)
    help_ = ". One server is too small: split it (--split), or lower its rate" if too_large else ""
    raise NoPlan(f"functions.{problem.demand[i].function}", f"fits no server: {said}{others}{help_}")


def no_room(problem: Problem, policy: str, i: int) -> NoPlan:
    """A simple policy does not look ahead."""
    wanted = problem.demand[i]
    return NoPlan(
        f"functions.{wanted.function}",
        f"finds no room left under {policy}, which does not look ahead: another policy may, as energy-aware",
    )


def nothing_fits(problem: Problem, instance: Instance, deadline: Deadline, *, proven: bool) -> NoPlan:
    """Which capacity binds, by how much, and how much lower rates would fit."""
    if not proven:
        words = f"no plan was found in {deadline.spent:.0f} s, and it is not proven that there is none"
        return NoPlan("seconds", f"{words}: give more --seconds{_lower_rates(problem, instance, deadline)}")
    try:
        cores, memory = missing_room(instance)
    except MissingExtra:
        return NoPlan("servers", "nothing fits")
    if sum(memory) > 0 and sum(cores) == 0:
        return NoPlan(
            "memory", f"nothing fits: {_on_kinds(problem, memory, 'bytes')}{_lower_rates(problem, instance, deadline)}"
        )
    if sum(cores) > 0:
        return NoPlan(
            "cores", f"nothing fits: {_on_kinds(problem, cores, 'cores')}{_lower_rates(problem, instance, deadline)}"
        )
    return NoPlan(
        "servers",
        "nothing fits: there are cores enough in sum, but each function must be on one server, and they leave gaps; "
        f"--split would help{_lower_rates(problem, instance, deadline)}",
    )


def _on_kinds(problem: Problem, missing: Sequence[int], unit: str) -> str:
    by_arch: dict[str, int] = {}
    for kind, more in zip(problem.kinds, missing, strict=True):
        if more > 0:
            name = kind.server.arch or kind.server.machine
            by_arch[name] = by_arch.get(name, 0) + more
    return " and ".join(f"at least {more:,} more {unit} on {name}" for name, more in by_arch.items())


def _lower_rates(problem: Problem, instance: Instance, deadline: Deadline) -> str:
    """How much lower all rates would have to be, tried by halving as long as there is time."""
    from wattloom.planning.solving import fits

    low, high = 0.0, 1.0
    for _ in range(STEPS):
        if deadline.over:
            break
        middle = (low + high) / 2.0
        if fits(scaled(problem, instance, middle)):
            low = middle
        else:
            high = middle
    percent = ceil(1000.0 * (1.0 - low)) / 10.0
    return f", or {percent:g}% lower rates" if low > 0.0 else ""


def scaled(problem: Problem, instance: Instance, factor: float) -> Instance:
    """The same with all rates lower."""
    rates = factor * np.array([each.rate for each in problem.demand], dtype=float)[:, None]
    cpu = np.array([each.cpu for each in problem.demand], dtype=float)[:, None]
    cores = cores_needed(rates, problem.per_core_s, cpu)
    memory = instance.memory
    if memory is not None:
        memory = (np.array([each.memory for each in problem.demand], dtype=float)[:, None] * cores).astype(np.int64)
    return replace(instance, cores=cores, memory=memory)
