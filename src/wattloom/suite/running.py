"""Functions of the suite, run here through an executor, checked and counted.

Owns the calls and what is told of them afterwards. Prints nothing.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final, Literal

import msgspec

from wattloom.energy.measured import Energy
from wattloom.errors import InputError, WattloomError
from wattloom.local.decorator import RemoteFunction
from wattloom.local.decorator import function as decorated
from wattloom.local.executor import Executor
from wattloom.local.future import TaskFuture
from wattloom.local.running import RanCall, calls_of
from wattloom.suite.families.chance import WrongResult
from wattloom.suite.work import Work

Progress = Callable[[int, int], None]
MOST_CALLS: Final = 100_000
MOST_SEED: Final = 2**32 - 1
TIMEOUT_S: Final = 120.0
"""Of one call: far more than any takes."""


State = Literal["right", "wrong", "failed"]


class CallFailed(WattloomError):
    """A call of a function of the suite did not come to a result."""


class WorkloadRun(msgspec.Struct, frozen=True):
    """What some calls of one function took. Figures are means; deviations are those from call to call."""

    name: str
    category: str
    runtime: str
    seed: int
    calls: int
    """That count: the first, which loads the function, is not among them."""
    first_s: float | None
    """From its submission to its result: a worker is made and the function loaded."""
    mean_s: float | None = None
    deviation_s: float | None = None
    """None: fewer than two calls."""
    per_s: float | None = None
    """Executions a second, one after the other on one core."""
    mean_j: float | None = None
    """None: joules are not known."""
    deviation_j: float | None = None
    spread_j: float | None = None
    """How far off the joules of one call may be: one standard deviation."""
    provenance: str = ""
    state: State = "right"
    """Of the results: `wrong` if one was, `failed` if a call did not come to one."""
    problem: str = ""
    """What was wrong with it, or why it failed; empty: all of them were right."""


def runs(
    works: list[Work],
    calls: int,
    seed: int,
    *,
    journal: str | Path | None = None,
    meter: str = "auto",
    progress: Progress | None = None,
) -> Iterator[WorkloadRun]:
    """Each function so many times, one call after the other: joules are clearest while nothing else runs. Raises
    InputError for numbers that are none of calls, or no seed."""
    if not 1 <= calls <= MOST_CALLS:
        raise InputError("calls", f"must be from 1 to {MOST_CALLS:,}, not {calls}")
    if not 0 <= seed <= MOST_SEED:
        raise InputError("seed", f"must be from 0 to {MOST_SEED:,}, not {seed}")
    for at, work in enumerate(works):
        told = None if progress is None else _told(progress, at * calls, len(works) * calls)
        yield _run(work, calls, seed, journal, meter, told)


def _told(progress: Progress, before: int, total: int) -> Callable[[int], None]:
    return lambda done: progress(before + done, total)


def _run(
    work: Work, calls: int, seed: int, journal: str | Path | None, meter: str, told: Callable[[int], None] | None
) -> WorkloadRun:
    with Executor(journal=journal, meter=meter) as executor:
        made = _Calls(work, seed, executor)
        state, problem = made.make(calls, told)
    ended = calls_of(executor, made.futures) if made.futures else []
    return _figures(work, seed, made.first_s, ended, state, problem)


class _Calls:
    """The calls of one function."""

    def __init__(self, work: Work, seed: int, executor: Executor) -> None:
        self._work, self._seed, self._executor = work, seed, executor
        self._function = _patient(work.function)
        self._right: Any = None
        self.futures: Final[list[TaskFuture]] = []
        self.first_s: float | None = None

    def make(self, calls: int, told: Callable[[int], None] | None) -> tuple[State, str]:
        """Make them; the first that fails or is wrong is the last, and what is said of it is returned."""
        from time import monotonic

        try:
            self._work.args(self._seed)
            began = monotonic()
            first = self._call()
            self.first_s = monotonic() - began
            self._check(first.result())
            for done in range(calls):
                future = self._call()
                self._check(future.result())
                self.futures.append(future)
                if told is not None:
                    told(done + 1)
        except WrongResult as problem:
            return "wrong", str(problem)
        except Exception as problem:  # whatever the function raises
            return "failed", f"{self._work.name}: {str(problem) or type(problem).__name__}"
        return "right", ""

    def _call(self) -> TaskFuture:
        future = self._executor.submit(self._function, *self._work.args(self._seed))
        future.result()
        _ = future.energy  # read now: the idle time in between is not the call's
        return future

    def _check(self, result: Any) -> None:
        """A result that is the same as one before is as right."""
        if self._right is None or result != self._right:
            self._work.check(result, self._seed)
            self._right = result


def _patient(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, ended if it does not end by itself."""
    if isinstance(function, RemoteFunction):
        return function.options(timeout=TIMEOUT_S)
    return decorated(timeout=TIMEOUT_S)(function)


def _figures(
    work: Work, seed: int, first_s: float | None, calls: list[RanCall], state: State, problem: str
) -> WorkloadRun:
    one = work.described
    times = [call.seconds for call in calls if call.seconds is not None]
    known = [call.energy for call in calls if isinstance(call.energy, Energy)]
    joules = [float(each.joules) for each in known]
    mean_s = fmean(times) if times else None
    return WorkloadRun(
        one.name,
        one.category,
        one.runtime,
        seed,
        len(calls),
        first_s,
        mean_s,
        stdev(times) if len(times) > 1 else None,
        1.0 / mean_s if mean_s else None,
        fmean(joules) if joules else None,
        stdev(joules) if len(joules) > 1 else None,
        fmean(float(each.spread) for each in known) if known else None,
        ", ".join(sorted({each.provenance for each in known})),
        state,
        problem,
    )


def raise_if_wrong(run: WorkloadRun) -> WorkloadRun:
    """For those who want figures of right results only."""
    if run.state == "failed":
        raise CallFailed(run.problem)
    if run.state == "wrong":
        raise WrongResult(run.problem)
    return run
