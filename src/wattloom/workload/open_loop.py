"""Open-loop arrivals: when calls come, whatever has become of those before.

Owns the times. Same rates, same seed, same times, on every machine and for every backend: they are drawn by hashing the
seed, the function's name and the call's number, so that a function's calls do not depend on which others there are.
"""

from hashlib import blake2b
from heapq import merge
from math import log
from typing import Final, Literal

from wattloom.errors import InputError

Arrivals = Literal["poisson", "even"]
Arrival = tuple[float, str]
"""Seconds after the beginning, and the function."""
MOST_CALLS: Final = 10_000_000
BITS: Final = 53


def schedule(rates: dict[str, float], seconds: float, arrivals: Arrivals = "poisson", seed: int = 0) -> list[Arrival]:
    """Every call that comes within so many seconds, in order. InputError: there are too many."""
    expected = sum(rates.values()) * seconds
    if not expected <= MOST_CALLS:
        raise InputError(
            "seconds", f"would make {expected:,.0f} calls; at most {MOST_CALLS:,} are driven: fewer seconds"
        )
    draw = _poisson if arrivals == "poisson" else _even
    streams = [[(time, name) for time in draw(name, rate, seconds, seed)] for name, rate in rates.items() if rate > 0.0]
    return list(merge(*streams))


def _poisson(name: str, rate: float, seconds: float, seed: int) -> list[float]:
    times: list[float] = []
    time = -log(_uniform(seed, name, 0)) / rate
    while time < seconds:
        times.append(time)
        time -= log(_uniform(seed, name, len(times))) / rate
    return times


def _even(name: str, rate: float, seconds: float, seed: int) -> list[float]:
    """One every so often; when the first comes is drawn, so that functions do not march in step."""
    first = _uniform(seed, name, 0) / rate
    count = int((seconds - first) * rate) + 1 if first < seconds else 0
    times = [first + number / rate for number in range(count)]
    return [time for time in times if time < seconds]


def _uniform(seed: int, name: str, number: int) -> float:
    """Above 0, at most 1."""
    said = blake2b(f"{seed}/{name}/{number}".encode("utf-8", "replace"), digest_size=8).digest()
    return ((int.from_bytes(said, "big") >> (64 - BITS)) + 1) / (1 << BITS)
