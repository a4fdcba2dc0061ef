"""Leaving one function out: how far what calls are said to cost is from what the meter sees when they are not made.

Owns the arms and their arithmetic. In every round there is one arm with all calls, and one for each function in which
its calls are left out and all others are the same. The joules above idle of the first, less those of the other, are
what the function added: the difference that the meter saw. Prints nothing.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from random import Random
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.energy.measured import Energy
from wattloom.errors import InputError, WattloomError
from wattloom.local.executor import Executor
from wattloom.local.future import TaskFuture
from wattloom.machines.this_machine import this_machine
from wattloom.metering.choosing import choose_meter
from wattloom.metering.proc import PROC, busy_seconds
from wattloom.metering.protocol import Meter, Quantity

ROUNDS: Final = 3
REST_S: Final = 1.0
"""Before each round, to see what the machine draws without us."""
LEAST_ARM_S: Final = 1.0
"""CPU time is counted in hundredths of a second: differences of shorter arms drown in that."""
TRIES: Final = 3
WORTH: Final[dict[Provenance, str]] = {
    "measured": "The meter is a measurement of its own, so this tells how far shares by CPU time and learned intensity "
    "are from what leaving a function out saves. On a machine whose power is concave in load the latter is less, for "
    "every function: what is left runs at a higher price.",
    "modelled": "The meter is a model of this machine, fed with CPU time. Agreement shows that the bookkeeping is "
    "right: each CPU second is paid for once, by the right call. It says nothing about what functions really draw.",
    "estimated": "The meter is itself CPU time on an estimated curve. Agreement shows that the bookkeeping is right: "
    "each CPU second is paid for once, by the right call. It says nothing about what functions really draw.",
}

Function = Callable[[], object]
Progress = Callable[[int, int], None]


class CannotValidate(WattloomError):
    """There were no joules to compare."""


class FunctionCheck(msgspec.Struct, frozen=True):
    """One function: what was said of its calls, and what the meter saw."""

    function: str
    calls: int
    """In each round."""
    said_j: float
    """What its calls were said to cost together, on average over the rounds."""
    said_spread_j: float
    """As the calls themselves say it."""
    saw_j: float
    """What the meter saw less without them."""
    saw_spread_j: float
    """From round to round, of the mean."""

    @property
    def off(self) -> float | None:
        """How far said is from seen, relative; None: the meter saw nothing."""
        return self.said_j / self.saw_j - 1.0 if self.saw_j > 0.0 else None


class Validation(msgspec.Struct, frozen=True):
    """What came of it."""

    meter: str
    provenance: Provenance
    quantity: Quantity
    worth: str
    """What such a validation is worth with this meter."""
    rounds: int
    seconds: float
    idle_w: float
    """Without us, with whatever else ran on the machine."""
    active_j: float
    """Above that, with all functions, on average over the rounds."""
    others: float
    """Cores that were busy without us. Much of a core: the differences mean little."""
    functions: list[FunctionCheck]


class _Arm(msgspec.Struct, frozen=True):
    seconds: float
    meter_j: float
    said: dict[str, tuple[float, float]]


def validate_attribution(
    functions: Sequence[Function],
    *,
    seconds: float = 60.0,
    rounds: int = ROUNDS,
    meter: str | Callable[[], Meter] = "auto",
    workers: int | None = None,
    progress: Progress | None = None,
    initializer: Callable[..., object] | None = None,
    initargs: tuple[Any, ...] = (),
) -> Validation:
    """Run the mix with and without each function, for about so long in all, and compare. Raises `CannotValidate` where
    the meter gives no joules."""
    names = _names(functions)
    began = time.monotonic()
    ours, theirs = (_new_meter(meter), _new_meter(meter))
    with (
        TemporaryDirectory() as folder,
        Executor(
            workers, meter=theirs, journal=f"{folder}/journal.db", initializer=initializer, initargs=initargs
        ) as executor,
    ):
        arm_s = max((seconds / rounds - REST_S) / (len(functions) + 1.0), LEAST_ARM_S)
        plan = _plan(executor, functions, arm_s)
        _run(executor, ours, plan, None, rounds)  # what differs between functions is learned by now
        rows: list[dict[str | None, _Arm]] = []
        idle: list[tuple[float, float]] = []
        for number in range(rounds):
            idle.append(_rest(ours))
            rows.append({})
            for left_out in _turns(names, number):
                rows[-1][left_out] = _run(executor, ours, plan, left_out, number)
                if progress is not None:
                    progress(sum(map(len, rows)), rounds * (len(names) + 1))
    idle_w = fmean(watts for watts, _ in idle)
    return Validation(
        ours.name,
        ours.provenance,
        ours.quantity,
        WORTH[ours.provenance],
        rounds,
        time.monotonic() - began,
        idle_w,
        fmean(_active(row[None], idle_w) for row in rows),
        fmean(cores for _, cores in idle),
        [_check(name, plan, rows, idle_w) for name in names],
    )


def _names(functions: Sequence[Function]) -> list[str]:
    names = [f"{function.__module__}.{getattr(function, '__qualname__', repr(function))}" for function in functions]
    if len(functions) < 2:
        raise InputError("function", "leaving one out needs at least two")
    if len(set(names)) < len(names):
        raise InputError("function", "each must be named once")
    return names


def _new_meter(meter: str | Callable[[], Meter]) -> Meter:
    """One for us and one for the executor: a meter is asked by one thread."""
    if callable(meter):
        return meter()
    return choose_meter(this_machine(), "" if meter == "auto" else meter)


# -- arms --------------------------------------------------------------------------------------------------------------


def _plan(executor: Executor, functions: Sequence[Function], arm_s: float) -> dict[str, tuple[Function, int]]:
    """How many calls of each function: about as much time for each, and all together one arm's."""
    plan = {}
    for name, function in zip(_names(functions), functions, strict=True):
        times = []
        for _ in range(TRIES):
            began = time.perf_counter()
            executor.submit(function).result()
            times.append(time.perf_counter() - began)
        plan[name] = (function, max(round(arm_s * executor._workers / len(functions) / min(times)), 1))
    return plan


