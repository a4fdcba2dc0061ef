"""What functions cost, read from the journals of programs while they run.

Owns the sums by function. Only what is written after the first look counts: everything here counts from there. How the
journals are read is `history`'s: only what is new, and only of files that have changed.
"""

import sqlite3
from pathlib import Path
from typing import Final

import msgspec

from wattloom.errors import WattloomError
from wattloom.history.records import Walk
from wattloom.history.stored_log import Tail
from wattloom.monitoring.snapshot import TaskUse
from wattloom.scheduling.events import UsageArrived

SUFFIX: Final = ".journal"
CPU: Final = "cpu"


class JournalTail:
    """Called with the time of a look; gives what each function has cost since the first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tails: dict[Path, Tail] = {}
        self._costs: dict[tuple[str, str, str], TaskUse] = {}
        self._told: dict[tuple[str, str, str], float] = {}
        self._looked: float | None = None

    def __call__(self, now: float) -> tuple[TaskUse, ...]:
        self._told.clear()
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            try:
                self._follow(path)
            except (sqlite3.Error, OSError, WattloomError):
                continue  # one that cannot be read is no reason to hide the others
        seconds = now - self._looked if self._looked is not None else 0.0
        self._looked = now
        return tuple(self._with_watts(key, cost, seconds) for key, cost in self._costs.items())

    def _with_watts(self, key: tuple[str, str, str], cost: TaskUse, seconds: float) -> TaskUse:
        told = self._told.get(key, 0.0)
        return msgspec.structs.replace(cost, watts=told / seconds) if told and seconds > 0.0 else cost

    def _follow(self, path: Path) -> None:
        if path not in self._tails:
            self._tails[path] = Tail(path, from_the_beginning=self._looked is not None)
        walk = Walk(str(path), unasked=False)
        walk.on_event(UsageArrived, UsageArrived, self._add)
        walk.take(self._tails[path].news())

    def _add(self, usage: UsageArrived) -> None:
        for function, used in usage.functions.items():
            key = (function, usage.node, CPU)
            before = self._costs.get(key) or TaskUse(*key, 0.0, 0, 0.0, usage.provenance)
            self._costs[key] = msgspec.structs.replace(
                before,
                joules=before.joules + max(used.joules, 0.0),
                calls=before.calls + used.calls,
                seconds=before.seconds + used.seconds,
                provenance=usage.provenance,
            )
            self._told[key] = self._told.get(key, 0.0) + max(used.joules, 0.0)
