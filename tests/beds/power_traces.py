"""Runs of a machine whose truth is known: who ran when, what a slow power meter said, and what each function cost.

Owns invented machines (how load becomes watts), invented work (arrivals and durations) and the meter's faults: lag,
averaging, noise, rounding, lost samples. Truth is what leaving one function out would have saved. Machines and faults
come in two sets, so that an estimator can be tuned on one and tried on the other.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tests.beds.power_machines import MACHINES, UNSEEN_MACHINES, Machine, make_machine

Array = NDArray[np.float64]

STEP_S: Final = 0.1
MOST_ATTEMPTS: Final = 100
LEAST_SHARE: Final = 0.03
"""A function that matters less has no percentage worth speaking of: another run is drawn."""
BEFORE_S: Final = 60.0
"""Seconds before the first and after the last call, so that meters with a memory are settled."""


@dataclass(frozen=True, slots=True)
class Calls:
    """Who ran when."""

    start: Array
    end: Array
    function: NDArray[np.intp]

    def without(self, function: int) -> "Calls":
        kept = self.function != function
        return Calls(self.start[kept], self.end[kept], self.function[kept])


@dataclass(frozen=True, slots=True)
class MeterFaults:
    """What stands between the machine's draw and the figures in a file."""

    lag_s: float = 1.5
    window_s: float = 1.0
    every_s: float = 1.0
    white_w: float = 1.0
    slow_w: float = 0.5
    slow_s: float = 15.0
    drift_w: float = 0.0
    background_w: float = 0.0
    step_w: float = 0.0
    lost: float = 0.0
    spikes: float = 0.0
    jitter_s: float = 0.0
    smoothing_s: float = 0.0
    """A memory that fades: what is between the plug and the figure in some supplies and controllers."""
    held_s: float = 0.0
    """A figure is shown until the next one comes, so many seconds later."""
    around_s: float = 0.0
    """Readings before the first and after the last call."""


@dataclass(frozen=True, slots=True)
class PowerTrace:
    """A recorded run and its truth."""

    name: str
    time: Array
    watts: Array
    calls: Calls
    names: list[str]
    marginal_j: Array
    """Per call: energy of the run less that of the same run without the function."""
    active_j: float
    idle_w: float
    lag_s: float
    """Age of the middle of the newest interval that a reading shows."""
    counts: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))


def make_trace(seed: int, *, unseen: bool = False, seconds: float = 900.0, functions: int = 4) -> PowerTrace:
    """A random run. `unseen`: a machine, arrivals and faults of the second set."""
    kinds = UNSEEN_MACHINES if unseen else MACHINES
    kind = kinds[seed % len(kinds)]
    for attempt in range(MOST_ATTEMPTS):
        rng = np.random.default_rng([seed, int(unseen), attempt])
        concurrency = rng.uniform(2.0, 12.0)
        machine = make_machine(kind, functions, concurrency, rng)
        work = _work(rng, seconds, functions, concurrency, unseen)
        faults = _faults(rng, unseen, machine.full_w - machine.idle_w)
        trace = record(kind, machine, work, faults, seconds, rng)
        saved = trace.marginal_j * trace.counts
        if saved.min() > LEAST_SHARE * saved.sum():
            break
    return trace


def record(
    name: str, machine: Machine, work: Calls, faults: MeterFaults, seconds: float, rng: np.random.Generator
) -> PowerTrace:
    """What happens when this machine gets this work under this meter."""
    functions = machine.functions
    ran = machine.run(work)
    draw = machine.draw(_concurrency(ran, functions, seconds))
    saved = np.empty(functions)
    for each in range(functions):
        rest = machine.run(work.without(each)) if machine.cores is not None else ran.without(each)
        saved[each] = (draw - machine.draw(_concurrency(rest, functions, seconds))).sum() * STEP_S
    counts = np.bincount(work.function, minlength=functions)
    time, watts = _metered(machine.idle_w + draw, faults, seconds, rng)
    return PowerTrace(
        name=name,
        time=time,
        watts=watts,
        calls=ran,
        names=[f"f{each}" for each in range(functions)],
        marginal_j=saved / np.maximum(counts, 1),
        active_j=float(draw.sum() * STEP_S),
        idle_w=machine.idle_w,
        lag_s=faults.lag_s + min(faults.window_s, faults.every_s) / 2,
        counts=counts,
    )


