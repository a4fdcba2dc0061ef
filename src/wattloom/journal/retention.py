"""How long runs stay in a journal, and their removal: `wattloom.prune`.

Owns the rule: whole runs go, oldest first, when they are too old or all together are too large. A run with unfinished
tasks that no later run has taken over stays, unless its removal is forced. To let runs go is a matter of moments; to
clear away their rows takes longer, and is done piece by piece when there is time.
"""

import sqlite3
import time
from math import inf
from pathlib import Path
from typing import Final

import msgspec

from wattloom.errors import InputError
from wattloom.history.log import split_run
from wattloom.history.runs import rows_of_runs, runs, sizes
from wattloom.history.search import wanted
from wattloom.history.stored_log import ROWS_PER_RUN, rows_of
from wattloom.journal import errors
from wattloom.journal.lock import Lock
from wattloom.journal.schema import connect
from wattloom.settings import load_settings

DAY_S: Final = 86_400.0
MEGABYTE: Final = 1_000_000
ROWS_AT_ONCE: Final = 32
PAGES_AT_ONCE: Final = 128
FREE_PAGES_LEFT: Final = 32
"""Free pages that need not be given back to the disk: the next rows take them."""


class Retention(msgspec.Struct, frozen=True):
    """What may stay."""

    days: float = 14.0
    """Since the run ended."""
    megabytes: float = 512.0
    """Of all runs together: their logs, functions, payloads, results and output."""
    force: bool = False
    """Remove runs with unfinished tasks too. They are forgotten then."""


class Pruned(msgspec.Struct, frozen=True):
    """What was removed."""

    runs: tuple[int, ...] = ()
    bytes: int = 0
    """By which the file became smaller."""


class PruneInfo(msgspec.Struct, frozen=True):
    """What was, or would be, removed from a journal."""

    journal: str
    runs: list[int]
    bytes: int
    """By which the file became smaller; of a rehearsal: of the runs that would go."""
    problem: str = ""
    """Why it was left alone: it is in use."""


def prune_file(path: Path, retention: Retention, now: float | None = None) -> Pruned:
    """Prune a journal that no program has open, and give the freed room back to the disk. Raises a JournalError."""
    if not path.is_file():
        return Pruned()
    lock = Lock.take(path, "wattloom tasks prune")
    try:
        before = path.stat().st_size
        connection = connect(path)
        try:
            gone = let_go(connection, path, retention, time.time() if now is None else now)
            clear_away(connection, path, inf)
        finally:
            connection.close()
        return Pruned(tuple(gone), max(0, before - path.stat().st_size))
    finally:
        lock.release()


