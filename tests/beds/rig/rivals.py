"""What others' rules would have said of the same calls, from the same counters.

Owns three rules, as their authors describe them. None of them knows calls; so what each says of a worker process, or of
a function, is handed down to calls in the way a careful user would. Scaphandre and Kepler: a process's joules of an
interval go to the calls that ran on it, by how long each ran in it. FaasMeter: a function's watts times how long the
call ran. FaasMeter is told the true idle watts, which it would have to measure before.
"""

from collections.abc import Callable
from itertools import combinations
from typing import Final

import numpy as np
from tests.beds.rig.functions import Burnt
from tests.beds.rig.truth import Floats, Truth

Rule = Callable[[Floats], Floats]
"""From the CPU seconds of a process in each interval to its joules."""
SCAPHANDRE_S: Final = 2.0
"""Between two of its samples, as it comes."""
KEPLER_S: Final = 5.0
FAASMETER_S: Final = 1.0


def scaphandre(truth: Truth, calls: list[Burnt], cores: int) -> Floats:
    """The host's joules times the share of all CPU time there is, idle time too, that a process used."""
    ends = _grid(truth, SCAPHANDRE_S)
    per_second = np.diff(_at(truth, truth.meter_j, ends)) / (np.diff(ends) * cores)
    return _by_process(truth, calls, ends, lambda used: per_second * used)


def kepler(truth: Truth, calls: list[Burnt], cores: int) -> Floats:
    """Joules times the share of CPU time that was busy are active; a process has its share of the busy CPU time."""
    ends = _grid(truth, KEPLER_S)
    joules = np.diff(_at(truth, truth.meter_j, ends))
    busy = np.diff(_at(truth, truth.busy_s, ends))
    active = joules * np.minimum(busy / (np.diff(ends) * cores), 1.0)
    return _by_process(truth, calls, ends, lambda used: active * used / np.maximum(busy, used))


def faasmeter(truth: Truth, calls: list[Burnt]) -> Floats:
    """One figure of watts for each function, by regression over the whole run on who ran in each second."""
    ends = _grid(truth, FAASMETER_S)
    watts = np.diff(_at(truth, truth.meter_j, ends)) / np.diff(ends) - truth.conditions.idle_w
    functions = 1 + max(call.function for call in calls)
    ran = np.zeros((len(ends) - 1, functions))
    for call in calls:
        ran[:, call.function] += _overlap(call, ends)
    found = nonnegative(ran / np.diff(ends)[:, None], watts)
    return np.array([found[call.function] * (call.ended - call.began) for call in calls])


def nonnegative(known: Floats, wanted: Floats) -> Floats:
    """Least squares with no factor below 0: the best of all choices of factors that are not 0. For a few factors."""
    best, best_left = np.zeros(known.shape[1]), float(wanted @ wanted)
    for count in range(1, known.shape[1] + 1):
        for chosen in map(list, combinations(range(known.shape[1]), count)):
            factors = np.linalg.lstsq(known[:, chosen], wanted, rcond=None)[0]
            left = float(np.sum((wanted - known[:, chosen] @ factors) ** 2))
            if left < best_left and (factors >= 0.0).all():
                best, best_left = np.zeros(known.shape[1]), left
                best[chosen] = factors
    return best


def _by_process(truth: Truth, calls: list[Burnt], ends: Floats, rule: Rule) -> Floats:
    """What a rule says of each worker in each interval, handed down to calls by how long they ran."""
    said = np.zeros(len(calls))
    for worker in {call.worker for call in calls}:
        mine = [number for number, call in enumerate(calls) if call.worker == worker]
        joules = rule(np.diff(_at(truth, truth.clock(worker), ends)))
        times = [_span(calls[number], ends) for number in mine]
        whole = np.zeros(len(ends) - 1)
        for first, seconds in times:
            whole[first : first + len(seconds)] += seconds
        each = np.divide(joules, whole, out=np.zeros_like(joules), where=whole > 0.0)
        for number, (first, seconds) in zip(mine, times, strict=True):
            said[number] = float(seconds @ each[first : first + len(seconds)])
    return said


def _grid(truth: Truth, seconds: float) -> Floats:
    grid: Floats = np.arange(truth.time[0], truth.time[-1], seconds)
    return np.append(grid, truth.time[-1])


def _at(truth: Truth, values: Floats, times: Floats) -> Floats:
    found: Floats = np.interp(times, truth.time, values)
    return found


def _span(call: Burnt, ends: Floats) -> tuple[int, Floats]:
    """The first interval that a call ran in, and the seconds it ran in that and the following ones."""
    first = max(int(np.searchsorted(ends, call.began)) - 1, 0)
    last = min(int(np.searchsorted(ends, call.ended)), len(ends) - 1)
    edges = ends[first : last + 1]
    return first, np.maximum(np.minimum(edges[1:], call.ended) - np.maximum(edges[:-1], call.began), 0.0)


def _overlap(call: Burnt, ends: Floats) -> Floats:
    first, seconds = _span(call, ends)
    whole = np.zeros(len(ends) - 1)
    whole[first : first + len(seconds)] = seconds
    return whole
