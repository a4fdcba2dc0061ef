"""The functions under test: calls that keep a core busy for so many CPU seconds, and say exactly when.

Owns what runs in the workers. They all burn alike; what sets them apart is the intensity that the rig gives each.
"""

import os
from pathlib import Path
from time import monotonic, process_time, sleep
from typing import Final

import msgspec
from tests.beds.rig.slots import Slot

FOUND_WITHIN_S: Final = 0.15
"""The rig looks for new workers more often than that."""
_SLOTS: Final[list[Slot]] = []


class Burnt(msgspec.Struct, frozen=True):
    """What a call says of itself: the truth is worked out from this."""

    worker: int
    function: int
    began: float
    ended: float
    cpu_began: float
    cpu_ended: float


def join(folder: str) -> None:
    """The initializer of a worker: from now on the rig sees what it runs."""
    _SLOTS[:] = [Slot(Path(folder))]
    sleep(FOUND_WITHIN_S)


def frugal(cpu_s: float) -> Burnt:
    return _burn(0, cpu_s)


def plain(cpu_s: float) -> Burnt:
    return _burn(1, cpu_s)


def hungry(cpu_s: float) -> Burnt:
    return _burn(2, cpu_s)


def blazing(cpu_s: float) -> Burnt:
    return _burn(3, cpu_s)


FUNCTIONS: Final = (frugal, plain, hungry, blazing)


def _burn(function: int, cpu_s: float) -> Burnt:
    slot = _SLOTS[0]
    began, cpu = monotonic(), slot.begin(function)
    end = cpu + cpu_s
    while process_time() < end:
        _work()
    cpu_ended = slot.end(function, cpu)
    return Burnt(os.getpid(), function, began, monotonic(), cpu, cpu_ended)


def _work() -> int:
    total = 0
    for number in range(300):
        total += number * number
    return total
