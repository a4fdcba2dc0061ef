"""Drift: a rate, E or W that has left the spread it was planned with, and the plan for what is seen instead.

Owns what counts as drift and what is told of it. Rates are compared by what chance allows (three standard deviations
of a Poisson count); E and W by the interval of the function's profile where there is one, else by a fifth, and in both
cases by three standard errors of what was seen. An E above the plan's is no drift: the cores that were given out are
enough, and who has a machine to himself is faster.
"""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean
from typing import Final, Literal

import msgspec

from wattloom.history.observed_calls import Observed, spread
from wattloom.load_testing.carried import Carried
from wattloom.planning.instance import Clock
from wattloom.planning.making import Wishes, replan
from wattloom.planning.plan import Assignment, Demand, Plan
from wattloom.planning.problem import Terms
from wattloom.workload.function_profile import Figure, FunctionProfile, FunctionProfiles, exact

DEVIATIONS: Final = 3.0
USUAL_SPREAD: Final = 0.2
"""Of E and W whose spread nobody knows: one part in five."""
ENOUGH: Final = 20
"""Calls before E or W is judged."""
REPLAN_S: Final = 2.0
UNITS: Final = {"rate": "req/s", "E": "executions/s/core", "W": "J"}


class Drift(msgspec.Struct, frozen=True):
    """One figure that is not as planned."""

    function: str
    what: Literal["rate", "E", "W"]
    seen: float
    planned: float
    low: float
    high: float
    """Between these it would have been as planned."""

    def __str__(self) -> str:
        return f"{self.function}: {self.seen:.3g} {UNITS[self.what]}, planned for {self.planned:.3g}"


def drifts(
    carried: Carried,
    asked: dict[str, int],
    seconds: float,
    observed: dict[str, Observed],
    joules: dict[str, list[float]],
    profiles: FunctionProfiles,
) -> list[Drift]:
    """What is not as planned, by function, at the scale at which the plan is carried out. `asked`: calls that were due
    in so many seconds."""
    found: list[Drift] = []
    every = carried.plan.assignments
    for function in dict.fromkeys(each.function for each in every):
        parts = [each for each in every if each.function == function]
        found += _rate(function, parts, asked.get(function, 0), seconds)
        seen = observed.get(function)
        if seen is not None and len(seen.seconds) >= ENOUGH and len(parts) == 1:
            profile = profiles.of_build(function, carried.machine_of(parts[0].server), parts[0].variant)
            found += _speed(parts[0], seen, profile, carried.speed)
            found += _cost(parts[0], joules.get(function, []), profile)
    return found


def _rate(function: str, parts: Sequence[Assignment], count: int, seconds: float) -> list[Drift]:
    planned = sum(each.rate for each in parts)
    reach = DEVIATIONS * sqrt(planned * seconds) + 1.0
    low, high = max(0.0, planned - reach / seconds), planned + reach / seconds
    seen = count / seconds
    return [] if low <= seen <= high else [Drift(function, "rate", seen, planned, low, high)]


def _speed(part: Assignment, seen: Observed, profile: FunctionProfile | None, speed: float) -> list[Drift]:
    """Below both the profile's interval and what was planned with, which may be a low quantile of it."""
    found = seen.per_core_s
    if found is None:
        return []
    error = DEVIATIONS * spread(seen.seconds) / fmean(seen.seconds)
    low, high = _bounds(part.per_core_s, None, error)
    if profile is not None and profile.per_core_s.low < profile.per_core_s.high:
        low = min(profile.per_core_s.low * speed, part.per_core_s) * max(0.0, 1.0 - error)
        high = max(profile.per_core_s.high * speed, part.per_core_s) * (1.0 + error)
    return [] if found >= low else [Drift(part.function, "E", found, part.per_core_s, low, high)]


