"""Functions that bags of the tests are made of."""

import os
import time


def short(rounds: int = 200) -> int:
    return sum(number * number for number in range(rounds))


def longer(rounds: int = 20_000) -> int:
    return sum(number * number for number in range(rounds))


def sleeps(seconds: float = 0.02) -> None:
    time.sleep(seconds)


def raises() -> None:
    raise ValueError("no such thing")


def crashes_later(path: str) -> None:
    """The first three times it works."""
    with open(path, "a+") as file:
        file.write("x")
        file.seek(0)
        if len(file.read()) > 3:
            os._exit(9)
