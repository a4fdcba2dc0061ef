"""Functions that keep a core busy for a given CPU time, whatever else the machine does."""

import time


def _burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(200))


def quick() -> str:
    _burn(0.01)
    return "quick"


def slow() -> str:
    _burn(0.04)
    return "slow"


def twice_as_slow() -> str:
    _burn(0.08)
    return "twice as slow"
