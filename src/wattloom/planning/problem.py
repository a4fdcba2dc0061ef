"""The problem behind a plan: cost and cores of each function on each kind of server, as matrices.

Owns how demand, servers and function profiles become numbers: cores A = ceil(R/E), watts W x R, who may go where and
why not, and that equal servers are one kind. Solving is its neighbours' business.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from wattloom.planning.plan import Demand, Goal, Server
from wattloom.workload.function_profile import Figure, FunctionProfiles

Numbers = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]

MOST_NEEDED: Final = 1 << 40
"""Cores of one function: more than all servers have, and still a whole number that can be added up."""
MOST_BYTES: Final = 1 << 62
LOW_END: Final = 0.05
"""A figure's low end is its 5% quantile."""


@dataclass(frozen=True)
class Kind:
    """Servers that are equal in all but their names."""

    server: Server
    """One of them."""
    members: tuple[int, ...]
    """Their places in the list of servers."""

    @property
    def count(self) -> int:
        return len(self.members)


@dataclass(frozen=True)
class Problem:
    """Functions (rows) and kinds of servers (columns)."""

    demand: tuple[Demand, ...]
    servers: tuple[Server, ...]
    kinds: tuple[Kind, ...]
    goal: Goal
    cost: Numbers
    """In the goal's measure; infinite: it cannot be there."""
    cores: Wholes
    memory: Wholes
    watts: Numbers
    """What executions draw there; nan: not known."""
    per_core_s: Numbers
    variant: dict[tuple[int, int], str]
    """The build, by function and kind, where it has a name."""
    moved: npt.NDArray[np.bool_]
    """Whether a function would have to move for it."""
    move_price: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def capacity(self) -> Wholes:
        """Cores of one server of each kind."""
        return np.array([kind.server.cores for kind in self.kinds], dtype=np.int64)

    @property
    def memory_capacity(self) -> Wholes:
        """Bytes of one server of each kind; those that are not counted have room for all."""
        return np.array([kind.server.memory or MOST_BYTES for kind in self.kinds], dtype=np.int64)

    @property
    def counts(self) -> Wholes:
        return np.array([kind.count for kind in self.kinds], dtype=np.int64)

    @property
    def on_cost(self) -> Numbers:
        """What one more server of a kind costs when it is on instead of off, in the goal's measure."""
        return np.array([switching(kind.server, self.goal) for kind in self.kinds])

    @property
    def counts_memory(self) -> bool:
        return bool(self.memory.any()) and any(kind.server.memory for kind in self.kinds)


@dataclass(frozen=True)
class Terms:
    """What is to be planned for, beside demand and servers."""

    goal: Goal = "energy"
    core_price_w: float = 1.0
    """Goal `weighted`: watts that a core is worth."""
    quantile: float = 0.5
    """Of E: 0.5 plans for its middle, 0.05 for what it is above of nineteen times out of twenty."""
    move_price: float = 0.0
    """In the goal's measure, of a function that is elsewhere than before."""


def switching(server: Server, goal: Goal) -> float:
    """What the server costs more when it is on; 0 where it is on anyway, or nobody knows what it draws."""
    if goal == "cores" or not server.may_be_off or server.idle_w is None:
        return 0.0
    return max(0.0, server.idle_w - server.off_w)


