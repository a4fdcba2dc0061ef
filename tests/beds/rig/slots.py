"""Where a worker says what it runs: a few words of memory that it shares with the rig.

Owns their layout. Writing costs about a microsecond, so that calls of a millisecond can be told apart exactly. All
that is counted here is counted by the worker's own CPU clock.
"""

import mmap
import os
from pathlib import Path
from struct import Struct
from time import process_time
from typing import Final

MOST_FUNCTIONS: Final = 8
_LAYOUT: Final = Struct(f"=qq{1 + MOST_FUNCTIONS}d")
"""A number that is odd while the rest is being written, which function runs, since when, and the CPU seconds of each
function's calls that have ended."""
_NONE: Final = -1


class Slot:
    """One worker's words, on its own side."""

    def __init__(self, folder: Path) -> None:
        path = folder / str(os.getpid())
        fresh = path.with_suffix(".new")
        fresh.write_bytes(_LAYOUT.pack(0, _NONE, 0.0, *([0.0] * MOST_FUNCTIONS)))
        with fresh.open("r+b") as file:
            self._memory: Final = mmap.mmap(file.fileno(), _LAYOUT.size)
        self._number = 0
        self._ended: Final = [0.0] * MOST_FUNCTIONS
        fresh.rename(path)

    def begin(self, function: int) -> float:
        """A call begins; the CPU clock."""
        cpu = process_time()
        self._write(function, cpu)
        return cpu

    def end(self, function: int, began: float) -> float:
        cpu = process_time()
        self._ended[function] += cpu - began
        self._write(_NONE, 0.0)
        return cpu

    def _write(self, function: int, since: float) -> None:
        _LAYOUT.pack_into(self._memory, 0, self._number + 1, function, since, *self._ended)
        self._number += 2
        _LAYOUT.pack_into(self._memory, 0, self._number, function, since, *self._ended)


class SlotReader:
    """The same words, on the rig's side."""

    def __init__(self, path: Path) -> None:
        self.worker: Final = int(path.name)
        with path.open("r+b") as file:
            self._memory: Final = mmap.mmap(file.fileno(), _LAYOUT.size)

    def read(self) -> tuple[int, float, tuple[float, ...]] | None:
        """Which function runs (-1: none), since when, and the seconds of what ended. None: it is being written."""
        before = _LAYOUT.unpack_from(self._memory)
        if before[0] % 2 or _LAYOUT.unpack_from(self._memory)[0] != before[0]:
            return None
        return before[1], before[2], before[3:]