def let_go(connection: sqlite3.Connection, path: Path, retention: Retention, now: float) -> list[int]:
    """Strike out the runs that may not stay; their numbers. None may be under way."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        gone = [run for run, _, _, _ in too_much(_known(connection), retention, now)]
        for run in gone:
            for table in ("output", "functions", "results", "workers", "runs"):
                connection.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
        connection.execute("DELETE FROM results WHERE time < ?", (now - retention.days * DAY_S,))
        connection.execute("COMMIT")
    except (sqlite3.Error, ValueError) as problem:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if isinstance(problem, ValueError):
            raise errors.corrupt(path, str(problem)) from problem
        raise errors.of_sqlite(path, problem) from problem
    return gone


def clear_away(connection: sqlite3.Connection, path: Path, seconds: float) -> bool:
    """Delete rows of runs that were let go and give free pages back, for about so long; whether there is more to do."""
    until = time.monotonic() + seconds
    try:
        while _delete_some_rows(connection) or _free_some_pages(connection):
            if time.monotonic() >= until:
                return True
    except sqlite3.Error as problem:
        raise errors.of_sqlite(path, problem) from problem
    return False


# -- which runs go -----------------------------------------------------------------------------------------------------


Kept = tuple[int, float, int, bool]
"""A run, when it ended (or began), its bytes, and whether it has unfinished tasks that nobody took over."""


def too_much(known: list[Kept], retention: Retention, now: float) -> list[Kept]:
    """The runs that may not stay, of all, in order of their numbers."""
    total = sum(size for _, _, size, _ in known)
    gone: list[Kept] = []
    for kept in known:
        _, ended, size, cut_off = kept
        too_old = ended < now - retention.days * DAY_S
        if (too_old or total > retention.megabytes * MEGABYTE) and (retention.force or not cut_off):
            gone.append(kept)
            total -= size
    return gone


def _known(connection: sqlite3.Connection) -> list[Kept]:
    size = sizes(connection)
    return [
        (row.run, row.began if row.ended is None else row.ended, size[row.run], row.cut_off)
        for row in rows_of_runs(connection)
    ]


# -- of all journals --------------------------------------------------------------------------------------------------


def prune(
    journal: str | Path | None = None,
    *,
    older_than_days: float | None = None,
    larger_than_mb: float | None = None,
    unfinished: bool = False,
    dry_run: bool = False,
) -> list[PruneInfo]:
    """Remove old runs from one journal or all of this user, as the settings say or as given; what went, by journal.
    Journals in use are left alone, and so are runs with unfinished tasks, unless these are to be forgotten."""
    for field, given in (("older_than_days", older_than_days), ("larger_than_mb", larger_than_mb)):
        if given is not None and not given >= 0.0:
            raise InputError(field, f"must not be negative, but is {given}")
    kept = load_settings().local
    retention = Retention(
        kept.retention_days if older_than_days is None else older_than_days,
        kept.retention_megabytes if larger_than_mb is None else larger_than_mb,
        force=unfinished,
    )
    files = [split_run(path)[0] for path in wanted(journal)]
    return [_rehearsed(file, retention) if dry_run else _pruned(file, retention) for file in files]


def _pruned(path: Path, retention: Retention) -> PruneInfo:
    try:
        gone = prune_file(path, retention)
    except errors.JournalBusy as problem:
        return PruneInfo(str(path), [], 0, problem.problem)
    return PruneInfo(str(path), list(gone.runs), gone.bytes)


def _rehearsed(path: Path, retention: Retention) -> PruneInfo:
    """What would go, without touching anything."""
    known = runs(path)
    if any(run.state == "running" for run in known):
        return PruneInfo(str(path), [], 0, "is in use by a program that runs")
    known_runs: list[Kept] = [
        (run.run, run.began if run.ended is None else run.ended, run.bytes, run.state == "cut off") for run in known
    ]
    gone = too_much(known_runs, retention, time.time())
    return PruneInfo(str(path), [run for run, _, _, _ in gone], sum(size for _, _, size, _ in gone))


# -- rows and pages ----------------------------------------------------------------------------------------------------


def _delete_some_rows(connection: sqlite3.Connection) -> bool:
    """Rows of a run that is not there any more; whether there were some."""
    known = [row[0] for row in connection.execute("SELECT run FROM runs ORDER BY run")]
    latest = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence").fetchone()[0]
    before = 0
    for run in (*known, latest + 1):
        first, last = rows_of(before + 1)[0], run * ROWS_PER_RUN - 1
        for table in ("log", "payloads"):
            found = connection.execute(
                f"SELECT id FROM {table} WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?", (first, last, ROWS_AT_ONCE)
            ).fetchall()
            if found:
                connection.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", (found[0][0], found[-1][0]))
                return True
        before = run
    return False


def _free_some_pages(connection: sqlite3.Connection) -> bool:
    """Pages at the end of the file; whether some were given back. A damaged file may have free ones that SQLite cannot
    give back, and one that was not made by us none that it would."""
    before = connection.execute("PRAGMA freelist_count").fetchone()[0]
    if before <= FREE_PAGES_LEFT:
        return False
    # As a script: `execute` would free a single page.
    connection.executescript(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})")
    return bool(connection.execute("PRAGMA freelist_count").fetchone()[0] < before)
