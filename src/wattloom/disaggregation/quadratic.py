"""Least squares with bounds below, in normal form.

Owns one small solver: solve, pin what went below its bound, release what would rise again.
"""

from typing import Final

import numpy as np

from wattloom.disaggregation.activity import Array

ROUNDS: Final = 200


def bounded(square: Array, linear: Array, floor: Array) -> Array:
    """The x >= floor that makes x'Sx/2 - l'x least. `square` is positive definite."""
    free = np.ones(len(linear), dtype=bool)
    found = floor.copy()
    for _ in range(ROUNDS):
        found = np.where(free, 0.0, floor)
        pull = linear - square @ found
        found[free] = np.linalg.solve(square[np.ix_(free, free)], pull[free])
        below = free & (found < floor - 1e-12)
        if below.any():
            free &= ~below
            continue
        rise = np.where(free, 0.0, linear - square @ found)
        if rise.max() <= 1e-9 * (1.0 + np.abs(linear).max()):
            break
        free[int(np.argmax(rise))] = True
    return np.maximum(found, floor)
