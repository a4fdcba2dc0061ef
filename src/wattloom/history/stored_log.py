"""Logs that stand in a journal, run by run: where they are in the file, and how to read them.

Owns the part of a journal that is the engine's log (tables `runs` and `log`), the marks by which a journal is known,
what a sound row is (SQLite has no checksums of its own), and how far somebody who follows a journal has read it. Reads
only, also while a program writes; writing is the journal's own work, and what else it holds is not known here.
"""

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from wattloom.errors import LogError

APPLICATION: Final = 0x5774_6C6D
"""SQLite's `application_id` of every journal."""
JOURNAL_VERSION: Final = 2
"""SQLite's `user_version`: the version of the tables."""
FIRST_WITH_CHECKSUMS: Final = 2
ROWS_PER_RUN: Final = 1 << 40
"""The rows of run n have ids from n times this on: no index is needed to find them."""
ROWS_AT_ONCE: Final = 64
"""Rows read together: between two such reads the program that writes may tidy up its file."""
ROWS_AT_ONE_LOOK: Final = 2_000
"""Rows that a follower reads at one look: a busy journal is caught up with over several."""
WAIT_S: Final = 5.0


class StoredLog:
    """The log of one run. Raises LogError if there is no such run."""

    def __init__(self, path: Path, run: int | None = None) -> None:
        self.path: Final = path
        with closing(read_only(path)) as connection:
            try:
                self.run, self.header = _find(connection, path, run)
                first, last = rows_of(self.run)
                self._rows, self._last = connection.execute(
                    "SELECT count(*), coalesce(max(id), 0) FROM log WHERE id BETWEEN ? AND ?", (first, last)
                ).fetchone()
            except sqlite3.Error as problem:
                raise LogError(str(path), f"cannot be read: {problem}") from problem

    def chunks(self) -> Iterator[bytes]:
        """What was written up to now, in order: each chunk some whole lines."""
        with closing(read_only(self.path)) as connection:
            after, seen = rows_of(self.run)[0] - 1, 0
            while rows := _some_rows(connection, self.path, after, self._last):
                for row, records, sum_then in rows:
                    seen += 1
                    yield self._sound(row, records, sum_then)
                after = rows[-1][0]
        if seen != self._rows:
            raise LogError(str(self.path), f"run {self.run} was pruned while it was read")
        if seen and self._last - rows_of(self.run)[0] != seen:
            raise LogError(str(self.path), f"run {self.run} is damaged: rows of its log are missing")

    def _sound(self, row: int, records: object, sum_then: object) -> bytes:
        """The lines of a row, or a LogError."""
        found = damage(row, records, sum_then)
        if found or not isinstance(records, bytes):
            raise LogError(str(self.path), f"run {self.run} is damaged: row {row % ROWS_PER_RUN} of its log {found}")
        return records

    def lines(self) -> Iterator[bytes]:
        for chunk in self.chunks():
            for line in chunk.split(b"\n"):
                if line:
                    yield line + b"\n"


class Tail:
    """What comes into a journal, whichever run it is of; all of one that has taken the name of another. Unless it is
    followed `from_the_beginning`, only what is written after the first look counts."""

    def __init__(self, path: Path, *, from_the_beginning: bool) -> None:
        self.path: Final = path
        self._row: int | None = -1 if from_the_beginning else None
        self._inode: int | None = None
        self._changed: tuple[int, ...] = ()

    def news(self) -> Iterator[bytes]:
        """New lines: some of them, if there are very many. Raises LogError, OSError or what SQLite raises."""
        changed = _signs_of_change(self.path)
        if changed == self._changed:
            return
        if not is_journal(self.path):
            self._row = -1  # whatever it may become is new
            return
        inode = self.path.stat().st_ino
        if self._inode not in (None, inode):
            self._row = -1
        self._inode = inode
        with closing(read_only(self.path)) as connection:
            if self._row is None:
                self._row = connection.execute("SELECT coalesce(max(id), -1) FROM log").fetchone()[0]
            rows = connection.execute(
                "SELECT id, records FROM log WHERE id > ? ORDER BY id LIMIT ?", (self._row, ROWS_AT_ONE_LOOK)
            ).fetchall()
        for row, records in rows:
            self._row = row  # first: a row that cannot be read must not be read again and again
            if isinstance(records, bytes):  # else it is damaged, which those say who read the whole log
                yield from records.split(b"\n")
        if len(rows) < ROWS_AT_ONE_LOOK:
            self._changed = changed


