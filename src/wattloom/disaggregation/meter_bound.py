"""No more than the meter showed: functions and idle together are within its joules, and nothing is below zero.

Owns what gives way where a model says more than was metered: idle that was found, as far as it is in doubt, then
functions, in proportion. What was taken off is in the spread.
"""

from dataclasses import replace
from typing import Literal

import numpy as np

from wattloom.disaggregation.joules import Disaggregated


def within_the_meter(found: Disaggregated, mode: Literal["marginal", "full"]) -> Disaggregated:
    """The same where there is room, else with less for idle or functions."""
    found = replace(found, full_j=np.maximum(found.full_j, 0.0))
    found = _less_idle(found, found.idle_j - found.meter_j)
    own = found.marginal_j if mode == "marginal" else found.full_j
    above = float(own.sum()) + found.idle_j - found.meter_j
    if found.idle_given_w is None:
        less = min(above, found.idle_spread, found.idle_j)
        found, above = _less_idle(found, less), above - less
    return _less_functions(found, mode, min(above / float(own.sum()), 1.0)) if above > 0.0 < own.sum() else found


def _less_idle(found: Disaggregated, less: float) -> Disaggregated:
    if less <= 0.0 or found.idle_j <= 0.0:
        return found
    left = 1.0 - less / found.idle_j
    return replace(found, idle_j=left * found.idle_j, idle_share_j=left * found.idle_share_j)


def _less_functions(found: Disaggregated, mode: Literal["marginal", "full"], part: float) -> Disaggregated:
    if mode == "marginal":
        spread = np.hypot(found.marginal_spread, part * found.marginal_j)
        return replace(found, marginal_j=(1.0 - part) * found.marginal_j, marginal_spread=spread)
    spread = np.hypot(found.full_spread, part * found.full_j)
    return replace(found, full_j=(1.0 - part) * found.full_j, full_spread=spread)
