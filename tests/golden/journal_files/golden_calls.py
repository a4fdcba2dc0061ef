"""The functions that the recorded journals name by this module's path: it must stay importable as `golden_calls`."""

import time
from pathlib import Path


def mark(name: str, seconds: float = 0.0) -> int:
    """One letter more in a file, so that whoever looks knows how often it was called."""
    path = Path(name)
    with path.open("a") as file:
        file.write("x")
    time.sleep(seconds)
    return path.stat().st_size


def nap(seconds: float, name: str = "") -> float:
    if name:
        mark(name)
    time.sleep(seconds)
    return seconds


def double(number: int) -> int:
    print(f"doubling {number}")
    return 2 * number


def length(data: bytes, name: str) -> int:
    mark(name)
    return len(data)


def refuse(name: str) -> None:
    mark(name)
    raise LookupError(f"{name} on purpose")


def third_time(name: str) -> int:
    """Fails twice, then gives how often it was called."""
    if mark(name) < 3:
        raise TimeoutError("not yet")
    return 3
