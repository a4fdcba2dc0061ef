"""Invented machines: how the calls that are under way become watts above idle.

Owns two sets. The first are smooth curves as SPECpower's; the second have what such curves have not: steps of turbo, a
knee where threads share cores, a limit of memory bandwidth, a package that wakes up, and fewer cores than calls.
"""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tests.beds.power_traces import Calls

Array = NDArray[np.float64]

MACHINES: Final = ("linear", "power-law", "saturating", "published")
UNSEEN_MACHINES: Final = ("turbo", "threads", "memory", "waking", "few-cores", "counting")

CURVES: Final = (
    (0.0, 0.27, 0.36, 0.44, 0.53, 0.62, 0.71, 0.79, 0.87, 0.94, 1.0),
    (0.0, 0.21, 0.29, 0.37, 0.45, 0.54, 0.64, 0.73, 0.82, 0.92, 1.0),
    (0.0, 0.16, 0.23, 0.31, 0.38, 0.47, 0.55, 0.64, 0.77, 0.89, 1.0),
    (0.0, 0.12, 0.20, 0.27, 0.33, 0.40, 0.49, 0.59, 0.70, 0.86, 1.0),
)
"""Share of what is above idle at 0, 10, ... 100% load: percentiles 95, 75, 50, 25 of 745 SPECpower results to 2021."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Watts above idle from the calls under way; with `cores`, calls get slower when there are more of them."""

    functions: int
    idle_w: float
    full_w: float
    draw: Callable[[Array], Array]
    cores: int | None = None

    def run(self, work: "Calls") -> "Calls":
        return work if self.cores is None else _shared(work, self.cores)


def make_machine(kind: str, functions: int, concurrency: float, rng: np.random.Generator) -> Machine:
    """A random one of this kind, of a size that fits the number of calls under way."""
    weight = np.exp(rng.uniform(np.log(0.3), np.log(2.0), functions))
    most = 2.2 * concurrency * float(weight.mean())
    span = rng.uniform(40.0, 400.0)
    idle = span * rng.uniform(0.15, 1.2)
    drawn, cores = KINDS[kind](weight, most, span, rng)
    return Machine(functions, idle, idle + span, drawn, cores)


Drawn = tuple[Callable[[Array], Array], int | None]


def _linear(weight: Array, most: float, span: float, rng: np.random.Generator) -> Drawn:
    return lambda calls: span * (calls @ weight) / most, None


def _power_law(weight: Array, most: float, span: float, rng: np.random.Generator) -> Drawn:
    bend = rng.uniform(0.4, 0.95)
    return lambda calls: span * ((calls @ weight) / most) ** bend, None


def _saturating(weight: Array, most: float, span: float, rng: np.random.Generator) -> Drawn:
    bend = rng.uniform(0.5, 4.0)
    return lambda calls: span * -np.expm1(-bend * (calls @ weight) / most) / -np.expm1(-bend), None


def _published(weight: Array, most: float, span: float, rng: np.random.Generator) -> Drawn:
    curve = np.array(CURVES[int(rng.integers(len(CURVES)))])
    size = most * rng.uniform(1.0, 3.0)
    return lambda calls: span * np.interp(calls @ weight / size, np.linspace(0, 1, 11), curve), None


def _turbo(weight: Array, most: float, span: float, rng: np.random.Generator) -> Drawn:
    """Each core draws less when more are busy, in steps."""
    busy = np.sort(rng.uniform(1.0, 12.0, 3))
    factor = np.array([1.0, 0.9, 0.8, 0.68])

    def draw(calls: Array) -> Array:
        return np.asarray(span * (calls @ weight) / most * factor[np.searchsorted(busy, calls.sum(axis=1))])

    return draw, None


def _threads(weight: Array, most: float, span: float, rng: np.random.Generator) -> Drawn:
    """Beyond the number of cores, calls share them as threads and add a third."""
    cores, more = rng.uniform(3.0, 9.0), rng.uniform(0.15, 0.45)

    def draw(calls: Array) -> Array:
        under_way = calls.sum(axis=1)
        used = np.where(under_way > cores, cores + more * (under_way - cores), under_way)
        return np.asarray(span * (calls @ weight) / most * used / np.maximum(under_way, 1e-9))

    return draw, None


def _memory(weight: Array, most: float, span: float, rng: np.random.Generator) -> Drawn:
    """Part of each function's draw is memory's, which has a limit; the rest adds up."""
    share = rng.uniform(0.1, 0.8, len(weight))
    limit = most * float(share.mean()) * rng.uniform(0.3, 0.8)

    def draw(calls: Array) -> Array:
        memory = limit * -np.expm1(-(calls @ (weight * share)) / limit)
        return np.asarray(span / most * (calls @ (weight * (1 - share)) + memory))

    return draw, None


def _waking(weight: Array, most: float, span: float, rng: np.random.Generator) -> Drawn:
    """The first call wakes the package; then a gentle bend."""
    awake, bend = span * rng.uniform(0.05, 0.3), rng.uniform(0.7, 1.0)
    return lambda calls: awake * np.minimum(1.0, calls.sum(axis=1)) + span * ((calls @ weight) / most) ** bend, None


def _few_cores(weight: Array, most: float, span: float, rng: np.random.Generator) -> Drawn:
    """Now and then more calls than cores: each gets its part of them, and takes longer."""
    cores = max(2, round(most / 2.2 / float(weight.mean()) * rng.uniform(1.0, 1.6)))

    def draw(calls: Array) -> Array:
        slowed = np.minimum(1.0, cores / np.maximum(calls.sum(axis=1), 1e-9))
        return np.asarray(span * ((calls @ weight) * slowed / most) ** 0.9)

    return draw, cores


def _counting(weight: Array, most: float, span: float, rng: np.random.Generator) -> Drawn:
    """The bend hangs on how many are busy, not on what they draw."""
    bend = rng.uniform(0.02, 0.08)
    return lambda calls: span * (calls @ weight) / most / (1.0 + bend * calls.sum(axis=1)), None


KINDS: Final[dict[str, Callable[[Array, float, float, np.random.Generator], Drawn]]] = {
    "linear": _linear,
    "power-law": _power_law,
    "saturating": _saturating,
    "published": _published,
    "turbo": _turbo,
    "threads": _threads,
    "memory": _memory,
    "waking": _waking,
    "few-cores": _few_cores,
    "counting": _counting,
}


def _shared(work: "Calls", cores: int) -> "Calls":
    """Ends of calls when all that are under way share the cores evenly (exact: a clock of work done per call)."""
    order = np.argsort(work.start, kind="stable")
    start, need = work.start[order], (work.end - work.start)[order]
    ends = np.empty(len(start))
    waiting: list[tuple[float, int]] = []
    heapify(waiting)
    now = done = 0.0
    for at in [*range(len(start)), -1]:
        until = start[at] if at >= 0 else np.inf
        while waiting:
            pace = min(1.0, cores / len(waiting))
            finish = now + (waiting[0][0] - done) / pace
            if finish > until:
                done += (until - now) * pace
                break
            done, now = waiting[0][0], finish
            ends[heappop(waiting)[1]] = finish
        now = until
        if at >= 0:
            heappush(waiting, (done + need[at], at))
    back = np.empty(len(start))
    back[order] = ends
    return type(work)(work.start, back, work.function)
