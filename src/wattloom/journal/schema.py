"""The tables of a journal, and how a connection to one is opened.

Owns the schema, its version and SQLite's settings. `runs` and `log` are what `history.stored_log` reads.
"""

import os
import sqlite3
from pathlib import Path
from typing import Final, Literal

from wattloom import ownership
from wattloom.history.stored_log import APPLICATION, FIRST_WITH_CHECKSUMS, JOURNAL_VERSION, WAIT_S
from wattloom.journal import errors
from wattloom.ownership import refuse_foreign_folder

Durability = Literal["process", "machine"]
"""What a commit survives: the end of the process, however it ends, or also that of the machine."""

SYNCHRONOUS: Final[dict[Durability, str]] = {"process": "NORMAL", "machine": "FULL"}
CHECKED_WHOLE: Final = 32 * 1024 * 1024
"""Bytes: a file up to this size is checked whole after a run that did not end properly."""
BESIDE: Final = ("-wal", "-shm", "-journal")
"""How the names of SQLite's own files end."""
PAGE: Final = 8192
"""Bytes: a commit of a few dozen tasks costs least so."""
CHECKPOINT: Final = 16 * 1024 * 1024
"""Bytes of news after which they are moved into the journal. That waits for the disk: not too often, nor too long."""

TABLES: Final = """
CREATE TABLE runs (
    run INTEGER PRIMARY KEY AUTOINCREMENT,
    began REAL NOT NULL,            -- unix time of the log's second 0
    ended REAL,                     -- unix time; NULL: it goes on, or was cut off
    unfinished INTEGER,             -- tasks left when it ended
    bytes INTEGER,                  -- of its log, output and results; NULL: it goes on, or was cut off
    taken_over INTEGER,             -- the run that took its unfinished tasks over
    program TEXT NOT NULL,
    pid INTEGER NOT NULL,
    boot TEXT NOT NULL,             -- which start of the machine
    header BLOB NOT NULL            -- first line of the log
);
CREATE TABLE log (id INTEGER PRIMARY KEY, records BLOB NOT NULL);
CREATE TABLE payloads (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE functions (digest TEXT PRIMARY KEY, name TEXT NOT NULL, run INTEGER NOT NULL, blob BLOB NOT NULL);
CREATE TABLE results (
    key TEXT PRIMARY KEY, task TEXT NOT NULL, run INTEGER NOT NULL, outcome TEXT NOT NULL, time REAL NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE output (run INTEGER NOT NULL, task TEXT NOT NULL, text BLOB NOT NULL, PRIMARY KEY (run, task));
CREATE TABLE learned (
    function TEXT NOT NULL, machine TEXT NOT NULL, figures BLOB NOT NULL, PRIMARY KEY (function, machine)
);
"""

SINCE_CHECKSUMS: Final = """
ALTER TABLE log ADD COLUMN checksum INTEGER;        -- NULL: an earlier version wrote the row
ALTER TABLE payloads ADD COLUMN checksum INTEGER;
ALTER TABLE functions ADD COLUMN checksum INTEGER;
ALTER TABLE results ADD COLUMN checksum INTEGER;
CREATE TABLE workers (              -- whose progress says what had begun, as long as a run may be cut off
    run INTEGER NOT NULL,
    file TEXT NOT NULL,             -- name of the progress file in the spool
    mark INTEGER NOT NULL,          -- by which the file is known
    PRIMARY KEY (run, file)
);
"""
"""What version 2 has beyond TABLES: a new journal and one of version 1 get it in the same way."""


def connect(path: Path, durability: Durability = "process") -> sqlite3.Connection:
    """A connection that may write; the tables are made if the file is new. The caller has the lock."""
    try:
        make_ours(path)
    except OSError as problem:
        raise errors.of_system(path, problem) from problem
    connection = None
    try:
        connection = sqlite3.connect(path, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
        _set_up(connection, path, durability)
        _check(connection, path)
    except sqlite3.Error as problem:
        if connection is not None:
            connection.close()
        raise errors.of_sqlite(path, problem) from problem
    except BaseException:
        if connection is not None:
            connection.close()
        raise
    return connection


def make_ours(path: Path) -> None:
    """A file for this user only, or one that is there and nobody else's; the same for those that SQLite keeps beside
    it. In a folder in which others may make files they are made now, before somebody else makes them."""
    shared = refuse_foreign_folder(path.parent)
    ownership.create(path)
    real = Path(os.path.realpath(path))
    if real != path:
        shared = refuse_foreign_folder(real.parent)
    for beside in (real.with_name(real.name + each) for each in BESIDE):
        if shared:
            ownership.create(beside)
        elif os.path.lexists(beside):
            ownership.refuse_foreign(beside)


def _set_up(connection: sqlite3.Connection, path: Path, durability: Durability) -> None:
    connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS[durability]}")
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == 0 and version == 0 and _is_empty(connection):
        connection.execute(f"PRAGMA page_size = {PAGE}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        _use_wal(connection, path)
        connection.executescript(
            f"BEGIN IMMEDIATE; {TABLES}; {SINCE_CHECKSUMS}; PRAGMA application_id = {APPLICATION}; "
            f"PRAGMA user_version = {JOURNAL_VERSION}; COMMIT"
        )
    elif application != APPLICATION:
        raise errors.corrupt(path, "a database of another program")
    elif version > JOURNAL_VERSION:
        raise errors.too_new(path, version, JOURNAL_VERSION)
    elif version < FIRST_WITH_CHECKSUMS:
        connection.executescript(f"BEGIN IMMEDIATE; {SINCE_CHECKSUMS}; PRAGMA user_version = {JOURNAL_VERSION}; COMMIT")
    _use_wal(connection, path)
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT // PAGE}")
    # A WAL that grew under a long reader shrinks again.
    connection.execute(f"PRAGMA journal_size_limit = {CHECKPOINT}")
    # It says whether the file may be written: reading alone would not.
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("ROLLBACK")


def _use_wal(connection: sqlite3.Connection, path: Path) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise errors.JournalFailed(path, "its file system cannot hold a journal (no shared memory): use a local disk")


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Whole if the last run was cut off and the file is small, else the tables' first and last pages."""
    cut_off = connection.execute("SELECT count(*) FROM runs WHERE ended IS NULL AND taken_over IS NULL").fetchone()[0]
    if cut_off and path.stat().st_size <= CHECKED_WHOLE:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise errors.corrupt(path, " ".join(found.split()))
    for table in ("log", "payloads"):
        for end in ("min", "max"):  # one by one: both in one statement would read the whole table
            connection.execute(f"SELECT {end}(id) FROM {table}").fetchone()
    for table in ("runs", "functions", "results", "output", "learned", "workers"):
        connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()