# -- work --------------------------------------------------------------------------------------------------------------


def _work(rng: np.random.Generator, seconds: float, functions: int, concurrency: float, unseen: bool) -> Calls:
    shares = rng.dirichlet(np.full(functions, 4.0)) * concurrency
    arrivals: list[Callable[..., tuple[Array, Array]]] = [_poisson, _closed, _bursty, _periodic]
    parts = []
    for share in shares:
        length = float(np.exp(rng.uniform(np.log(0.15), np.log(15.0))))
        spread = rng.uniform(0.05, 0.6)
        kind = arrivals[int(rng.integers(4 if unseen else 3))]
        parts.append(kind(rng, seconds, share, length, spread))
    return Calls(
        np.concatenate([start for start, _ in parts]),
        np.concatenate([np.minimum(end, seconds) for _, end in parts]),
        np.repeat(np.arange(functions), [len(start) for start, _ in parts]),
    )


def _lengths(rng: np.random.Generator, count: int, length: float, spread: float) -> Array:
    return np.asarray(length * np.exp(rng.normal(-(spread**2) / 2, spread, count)))


def _poisson(
    rng: np.random.Generator, seconds: float, share: float, length: float, spread: float
) -> tuple[Array, Array]:
    start = np.sort(rng.uniform(0, seconds, max(1, rng.poisson(share * seconds / length))))
    return start, start + _lengths(rng, len(start), length, spread)


def _closed(
    rng: np.random.Generator, seconds: float, share: float, length: float, spread: float
) -> tuple[Array, Array]:
    """Clients that call, think, and call again."""
    clients = max(1, round(share * rng.uniform(1.0, 1.6)))
    thinking = max(0.02, length * (clients / share - 1.0))
    starts, ends = [], []
    for _ in range(clients):
        lengths = _lengths(rng, int(3 * seconds / length) + 10, length, spread)
        pauses = rng.exponential(thinking, len(lengths))
        begin = rng.uniform(0, thinking) + np.concatenate([[0.0], np.cumsum(lengths + pauses)[:-1]])
        kept = begin < seconds
        starts.append(begin[kept])
        ends.append((begin + lengths)[kept])
    return np.concatenate(starts), np.concatenate(ends)


def _bursty(
    rng: np.random.Generator, seconds: float, share: float, length: float, spread: float
) -> tuple[Array, Array]:
    """Quiet and busy spells of half a minute or so."""
    edges = np.concatenate([[0.0], np.cumsum(rng.exponential(30.0, int(seconds / 10)))])
    busy = rng.random(len(edges)) < 0.5
    start = np.sort(rng.uniform(0, seconds, max(1, rng.poisson(2 * share * seconds / length))))
    start = start[busy[np.searchsorted(edges, start) - 1]]
    start = start if len(start) else np.array([rng.uniform(0, seconds)])
    return start, start + _lengths(rng, len(start), length, spread)


def _periodic(
    rng: np.random.Generator, seconds: float, share: float, length: float, spread: float
) -> tuple[Array, Array]:
    """Calls at even distances, a few seconds of chance around each."""
    every = length / share
    start = np.arange(rng.uniform(0, every), seconds, every)
    start = np.clip(start + rng.normal(0, 0.2 * every, len(start)), 0, seconds - 0.01)
    return start, start + _lengths(rng, len(start), length, spread)


def _concurrency(calls: Calls, functions: int, seconds: float) -> Array:
    """Calls of each function under way, averaged over steps."""
    edges: Array = np.asarray(
        np.arange(round((2 * BEFORE_S + seconds) / STEP_S) + 1) * STEP_S - BEFORE_S, dtype=np.float64
    )
    found = np.zeros((len(edges) - 1, functions))
    for each in range(functions):
        mine = calls.function == each
        found[:, each] = np.diff(_run_until(edges, calls.start[mine]) - _run_until(edges, calls.end[mine])) / STEP_S
    return np.where(found > 1e-6, found, 0.0)


def _run_until(edges: Array, moments: Array) -> Array:
    """Seconds since each moment, summed over the moments that have passed."""
    ordered = np.sort(moments)
    passed = np.searchsorted(ordered, edges)
    return np.asarray(passed * edges - np.concatenate([[0.0], np.cumsum(ordered)])[passed])


# -- the meter ---------------------------------------------------------------------------------------------------------


