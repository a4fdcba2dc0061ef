"""Making a plan: demand, servers and profiles in, a plan with its bound out.

Owns the policies by their names, splitting, what is said where nothing fits, and how a solution becomes a plan. Reads
no clock of its own: who asks brings one.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil, fsum, inf, isnan
from typing import Final

import msgspec
import numpy as np

from wattloom.errors import InputError
from wattloom.planning.diagnosis import NoPlan, no_room, nothing_fits, refuse_homeless
from wattloom.planning.instance import Clock, Deadline, Outcome, Solution, Wholes, solution_of
from wattloom.planning.plan import Assignment, Demand, Goal, Plan, Server
from wattloom.planning.problem import Problem, Terms, build_problem, switching
from wattloom.planning.simple_policies import ARM, X86, first, round_robin
from wattloom.workload.function_profile import FunctionProfiles

GOAL_OF: Final[dict[str, Goal]] = {"energy-aware": "energy", "core-aware": "cores", "weighted": "weighted"}
SIMPLE: Final = ("round-robin", "x86-first", "arm-first")
POLICIES: Final = (*GOAL_OF, *SIMPLE)
POLICY_OF: Final[dict[Goal, str]] = {goal: name for name, goal in GOAL_OF.items()}
SECONDS: Final = 30.0
FINEST: Final = 8
"""Into how many parts of a server's size functions are split before it is said that nothing fits."""


USUAL: Final = Terms()


@dataclass(frozen=True)
class Wishes:
    """How a plan is to be made."""

    policy: str = "energy-aware"
    terms: Terms = USUAL
    """Its goal is the policy's, where the policy has one."""
    split: bool = False
    seconds: float = SECONDS
    gap: float = 0.0
    """Near enough: as a part of the bound."""
    old: Plan | None = None
    """Change this plan with few moves."""
    move_price: float = 1.0
    """What a move must save, in the goal's measure."""


def make_plan(
    demand: Sequence[Demand],
    servers: Sequence[Server],
    profiles: FunctionProfiles,
    wishes: Wishes = Wishes(),
    clock: Clock = lambda: 0.0,
) -> Plan:
    """The best plan that is found in the time given. NoPlan says what stands in the way where there is none."""
    terms = replace(wishes.terms, goal=GOAL_OF.get(wishes.policy, wishes.terms.goal))
    if wishes.policy not in POLICIES:
        raise InputError("policy", f"{wishes.policy!r} is none of {', '.join(POLICIES)}")
    deadline = Deadline(clock, wishes.seconds)
    check(demand, servers)
    homes = None
    if wishes.old is not None:
        homes, terms = homes_of(wishes.old), replace(terms, move_price=wishes.move_price)
    asked = Asked(demand, servers, profiles, terms, homes)
    made = _made_of_parts(asked, wishes, deadline) if wishes.split else _made(asked, demand, wishes, deadline)
    price = terms.core_price_w if terms.goal == "weighted" else made.core_price_w
    return msgspec.structs.replace(made, quantile=terms.quantile, core_price_w=price)


def replan(
    old: Plan,
    demand: Sequence[Demand],
    servers: Sequence[Server],
    profiles: FunctionProfiles,
    price_per_move: float,
    wishes: Wishes = Wishes(),
    clock: Clock = lambda: 0.0,
) -> Plan:
    """The old plan for a new demand, other servers or better profiles, with few moves: each must save its price."""
    return make_plan(demand, servers, profiles, replace(wishes, old=old, move_price=price_per_move), clock)


def homes_of(old: Plan) -> dict[str, frozenset[str]]:
    """Where each function is."""
    found: dict[str, set[str]] = {}
    for each in old.assignments:
        found.setdefault(each.function, set()).add(each.server)
    return {function: frozenset(servers) for function, servers in found.items()}


@dataclass(frozen=True)
class Asked:
    """All that a problem is made of."""

    demand: Sequence[Demand]
    servers: Sequence[Server]
    profiles: FunctionProfiles
    terms: Terms
    homes: dict[str, frozenset[str]] | None

    def problem(self, demand: Sequence[Demand], *, lean: bool = False) -> Problem:
        return build_problem(demand, self.servers, self.profiles, self.terms, self.homes, lean=lean)


def check(demand: Sequence[Demand], servers: Sequence[Server]) -> None:
    """Refuse what cannot be planned for, by its field."""
    if not servers:
        raise InputError("servers", "there is none to plan for")
    for wanted in demand:
        if wrong := wanted.problem():
            raise InputError(f"functions.{wanted.function}.{wrong[0]}", wrong[1])
    for server in servers:
        if wrong := server.problem():
            raise InputError(f"servers.{server.name}.{wrong[0]}", wrong[1])
    for field, names in (
        ("functions", [each.function for each in demand]),
        ("servers", [each.name for each in servers]),
    ):
        twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
        if twice is not None:
            raise InputError(f"{field}.{twice}", "is there twice")


