"""From what bags have shown to E and W, each with where it lies nine times out of ten.

Owns the arithmetic. A function's figure is the mean over its bags: what matters is whom it ran beside, not how often.
For E they count alike. For W those count more in which the account knew better what functions draw: at first it has to
learn that. Intervals come from how bags differ (Student's t) and from what the account itself says its joules may be
off by, which no number of bags takes away. Nothing is run or read here.
"""

from collections.abc import Sequence
from math import exp, fsum, hypot, sqrt
from statistics import NormalDist
from typing import Final

from wattloom.affinity.seen import Bags, Seen
from wattloom.energy.forecast import Provenance
from wattloom.workload.function_profile import Figure, FunctionProfile

HELD: Final = 0.9
"""Share of intervals that hold the truth."""
NORMAL: Final = NormalDist().inv_cdf((1.0 + HELD) / 2.0)
WIDEST: Final = 10.0
"""Factor beyond which an interval says no more."""
LEAST_COUNT: Final = 1.5
"""Of bags that count alike: fewer say nothing of how bags differ."""
NEIGHBOURS: Final = 0.05
"""How far a function's joules may be from each other among different neighbours, relatively: bags of which the account
is surer than that count alike."""
STAYS, PASSES = 0.4, 0.055
"""Of a measuring account's doubt: the share that all bags have in common at least, and how much of it goes away with
their number. Set on the rig, by other seeds than judge it."""
STUDENT: Final = (
    6.314,
    2.920,
    2.353,
    2.132,
    2.015,
    1.943,
    1.895,
    1.860,
    1.833,
    1.812,
    1.796,
    1.782,
    1.771,
    1.761,
    1.753,
)
"""Student's t at 95%, for 1, 2, ... degrees of freedom."""


def student(freedom: int) -> float:
    """Student's t at 95%: by table, then by the first terms of its expansion."""
    if freedom <= len(STUDENT):
        return STUDENT[freedom - 1]
    return NORMAL + (NORMAL**3 + NORMAL) / (4.0 * freedom)


def interval(
    values: Sequence[float], weights: Sequence[float] = (), *, within: float = 0.0, doubt: float = 0.0
) -> Figure:
    """The mean of positive values and its interval. `within`: relative standard error by chance inside one of them, for
    when there is one only. `doubt`: relative standard deviation of an error that all of them share."""
    weighs = weights or [1.0] * len(values)
    mean = _mean(values, weighs)
    count = fsum(weighs) ** 2 / fsum(weight * weight for weight in weighs)
    if count > LEAST_COUNT:
        variance = _mean([(value - mean) ** 2 for value in values], weighs) * count / (count - 1.0)
        reach = student(max(round(count - 1.0), 1)) * sqrt(variance / count) / mean
    else:
        reach = student(1) * within
    factor = min(exp(hypot(reach, NORMAL * doubt)), WIDEST)
    return Figure(mean, mean / factor, mean * factor)


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    return fsum(value * weight for value, weight in zip(values, weights, strict=True)) / fsum(weights)


def inverse(figure: Figure) -> Figure:
    """Of seconds per execution, executions per second."""
    return Figure(1.0 / figure.value, 1.0 / figure.high, 1.0 / figure.low)


def profiles(bags: Bags, source: str) -> list[FunctionProfile]:
    """The rows that these bags come to, for functions that were in one at least."""
    found = []
    for trial in bags.able:
        seen = [each for bag in bags.bags for each in bag.seen if each.function == trial.function and each.executions]
        if seen:
            found.append(_profile(bags, seen, trial.cold_start_s, trial.memory, source))
    return found


def _profile(bags: Bags, seen: list[Seen], cold_s: float | None, memory: int, source: str) -> FunctionProfile:
    setting = bags.setting
    metered = [each for each in seen if each.metered]
    return FunctionProfile(
        function=seen[0].function,
        machine=setting.machine,
        per_core_s=inverse(interval([each.seconds / each.executions for each in seen], within=_within_s(seen[0]))),
        joules=_joules(metered, setting.provenance),
        cold_start_s=cold_s,
        memory=memory,
        executions=sum(each.executions for each in seen),
        bags=len(seen),
        provenance=setting.provenance,
        quantity=setting.quantity,
        source=source,
    )


def _joules(seen: list[Seen], provenance: Provenance) -> Figure | None:
    """What the account may be off by is of two kinds: errors of single calls and readings, which go away with their
    number, and of what it has learned or been told of the machine, which stay."""
    known = [one for one in seen if one.joules > 0.0]
    if not known:
        return None
    each, doubts = [one.joules / one.metered for one in known], [one.doubt_j / one.joules for one in known]
    weights = [1.0 / (doubt * doubt + NEIGHBOURS * NEIGHBOURS) for doubt in doubts]
    doubt = _mean(doubts, weights)
    stays = _stays(doubt) if provenance == "measured" else doubt
    return interval(each, weights, within=_within_j(known[0]), doubt=stays)


def _stays(doubt: float) -> float:
    """What of a measuring account's doubt all bags have in common: of a large one nearly all, since then functions are
    not told apart yet."""
    return max(STAYS * doubt, sqrt(max(doubt * doubt - PASSES * PASSES, 0.0)))


def _within_s(seen: Seen) -> float:
    return _relative_error(seen.executions, seen.seconds, seen.seconds_squared, seen.calls)


def _within_j(seen: Seen) -> float:
    return _relative_error(seen.metered, seen.joules, seen.joules_squared, seen.calls)


def _relative_error(count: int, total: float, squared: float, calls: int) -> float:
    """Standard error of the mean over it, from sums over executions that were made in so many calls."""
    if calls < 2 or not total > 0.0:
        return 0.0
    mean = total / count
    variance = max(squared / count - mean * mean, 0.0) * calls / (calls - 1)
    return sqrt(variance / calls) / mean
