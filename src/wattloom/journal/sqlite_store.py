"""A journal in a file: SQLite in WAL mode, with a lock file beside it.

Owns the statements that write and read a journal, and what a fork means for the connection. The tables are `schema`'s,
the removal of old runs is `retention`'s. Commands that only look read the file by themselves (`history`).
"""

import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EISDIR
from pathlib import Path
from typing import Any, Final

from wattloom.history.runs import WRITTEN
from wattloom.history.stored_log import checksum, damage, rows_of
from wattloom.journal import errors
from wattloom.journal.forking import unforked
from wattloom.journal.lock import Lock
from wattloom.journal.payloads import KeptFunction
from wattloom.journal.pending import MOST_OUTPUT, Change, Pending, RunEnded, RunLookedAt, RunTakenOver, WorkerStarted
from wattloom.journal.retention import Retention, clear_away, let_go
from wattloom.journal.schema import Durability, connect
from wattloom.journal.store import RunStart
from wattloom.ownership import real_path, refuse_foreign_folder

CUT_OFF: Final = "taken_over IS NULL AND (unfinished > 0 OR (unfinished IS NULL AND ended IS NULL))"
"""Runs with tasks that nobody has taken over, or that were cut off and not looked at since."""


class SqliteStore:
    """An open file. The kernel gives it back when its holder ends, however it ends."""

    def __init__(self, path: Path, lock: Lock, connection: sqlite3.Connection) -> None:
        self._path: Final = path
        self._lock: Final = lock
        self._connection: sqlite3.Connection | None = connection
        _OPEN.add(self)

    @classmethod
    @unforked
    def open(cls, path: Path, durability: Durability = "process", program: str = "") -> "SqliteStore":
        """Open it, or begin a new one. Raises a JournalError: it is in use, may not be written, is damaged, too new, or
        the disk is full."""
        path = path.absolute()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.is_dir():
                raise IsADirectoryError(EISDIR, "it is a folder; name a file")
            refuse_foreign_folder(path.parent)
            path = real_path(path)  # else each link to it would have a lock and a spool of its own
            refuse_foreign_folder(path.parent)
        except OSError as problem:
            raise errors.of_system(path, problem) from problem
        lock = Lock.take(path, program)
        try:
            return cls(path, lock, connect(path, durability))
        except BaseException:
            lock.release()
            raise

    @property
    def path(self) -> Path:
        return self._path

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    # -- writing -----------------------------------------------------------------------------------------------------

    @unforked
    def begin_run(self, start: RunStart) -> int:
        row = (start.began, start.program, start.pid, start.boot, start.header)
        with self._in_words() as connection:
            cursor = connection.execute(
                "INSERT INTO runs (began, program, pid, boot, header) VALUES (?, ?, ?, ?, ?)", row
            )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def sign(self, run: int) -> None:
        self._lock.sign(run)

    @unforked
    def commit(self, pending: Pending, row: int | None) -> int:
        with self._in_words() as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                new_functions = _new_functions(connection, pending)
                _write(connection, pending, row)
                connection.execute("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise
        return new_functions

    # -- reading -----------------------------------------------------------------------------------------------------

    def runs_to_recover(self, current: int | None) -> list[int]:
        with self._in_words() as connection:
            found = connection.execute(f"SELECT run FROM runs WHERE {CUT_OFF} ORDER BY run").fetchall()
        return [run for (run,) in found if run != current]

    def boot_of(self, run: int) -> str:
        row = self._one("SELECT boot FROM runs WHERE run = ?", run)
        assert row is not None
        return str(row[0])

    def log_of(self, run: int) -> Iterator[tuple[int, bytes]]:
        return self._sound_rows(run, "log", "records")

    def payloads_of(self, run: int) -> Iterator[tuple[int, bytes]]:
        return self._sound_rows(run, "payloads", "body")

    def _sound_rows(self, run: int, table: str, column: str) -> Iterator[tuple[int, bytes]]:
        """Number and data of each row of a run, as it was written. Data are asked for as bytes whatever they are, so
        that text which is none can be told from a failing disk."""
        query = f"SELECT id, CAST({column} AS BLOB), typeof({column}), checksum FROM {table} WHERE id BETWEEN ? AND ?"
        with self._in_words() as connection:
            for row, data, kind, sum_then in connection.execute(f"{query} ORDER BY id", rows_of(run)):
                found = f"is {kind}, not bytes" if kind != "blob" else damage(row, data, sum_then)
                if found:
                    raise errors.damaged(self._path, run, table, row, found)
                yield row, data

    def workers_of(self, run: int) -> dict[str, int]:
        """Of a run of version 1: none."""
        with self._in_words() as connection:
            return dict(connection.execute("SELECT file, mark FROM workers WHERE run = ?", (run,)).fetchall())

    def function(self, digest: str) -> KeptFunction | None:
        row = self._one("SELECT digest, name, blob, run, checksum FROM functions WHERE digest = ?", digest)
        if row is not None and (wrong := damage(0, row[2], row[4])):
            raise errors.damaged(self._path, row[3], "functions", digest, wrong)
        return None if row is None else KeptFunction(digest, str(row[1]), row[2])

    def learned(self, function: str, machine: str) -> Any:
        row = self._one("SELECT figures FROM learned WHERE function = ? AND machine = ?", function, machine)
        return None if row is None else row[0]

    # -- room --------------------------------------------------------------------------------------------------------

    @unforked
    def prune(self, retention: Retention, now: float) -> list[int]:
        return let_go(self.connection(), self._path, retention, now)

    @unforked
    def tidy(self, seconds: float) -> bool:
        return clear_away(self.connection(), self._path, seconds)

    @unforked
    def close(self) -> None:
        if self._connection is None:
            return
        with suppress(sqlite3.Error):  # a reader may hold it up: the next one to close does it
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()
        self._connection = None
        self._lock.release()
        _OPEN.discard(self)

    # -- SQLite ------------------------------------------------------------------------------------------------------

    def connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise ValueError(f"{self._path} is closed")
        return self._connection

    @contextmanager
    def _in_words(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self.connection()
        except sqlite3.Error as problem:
            raise errors.of_sqlite(self._path, problem) from problem

    @unforked
    def _one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        with self._in_words() as connection:
            row: tuple[Any, ...] | None = connection.execute(query, values).fetchone()
        return row

    def _leave_to_the_parent(self) -> None:
        """In a forked child: SQLite's connections must neither be used nor closed there."""
        if self._connection is not None:
            _LEFT.append(self._connection)
        self._connection = None


# -- how a buffer is written -------------------------------------------------------------------------------------------


def _new_functions(connection: sqlite3.Connection, pending: Pending) -> int:
    """Bytes of functions that are not in the journal yet."""
    known = "SELECT 1 FROM functions WHERE digest = ?"
    return sum(
        len(blob)
        for digest, (_, _, blob) in pending.functions.items()
        if connection.execute(known, (digest,)).fetchone() is None
    )


def _write(connection: sqlite3.Connection, pending: Pending, row: int | None) -> None:
    """All of it, within the caller's transaction."""
    if pending.functions:
        connection.executemany(
            "INSERT INTO functions (digest, name, run, blob, checksum) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (digest) DO UPDATE SET run = excluded.run",
            [(digest, name, run, blob, checksum(0, blob)) for digest, (name, run, blob) in pending.functions.items()],
        )
    if pending.payloads:
        connection.executemany(
            "INSERT OR REPLACE INTO payloads (id, body, checksum) VALUES (?, ?, ?)",
            [(chunk, body, checksum(chunk, body)) for chunk, body in pending.payloads.items()],
        )
    if row is not None:
        records = b"".join(pending.records)
        connection.execute(
            "INSERT OR REPLACE INTO log (id, records, checksum) VALUES (?, ?, ?)",
            (row, records, checksum(row, records)),
        )
    if pending.forgotten:
        connection.executemany("DELETE FROM payloads WHERE id = ?", [(chunk,) for chunk in pending.forgotten])
    if pending.output or pending.learned:
        _write_what_lasts(connection, pending)
    for change in pending.changes:
        for statement, values in _statements(change):
            connection.execute(statement, values)


def _write_what_lasts(connection: sqlite3.Connection, pending: Pending) -> None:
    connection.executemany(
        "INSERT INTO output (run, task, text) VALUES (?, ?, ?) "
        f"ON CONFLICT (run, task) DO UPDATE SET text = substr(CAST(text || excluded.text AS BLOB), -{MOST_OUTPUT})",
        [(run, task, text) for (run, task), text in pending.output.items()],
    )
    connection.executemany(
        "INSERT OR REPLACE INTO learned (function, machine, figures) VALUES (?, ?, ?)",
        [(function, machine, figures) for (function, machine), figures in pending.learned.items()],
    )


def _statements(change: Change) -> list[tuple[str, tuple[object, ...]]]:
    if isinstance(change, RunEnded):
        set_end = "UPDATE runs SET ended = ?, unfinished = ?, bytes = ? WHERE run = ?"
        return [(set_end, (change.ended, change.unfinished, change.bytes, change.run))]
    if isinstance(change, RunLookedAt):
        return [(f"UPDATE runs SET unfinished = ?, bytes = {WRITTEN} WHERE run = ?", (change.unfinished, change.run))]
    if isinstance(change, RunTakenOver):
        return [
            ("UPDATE runs SET taken_over = ? WHERE run = ?", (change.by, change.run)),
            ("DELETE FROM payloads WHERE id BETWEEN ? AND ?", rows_of(change.run)),
            ("DELETE FROM workers WHERE run = ?", (change.run,)),
        ]
    if isinstance(change, WorkerStarted):
        return [("INSERT OR REPLACE INTO workers VALUES (?, ?, ?)", (change.run, change.file, change.mark))]
    if change.file:
        return [("DELETE FROM workers WHERE run = ? AND file = ?", (change.run, change.file))]
    return [("DELETE FROM workers WHERE run = ?", (change.run,))]


def _roll_back(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("ROLLBACK")


_OPEN: Final[weakref.WeakSet[SqliteStore]] = weakref.WeakSet()
_LEFT: Final[list[sqlite3.Connection]] = []


def _after_fork() -> None:
    for store in list(_OPEN):
        store._leave_to_the_parent()


os.register_at_fork(after_in_child=_after_fork)
