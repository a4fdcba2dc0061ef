"""From what bags have shown to E and W, each with where it lies nine times out of ten.

Owns the arithmetic. A function's figure is the mean over its bags, each counting alike: what matters is whom it ran
beside. Its interval comes from how bags differ (Student's t) and from what the account itself says its joules may be
off by, which no number of bags takes away. Nothing is run or read here.
"""

from collections.abc import Sequence
from math import exp, hypot, sqrt
from statistics import NormalDist, fmean, stdev
from typing import Final

from wattloom.affinity.seen import Bags, Seen
from wattloom.workload.function_profile import Figure, FunctionProfile, exact

HELD: Final = 0.9
"""Share of intervals that hold the truth."""
WIDEST: Final = 10.0
"""Factor beyond which an interval says no more."""
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
    z = NormalDist().inv_cdf((1.0 + HELD) / 2.0)
    return z + (z**3 + z) / (4.0 * freedom)


def interval(values: Sequence[float], within: float = 0.0, doubt: float = 0.0) -> Figure:
    """The mean of positive values and its interval. `within`: relative standard error by chance inside one bag, for
    when there is one only. `doubt`: relative standard deviation of an error that all of them share."""
    mean = fmean(values)
    if len(values) > 1:
        reach = student(len(values) - 1) * stdev(values) / sqrt(len(values)) / mean
    else:
        reach = student(1) * within
    reach = hypot(reach, NormalDist().inv_cdf((1.0 + HELD) / 2.0) * doubt)
    factor = min(exp(reach), WIDEST)
    return Figure(mean, mean / factor, mean * factor)


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
        per_core_s=inverse(interval([each.seconds / each.executions for each in seen], _within_s(seen[0]))),
        joules=_joules(metered) if metered else None,
        cold_start_s=cold_s,
        memory=memory,
        executions=sum(each.executions for each in seen),
        bags=len(seen),
        provenance=setting.provenance,
        quantity=setting.quantity,
        source=source,
    )


def _joules(seen: list[Seen]) -> Figure | None:
    each = [one.joules / one.metered for one in seen]
    if not fmean(each) > 0.0:
        return None
    doubt = fmean(one.doubt_j for one in seen) / fmean(one.joules for one in seen)
    return interval(each, _within_j(seen[0]), doubt) if len(each) > 1 or seen[0].calls > 1 else exact(each[0])


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
