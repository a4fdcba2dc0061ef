"""Idempotency keys of a program, in one file that all its copies share: who makes a call now, and how it ended.

Owns the file, how long it keeps what it holds, and what is left in it of programs that were killed. Everything of one
turn is one transaction: a copy that finds a key free has claimed it before any other looks. Used from one thread.
"""

import os
import sqlite3
import weakref
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic
from typing import Final, Literal

import msgspec

from wattloom.errors import LogError
from wattloom.history.holder import holder_of
from wattloom.history.stored_log import checksums_in, damage, is_journal, read_only
from wattloom.journal import errors
from wattloom.journal.forking import allow_fork, before_fork, forbid_fork, unforked
from wattloom.journal.schema import SYNCHRONOUS, Durability, make_ours
from wattloom.ownership import refuse_foreign

APPLICATION: Final = 0x5774_6C6B
"""SQLite's `application_id` of every such file."""
VERSION: Final = 1
DAY_S: Final = 86_400.0
GRACE_S: Final = DAY_S
"""What is too old goes when it is found so again this much later: a clock that was wrong for a while takes nothing."""
LONGEST_TURN_S: Final = 30.0
"""So long another copy may be in the middle of its own: as when it was stopped there for a while."""
LOOK_EVERY_S: Final = 3_600.0
MARK_BYTES: Final = 16
"""Older versions kept a digest of the arguments before each result."""
TABLE: Final = """
CREATE TABLE keys (
    key TEXT PRIMARY KEY,           -- the function's name, a line feed, the key
    journal TEXT NOT NULL,          -- of the copy that made the call, or makes it
    task TEXT NOT NULL,
    boot TEXT NOT NULL,             -- which start of the machine
    state TEXT NOT NULL,            -- under way, finished, unknown
    mark BLOB NOT NULL,             -- of the arguments, where they can be compared
    body BLOB NOT NULL,             -- the result
    time REAL NOT NULL,             -- unix time of its beginning or end
    odd_since REAL                  -- unix time at which it was first found too old, or not to have come yet
)
"""
INSERT: Final = "INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)"
State = Literal["under way", "finished", "unknown"]


class KnownKey(msgspec.Struct, frozen=True):
    """What is known of a key."""

    key: str
    journal: str
    task: str
    boot: str
    state: State
    """`unknown`: the call had begun, and nobody saw its end."""
    mark: bytes
    body: bytes