def build_problem(
    demand: Sequence[Demand],
    servers: Sequence[Server],
    profiles: FunctionProfiles,
    terms: Terms,
    homes: Mapping[str, frozenset[str]] | None = None,
) -> Problem:
    """Matrices of a demand on servers. `homes`: servers where a function is already; elsewhere it costs a move."""
    kinds = merged(servers) if homes is None else tuple(Kind(each, (at,)) for at, each in enumerate(servers))
    machines = list(dict.fromkeys(kind.server.machine for kind in kinds))
    of_kind = np.array([machines.index(kind.server.machine) for kind in kinds], dtype=np.int64)
    speed, joules, variants = _figures(demand, machines, profiles, terms.quantile)
    rates = np.array([each.rate for each in demand], dtype=float)[:, None]
    cores = cores_needed(rates, speed, np.array([each.cpu for each in demand], dtype=float)[:, None])[:, of_kind]
    memory = _memory(demand, cores)
    watts = (joules * rates)[:, of_kind]
    allowed = _allowed(demand, kinds, speed[:, of_kind], cores, memory)
    variant = {(i, t): name for (i, j), name in variants.items() for t in np.flatnonzero(of_kind == j).tolist()}
    moved = _moved(demand, kinds, homes)
    cost = costs(terms, watts, cores, allowed) + terms.move_price * moved
    notes = _idle_notes(servers, terms.goal)
    return Problem(
        tuple(demand),
        tuple(servers),
        kinds,
        terms.goal,
        cost,
        cores,
        memory,
        watts,
        speed[:, of_kind],
        variant,
        moved,
        terms.move_price,
        notes,
    )


def _figures(
    demand: Sequence[Demand], machines: Sequence[str], profiles: FunctionProfiles, quantile: float
) -> tuple[Numbers, Numbers, dict[tuple[int, int], str]]:
    """E and W by function and machine (E of 0: no profile), and names of builds."""
    speed, joules = np.zeros((len(demand), len(machines))), np.full((len(demand), len(machines)), np.nan)
    variants: dict[tuple[int, int], str] = {}
    for i, wanted in enumerate(demand):
        for j, machine in enumerate(machines):
            row = profiles.by_pair.get((wanted.function, machine))
            if row is None:
                continue
            speed[i, j] = planned_speed(row.per_core_s, quantile)
            joules[i, j] = np.nan if row.joules is None else row.joules.value
            if row.variant:
                variants[i, j] = row.variant
    return speed, joules, variants


def _moved(
    demand: Sequence[Demand], kinds: Sequence[Kind], homes: Mapping[str, frozenset[str]] | None
) -> npt.NDArray[np.bool_]:
    found = np.zeros((len(demand), len(kinds)), dtype=bool)
    at = {kind.server.name: t for t, kind in enumerate(kinds)}
    for i, wanted in enumerate(demand):
        if homes is not None and (home := homes.get(wanted.function)):
            found[i] = True
            found[i, [at[name] for name in sorted(home) if name in at]] = False
    return found


def _memory(demand: Sequence[Demand], cores: Wholes) -> Wholes:
    each = np.array([wanted.memory for wanted in demand], dtype=float)[:, None]
    return np.minimum(each * cores, float(MOST_BYTES)).astype(np.int64)


def _allowed(
    demand: Sequence[Demand], kinds: Sequence[Kind], speed: Numbers, cores: Wholes, memory: Wholes
) -> npt.NDArray[np.bool_]:
    room = np.array([kind.server.cores for kind in kinds], dtype=np.int64)
    bytes_ = np.array([kind.server.memory or MOST_BYTES for kind in kinds], dtype=np.int64)
    found: npt.NDArray[np.bool_] = (speed > 0.0) & (cores <= room) & (memory <= bytes_)
    for i, wanted in enumerate(demand):
        if wanted.arch or wanted.labels:
            found[i] &= np.array([not refused_by_kind(wanted, kind.server) for kind in kinds], dtype=bool)
    return found


def merged(servers: Sequence[Server]) -> tuple[Kind, ...]:
    """Equal servers as one kind, in the order of their first."""
    found: dict[tuple[object, ...], list[int]] = {}
    for place, each in enumerate(servers):
        key = (
            each.machine,
            each.cores,
            each.memory,
            each.arch,
            tuple(sorted(each.labels.items())),
            each.idle_w,
            each.off_w,
            each.may_be_off,
        )
        found.setdefault(key, []).append(place)
    return tuple(Kind(servers[places[0]], tuple(places)) for places in found.values())