def _made(asked: Asked, parts: Sequence[Demand], wishes: Wishes, deadline: Deadline) -> Plan:
    problem = asked.problem(parts)
    refuse_homeless(problem)
    found: list[tuple[Problem, Outcome]]
    if wishes.policy in SIMPLE:
        found = [(problem, _simply(problem, wishes.policy))]
    elif problem.trades:
        from wattloom.planning.mixed_builds import solve_mixed

        found = solve_mixed(problem, asked.problem(parts, lean=True), deadline, wishes.gap)
    else:
        from wattloom.planning.solving import solve

        found = [(problem, solve(problem.instance, deadline, wishes.gap))]
    first, outcome = found[0]
    if outcome.solution is None:
        raise nothing_fits(first, first.instance, deadline, proven=outcome.bound == inf)
    return least([plan_of(each, wishes.policy, what, deadline.spent, asked.demand) for each, what in found])


def least(plans: Sequence[Plan]) -> Plan:
    """The first of those that cost least; unknown watts are dearer than all that is known."""
    return min(plans, key=lambda each: (each.active_w is None and each.goal != "cores", each.objective))


def _made_of_parts(asked: Asked, wishes: Wishes, deadline: Deadline) -> Plan:
    """Parts as large as one server holds; smaller ones as long as nothing fits, and where they cost less."""
    share = 1
    while True:
        try:
            made = _made(asked, split(asked, share), wishes, deadline)
            return _without_bound(_finer(asked, wishes, deadline, share, made), asked, share)
        except NoPlan:
            share *= 2
            if share > FINEST or deadline.over:
                raise


def _finer(asked: Asked, wishes: Wishes, deadline: Deadline, share: int, made: Plan) -> Plan:
    """The least of plans whose functions in parts are in smaller ones; of equals, that of the largest parts."""
    tried, parts = [made], split(asked, share)
    for finer in (2, 4, 8):
        smaller = split(asked, share, finer)
        if wishes.policy in SIMPLE or len(smaller) == len(parts) or share * finer > FINEST or deadline.over:
            break
        with suppress(NoPlan):
            tried.append(_made(asked, smaller, wishes, deadline))
    return least(tried)


def _without_bound(made: Plan, asked: Asked, share: int) -> Plan:
    """What was proven is so of equal parts only: of unequal ones there may be a better plan."""
    if made.bound is None or len(split(asked, share)) == len(asked.demand):
        return made
    note = "functions that one server is too small for are in equal parts; unequal ones may cost less: no bound"
    return msgspec.structs.replace(made, bound=None, notes=(*made.notes, note))


def split(asked: Asked, share: int, finer: int = 1) -> list[Demand]:
    """Functions as equal parts, each of at most a share of the largest server it may be on. Those that are in parts at
    all are in so much finer ones."""
    whole = asked.problem(asked.demand)
    parts: list[Demand] = []
    for i, wanted in enumerate(asked.demand):
        count = _parts(whole, i, share)
        if count > 1 and finer > 1:
            count = max(count, _parts(whole, i, share * finer))
        parts += [msgspec.structs.replace(wanted, rate=wanted.rate / count)] * count
    return parts


def _parts(whole: Problem, i: int, share: int) -> int:
    runs = np.flatnonzero(whole.per_core_s[i] > 0.0)
    ratios = [max(_sizes(whole, i, t, share)) for t in runs.tolist()]
    return max(1, ceil(min(ratios, default=1.0)))


