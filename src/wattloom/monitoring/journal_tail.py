"""What functions cost, read from the journals of programs while they run.

Owns how far each journal has been read. Only what is written after the first look counts: everything here counts from
there. Reads only what is new, and only of files that have changed.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from wattloom.errors import WattloomError
from wattloom.monitoring.snapshot import TaskUse
from wattloom.scheduling.events import UsageArrived
from wattloom.scheduling.stored_log import is_journal, read_only

USAGE: Final = b'{"event":"usage-arrived"'
ROWS: Final = 2_000
"""Rows of one journal at one look: a busy one is caught up with over several."""
SUFFIX: Final = ".journal"
CPU: Final = "cpu"

_decoder: Final = msgspec.json.Decoder(UsageArrived)


class _Tail:
    """How far one journal has been read."""

    __slots__ = ("changed", "inode", "row")

    def __init__(self, row: int, inode: int) -> None:
        self.row = row
        self.inode = inode
        self.changed: tuple[int, ...] = ()


class JournalTail:
    """Called with the time of a look; gives what each function has cost since the first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tails: dict[Path, _Tail] = {}
        self._costs: dict[tuple[str, str, str], TaskUse] = {}
        self._told: dict[tuple[str, str, str], float] = {}
        self._looked: float | None = None

    def __call__(self, now: float) -> tuple[TaskUse, ...]:
        self._told.clear()
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            try:
                self._follow(path)
            except (sqlite3.Error, OSError, WattloomError, msgspec.MsgspecError):
                continue  # one that cannot be read is no reason to hide the others
        seconds = now - self._looked if self._looked is not None else 0.0
        self._looked = now
        return tuple(self._with_watts(key, cost, seconds) for key, cost in self._costs.items())

    def _with_watts(self, key: tuple[str, str, str], cost: TaskUse, seconds: float) -> TaskUse:
        told = self._told.get(key, 0.0)
        return msgspec.structs.replace(cost, watts=told / seconds) if told and seconds > 0.0 else cost

    def _follow(self, path: Path) -> None:
        changed = _changed(path)
        tail = self._tails.get(path)
        if tail is not None and tail.changed == changed:
            return
        if not is_journal(path):
            return
        inode = path.stat().st_ino
        if tail is not None and tail.inode != inode:  # another journal under the same name
            tail = self._tails[path] = _Tail(-1, inode)
        with closing(read_only(path)) as connection:
            if tail is None:
                tail = self._tails[path] = _Tail(_last_row(connection) if self._looked is None else -1, inode)
            rows = connection.execute(
                "SELECT id, records FROM log WHERE id > ? ORDER BY id LIMIT ?", (tail.row, ROWS)
            ).fetchall()
        for row, records in rows:
            tail.row = row  # first: a row that cannot be read must not be added up again and again
            self._take(records)
        if len(rows) < ROWS:
            tail.changed = changed

    def _take(self, records: bytes) -> None:
        for line in records.split(b"\n"):
            if line.startswith(USAGE):
                self._add(_decoder.decode(line))

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


def _last_row(connection: sqlite3.Connection) -> int:
    found = connection.execute("SELECT max(id) FROM log").fetchone()[0]
    return -1 if found is None else int(found)


def _changed(path: Path) -> tuple[int, ...]:
    """Something that differs after every write: new rows stand in the file beside it first."""
    found: list[int] = []
    for each in (path, path.with_name(path.name + "-wal")):
        try:
            stat = each.stat()
        except OSError:
            continue
        found += (stat.st_mtime_ns, stat.st_size)
    return tuple(found)
