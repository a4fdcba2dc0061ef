"""Streams of tasks: Poisson, even, bursts, all at once, or a CSV trace. Seeded: the same seed, the same tasks.

Owns how a scenario's arrivals become tasks with their times and true lengths. Policies cannot change either, so every
policy of a comparison meets the very same work.
"""

import csv
from math import exp, log, sqrt
from pathlib import Path
from random import Random
from typing import Final, TypeVar

from wattloom.bounds import LATEST_S, LONGEST_S
from wattloom.errors import ScenarioError
from wattloom.files import lines
from wattloom.simulation.scenario import ArrivalsEntry, FunctionEntry, Scenario
from wattloom.simulation.trial import Arrival
from wattloom.workload.task import Task
from wattloom.workload.task_problem import task_problem

T = TypeVar("T")
SHORTEST_S: Final = 1e-9
"""Seconds alone, from a nanosecond to thirty years: what is shorter still makes slowdowns without end."""
MOST_TASKS: Final = 10_000_000
"""Of a whole scenario: each takes about a kilobyte before the first one runs."""
Draw = tuple[float, str, dict[str, str], str]
"""Time, function, what a trace's row says beyond, and where it says it."""


def arrivals_of(scenario: Scenario, seed: int, folder: Path) -> list[Arrival]:
    """All tasks of a scenario in order of time."""
    _refuse_too_many(scenario)
    draws: list[Draw] = []
    for number, entry in enumerate(scenario.arrivals):
        field = f"arrivals[{number}]"
        _only_its_own_fields(entry, field)
        random = Random(f"{seed}/{number}")
        if entry.kind == "trace":
            draws += _trace(entry, folder, field, MOST_TASKS - len(draws))
        else:
            _known_functions(entry, scenario, field)
            times = _TIMES[entry.kind](entry, random, field)
            names, weights = list(entry.functions), list(entry.functions.values())
            for time in times:
                function = random.choices(names, weights)[0]
                draws.append((time, function, {}, f"functions.{function}"))
    draws.sort(key=lambda draw: draw[0])
    lengths = Random(f"{seed}/lengths")
    return [_arrival(draw, f"t{n}", scenario, lengths) for n, draw in enumerate(draws, start=1)]


_FIELDS = {
    "at-once": {"functions", "start_s", "count"},
    "poisson": {"functions", "start_s", "count", "rate_per_s", "duration_s"},
    "even": {"functions", "start_s", "count", "rate_per_s", "duration_s"},
    "bursts": {"functions", "start_s", "count", "bursts", "every_s", "within_s"},
    "trace": {"start_s", "file"},
}
_COLUMNS = {"time_s", "function", "seconds", "count", "priority", "deadline_s", "energy_weight", "defer_s"}


def _only_its_own_fields(entry: ArrivalsEntry, field: str) -> None:
    """A field that this kind of arrivals does not read is a mistake, not a wish."""
    usual = ArrivalsEntry(kind=entry.kind)
    for name in entry.__struct_fields__:
        if name not in {"kind", *_FIELDS[entry.kind]} and getattr(entry, name) != getattr(usual, name):
            raise ScenarioError(f"{field}.{name}", f"means nothing for arrivals of kind {entry.kind}")


def _known_functions(entry: ArrivalsEntry, scenario: Scenario, field: str) -> None:
    if not entry.functions:
        raise ScenarioError(f"{field}.functions", "must name at least one function")
    for name in entry.functions:
        if name not in scenario.functions:
            raise ScenarioError(f"{field}.functions.{name}", "no such function in this file")


def _refuse_too_many(scenario: Scenario) -> None:
    """Before any is drawn. (Of a trace it is known when it was read.)"""
    total = 0.0
    for number, entry in enumerate(scenario.arrivals):
        total += _expected(entry)
        if total > MOST_TASKS:
            raise ScenarioError(f"arrivals[{number}]", _too_many(total))


def _expected(entry: ArrivalsEntry) -> float:
    """How many tasks to expect of an entry, as far as it says."""
    if entry.kind in ("poisson", "even") and entry.count is None:
        return (entry.rate_per_s or 0.0) * (entry.duration_s or 0.0)
    return (entry.count or 0) * (entry.bursts if entry.kind == "bursts" else 1)


def _too_many(tasks: float) -> str:
    return f"would make {tasks:,.0f} tasks; a simulation takes at most {MOST_TASKS:,}"


def _at_once(entry: ArrivalsEntry, random: Random, field: str) -> list[float]:
    return [entry.start_s] * _need(entry.count, f"{field}.count")


def _poisson(entry: ArrivalsEntry, random: Random, field: str) -> list[float]:
    rate = _need(entry.rate_per_s, f"{field}.rate_per_s")
    if (entry.count is None) == (entry.duration_s is None):
        raise ScenarioError(f"{field}.count", "poisson takes either count or duration_s")
    times: list[float] = []
    time = entry.start_s
    end = float("inf") if entry.duration_s is None else entry.start_s + entry.duration_s
    while entry.count is None or len(times) < entry.count:
        time += random.expovariate(rate)
        if time >= end:
            break
        times.append(time)
    return times


def _even(entry: ArrivalsEntry, random: Random, field: str) -> list[float]:
    """One every so often; when the first comes is drawn, so that streams do not march in step."""
    rate = _need(entry.rate_per_s, f"{field}.rate_per_s")
    if (entry.count is None) == (entry.duration_s is None):
        raise ScenarioError(f"{field}.count", "even takes either count or duration_s")
    first = random.random() / rate
    count = entry.count or round(rate * (entry.duration_s or 0.0)) + 1
    times = [entry.start_s + first + number / rate for number in range(count)]
    end = float("inf") if entry.duration_s is None else entry.start_s + entry.duration_s
    return [time for time in times if time < end]