def _cost(part: Assignment, joules: list[float], profile: FunctionProfile | None) -> list[Drift]:
    if part.watts is None or not part.rate > 0.0 or len(joules) < ENOUGH:
        return []
    planned, found = part.watts / part.rate, fmean(joules)
    error = DEVIATIONS * spread(joules) / found if found > 0.0 else 0.0
    low, high = _bounds(planned, None if profile is None else profile.joules, error)
    return [] if low <= found <= high else [Drift(part.function, "W", found, planned, low, high)]


def _bounds(planned: float, figure: Figure | None, error: float) -> tuple[float, float]:
    """The profile's interval around what was planned, or the usual one, with what is seen as unsure as it is."""
    down, up = 1.0 - USUAL_SPREAD, 1.0 + USUAL_SPREAD
    if figure is not None and figure.low < figure.high:
        down, up = figure.low / figure.value, figure.high / figure.value
    return planned * max(0.0, down - error), planned * (up + error)


# -- another plan ------------------------------------------------------------------------------------------------------


def planned_profiles(plan: Plan) -> FunctionProfiles:
    """What a plan itself knows: E and W of each function on the machine it was put on."""
    machines = {each.name: each.machine for each in plan.servers}
    rows = {
        (each.function, machines[each.server], each.variant): FunctionProfile(
            function=each.function,
            machine=machines[each.server],
            variant=each.variant,
            per_core_s=exact(each.per_core_s),
            joules=exact(each.watts / each.rate) if each.watts and each.rate > 0.0 else None,
            source="the plan",
        )
        for each in plan.assignments
        if each.server in machines
    }
    return FunctionProfiles(tuple(rows.values()))


def replanned(
    carried: Carried,
    found: Sequence[Drift],
    profiles: FunctionProfiles,
    move_price: float,
    clock: Clock = lambda: 0.0,
) -> Plan:
    """The original plan, made anew for what is seen, with few moves. NoPlan (an InputError) where nothing fits."""
    plan = carried.original
    seen: dict[tuple[str, str], float] = {(each.function, each.what): each.seen for each in found}
    demand = [_demand(each, seen.get((each.function, "rate")), carried.scale) for each in plan.demand]
    known = planned_profiles(plan).merged(profiles.rows)
    rows = [_updated(each, plan, known, seen, carried.speed) for each in plan.assignments]
    terms = Terms(goal=plan.goal, core_price_w=plan.core_price_w, quantile=plan.quantile)
    wishes = Wishes(policy=plan.policy, terms=terms, split=_is_split(plan), seconds=REPLAN_S)
    known = known.merged(row for row in rows if row is not None)
    return replan(plan, demand, plan.servers, known, move_price, wishes, clock)


def _demand(wanted: Demand, seen: float | None, scale: float) -> Demand:
    return wanted if seen is None else msgspec.structs.replace(wanted, rate=seen / scale)


def _updated(
    part: Assignment, plan: Plan, known: FunctionProfiles, seen: dict[tuple[str, str], float], speed: float
) -> FunctionProfile | None:
    """The function's profile with what was seen in place of what was planned with."""
    machine = next((each.machine for each in plan.servers if each.name == part.server), "")
    row = known.of_build(part.function, machine, part.variant)
    faster, dearer = seen.get((part.function, "E")), seen.get((part.function, "W"))
    if row is None or (faster is None and dearer is None):
        return None
    return msgspec.structs.replace(
        row,
        per_core_s=row.per_core_s if faster is None else _around(faster / speed, row.per_core_s),
        joules=row.joules if dearer is None else exact(dearer),
        source=f"{row.source}; seen while driving",
    )


def _around(value: float, figure: Figure) -> Figure:
    """What was seen, with the spread that is known: a low quantile of it is to be planned with again."""
    return Figure(value, value * figure.low / figure.value, value * figure.high / figure.value)


def _is_split(plan: Plan) -> bool:
    functions = [each.function for each in plan.assignments]
    return len(set(functions)) < len(functions)
