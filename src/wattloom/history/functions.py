"""What each function has cost, over all runs of some journals.

Owns the figures per function: calls, seconds, joules, spread and trend. They come from the tasks' own records, so they
are as old as the oldest run that is still there.
"""

from collections.abc import Iterable
from math import fsum, sqrt
from pathlib import Path
from statistics import fmean
from typing import Final

import msgspec

from wattloom.attribution.idle_policy import IdlePolicy
from wattloom.history.idle_cost import IdleCost
from wattloom.history.listing import seconds_of
from wattloom.history.log import Log
from wattloom.history.records import Walk
from wattloom.history.runs import runs
from wattloom.history.stored_log import is_journal
from wattloom.history.task_history import RunHistory

LEAST_FOR_A_TREND: Final = 20


class FunctionCost(msgspec.Struct, frozen=True):
    """One function."""

    function: str
    calls: int
    """That ended, in whatever way but by being cancelled."""
    finished: int
    mean_s: float | None
    """Of those that finished."""
    spread_s: float | None
    """Standard deviation of one call; None: fewer than two."""
    mean_j: float | None
    """None: no joules are known."""
    spread_j: float | None
    joules: float
    """Of all calls together, as far as known."""
    trend_s: float | None
    """How much more the last tenth of the calls took than all: 0.1 is 10% more. None: too few calls."""
    trend_j: float | None
    provenance: str = ""
    """Of its joules: measured, modelled, estimated; several with commas. Empty: none are known."""
    idle_j: float = 0.0
    """What all calls together bear of the machine's idle joules, by the policy asked for; beside `joules`."""
    cold_starts: int = 0
    """Finished calls before which the function had to be made ready in its worker."""
    cold_start_s: float | None = None
    """What that took, in the mean; no part of `mean_s`. None: nobody has measured one."""


class _Costs:
    """Figures of one function, in order of the calls' ends."""

    __slots__ = ("calls", "finished", "joules", "provenances", "seconds", "setups")

    def __init__(self) -> None:
        self.calls = 0
        self.finished = 0
        self.seconds: list[float] = []
        self.joules: list[float] = []
        self.provenances: set[str] = set()
        self.setups: list[float] = []

    def cost(self, function: str, idle_j: float) -> FunctionCost:
        return FunctionCost(
            function=function,
            calls=self.calls,
            finished=self.finished,
            mean_s=_mean(self.seconds),
            spread_s=_spread(self.seconds),
            mean_j=_mean(self.joules),
            spread_j=_spread(self.joules),
            joules=sum(self.joules),
            trend_s=_trend(self.seconds),
            trend_j=_trend(self.joules),
            provenance=", ".join(sorted(self.provenances)),
            idle_j=idle_j,
            cold_starts=len(self.setups),
            cold_start_s=_mean(self.setups),
        )


def function_costs(paths: Iterable[Path], idle: IdlePolicy = "node") -> list[FunctionCost]:
    """All functions of these journals or logs, the one that used most joules first, then by time. `idle`: who bears the
    machine's idle joules."""
    costs: dict[str, _Costs] = {}
    borne: dict[str, float] = {}
    for log in [log for path in paths for log in logs_of(path)]:
        walk = Walk(log.name)
        tasks = RunHistory(walk)
        idleness = IdleCost(walk) if idle != "node" else None
        walk.take(log.lines())
        _add(costs, tasks)
        for function, joules in idleness.by_function(idle).items() if idleness is not None else ():
            borne[function] = borne.get(function, 0.0) + joules
    found = [each.cost(function, borne.get(function, 0.0)) for function, each in costs.items()]
    return sorted(found, key=lambda each: (-each.joules, -(each.mean_s or 0.0) * each.finished, each.function))


def logs_of(path: Path) -> list[Log]:
    """All logs of a journal, or the one that is a file of its own, or a run of a journal that was named."""
    return [Log(path, run.run) for run in runs(path)] if is_journal(path) else [Log(path)]


def _add(costs: dict[str, _Costs], history: RunHistory) -> None:
    ended = [task for task in history.by_task.values() if task.ended is not None and task.outcome != "cancelled"]
    for task in sorted(ended, key=lambda each: each.ended or 0.0):
        of = costs.setdefault(task.function, _Costs())
        of.calls += 1
        if task.outcome == "finished":
            of.finished += 1
            if (seconds := seconds_of(task)) is not None:
                of.seconds.append(seconds)
            if task.setup_s is not None:
                of.setups.append(task.setup_s)
        if task.joules is not None:
            of.joules.append(task.joules)
            of.provenances.add(task.provenance)


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None


def _spread(values: list[float]) -> float | None:
    """Standard deviation of one value. (That of `statistics` counts in fractions: too slow for a hundred thousand.)"""
    if len(values) < 2:
        return None
    mean = fmean(values)
    return sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _trend(values: list[float]) -> float | None:
    if len(values) < LEAST_FOR_A_TREND or not (mean := fmean(values)):
        return None
    return fmean(values[-(len(values) // 10) :]) / mean - 1.0
