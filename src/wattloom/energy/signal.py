"""Signals from outside that make a joule dearer or cheaper: carbon, price.

Owns one signal: its value now and what is expected of it. Who measures it and what it is weighed with are others' work.
"""

import msgspec

from wattloom.bounds import LATEST_S, MOST_POINTS, MOST_SUM


class Signal(msgspec.Struct, frozen=True, gc=False):
    """One figure, as it was last told."""

    value: float
    since: float
    forecast: tuple[tuple[float, float], ...] = ()
    """Times and the values from then on, in order of time."""


def forecast_problem(forecast: tuple[tuple[float, float], ...]) -> str:
    """What is wrong with expected values; empty: nothing."""
    if len(forecast) > MOST_POINTS:
        return f"must have at most {MOST_POINTS} points, not {len(forecast)}"
    last = -LATEST_S
    for time, value in forecast:
        if not last <= time < LATEST_S:
            return f"must be in order of time, below {LATEST_S:g} s, not {time} after {last}"
        if not -MOST_SUM <= value <= MOST_SUM:
            return f"must be numbers, not {value}"
        last = time
    return ""