def planned_speed(figure: Figure, quantile: float) -> float:
    """E at a quantile: on a scale of ratios, so that it stays positive."""
    if quantile >= 0.5 or figure.low >= figure.value or figure.low <= 0.0:
        return figure.value
    steps = NormalDist().inv_cdf(quantile) / NormalDist().inv_cdf(LOW_END)
    return float(figure.value * (figure.low / figure.value) ** steps)


def cores_needed(rates: Numbers, speed: Numbers, cpu: Numbers) -> Wholes:
    """A: whole cores. A ratio that is whole but for the last digits of a float is whole."""
    exactly = np.divide(
        rates, speed, out=np.full(np.broadcast_shapes(rates.shape, speed.shape), np.inf), where=speed > 0
    )
    whole = np.ceil(np.minimum(exactly, float(MOST_NEEDED)) * (1.0 - 1e-12))
    return np.where(rates > 0.0, np.maximum(whole, np.ceil(cpu)), 0.0).astype(np.int64)


def costs(terms: Terms, watts: Numbers, cores: Wholes, allowed: npt.NDArray[np.bool_]) -> Numbers:
    """In the goal's measure. Unknown watts are dearer than all that is known: a function goes there if nothing else
    is left."""
    if terms.goal == "cores":
        known = _with_unknown_last(watts, allowed)
        most = np.where(allowed, known, 0.0).max(axis=1, initial=0.0).sum()
        made = cores + (known * (0.5 / most) if most > 0.0 else 0.0)
        return np.where(allowed, made, np.inf)
    price = terms.core_price_w if terms.goal == "weighted" else 0.0
    made = watts + price * cores
    unknown = np.isnan(watts) & allowed
    if unknown.any():
        made = np.where(unknown, _surcharge(made, allowed & ~unknown) + cores, made)
    return np.where(allowed, made, np.inf)


def _with_unknown_last(watts: Numbers, allowed: npt.NDArray[np.bool_]) -> Numbers:
    """Watts for a tie: unknown ones behind all that is known. Where a function has none known there is no tie."""
    known = allowed & ~np.isnan(watts)
    last = np.where(known.any(axis=1, keepdims=True), _surcharge(watts, known), 0.0)
    return np.where(np.isnan(watts), last, watts)


def _surcharge(made: Numbers, known: npt.NDArray[np.bool_]) -> float:
    """More than moving all functions could save."""
    return 1.0 + 2.0 * float(np.where(known, made, 0.0).max(axis=1, initial=0.0).sum())


def refused_by_kind(wanted: Demand, server: Server) -> str:
    """Why a function cannot be on such a server, whatever its rate; empty: it can."""
    if wanted.arch and server.arch and server.arch not in wanted.arch:
        return f"needs {' or '.join(wanted.arch)}, is {server.arch}"
    missing = [f"{key}={value}" for key, value in wanted.labels.items() if server.labels.get(key) != value]
    return f"label {missing[0]} is missing" if missing else ""


def why_not(problem: Problem, i: int, t: int) -> str:
    """Why a function cannot be on a kind of servers; empty: it can."""
    wanted, server = problem.demand[i], problem.kinds[t].server
    if problem.per_core_s[i, t] <= 0.0:
        return f"no profile on {server.machine}"
    if words := refused_by_kind(wanted, server):
        return words
    if problem.cores[i, t] > server.cores:
        return f"needs {problem.cores[i, t]:,} cores, has {server.cores:,}"
    if server.memory and problem.memory[i, t] > server.memory:
        return f"needs {problem.memory[i, t]:,} bytes, has {server.memory:,}"
    return ""


def _idle_notes(servers: Sequence[Server], goal: Goal) -> tuple[str, ...]:
    unknown = [each.name for each in servers if each.may_be_off and each.idle_w is None]
    if not unknown or goal == "cores":
        return ()
    some = ", ".join(unknown[:3]) + (f" and {len(unknown) - 3} more" if len(unknown) > 3 else "")
    return (f"what {some} draws idle is not known: nobody can say that off is cheaper, so it stays on",)
