"""What could as well be idle: functions that always run cannot be told from it by any reading.

Owns how many watts may be moved between idle and functions before the readings object. Knows nothing of curves.
"""

from typing import Final

import numpy as np

from wattloom.disaggregation.activity import Array
from wattloom.disaggregation.quadratic import bounded

TINY: Final = 1e-9
"""Keeps the small system solvable where functions always run together."""


def watts_in_doubt(seen: Array, noise_w: float, trust: float, most_w: float) -> tuple[Array, float]:
    """Watts per call of each function that may be idle's, and watts of idle that may be functions'.

    `seen`: calls under way in what each reading shows. `most_w`: no more than that can be either's. Tried are all
    functions together (those that take turns are idle's twin only as a sum) and each alone."""
    functions = seen.shape[1]
    square, linear = seen.T @ seen, seen.sum(axis=0)
    level = np.trace(square) / functions
    if level <= 0.0:
        return np.zeros(functions), 0.0
    together = bounded(square + TINY * level * np.eye(functions), linear, np.zeros(functions))
    alone = np.diag(np.divide(linear, np.diag(square), out=np.zeros(functions), where=np.diag(square) > TINY * level))
    found, idle = np.zeros(functions), 0.0
    for per_watt in (together, *alone):
        left = float(((1.0 - seen @ per_watt) ** 2).sum()) * trust
        watts = min(noise_w / max(left, 1e-18) ** 0.5, most_w)
        found, idle = np.maximum(found, watts * per_watt), max(idle, watts)
    return found, idle