def _faults(rng: np.random.Generator, unseen: bool, active_w: float) -> MeterFaults:
    noisy = active_w / 100
    return MeterFaults(
        lag_s=float(rng.uniform(-1.0, 5.0) if unseen else rng.uniform(0.0, 4.0)),
        window_s=float(rng.choice([0.1, 1.0, 1.0, 2.0, 3.0, 5.0] if unseen else [0.1, 1.0, 1.0, 2.0, 3.0])),
        every_s=float(rng.choice([0.5, 1.0, 1.0, 1.0, 2.0, 5.0] if unseen else [1.0])),
        white_w=float(rng.uniform(0.2, 2.0) * noisy),
        slow_w=float(rng.uniform(0.0, 2.0) * noisy),
        slow_s=float(rng.uniform(5.0, 60.0)),
        drift_w=float(rng.choice([0.0, 3.0]) * noisy),
        background_w=float(rng.choice([0.0, 0.0, 4.0]) * noisy),
        step_w=float(rng.choice([0.0, 1.0])),
        lost=float(rng.choice([0.0, 0.02, 0.1] if unseen else [0.0, 0.02])),
        spikes=float(rng.choice([0.0, 0.005])),
        jitter_s=float(rng.choice([0.0, 0.05])),
        smoothing_s=float(rng.choice([0.0, 0.0, 1.0, 2.0])) if unseen else 0.0,
        around_s=float(rng.choice([0.0, 20.0])),
    )


def _metered(draw: Array, faults: MeterFaults, seconds: float, rng: np.random.Generator) -> tuple[Array, Array]:
    draw = _smoothed(draw + _disturbance(len(draw), faults, rng), faults.smoothing_s)
    joules = np.concatenate([[0.0], np.cumsum(draw) * STEP_S])
    edges = np.arange(len(joules)) * STEP_S - BEFORE_S
    time = np.arange(-faults.around_s, seconds + faults.around_s + 1e-9, faults.every_s)
    time = time + rng.uniform(0, 1) * faults.jitter_s + np.abs(rng.normal(0, faults.jitter_s, len(time)))
    time = np.maximum.accumulate(time)
    seen = time - faults.lag_s
    watts = (np.interp(seen, edges, joules) - np.interp(seen - faults.window_s, edges, joules)) / faults.window_s
    watts = watts + rng.normal(0, faults.white_w, len(time))
    if faults.held_s:
        _, first, block = np.unique(np.floor(time / faults.held_s), return_index=True, return_inverse=True)
        watts = watts[first[block]]
    spiked = rng.random(len(time)) < faults.spikes
    watts[spiked] *= rng.uniform(0.3, 3.0, int(spiked.sum()))
    if faults.step_w:
        watts = np.round(watts / faults.step_w) * faults.step_w
    kept = (rng.random(len(time)) >= faults.lost) & np.concatenate([[True], np.diff(time) > 0])
    return time[kept], np.maximum(watts[kept], 0.0)


def _smoothed(draw: Array, seconds: float) -> Array:
    if not seconds:
        return draw
    fading = np.exp(-np.arange(0.0, 8.0 * seconds, STEP_S) / seconds)
    padded = np.concatenate([np.full(len(fading) - 1, draw[0]), draw])
    return np.asarray(np.convolve(padded, fading / fading.sum(), "valid"))


def _disturbance(count: int, faults: MeterFaults, rng: np.random.Generator) -> Array:
    """Slow noise, drift as of fans, and other programs that come and go."""
    memory = np.exp(-1.0 / faults.slow_s)
    shocks = rng.normal(0, faults.slow_w * np.sqrt(1 - memory**2), int(count * STEP_S) + 2)
    slow, value = np.empty(len(shocks)), 0.0
    for at, shock in enumerate(shocks):
        value = memory * value + shock
        slow[at] = value
    moments = np.arange(count) * STEP_S
    drift = faults.drift_w * np.sin(2 * np.pi * moments / rng.uniform(600, 3000) + rng.uniform(0, 6))
    flips = np.concatenate([[0.0], np.cumsum(rng.exponential(40.0, int(count * STEP_S / 5)))])
    on = rng.random(len(flips)) < 0.2
    background = faults.background_w * on[np.searchsorted(flips, moments, side="right") - 1]
    return np.asarray(np.interp(moments, np.arange(len(slow)), slow) + drift + background)
