"""Series made fit to be drawn: fewer points, the same picture.

Owns the thinning. Means keep the area below a power line, which is the energy.
"""

from typing import Final

MOST_BINS: Final = 320
MOST_STEPS: Final = 400


def binned(power: list[tuple[float, float]], end: float) -> tuple[list[float], list[float]]:
    """Times and mean watts in at most so many equal bins, as steps; the last point closes the last bin."""
    power = [(time, watts) for time, watts in power if time < end]  # nodes may go on changing while tasks wait in vain
    if not power:
        return [], []
    per_bin = -(-len(power) // MOST_BINS)
    edges = [time for time, _ in power] + [end]
    times: list[float] = []
    watts: list[float] = []
    for first in range(0, len(power), per_bin):
        last = min(first + per_bin, len(power))
        joules = sum(power[i][1] * (edges[i + 1] - edges[i]) for i in range(first, last))
        length = edges[last] - edges[first]
        if length > 0.0:
            times.append(edges[first])
            watts.append(joules / length)
    return [*times, end], [*watts, watts[-1]] if watts else []


def share_started(waits: list[float], longest: float) -> tuple[list[float], list[float]]:
    """Waiting times and the share of tasks that started within them, from 0 to the longest of all policies."""
    if not waits:
        return [], []
    ordered = sorted(waits)
    count = len(ordered)
    ranks = sorted({round(step * (count - 1) / MOST_STEPS) for step in range(MOST_STEPS + 1)})
    at_once = sum(wait <= 0.0 for wait in ordered) / count
    xs = [0.0, *(ordered[rank] for rank in ranks)]
    ys = [at_once, *(max(at_once, (rank + 1) / count) for rank in ranks)]
    return [*xs, longest], [*ys, 1.0]