class KeyStore:
    """Opened when first asked, or at once where there is a file."""

    def __init__(self, path: Path, journal: Path, boot: str, durability: Durability, days: float) -> None:
        self.path: Final = path
        self._journal: Final = str(journal)
        self._boot: Final = boot
        self._durability: Final[Durability] = durability
        self._days: Final = days
        self._look_at: float = 0.0
        self._connection: sqlite3.Connection | None = None
        self.unsaved: bool = False
        """Whether `save` has something to do."""
        _OPEN.add(self)

    @unforked
    def open(self, now: float, earlier: Callable[[], list[Path]]) -> None:
        """`now`: unix time. A new file takes over what the journals of `earlier` versions kept."""
        if self._connection is None:
            try:
                self._connection = self._connect(earlier)
                self._let_go(now)
            except sqlite3.Error as problem:
                raise errors.of_sqlite(self.path, problem) from problem
            except OSError as problem:
                raise errors.of_system(self.path, problem) from problem

    @property
    def is_there(self) -> bool:
        return self._connection is not None or self.path.exists()

    # -- questions -----------------------------------------------------------------------------------------------------

    def find(self, key: str) -> KnownKey | None:
        """What is known of it. From now to `save` no other copy can change it."""
        self._begin()
        return self.glance(key)

    @unforked
    def glance(self, key: str) -> KnownKey | None:
        """The same for those who only wait."""
        rows = self._do("SELECT key, journal, task, boot, state, mark, body FROM keys WHERE key = ?", key)
        return KnownKey(*rows[0]) if rows else None

    def is_ours(self, known: KnownKey) -> bool:
        return known.journal == self._journal

    def is_forsaken(self, known: KnownKey) -> bool:
        """Whether the program that makes the call was ended, and none has its journal since."""
        return not self.is_ours(known) and holder_of(Path(known.journal)) is None

    def left_under_way(self) -> list[KnownKey]:
        """Calls that this journal's earlier programs were making."""
        self._begin()
        rows = self._do(
            "SELECT key, journal, task, boot, state, mark, body FROM keys WHERE journal = ? AND state = 'under way'",
            self._journal,
        )
        return [KnownKey(*row) for row in rows]

    def was_here(self, known: KnownKey) -> bool:
        """Whether the machine has not been started anew since: nothing that was written is lost then."""
        return known.boot == self._boot

    # -- changes -------------------------------------------------------------------------------------------------------

    def claim(self, key: str, task: str, mark: bytes, now: float) -> None:
        """This program makes the call."""
        self._put(key, task, "under way", mark, b"", now)

    def finish(self, key: str, task: str, mark: bytes, body: bytes, now: float) -> None:
        """Whoever asks next gets this."""
        self._put(key, task, "finished", mark, body, now)

    def forget_how(self, key: str, task: str, mark: bytes, now: float) -> None:
        """It may have run to its end or not: it is not made again by itself."""
        self._put(key, task, "unknown", mark, b"", now)

    def release(self, key: str, task: str) -> None:
        """It has not run to its end: it may be made again."""
        self._begin()
        self._do("DELETE FROM keys WHERE key = ? AND journal = ? AND task = ?", key, self._journal, task)

    def _put(self, key: str, task: str, state: State, mark: bytes, body: bytes, now: float) -> None:
        self._begin()
        self._do(INSERT, key, self._journal, task, self._boot, state, mark, body, now)

    @unforked
    def save(self, now: float) -> None:
        """Everything since the last time; from then on other copies know."""
        if self.unsaved:
            self._do("COMMIT")
            self._is_saved()
        if monotonic() >= self._look_at:
            self._let_go(now)

    @unforked
    def close(self) -> None:
        """What was not saved did not happen."""
        self._put_down()
        if self.unsaved:
            self._is_saved()
        _OPEN.discard(self)

    # -- SQLite --------------------------------------------------------------------------------------------------------

    @unforked
    def _begin(self) -> None:
        if not self.unsaved:
            self._do("BEGIN IMMEDIATE")
            self.unsaved = True
            forbid_fork()  # a child would find the file locked for ever

    def _is_saved(self) -> None:
        self.unsaved = False
        allow_fork()

    @unforked
    def _do(self, statement: str, *values: object) -> list[tuple[str, str, str, str, State, bytes, bytes]]:
        try:
            if self._connection is None:  # there was a fork
                self._connection = self._connect(list)
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as problem:
            raise errors.of_sqlite(self.path, problem) from problem
        except OSError as problem:
            raise errors.of_system(self.path, problem) from problem

    def _let_go(self, now: float) -> None:
        """What is older than it need be goes, if it was found so before. A time that has not come yet was written by a
        clock that was wrong, unless this one is: if it was found so before, it becomes the time of that."""
        self._look_at = monotonic() + LOOK_EVERY_S
        oldest, before = now - self._days * DAY_S, now - GRACE_S
        for statement, values in (
            ("UPDATE keys SET odd_since = NULL WHERE odd_since > ? OR time BETWEEN ? AND ?", (now, oldest, now)),
            ("DELETE FROM keys WHERE odd_since < ? AND time < ? AND state != 'under way'", (before, oldest)),
            ("UPDATE keys SET time = odd_since, odd_since = NULL WHERE odd_since < ? AND time > ?", (before, now)),
            ("UPDATE keys SET odd_since = ? WHERE odd_since IS NULL AND time NOT BETWEEN ? AND ?", (now, oldest, now)),
        ):
            self._do(statement, *values)

    def _connect(self, earlier: Callable[[], list[Path]]) -> sqlite3.Connection:
        make_ours(self.path)  # its results are unpickled
        connection = sqlite3.connect(self.path, timeout=LONGEST_TURN_S, isolation_level=None, check_same_thread=False)
        try:
            connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS[self._durability]}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            self._make_table(connection, earlier)
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_table(self, connection: sqlite3.Connection, earlier: Callable[[], list[Path]]) -> None:
        """Within a transaction: another copy may be about to do the same."""
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
            connection.execute(TABLE)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            for journal in earlier():
                connection.executemany(INSERT, _kept_in(journal))
        elif application != APPLICATION:
            raise errors.corrupt(self.path, "a database of another program")
        elif version > VERSION:
            raise errors.too_new(self.path, version, VERSION)

    def _put_down(self) -> None:
        """Close it until it is used again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _leave_to_the_parent(self) -> None:
        """In a child that was forked in the middle of a turn, by the thread that has it: SQLite's connections must
        neither be used nor closed there."""
        if self._connection is not None:
            _LEFT.append(self._connection)
        self._connection = None
        self.unsaved = False


def keys_path(journal: Path) -> Path:
    """Beside a program's first journal."""
    return journal.with_name(journal.name + ".keys")


def _kept_in(journal: Path) -> list[tuple[object, ...]]:
    """Results that an earlier version kept in a journal; of damaged ones none is given."""
    if not is_journal(journal):
        return []
    with suppress(sqlite3.Error, LogError, OSError):
        refuse_foreign(journal)
        with closing(read_only(journal)) as connection:
            columns = f"key, task, body, time, {checksums_in(connection)}"
            rows = connection.execute(f"SELECT {columns} FROM results WHERE outcome = 'finished'").fetchall()
        return [
            (key, str(journal), task, "", "finished", b"", body[MARK_BYTES:], time)
            for key, task, body, time, sum_then in rows
            if not damage(0, body, sum_then)
        ]
    return []


_OPEN: Final[weakref.WeakSet[KeyStore]] = weakref.WeakSet()
_LEFT: Final[list[sqlite3.Connection]] = []


def _before_fork() -> None:
    """SQLite of a child would believe that it has the locks of the parent on this file, which its copies share: it
    would take none, and the parent's end would take the child's news away. So at a fork nobody has it open."""
    for store in list(_OPEN):
        if not store.unsaved:
            store._put_down()


def _after_fork() -> None:
    for store in list(_OPEN):
        store._leave_to_the_parent()


before_fork(_before_fork)
os.register_at_fork(after_in_child=_after_fork)
