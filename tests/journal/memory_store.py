"""A journal's store in memory: what the protocol asks for, without a file. It lasts as long as its drawer."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

from wattloom.history.stored_log import rows_of
from wattloom.journal.errors import JournalBusy
from wattloom.journal.payloads import KeptFunction
from wattloom.journal.pending import MOST_OUTPUT, Change, Pending, RunEnded, RunLookedAt, RunTakenOver, WorkerStarted
from wattloom.journal.retention import Retention, too_much
from wattloom.journal.store import RunStart


@dataclass
class Run:
    start: RunStart
    ended: float | None = None
    unfinished: int | None = None
    taken_over: int | None = None
    bytes: int = 0

    @property
    def cut_off(self) -> bool:
        if self.taken_over is not None:
            return False
        return self.ended is None if self.unfinished is None else self.unfinished > 0


@dataclass
class Tables:
    """All that is kept."""

    runs: dict[int, Run] = field(default_factory=dict)
    log: dict[int, bytes] = field(default_factory=dict)
    payloads: dict[int, bytes] = field(default_factory=dict)
    functions: dict[str, tuple[str, int, bytes]] = field(default_factory=dict)
    output: dict[tuple[int, str], bytes] = field(default_factory=dict)
    learned: dict[tuple[str, str], bytes] = field(default_factory=dict)
    workers: dict[int, dict[str, int]] = field(default_factory=dict)
    latest: int = 0


class Drawer:
    """Where it stays between two openings."""

    def __init__(self) -> None:
        self.tables = Tables()
        self.taken = False


class MemoryStore:
    """One drawer, opened."""

    def __init__(self, drawer: Drawer, path: Path) -> None:
        if drawer.taken:
            raise JournalBusy(path, "is in use")
        drawer.taken = True
        self.path = path
        self.is_open = True
        self.signed = 0
        self._drawer = drawer

    @property
    def tables(self) -> Tables:
        assert self.is_open
        return self._drawer.tables

    def begin_run(self, start: RunStart) -> int:
        self.tables.latest += 1
        self.tables.runs[self.tables.latest] = Run(start)
        return self.tables.latest

    def sign(self, run: int) -> None:
        self.signed = run

    def commit(self, pending: Pending, row: int | None) -> int:
        after = deepcopy(self.tables)
        new = sum(len(each[2]) for digest, each in pending.functions.items() if digest not in after.functions)
        for digest, (name, run, blob) in pending.functions.items():
            after.functions[digest] = (name, run, after.functions.get(digest, (name, run, blob))[2])
        after.payloads.update(pending.payloads)
        if row is not None:
            after.log[row] = b"".join(pending.records)
        for chunk in pending.forgotten:
            after.payloads.pop(chunk, None)
        for whose, text in pending.output.items():
            after.output[whose] = (after.output.get(whose, b"") + text)[-MOST_OUTPUT:]
        for about, figures in pending.learned.items():
            after.learned[about] = bytes(memoryview(figures))  # raises what is no bytes
        for change in pending.changes:
            _apply(after, change)
        self._drawer.tables = after
        return new

    def runs_to_recover(self, current: int | None) -> list[int]:
        return [number for number, run in self.tables.runs.items() if run.cut_off and number != current]

    def boot_of(self, run: int) -> str:
        return self.tables.runs[run].start.boot

    def log_of(self, run: int) -> Iterator[tuple[int, bytes]]:
        return _of(self.tables.log, run)

    def payloads_of(self, run: int) -> Iterator[tuple[int, bytes]]:
        return _of(self.tables.payloads, run)

    def workers_of(self, run: int) -> dict[str, int]:
        return dict(self.tables.workers.get(run, {}))

    def function(self, digest: str) -> KeptFunction | None:
        found = self.tables.functions.get(digest)
        return None if found is None else KeptFunction(digest, found[0], found[2])

    def learned(self, function: str, machine: str) -> bytes | None:
        return self.tables.learned.get((function, machine))

    def prune(self, retention: Retention, now: float) -> list[int]:
        runs = self.tables.runs
        known = [
            (number, run.start.began if run.ended is None else run.ended, run.bytes, run.cut_off)
            for number, run in runs.items()
        ]
        gone = [number for number, _, _, _ in too_much(known, retention, now)]
        for number in gone:
            del runs[number]
            for table in (self.tables.log, self.tables.payloads):
                for row, _ in list(_of(table, number)):
                    del table[row]
        return gone

    def tidy(self, seconds: float) -> bool:
        return False

    def close(self) -> None:
        if self.is_open:
            self.is_open = self._drawer.taken = False


def _of(table: dict[int, bytes], run: int) -> Iterator[tuple[int, bytes]]:
    first, last = rows_of(run)
    return iter(sorted((row, data) for row, data in table.items() if first <= row <= last))


def _apply(tables: Tables, change: Change) -> None:
    run = tables.runs[change.run]
    if isinstance(change, RunEnded):
        run.ended, run.unfinished, run.bytes = change.ended, change.unfinished, change.bytes
    elif isinstance(change, RunLookedAt):
        run.unfinished = change.unfinished
    elif isinstance(change, RunTakenOver):
        run.taken_over = change.by
        for row, _ in list(_of(tables.payloads, change.run)):
            del tables.payloads[row]
        tables.workers.pop(change.run, None)
    elif isinstance(change, WorkerStarted):
        tables.workers.setdefault(change.run, {})[change.file] = change.mark
    elif change.file:
        tables.workers.get(change.run, {}).pop(change.file, None)
    else:
        tables.workers.pop(change.run, None)
