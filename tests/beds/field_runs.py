"""Runs as they are met in the field: functions on a platform, a machine that heats and slows down, a poor meter.

Owns machines that are simulated call by call (cores that are shared, frequency that falls as more are busy, calls that
wait before they compute, a supply with losses, heat that comes slowly), what a platform adds (starting a container
before the logged begin, work per call, queues) and what stands between draw and file: two clocks, averaging, rounding,
stale figures, gaps. Nothing here has the form of the estimator's model. Truth is what leaving one function out would
have saved, with all other calls asked for at the same moments. Families come in two sets: one may be looked at while an
estimator is made, the other is for judging it once.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tests.beds.power_traces import Calls, PowerTrace

Array = NDArray[np.float64]

STEP_S: Final = 0.1
QUIET_S: Final = 90.0
"""Simulated before the first and after the last call."""
LEAST_SHARE: Final = 0.04
"""A function that matters less has no percentage worth speaking of: another run is drawn."""
MOST_ATTEMPTS: Final = 40
WARM_S: Final = 120.0
"""After so many seconds without a call, a container is gone."""


@dataclass(frozen=True, slots=True)
class Field:
    """Where a run comes from. Pairs are ranges to draw from."""

    cores: tuple[int, int] = (4, 12)
    busy: tuple[float, float] = (0.15, 0.7)
    """Cores that are asked for, of those there are."""
    functions: int = 4
    core_w: tuple[float, float] = (5.0, 15.0)
    idle_w: tuple[float, float] = (15.0, 60.0)
    awake_w: tuple[float, float] = (0.0, 6.0)
    slowest: tuple[float, float] = (0.75, 1.0)
    """Frequency with all cores busy, of that with one."""
    power_of_speed: tuple[float, float] = (1.0, 2.5)
    length_s: tuple[float, float] = (0.3, 12.0)
    waiting: tuple[float, float] = (0.0, 0.25)
    """Part of a call in which it waits, and computes little."""
    heat: tuple[float, float] = (0.0, 0.04)
    """Watts that come slowly, of those drawn above idle."""
    others_w: tuple[float, float] = (0.0, 1.0)
    """Steps of other programs."""
    starting_s: tuple[float, float] = (0.0, 0.0)
    overhead_s: tuple[float, float] = (0.0, 0.03)
    queued_s: tuple[float, float] = (0.0, 0.0)
    pauses: int = 1
    periodic: float = 0.1
    """How many functions are called at even distances."""
    always: bool = False
    chained: bool = False
    """The second function is called when the first has ended."""
    every_s: tuple[float, ...] = (1.0,)
    window_s: tuple[float, float] = (0.5, 2.0)
    fading_s: tuple[float, float] = (0.0, 0.7)
    offset_s: tuple[float, float] = (-3.0, 4.0)
    drift_ppm: float = 30.0
    rounding_w: tuple[float, ...] = (0.1, 1.0)
    whole_seconds: bool = False
    stale: float = 0.02
    gaps: int = 0
    jitter_s: float = 0.02
    noise_w: tuple[float, float] = (0.2, 1.0)
    around_s: tuple[float, float] = (0.0, 60.0)


DESKTOP: Final = Field()
FAMILIES: Final[dict[str, Field]] = {
    "desktop": DESKTOP,
    "desktop, clocks apart": replace(DESKTOP, offset_s=(-240.0, 240.0)),
    "pauses and gaps": replace(DESKTOP, pauses=4, gaps=2, offset_s=(-40.0, 40.0), jitter_s=0.2, stale=0.1),
    "slow meter": replace(
        DESKTOP,
        cores=(16, 48),
        core_w=(3.0, 7.0),
        idle_w=(80.0, 200.0),
        window_s=(15.0, 45.0),
        rounding_w=(2.0, 4.0),
        every_s=(1.0, 5.0),
        offset_s=(-60.0, 60.0),
        length_s=(1.0, 20.0),
        pauses=3,
    ),
    "turbo": replace(DESKTOP, slowest=(0.55, 0.75), power_of_speed=(2.0, 3.0), busy=(0.2, 0.5), offset_s=(-15.0, 15.0)),
    "contended": replace(DESKTOP, cores=(4, 6), busy=(0.45, 0.7), offset_s=(-15.0, 15.0)),
    "waits": replace(DESKTOP, waiting=(0.3, 0.8), length_s=(1.0, 12.0), offset_s=(-15.0, 15.0)),
    "heat": replace(DESKTOP, heat=(0.08, 0.2), offset_s=(-15.0, 15.0)),
    "short calls": replace(DESKTOP, length_s=(0.05, 0.9), overhead_s=(0.02, 0.06), whole_seconds=True),
    "others at work": replace(DESKTOP, others_w=(5.0, 12.0), offset_s=(-30.0, 30.0)),
}
UNSEEN_FAMILIES: Final[dict[str, Field]] = {
    "small board": replace(
        DESKTOP,
        cores=(4, 4),
        core_w=(0.8, 1.6),
        idle_w=(2.0, 4.0),
        awake_w=(0.0, 0.5),
        rounding_w=(0.01, 0.1),
        noise_w=(0.02, 0.1),
        others_w=(0.0, 0.3),
        offset_s=(-90.0, 90.0),
    ),
    "server, clocks apart": replace(
        DESKTOP,
        cores=(24, 64),
        core_w=(2.5, 6.0),
        idle_w=(90.0, 250.0),
        awake_w=(5.0, 25.0),
        functions=6,
        noise_w=(0.5, 2.0),
        offset_s=(-400.0, 400.0),
        pauses=2,
    ),
    "starts and queues": replace(
        DESKTOP, starting_s=(0.8, 2.5), overhead_s=(0.02, 0.1), queued_s=(0.1, 1.0), offset_s=(-20.0, 20.0)
    ),
    "one always runs": replace(DESKTOP, always=True, offset_s=(-20.0, 20.0)),
    "chained": replace(DESKTOP, chained=True, offset_s=(-20.0, 20.0)),
    "periodic": replace(DESKTOP, periodic=1.0, pauses=0, offset_s=(-60.0, 60.0)),
    "all at once": replace(
        DESKTOP,
        functions=5,
        slowest=(0.6, 0.9),
        power_of_speed=(1.5, 3.0),
        waiting=(0.1, 0.6),
        heat=(0.02, 0.12),
        others_w=(1.0, 6.0),
        starting_s=(0.5, 2.0),
        overhead_s=(0.01, 0.05),
        queued_s=(0.0, 0.5),
        pauses=2,
        gaps=1,
        window_s=(1.0, 8.0),
        fading_s=(0.0, 2.0),
        offset_s=(-150.0, 150.0),
        drift_ppm=200.0,
        every_s=(0.5, 1.0, 2.0),
        stale=0.05,
    ),
}


def field_run(family: str, seed: int, seconds: float = 900.0) -> PowerTrace:
    """A random run of a family of either set."""
    field = {**FAMILIES, **UNSEEN_FAMILIES}[family]
    for attempt in range(MOST_ATTEMPTS):
        rng = np.random.default_rng([*family.encode(), seed, attempt])
        trace = _run(family, field, rng, seconds)
        saved = trace.marginal_j * trace.counts
        if saved.min() > LEAST_SHARE * saved.sum():
            break
    return trace


def _run(family: str, field: Field, rng: np.random.Generator, seconds: float) -> PowerTrace:
    machine = _machine(field, rng)
    asked = _asked(field, machine, rng, seconds)
    ran, watts = _simulate(machine, asked, seconds)
    saved = [
        (watts - _simulate(machine, asked.without(each), seconds)[1]).sum() * STEP_S for each in range(field.functions)
    ]
    meter = _meter(field, rng)
    others = _others(len(watts), rng.uniform(*field.others_w), rng)
    time, shown = _metered(watts + others, meter, rng, seconds)
    counts = np.bincount(ran.function, minlength=field.functions)
    return PowerTrace(
        name=family,
        time=time,
        watts=shown,
        calls=ran,
        names=[f"f{each}" for each in range(field.functions)],
        marginal_j=np.array(saved) / np.maximum(counts, 1),
        active_j=float((watts - machine.idle_w).sum() * STEP_S),
        idle_w=machine.idle_w,
        lag_s=meter["offset_s"] + min(meter["window_s"], meter["every_s"]) / 2,
        counts=counts,
    )


# -- the machine -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Machine:
    """`watts`, `waiting`, `bound` (by memory), `length`: of each function."""

    cores: int
    idle_w: float
    awake_w: float
    slowest: float
    power_of_speed: float
    heat: float
    heats_s: float
    lost: float
    """Of the supply, at no load; falls with it."""
    watts: Array
    waiting: Array
    bound: Array
    length: Array


@dataclass(frozen=True, slots=True)
class _Asked:
    """Work that is asked for: `before` seconds of computing that are not in the log, and `queued` seconds that are."""

    start: Array
    length: Array
    function: NDArray[np.intp]
    before: Array
    queued: Array

    def without(self, function: int) -> "_Asked":
        kept = self.function != function
        return _Asked(self.start[kept], self.length[kept], self.function[kept], self.before[kept], self.queued[kept])


def _machine(field: Field, rng: np.random.Generator) -> _Machine:
    count = field.functions
    core_w = rng.uniform(*field.core_w)
    low, high = np.log(field.length_s)
    return _Machine(
        cores=int(rng.integers(field.cores[0], field.cores[1] + 1)),
        idle_w=float(rng.uniform(*field.idle_w)),
        awake_w=float(rng.uniform(*field.awake_w)),
        slowest=float(rng.uniform(*field.slowest)),
        power_of_speed=float(rng.uniform(*field.power_of_speed)),
        heat=float(rng.uniform(*field.heat)),
        heats_s=float(rng.uniform(60.0, 300.0)),
        lost=float(rng.uniform(0.0, 0.12)),
        watts=core_w * np.exp(rng.normal(0.0, 0.3, count)),
        waiting=rng.uniform(*field.waiting, count),
        bound=rng.uniform(0.0, 0.7, count),
        length=np.exp(rng.uniform(low, high, count)),
    )


def _simulate(machine: _Machine, asked: _Asked, seconds: float) -> tuple[Calls, Array]:
    """When calls ran as the log has it, and the watts of the machine in each step."""
    order = np.argsort(asked.start, kind="stable")
    begin = asked.start[order]
    function = asked.function[order]
    # Work in seconds of a core that is alone: first what is before the log, then waiting, then computing.
    before, length = asked.before[order], asked.length[order]
    waits = length * machine.waiting[function]
    done = np.zeros(len(begin))
    logged, ended = np.full(len(begin), np.nan), np.full(len(begin), np.nan)
    steps = round((seconds + 2 * QUIET_S) / STEP_S)
    drawn = np.zeros(steps)
    arrived, active = 0, np.zeros(0, dtype=np.intp)
    for at in range(steps):
        now = at * STEP_S - QUIET_S
        until = int(np.searchsorted(begin, now + STEP_S))
        if until > arrived:
            active = np.concatenate([active, np.arange(arrived, until)])
            arrived = until
        if not len(active):
            continue
        who, past = function[active], done[active]
        part = np.minimum((now + STEP_S - begin[active]) / STEP_S, 1.0)
        prelude = past < before[active]
        waits_now = ~prelude & (past < before[active] + waits[active])
        load = np.where(waits_now, 0.15, 1.0) * part
        total = load.sum()
        room = min(1.0, machine.cores / max(total, 1e-9))
        speed = 1.0 - (1.0 - machine.slowest) * min(total / machine.cores, 1.0)
        pace = np.where(waits_now, 1.0, room * (machine.bound[who] + (1.0 - machine.bound[who]) * speed))
        drawn[at] = (load * room * machine.watts[who]).sum() * speed**machine.power_of_speed
        drawn[at] += machine.awake_w * -np.expm1(-3.0 * total)
        forward = past + pace * part * STEP_S
        crossed = np.isnan(logged[active]) & (forward >= before[active])
        logged[active[crossed]] = _moment(now, part, pace, past, before[active])[crossed]
        over = forward >= before[active] + length[active]
        if over.any():
            whole = before[active] + length[active]
            ended[active[over]] = _moment(now, part, pace, past, whole)[over]
        done[active] = forward
        active = active[~over]
    ended = np.where(np.isnan(ended), seconds + QUIET_S, ended)
    logged = np.where(np.isnan(logged), begin, logged)
    back = np.empty(len(order), dtype=np.intp)
    back[order] = np.arange(len(order))
    calls = Calls((logged - asked.queued[order])[back], np.maximum(ended, logged + 1e-3)[back], asked.function)
    return calls, _warmed(machine, drawn)


def _moment(now: float, part: Array, pace: Array, past: Array, goal: Array) -> Array:
    """When, in this step, so much work is done."""
    return np.asarray(now + STEP_S * (1.0 - part) + np.maximum(goal - past, 0.0) / np.maximum(pace, 1e-9))


def _warmed(machine: _Machine, drawn: Array) -> Array:
    """With leakage that follows heat, and through a supply that loses less the more it has to do."""
    fading = np.exp(-np.arange(0.0, 6.0 * machine.heats_s, STEP_S) / machine.heats_s)
    heat = _convolved(drawn, fading / fading.sum())
    inner = machine.idle_w + drawn + machine.heat * heat
    most = machine.idle_w + float(machine.watts.mean()) * machine.cores
    lost = machine.lost * (np.exp(-3.0 * inner / most) - np.exp(-3.0 * machine.idle_w / most))
    return np.asarray(inner * (1.0 + lost))


def _convolved(signal: Array, kernel: Array) -> Array:
    size = len(signal) + len(kernel)
    return np.asarray(np.fft.irfft(np.fft.rfft(signal, size) * np.fft.rfft(kernel, size), size)[: len(signal)])


# -- the work ----------------------------------------------------------------------------------------------------------


def _asked(field: Field, machine: _Machine, rng: np.random.Generator, seconds: float) -> _Asked:
    cores = machine.cores * rng.uniform(*field.busy)
    shares = rng.dirichlet(np.full(field.functions, 4.0)) * cores
    quiet = [rng.uniform(0.05, 0.85) * seconds for _ in range(field.pauses)]
    pauses = [(begin, begin + rng.uniform(15.0, 90.0)) for begin in quiet]
    starts: list[Array] = []
    lengths: list[Array] = []
    owners: list[NDArray[np.intp]] = []
    for each in range(field.functions):
        mean = float(machine.length[each])
        rate = shares[each] / mean / max(1.0 - machine.waiting[each], 0.3)
        if field.always and each == 0:
            start = np.array([-0.5 * QUIET_S, 0.5 * seconds])
            length = np.array([0.5 * seconds + 0.4 * QUIET_S, 0.6 * seconds])
        elif field.chained and each == 1:
            start = starts[0] + lengths[0] * rng.uniform(1.0, 1.1, len(starts[0]))
            length = mean * np.exp(rng.normal(0.0, 0.3, len(start)))
        else:
            start = _arrivals(field, rate, rng, seconds, pauses)
            length = mean * np.exp(rng.normal(0.0, rng.uniform(0.02, 0.5), len(start)))
        starts.append(start)
        lengths.append(length)
        owners.append(np.full(len(start), each, dtype=np.intp))
    start, length, function = np.concatenate(starts), np.concatenate(lengths), np.concatenate(owners)
    before = rng.uniform(*field.overhead_s) + _cold(start, function) * rng.uniform(*field.starting_s)
    queued = rng.exponential(1.0, len(start)) * rng.uniform(*field.queued_s)
    return _Asked(start, length, function, before, queued)


def _arrivals(
    field: Field, rate: float, rng: np.random.Generator, seconds: float, pauses: list[tuple[float, float]]
) -> Array:
    if rng.random() < field.periodic:
        start = np.arange(rng.uniform(0.0, 1.0 / rate), seconds, 1.0 / rate)
    else:
        # The rate itself wanders in spells of a minute or so.
        spells = np.repeat(rng.gamma(2.0, 0.5, int(seconds / 40) + 1), 40)
        start = np.sort(rng.uniform(0.0, seconds, max(rng.poisson(2.5 * rate * seconds), 3)))
        start = start[rng.random(len(start)) < spells[start.astype(int)] / 2.5]
    for begin, end in pauses:
        start = start[(start < begin) | (start > end)]
    return start if len(start) >= 2 else np.sort(rng.uniform(0.0, seconds, 2))


def _cold(start: Array, function: NDArray[np.intp]) -> Array:
    """1 for calls that found no container: the first, and those after a long silence."""
    found = np.zeros(len(start))
    for each in np.unique(function):
        mine = np.flatnonzero(function == each)
        ordered = mine[np.argsort(start[mine])]
        found[ordered] = np.concatenate([[1.0], np.diff(start[ordered]) > WARM_S])
    return found


# -- the meter ---------------------------------------------------------------------------------------------------------


def _meter(field: Field, rng: np.random.Generator) -> dict[str, Any]:
    return {
        "every_s": float(rng.choice(field.every_s)),
        "window_s": float(rng.uniform(*field.window_s)),
        "fading_s": float(rng.uniform(*field.fading_s)),
        "offset_s": float(rng.uniform(*field.offset_s)),
        "ppm": float(rng.normal(0.0, field.drift_ppm)),
        "rounding_w": float(rng.choice(field.rounding_w)),
        "noise_w": float(rng.uniform(*field.noise_w)),
        "whole": field.whole_seconds,
        "stale": field.stale,
        "gaps": field.gaps,
        "jitter_s": field.jitter_s,
        "before_s": float(rng.uniform(*field.around_s)),
        "after_s": float(rng.uniform(*field.around_s)),
    }


def _others(count: int, watts: float, rng: np.random.Generator) -> Array:
    """Programs that come, stay for a minute or so and go, and a restless floor."""
    moments = np.arange(count) * STEP_S
    flips = np.concatenate([[0.0], np.cumsum(rng.exponential(60.0, int(count * STEP_S / 10) + 5))])
    size = watts * (rng.random(len(flips)) < 0.3) * rng.uniform(0.3, 1.0, len(flips))
    slow = np.cumsum(rng.normal(0.0, 1.0, int(moments[-1]) + 2))
    slow -= np.linspace(slow[0], slow[-1], len(slow))
    restless = np.interp(moments, np.arange(len(slow)), slow / max(float(np.abs(slow).max()), 1e-9))
    return np.asarray(size[np.searchsorted(flips, moments, side="right") - 1] + 0.2 * watts * restless)


def _metered(watts: Array, meter: dict[str, Any], rng: np.random.Generator, seconds: float) -> tuple[Array, Array]:
    if meter["fading_s"] > 0.05:
        fading = np.exp(-np.arange(0.0, 8.0 * meter["fading_s"], STEP_S) / meter["fading_s"])
        watts = watts[0] + _convolved(watts - watts[0], fading / fading.sum())
    joules = np.concatenate([[0.0], np.cumsum(watts) * STEP_S])
    edges = np.arange(len(joules)) * STEP_S - QUIET_S
    every = meter["every_s"]
    seen = np.arange(-meter["before_s"], seconds + meter["after_s"], every)
    seen = np.sort(seen + rng.normal(0.0, meter["jitter_s"], len(seen)) * every)
    shown = (np.interp(seen, edges, joules) - np.interp(seen - meter["window_s"], edges, joules)) / meter["window_s"]
    shown = shown + rng.normal(0.0, meter["noise_w"], len(seen))
    shown = np.round(shown / meter["rounding_w"]) * meter["rounding_w"]
    stale = np.flatnonzero(rng.random(len(seen)) < meter["stale"])
    shown[stale[stale > 0]] = shown[stale[stale > 0] - 1]
    time = seen * (1.0 + 1e-6 * meter["ppm"]) + meter["offset_s"]
    time = np.floor(time) if meter["whole"] else np.round(time, 3)
    kept = np.concatenate([[True], np.diff(time) > 0])
    for _ in range(meter["gaps"]):
        begin = rng.uniform(time[0], time[-1])
        kept &= (time < begin) | (time > begin + rng.uniform(20.0, 80.0))
    return time[kept], np.maximum(shown[kept], 0.0)
