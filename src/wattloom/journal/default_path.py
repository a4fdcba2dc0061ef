"""Which of a program's journals to use when no setting names one, and what goes with one that nobody uses any more.

Owns the choice and the removal. The names and the folder are the settings' business.
"""

import sqlite3
from contextlib import closing
from itertools import count, takewhile
from pathlib import Path
from typing import Final

from wattloom.errors import LogError
from wattloom.history.holder import holder_of
from wattloom.history.stored_log import is_journal, read_only
from wattloom.journal.errors import JournalBusy, JournalError
from wattloom.journal.journal import Journal
from wattloom.journal.keys import keys_path
from wattloom.journal.lock import Lock
from wattloom.journal.retention import Retention
from wattloom.journal.schema import BESIDE, Durability, connect
from wattloom.journal.spool import Spool, spool_path
from wattloom.journal.sqlite_store import CUT_OFF

MOST: Final = 1000
"""Journals of one program at a time."""


def open_first_free(
    base: Path,
    *,
    durability: Durability = "process",
    program: str = "",
    retention: Retention | None = None,
) -> Journal:
    """Open `base`, or `base-2`, `base-3` ..., whichever nobody has. One with unfinished tasks goes before the others:
    they are to be recovered. Raises JournalBusy if all of very many are in use, and what `Journal.open` raises."""
    tried: set[Path] = set()
    for path in (*_with_something_left(base), *_numbered(base)):
        if path in tried:
            continue
        tried.add(path)
        try:
            return Journal.open(path, durability=durability, program=program, retention=retention)
        except JournalBusy:
            continue
    raise JournalBusy(base, f"and {MOST - 1:,} more journals of this program are in use: end some of these programs")


def numbered(base: Path, number: int) -> Path:
    """The path of a program's second, third ... journal."""
    return base if number == 1 else base.with_name(f"{base.stem}-{number}{base.suffix}")


def something_left(path: Path) -> bool:
    """Whether a journal that nobody has open has, or may have, unfinished tasks of earlier runs."""
    if not is_journal(path) or holder_of(path) is not None:
        return False
    try:
        with closing(read_only(path)) as connection:
            return _is_cut_off(connection)
    except (sqlite3.Error, LogError):
        return False


def remove(path: Path) -> bool:
    """Remove a journal with all that belongs to it; whether it was. One that is in use or damaged, has unfinished tasks
    or keys beside it, stays."""
    if not is_journal(path) or keys_path(path).exists():
        return False
    try:
        lock = Lock.take(path)
    except JournalError:
        return False
    try:
        with closing(connect(path)) as connection:  # closing it, SQLite brings the file up to date
            if _is_cut_off(connection):
                return False
        _remove_files(path)
        lock.remove()
    except (sqlite3.Error, JournalError, OSError):
        return False
    finally:
        lock.release()
    return True


def _remove_files(journal: Path) -> None:
    spool = Spool(spool_path(journal))
    spool.sweep(())
    if spool.folder.is_dir():
        spool.folder.rmdir()
    for each in ("", *BESIDE):
        journal.with_name(journal.name + each).unlink(missing_ok=True)


def _is_cut_off(connection: sqlite3.Connection) -> bool:
    """Whether a run has, or may have, unfinished tasks."""
    return connection.execute(f"SELECT 1 FROM runs WHERE {CUT_OFF} LIMIT 1").fetchone() is not None


def _numbered(base: Path) -> list[Path]:
    return [numbered(base, number) for number in range(1, MOST + 1)]


def numbered_there(base: Path) -> list[Path]:
    """All journals of a program that there are."""
    paths = (numbered(base, number) for number in count(1))
    return list(takewhile(Path.exists, paths))


def _with_something_left(base: Path) -> list[Path]:
    return [path for path in numbered_there(base) if something_left(path)]
