"""Loads of our own, for machines without stress-ng and for k-means: `python -m wattloom.profiling.own_load`.

Owns the loops and how their rounds are counted. One process for each CPU, pinned to it; one thread in each.
"""

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from wattloom.profiling.tied import PR_SET_PDEATHSIG

Round = Callable[[], Any]
_POOLS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
ONE_THREAD: Final = dict.fromkeys(_POOLS, "1")
"""numpy's libraries would start threads on all CPUs."""
POINTS, DIMENSIONS, CLUSTERS = 4000, 16, 8


def integer() -> Round:
    """Whole numbers in the interpreter."""

    def round_() -> int:
        value = 12345
        for _ in range(20_000):
            value = (value * 1103515245 + 12345) & 0x7FFFFFFF
        return value

    return round_


def matrix() -> Round:
    """The product of two matrices that fit into a core's cache."""
    import numpy as np

    left = np.arange(128 * 128, dtype=np.float64).reshape(128, 128) / 16384.0
    right = left.T.copy()
    return lambda: left @ right


def memory() -> Round:
    """Streams through more memory than caches hold."""
    import numpy as np

    source = np.ones(8 << 20, dtype=np.float64)
    target = np.empty_like(source)
    return lambda: np.multiply(source, 3.0, out=target)


def kmeans() -> Round:
    """One round of k-means: every point to its nearest centre, every centre to the middle of its points."""
    import numpy as np

    numbers = np.arange(POINTS * DIMENSIONS, dtype=np.float64)
    points = (np.sin(numbers * 12.9898) * 43758.5453 % 1.0).reshape(POINTS, DIMENSIONS)
    first = points[:CLUSTERS].copy()
    centres = first.copy()

    def round_() -> None:
        distances = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        nearest = distances.argmin(axis=1)
        for cluster in range(CLUSTERS):
            members = points[nearest == cluster]
            centres[cluster] = members.mean(axis=0) if len(members) else first[cluster]

    return round_


LOOPS: Final = {"integer": integer, "matrix": matrix, "memory": memory, "kmeans": kmeans}


def main() -> None:
    """KIND CPUS SECONDS FILE BEGUN: load the CPUs, and write how many rounds a second were done into FILE. BEGUN is a
    file that is made as soon as all are at work."""
    kind, cpus, seconds, result, begun = sys.argv[1:]
    round_ = LOOPS[kind]()  # once for all, so that all begin at the same time
    read, write = os.pipe()
    children = [_child(round_, int(cpu), float(seconds), write) for cpu in cpus.split(",")]
    os.close(write)
    Path(begun).touch()
    with os.fdopen(read) as rates:
        found = [float(line) for line in rates]
    for child in children:
        os.waitpid(child, 0)
    if len(found) != len(children):
        sys.exit(f"{len(children) - len(found)} of {len(children)} loops did not end well")
    Path(result).write_text(json.dumps({"ops_per_s": sum(found)}))


def _child(round_: Round, cpu: int, seconds: float, write: int) -> int:
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() == parent:
            os.sched_setaffinity(0, {cpu})
            os.write(write, f"{_rate(round_, seconds)}\n".encode())
    finally:
        os._exit(0)


def _rate(round_: Round, seconds: float) -> float:
    rounds, began = 0, time.monotonic()
    while (now := time.monotonic()) - began < seconds:
        round_()
        rounds += 1
    return rounds / (now - began)


if __name__ == "__main__":
    main()
