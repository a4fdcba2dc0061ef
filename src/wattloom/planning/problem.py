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

from wattloom.planning.instance import Instance
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
    trades: bool = False
    """Whether somewhere another build costs more and needs fewer cores."""

    @property
    def instance(self) -> Instance:
        """What a solver sees of it."""
        return Instance(
            cost=self.cost,
            cores=self.cores,
            memory=self.memory if self.counts_memory else None,
            room=self.capacity,
            memory_room=self.memory_capacity,
            counts=self.counts,
            on_cost=self.on_cost,
        )

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
    *,
    lean: bool = False,
) -> Problem:
    """Matrices of a demand on servers. `homes`: servers where a function is already; elsewhere it costs a move.

    Of several builds that fit a server it is the one that costs least there in the goal's measure; `lean`: the one that
    needs the fewest cores.
    """
    kinds = merged(servers) if homes is None else tuple(Kind(each, (at,)) for at, each in enumerate(servers))
    every = [_cells(demand, kinds, layer) for layer in _layers(demand, kinds, profiles, terms.quantile)]
    taken, chosen = _best_builds(every, terms, lean=lean)
    variant = _variants(demand, kinds, profiles, chosen)
    moved = _moved(demand, kinds, homes)
    cost = costs(terms, taken.watts, taken.cores, taken.allowed) + terms.move_price * moved
    return Problem(
        tuple(demand),
        tuple(servers),
        kinds,
        terms.goal,
        cost,
        taken.cores,
        taken.memory,
        taken.watts,
        taken.speed,
        variant,
        moved,
        terms.move_price,
        _idle_notes(servers, terms.goal),
        any(bool((each.allowed & (each.cores < taken.cores)).any()) for each in every),
    )


# -- builds ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cells:
    """What one build of each function needs on each kind of servers."""

    speed: Numbers
    """E; 0: there is no such build."""
    cores: Wholes
    memory: Wholes
    watts: Numbers
    allowed: npt.NDArray[np.bool_]


def _layers(
    demand: Sequence[Demand], kinds: Sequence[Kind], profiles: FunctionProfiles, quantile: float
) -> list[tuple[Numbers, Numbers]]:
    """E and W by function and kind: of first builds, of second ones where there are, and so on."""
    machines = list(dict.fromkeys(kind.server.machine for kind in kinds))
    of_kind = np.array([machines.index(kind.server.machine) for kind in kinds], dtype=np.int64)
    rows = {(i, j): profiles.builds.get((wanted.function, machine), ())
            for i, wanted in enumerate(demand) for j, machine in enumerate(machines)}  # fmt: skip
    size, many = (len(demand), len(machines)), max([1, *map(len, rows.values())])
    found = [(np.zeros(size), np.full(size, np.nan)) for _ in range(many)]
    for cell, builds in rows.items():
        for (speed, joules), row in zip(found, builds, strict=False):
            speed[cell] = planned_speed(row.per_core_s, quantile)
            joules[cell] = np.nan if row.joules is None else row.joules.value
    return [(speed[:, of_kind], joules[:, of_kind]) for speed, joules in found]


def _cells(demand: Sequence[Demand], kinds: Sequence[Kind], layer: tuple[Numbers, Numbers]) -> Cells:
    speed, joules = layer
    rates = np.array([each.rate for each in demand], dtype=float)[:, None]
    cores = cores_needed(rates, speed, np.array([each.cpu for each in demand], dtype=float)[:, None])
    memory = _memory(demand, cores)
    return Cells(speed, cores, memory, joules * rates, _allowed(demand, kinds, speed, cores, memory))


def _best_builds(every: Sequence[Cells], terms: Terms, *, lean: bool) -> tuple[Cells, Wholes]:
    """Of each cell the best build, and its number."""
    best, number = every[0], np.zeros(every[0].cores.shape, dtype=np.int64)
    for at, other in enumerate(every[1:], 1):
        wins = _before(_ranks(other, terms, lean), _ranks(best, terms, lean))
        best = Cells(
            np.where(wins, other.speed, best.speed),
            np.where(wins, other.cores, best.cores),
            np.where(wins, other.memory, best.memory),
            np.where(wins, other.watts, best.watts),
            np.where(wins, other.allowed, best.allowed),
        )
        number = np.where(wins, at, number)
    return best, number


def _ranks(cells: Cells, terms: Terms, lean: bool) -> list[npt.NDArray[np.generic]]:
    """Least is best, the first rank first. What does not fit comes last, that with the fewest cores before others."""
    unknown = np.where(cells.allowed, np.isnan(cells.watts), cells.speed <= 0.0)
    price = terms.core_price_w if terms.goal == "weighted" else 0.0
    cost = np.where(np.isnan(cells.watts), 0.0, cells.watts) + price * cells.cores
    if lean or terms.goal == "cores":
        return [~cells.allowed, cells.cores, unknown, cost]
    return [~cells.allowed, unknown, np.where(cells.allowed, cost, cells.cores), cells.cores]


def _before(
    ranks: Sequence[npt.NDArray[np.generic]], others: Sequence[npt.NDArray[np.generic]]
) -> npt.NDArray[np.bool_]:
    wins, same = np.zeros(ranks[0].shape, dtype=bool), np.ones(ranks[0].shape, dtype=bool)
    for one, other in zip(ranks, others, strict=True):
        wins |= same & np.less(one, other)
        same &= np.equal(one, other)
    return wins


def _variants(
    demand: Sequence[Demand], kinds: Sequence[Kind], profiles: FunctionProfiles, chosen: Wholes
) -> dict[tuple[int, int], str]:
    """Names of the builds that were chosen, where they have one."""
    named = {(row.function, row.machine) for row in profiles.rows if row.variant}
    found: dict[tuple[int, int], str] = {}
    for i, wanted in enumerate(demand if named else ()):
        for t, kind in enumerate(kinds):
            pair = wanted.function, kind.server.machine
            if pair in named and (name := profiles.builds[pair][int(chosen[i, t])].variant):
                found[i, t] = name
    return found


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
