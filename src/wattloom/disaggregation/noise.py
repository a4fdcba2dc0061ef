"""What is left over when the model has said its part: its size, its memory, how many independent readings there are.

Owns these three figures, all of them robust: a few wild readings do not move them.
"""

from typing import Final

import numpy as np

from wattloom.disaggregation.activity import Array

MAD: Final = 1.4826
MOST_MEMORY: Final = 0.98
CLIP: Final = 3.0
LEAST_TRUST: Final = 0.03


def size(residual: Array) -> float:
    """The standard deviation, of most."""
    found = MAD * float(np.median(np.abs(residual))) + 1e-12
    for _ in range(3):
        weight = np.minimum(1.0, 2.0 / np.maximum(np.abs(residual) / found, 1e-12))
        found = float(np.sqrt((weight * residual**2).mean())) + 1e-12
    return found


def clipped(residual: Array) -> Array:
    middle = residual - np.median(residual)
    most = CLIP * MAD * float(np.median(np.abs(middle))) + 1e-12
    return np.asarray(np.clip(middle, -most, most))


def memory(residual: Array, order: int = 4) -> Array:
    """Shares of the last residuals that go on in the next (autoregression, Yule and Walker)."""
    calm = clipped(residual)
    if len(calm) < 20 * (order + 1):
        return np.zeros(0)
    kept = np.array([(calm[back:] * calm[: len(calm) - back]).mean() for back in range(order + 1)])
    table = kept[np.abs(np.subtract.outer(np.arange(order), np.arange(order)))] + np.eye(order) * (
        1e-3 * kept[0] + 1e-12
    )
    shares = np.linalg.solve(table, kept[1:])
    total = float(shares.sum())
    return np.asarray(shares * (MOST_MEMORY / total if total > MOST_MEMORY else 1.0))


def independent(residual: Array) -> float:
    """Independent readings per reading: one over the time that noise lasts, in readings."""
    calm = clipped(residual)
    variance = float((calm**2).mean()) + 1e-24
    lasting = 1.0
    for back in range(1, min(60, len(calm) // 4)):
        share = float((calm[back:] * calm[:-back]).mean()) / variance
        if share < 0.05:
            break
        lasting += 2.0 * share
    return max(1.0 / lasting, LEAST_TRUST)


def fresh(readings: Array, memory: Array) -> Array:
    """What is new in each reading (or row), given those before it."""
    count = len(memory)
    found = readings[count:].copy()
    for back, share in enumerate(memory, start=1):
        found -= share * readings[count - back : len(readings) - back]
    return found
