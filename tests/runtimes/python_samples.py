"""The sample functions of `wattloom.testing.runtime_conformance` in Python."""

from time import process_time
from typing import Any

CALLS: list[int] = []


def echo(value: Any) -> Any:
    return value


def add(a: float, b: float) -> float:
    return a + b


def fail(text: str) -> None:
    raise ValueError(text)


def say(text: str, times: int) -> None:
    for _ in range(times):
        print(text)


def grow(n: int) -> str:
    return "x" * n


def spin(seconds: float) -> None:
    end = process_time() + seconds
    while process_time() < end:
        pass


def nan() -> list[float]:
    return [float("nan")]


def count() -> int:
    CALLS.append(1)
    return len(CALLS) - 1