def _bursts(entry: ArrivalsEntry, random: Random, field: str) -> list[float]:
    count = _need(entry.count, f"{field}.count")
    every = 0.0 if entry.bursts == 1 else _need(entry.every_s, f"{field}.every_s")
    return [
        entry.start_s + burst * every + random.uniform(0.0, entry.within_s)
        for burst in range(entry.bursts)
        for _ in range(count)
    ]


_TIMES = {"at-once": _at_once, "poisson": _poisson, "even": _even, "bursts": _bursts}


def _need(value: T | None, field: str) -> T:
    if value is None:
        raise ScenarioError(field, "is needed for this kind of arrivals")
    return value


def _trace(entry: ArrivalsEntry, folder: Path, field: str, most: int) -> list[Draw]:
    if not entry.file:
        raise ScenarioError(f"{field}.file", "is needed for a trace")
    path = folder / entry.file
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(lines(file))
            columns = set(rows.fieldnames or ())
            if not {"time_s", "function"} <= columns:
                raise ScenarioError(f"{field}.file", f"{path} needs the columns time_s and function")
            if columns - _COLUMNS:
                wrong = ", ".join(sorted(columns - _COLUMNS))
                raise ScenarioError(f"{field}.file", f"{path} has unknown columns: {wrong}")
            draws: list[Draw] = []
            for line, row in enumerate(rows, start=2):
                draws += _row(row, f"{path}:{line}", entry, most - len(draws))
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise ScenarioError(f"{field}.file", f"{path} cannot be read: {problem}") from problem
    if not draws:
        raise ScenarioError(f"{field}.file", f"{path} has no rows")
    return draws


def _row(row: dict[str, str], where: str, entry: ArrivalsEntry, most: int) -> list[Draw]:
    time = number(row, "time_s", where)
    if time is None or time < 0.0:
        raise ScenarioError(f"{where}: time_s", "must be a number, not negative")
    count = whole(row, "count", where)
    if count is not None and count < 1:
        raise ScenarioError(f"{where}: count", f"must be at least 1, not {count}")
    if (count or 1) > most:
        raise ScenarioError(f"{where}: count", _too_many(MOST_TASKS - most + (count or 1)))
    if None in row:
        raise ScenarioError(where, "has more cells than the first line has columns")
    return [(entry.start_s + time, row["function"], row, where)] * (1 if count is None else count)


def whole(row: dict[str, str], column: str, where: str) -> int | None:
    """A cell as a whole number; None if it is empty or the column is not there."""
    value = number(row, column, where)
    if value is not None and value != int(value):
        raise ScenarioError(f"{where}: {column}", f"must be a whole number, not {value}")
    return None if value is None else int(value)


def number(row: dict[str, str], column: str, where: str) -> float | None:
    """A cell as a number; None if it is empty or the column is not there."""
    cell = row.get(column)
    if not cell:
        return None
    try:
        value = float(cell)
    except ValueError:
        raise ScenarioError(f"{where}: {column}", f"is not a number: {cell!r}") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise ScenarioError(f"{where}: {column}", f"must be finite, not {cell}")
    return value


def _arrival(draw: Draw, name: str, scenario: Scenario, random: Random) -> Arrival:
    time, function, row, where = draw
    entry = scenario.functions.get(function)
    if entry is None:
        raise ScenarioError(f"{where}: function", f"no function {function!r} in the scenario")
    if not time < LATEST_S:
        raise ScenarioError(f"{where}: time", f"{time} is beyond {LATEST_S} s; seconds are wanted")
    given = {column: number(row, column, where) for column in ("deadline_s", "energy_weight", "defer_s")}
    priority = whole(row, "priority", where)
    task = Task(
        id=name,
        function=function,
        priority=entry.priority if priority is None else priority,
        energy_weight=entry.energy_weight if given["energy_weight"] is None else given["energy_weight"],
        deadline_s=entry.deadline_s if given["deadline_s"] is None else given["deadline_s"],
        defer_s=entry.defer_s if given["defer_s"] is None else given["defer_s"],
        idempotent=entry.idempotent,
        retries=entry.retries,
        infrastructure_retries=entry.infrastructure_retries,
    )
    problem = task_problem(task)
    if problem is not None:
        raise ScenarioError(f"{where}: {problem[0]}", problem[1])
    factor = _factor(entry, random)
    seconds = number(row, "seconds", where)
    if seconds is not None:
        if entry.work_s is None:
            raise ScenarioError(f"{where}: seconds", "the function needs work_s to scale it")
        if not SHORTEST_S <= seconds <= LONGEST_S:
            raise ScenarioError(
                f"{where}: seconds", f"must be positive, from {SHORTEST_S:g} to {LONGEST_S:g}, not {seconds:g}"
            )
        factor = seconds / entry.work_s
    return Arrival(time, task, factor)


def _factor(entry: FunctionEntry, random: Random) -> float:
    """Log-normal with mean 1 and the given relative spread."""
    draw = random.gauss(0.0, 1.0)
    if entry.spread == 0.0:
        return 1.0
    variance = log(1.0 + entry.spread**2)
    return exp(draw * sqrt(variance) - variance / 2.0)
