"""What others would have said of the same readings: a plain regression, and a regression with a filter in windows.

The second follows FaasMeter as published (seconds that each function ran in each second; non-negative least squares of
power less the known idle watts over the first minutes; then, in windows of 60 s, all figures scaled by the share of the
window's error that a gain of 0.1 to 0.9 lets through; clocks taken as equal). Written anew from that description. All
are told the true idle watts, which ours must find, and the plain regression once more with the true lag.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.beds.power_traces import PowerTrace

from wattloom.disaggregation.activity import run_seconds
from wattloom.disaggregation.quadratic import bounded

Array = NDArray[np.float64]

WINDOW_S = 60
FIRST_S = 180
LEAST_W = 1.0
PROCESS, MEASUREMENT = 0.3, 0.2
LEAST_GAIN, MOST_GAIN = 0.1, 0.9


def regression(trace: PowerTrace) -> Array:
    """Joules per call by non-negative least squares over the whole run."""
    ran, active, _ = _by_second(trace)
    watts = _non_negative(ran, active, 0.0)
    return _per_call(trace, watts)


def told_the_lag(trace: PowerTrace) -> Array:
    """The same regression, with clocks that agree."""
    ran, active, _ = _by_second(trace, trace.lag_s - 0.5)
    return _per_call(trace, _non_negative(ran, active, 0.0))


def faasmeter(trace: PowerTrace) -> Array:
    """Joules per call, the mean over windows."""
    ran, active, began = _by_second(trace)
    watts = _non_negative(ran[:FIRST_S], active[:FIRST_S], LEAST_W)
    seen = began[:FIRST_S].sum(axis=0)
    found = [watts]
    for start in range(FIRST_S, len(active), WINDOW_S):
        rows = slice(start, start + WINDOW_S)
        expected = float((ran[rows] @ watts).sum())
        mix = began[rows].sum(axis=0)
        change = float(np.abs(mix / max(mix.sum(), 1) - seen / max(seen.sum(), 1)).sum())
        doubt = PROCESS * (1.0 + change)
        gain = float(np.clip(doubt / (doubt + MEASUREMENT / np.sqrt(WINDOW_S)), LEAST_GAIN, MOST_GAIN))
        if expected > 0:
            watts = np.maximum(watts + gain * watts * (float(active[rows].sum()) - expected) / expected, 0.0)
        seen = seen + mix
        found.append(watts)
    return _per_call(trace, np.mean(found, axis=0))


def _by_second(trace: PowerTrace, lag: float = 0.0) -> tuple[Array, Array, Array]:
    """Seconds each function ran, watts above idle, and calls begun, in every second."""
    edges = np.arange(0.0, float(trace.calls.end.max()) + 1.0)
    columns: list[Any] = []
    began: list[Any] = []
    for each in range(len(trace.names)):
        mine = trace.calls.function == each
        start, end = trace.calls.start[mine], trace.calls.end[mine]
        columns.append(run_seconds(edges, start, end, np.ones(len(start))))
        began.append(np.histogram(start, edges)[0])
    watts = np.interp(edges[1:] + lag, trace.time, trace.watts) - trace.idle_w
    return np.column_stack(columns), watts, np.column_stack(began).astype(float)


def _non_negative(ran: Array, active: Array, least: float) -> Array:
    square = ran.T @ ran + 1e-9 * np.eye(ran.shape[1])
    return bounded(square, ran.T @ active, np.full(ran.shape[1], least))


def _per_call(trace: PowerTrace, watts: Array) -> Array:
    length = trace.calls.end - trace.calls.start
    seconds = np.bincount(trace.calls.function, weights=length, minlength=len(trace.names))
    return np.asarray(watts * seconds / np.maximum(trace.counts, 1))