def _signs_of_change(path: Path) -> tuple[int, ...]:
    """Something that differs after every write: new rows stand in the file beside it first."""
    found: list[int] = []
    for each in (path, path.with_name(path.name + "-wal")):
        try:
            stat = each.stat()
        except OSError:
            continue
        found += (stat.st_mtime_ns, stat.st_size)
    return tuple(found)


def rows_of(run: int) -> tuple[int, int]:
    """First and last id that rows of a run can have."""
    return run * ROWS_PER_RUN, (run + 1) * ROWS_PER_RUN - 1


def checksum(row: int, data: bytes) -> int:
    """What stands beside the data of a row. The row's number counts too: data in another's place are damage."""
    return zlib.crc32(data, row & 0xFFFF_FFFF)


def damage(row: int, data: object, sum_then: object) -> str:
    """What is wrong with a row, in words; empty: nothing. Rows of old journals have no checksum (None)."""
    if not isinstance(data, bytes):
        return f"is {type(data).__name__}, not bytes"
    if sum_then is not None and sum_then != checksum(row, data):
        return "has another checksum than when it was written"
    return ""


def checksums_in(connection: sqlite3.Connection) -> str:
    """The column to ask for; old journals that no program has opened since have none."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    return "checksum" if version >= FIRST_WITH_CHECKSUMS else "NULL"


def is_journal(path: Path) -> bool:
    """Whether this file is a journal.

    SQLite is asked, and the file is not opened otherwise: closing a file takes away all locks of the process on it,
    also those by which a journal that this very process writes is safe.
    """
    if not path.is_file():
        return False
    try:
        with closing(read_only(path)) as connection:
            return bool(connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION)
    except (sqlite3.Error, LogError):
        return False


def read_only(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing. In a folder nobody may write to, SQLite needs to be told that nobody does."""
    address = f"file:{quote(bytes(path.absolute()))}?mode=ro"
    for suffix in ("", "&immutable=1"):
        connection = sqlite3.connect(address + suffix, uri=True, isolation_level=None, timeout=WAIT_S)
        try:
            connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.OperationalError as problem:
            connection.close()
            if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CANTOPEN or suffix:
                raise LogError(str(path), f"cannot be read: {problem}") from problem
        except sqlite3.Error:
            connection.close()
            raise
        else:
            return connection
    raise AssertionError("one of the two ways returns or raises")


def _find(connection: sqlite3.Connection, path: Path, run: int | None) -> tuple[int, bytes]:
    """Number and header of the wanted run, or of the last one."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if not 1 <= version <= JOURNAL_VERSION:
        raise LogError(
            str(path), f"is a journal of version {version}; this version of Wattloom reads up to {JOURNAL_VERSION}"
        )
    known = [row[0] for row in connection.execute("SELECT run FROM runs ORDER BY run")]
    if not known:
        raise LogError(str(path), "has no runs yet, or all were pruned")
    wanted = known[-1] if run is None else run
    if wanted not in known:
        raise LogError(str(path), f"has no run {wanted}; it has {', '.join(map(str, known[-20:]))}")
    header = connection.execute("SELECT header FROM runs WHERE run = ?", (wanted,)).fetchone()[0]
    if not isinstance(header, bytes):
        raise LogError(str(path), f"run {wanted} is damaged: its header is {type(header).__name__}, not bytes")
    return wanted, header


def _some_rows(connection: sqlite3.Connection, path: Path, after: int, last: int) -> list[tuple[int, object, object]]:
    try:
        return connection.execute(
            f"SELECT id, records, {checksums_in(connection)} FROM log WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
            (after, last, ROWS_AT_ONCE),
        ).fetchall()
    except sqlite3.Error as problem:
        raise LogError(str(path), f"cannot be read further: {problem}") from problem
