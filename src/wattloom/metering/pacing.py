"""How soon to read a meter again: often while the power changes, seldom while it does not.

Owns the rule and nothing else: no clock, no meter, no state. Whoever reads keeps the interval and the last watts.
"""

from math import inf, isfinite
from typing import Final

import msgspec

STEADY: Final = 0.05
"""A change of power smaller than this share is none: the interval may grow."""
RESTLESS: Final = 0.2
"""One larger than this: something began or ended, and the interval was too long to see it well."""
SLOWER: Final = 1.5
FASTER: Final = 0.5
BEFORE_WRAP: Final = 4.0
"""So many readings at least in the time in which the counter wraps: one that fails does no harm."""
OF_A_CORE: Final = 0.01
"""Reading may take so much of one core."""


class Source(msgspec.Struct, frozen=True):
    """What bounds the interval."""

    period_s: float = 0.0
    """How often the source has a new figure: reading sooner tells nothing."""
    cost_s: float = 0.0
    """CPU seconds of one reading, with all that is done with it."""
    wrap_s: float = inf
    """How long its counter takes to wrap at the most that can be drawn."""
    least_s: float = 0.1
    most_s: float = 10.0


def wrap_seconds(range_j: float | None, most_w: float) -> float:
    """How soon a counter of that range wraps at that power. None: it is not known to wrap."""
    return inf if range_j is None or most_w <= 0.0 else range_j / most_w


def next_interval(interval_s: float, before_w: float | None, watts: float | None, source: Source) -> float:
    """Seconds until the next reading, after an interval of `interval_s` whose power was `watts`, and that of the one
    before it `before_w`. None: not known."""
    return bounded(interval_s * _factor(before_w, watts), source)


def bounded(interval_s: float, source: Source) -> float:
    """The interval within what the source allows. Not to miss a wrap goes before all else: a wrap that was missed makes
    the count wrong, a reading too many only costs."""
    least = max(source.least_s, source.period_s, source.cost_s / OF_A_CORE)
    most = max(source.most_s, least)
    wanted = interval_s if isfinite(interval_s) else most
    return min(max(wanted, least), most, source.wrap_s / BEFORE_WRAP)


def _factor(before_w: float | None, watts: float | None) -> float:
    if watts is None:  # what cannot be read need not be asked for more often
        return SLOWER
    if before_w is None:
        return 1.0
    more = max(before_w, watts)
    change = abs(watts - before_w) / more if more > 0.0 else 0.0
    if change > RESTLESS:
        return FASTER
    return SLOWER if change < STEADY else 1.0