def _sizes(whole: Problem, i: int, t: int, share: int) -> tuple[float, float]:
    """Cores and bytes that a function needs, in shares of such a server."""
    server = whole.kinds[t].server
    memory = whole.memory[i, t] * share / server.memory if server.memory else 0.0
    return float(whole.cores[i, t] / max(1, server.cores // share)), float(memory)


def _simply(problem: Problem, policy: str) -> Outcome:
    archs = X86 if policy == "x86-first" else ARM
    places = round_robin(problem) if policy == "round-robin" else first(problem, archs)
    if -1 in places:
        raise no_room(problem, policy, places.index(-1))
    where = {place: (t, at) for t, kind in enumerate(problem.kinds) for at, place in enumerate(kind.members)}
    pairs = np.array([where[place] for place in places], dtype=np.int64).reshape(-1, 2)
    return Outcome(solution_of(problem.instance, pairs[:, 0], pairs[:, 1]), -inf)


# -- a solution as a plan ----------------------------------------------------------------------------------------------


def plan_of(problem: Problem, policy: str, outcome: Outcome, seconds: float, demand: Sequence[Demand]) -> Plan:
    """Who runs where, what that costs, and the bound in the goal's measure."""
    assert outcome.solution is not None
    assignments = _assignments(problem, outcome.solution)
    used = {each.server for each in assignments}
    off = tuple(each.name for each in problem.servers if is_off(each, used))
    cores = sum(each.cores for each in assignments)
    unknown = [each for each in assignments if each.watts is None]
    objective, bound = _measured(problem, outcome, assignments, off)
    return Plan(
        policy=policy,
        goal=problem.goal,
        assignments=assignments,
        off=off,
        servers=problem.servers,
        demand=tuple(demand),
        active_w=None if unknown else fsum(each.watts or 0.0 for each in assignments),
        idle_w=idle_watts(problem.servers, off),
        cores=cores,
        objective=objective,
        bound=None if bound == -inf or (unknown and problem.goal != "cores") else bound,
        moves=int(problem.moved[np.arange(len(problem.demand)), outcome.solution.kind].sum()),
        move_price=problem.move_price,
        seconds=seconds,
        notes=(*problem.notes, *_unknown_notes(unknown)),
    )


def is_off(server: Server, used: set[str]) -> bool:
    """Off are servers that may be, that nothing runs on, and that are known to draw less then."""
    known = server.idle_w is not None and server.idle_w > server.off_w
    return server.may_be_off and server.name not in used and known


def idle_watts(servers: Sequence[Server], off: Sequence[str]) -> float | None:
    """What all servers draw without any execution. None: of one that is on it is not known."""
    dark = set(off)
    draws = [each.off_w if each.name in dark else each.idle_w for each in servers]
    return None if any(each is None for each in draws) else fsum(each or 0.0 for each in draws)


def _assignments(problem: Problem, solution: Solution) -> tuple[Assignment, ...]:
    """In the order of the demand; parts of a function on one server are one."""
    found: dict[tuple[str, int], Assignment] = {}
    for i, (t, at) in enumerate(zip(solution.kind.tolist(), solution.server.tolist(), strict=True)):
        wanted, place = problem.demand[i], problem.kinds[t].members[at]
        watts = float(problem.watts[i, t])
        key = wanted.function, place
        before = found.get(key)
        found[key] = Assignment(
            wanted.function,
            problem.servers[place].name,
            wanted.rate + (before.rate if before else 0.0),
            int(problem.cores[i, t]) + (before.cores if before else 0),
            None if isnan(watts) else watts + ((before.watts or 0.0) if before else 0.0),
            float(problem.per_core_s[i, t]),
            problem.variant.get((i, t), ""),
        )
    return tuple(found.values())


def _measured(
    problem: Problem, outcome: Outcome, assignments: Sequence[Assignment], off: Sequence[str]
) -> tuple[float, float]:
    """Objective and bound in the goal's measure."""
    assert outcome.solution is not None
    priced = price_of_moves(problem, outcome.solution.kind)
    if problem.goal == "cores":
        objective = float(sum(each.cores for each in assignments)) + priced
        if problem.moved.any():
            return objective, min(objective, outcome.bound - 0.5)
        return objective, min(objective, float(ceil(outcome.bound - 0.5 - 1e-6))) if outcome.bound > -inf else -inf
    dark = set(off)
    constant = fsum(
        _drawn(each, each.name in dark) for each in problem.servers if each.may_be_off and each.idle_w is not None
    )
    switched = fsum(
        switching(each, problem.goal) for each in problem.servers if each.may_be_off and each.name not in dark
    )
    known = fsum(each.watts or 0.0 for each in assignments)
    price = _price(problem, outcome.solution.kind) if problem.goal == "weighted" else 0.0
    objective = known + price + priced + constant
    return objective, min(objective, outcome.bound + constant - switched)


def _drawn(server: Server, off: bool) -> float:
    return server.off_w if off else (server.idle_w or 0.0)


def _price(problem: Problem, kind: Wholes) -> float:
    """What the cores are worth, of goal `weighted`: what is in the cost beside watts."""
    rows = np.arange(len(problem.demand))
    both = problem.cost[rows, kind] - problem.watts[rows, kind]
    return fsum(each for each in both.tolist() if not isnan(each)) - price_of_moves(problem, kind)


def price_of_moves(problem: Problem, kind: Wholes) -> float:
    return problem.move_price * float(problem.moved[np.arange(len(problem.demand)), kind].sum())


def _unknown_notes(unknown: Sequence[Assignment]) -> tuple[str, ...]:
    if not unknown:
        return ()
    some = ", ".join(f"{each.function} on {each.server}" for each in unknown[:3])
    more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
    return (f"watts are not known of {some}{more}: nothing better was left; the total is of the others, without bound",)