def _turns(names: list[str], number: int) -> list[str | None]:
    """Each round begins with another arm, so that what drifts in a round is nobody's gain."""
    arms = [None, *names]
    first = number % len(arms)
    return arms[first:] + arms[:first]


def _order(plan: dict[str, tuple[Function, int]], seed: int) -> Iterator[tuple[str, Function]]:
    """All calls, well mixed; the same in each arm of a round, but for those that are left out."""
    calls = [(name, function) for name, (function, count) in plan.items() for _ in range(count)]
    Random(seed).shuffle(calls)
    return iter(calls)


def _rest(meter: Meter) -> tuple[float, float]:
    """Watts and busy cores with nothing to do."""
    began, busy = _read(meter), busy_seconds(PROC) or 0.0
    time.sleep(REST_S)
    ended = _read(meter)
    seconds = ended[0] - began[0]
    return (ended[1] - began[1]) / seconds, max((busy_seconds(PROC) or 0.0) - busy, 0.0) / seconds


def _run(
    executor: Executor, meter: Meter, plan: dict[str, tuple[Function, int]], left_out: str | None, seed: int
) -> _Arm:
    began = _read(meter)
    futures = [(name, executor.submit(function)) for name, function in _order(plan, seed) if name != left_out]
    for _, future in futures:
        future.result()
    ended = _read(meter)
    return _Arm(ended[0] - began[0], ended[1] - began[1], _said(futures))


def _said(futures: list[tuple[str, TaskFuture]]) -> dict[str, tuple[float, float]]:
    """By function: joules and spread of all its calls. Their errors go the same way, so spreads add up."""
    said: dict[str, tuple[float, float]] = {}
    for name, future in futures:
        energy = future.energy
        if not isinstance(energy, Energy):
            raise CannotValidate(f"a call of {name} has no joules: {energy.reason}")
        before = said.get(name, (0.0, 0.0))
        said[name] = (before[0] + energy.joules, before[1] + energy.spread)
    return said


def _read(meter: Meter) -> tuple[float, float]:
    sample = meter.read(time.monotonic())
    if isinstance(sample, Unknown):
        raise CannotValidate(f"the meter {meter.name} gave no reading: {sample.reason}")
    return sample.time, sample.joules


# -- what came of it ---------------------------------------------------------------------------------------------------


def _active(arm: _Arm, idle_w: float) -> float:
    return arm.meter_j - idle_w * arm.seconds


def _check(
    name: str, plan: dict[str, tuple[Function, int]], rows: list[dict[str | None, _Arm]], idle_w: float
) -> FunctionCheck:
    saw = [_active(row[None], idle_w) - _active(row[name], idle_w) for row in rows]
    said = [row[None].said[name] for row in rows]
    return FunctionCheck(
        name,
        plan[name][1],
        fmean(joules for joules, _ in said),
        fmean(spread for _, spread in said),
        fmean(saw),
        stdev(saw) / len(saw) ** 0.5 if len(saw) > 1 else 0.0,
    )
