"""Every error a journal raises on purpose.

JournalError (a WattloomError)     `retryable`: whether the same may succeed later without anybody changing the journal
├── JournalBusy        retryable   another program, or another part of this one, has it
├── JournalFull        retryable   no room on the disk; what was to be written is kept and may be committed later
├── JournalReadOnly    permanent   it may not be written here
├── JournalNotOurs     permanent   somebody else could have written it, and so have this user run his code
├── JournalCorrupt     permanent   the file is damaged, or is no journal
├── JournalTooNew      permanent   a later version of Wattloom wrote it
└── JournalFailed      retryable   the disk, or SQLite, failed otherwise

Owns the way from SQLite's and the system's complaints to these.
"""

import os
import sqlite3
from errno import EACCES, EDQUOT, EFBIG, ENOSPC, EPERM, EROFS
from pathlib import Path
from typing import ClassVar, Final

from wattloom.errors import WattloomError
from wattloom.history.stored_log import ROWS_PER_RUN
from wattloom.ownership import NotOurs

LEAST_FREE: Final = 256 * 1024
"""Bytes: when less is free, an I/O error of SQLite means a full disk; large arguments and results leave this to it."""


class JournalError(WattloomError):
    """Something is wrong with a journal. `path` names it."""

    retryable: ClassVar[bool] = False

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem

    def __reduce__(self) -> tuple[type["JournalError"], tuple[Path, str]]:
        """So that a worker process can hand it to its parent."""
        return type(self), (self.path, self.problem)


class JournalBusy(JournalError):
    """Somebody else has the journal."""

    retryable = True


class JournalFull(JournalError):
    """The disk is full."""

    retryable = True


class JournalReadOnly(JournalError):
    """The journal, or its folder, may not be written."""


class JournalNotOurs(JournalError):
    """Somebody else owns the journal, or may write to it, or to its folder."""


class JournalCorrupt(JournalError):
    """The file is damaged or is no journal."""


class JournalTooNew(JournalError):
    """A later version wrote it."""


class JournalFailed(JournalError):
    """The disk or SQLite failed."""

    retryable = True


def of_sqlite(path: Path, problem: sqlite3.Error) -> JournalError:
    """What SQLite's complaint means for the user."""
    code = getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _hardly_free(path)):
        return full(path)
    if code == sqlite3.SQLITE_READONLY or (code == sqlite3.SQLITE_CANTOPEN and not os.access(path.parent, os.W_OK)):
        return read_only(path)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "decode to UTF-8" in str(problem):
        return corrupt(path, str(problem))
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return JournalBusy(path, "another program holds a transaction in it open: close that program, then try again")
    return JournalFailed(path, f"could not be read or written ({problem}): check the disk, then try again")


def of_system(path: Path, problem: OSError) -> JournalError:
    """What the operating system's complaint means for the user."""
    if problem.errno in (ENOSPC, EDQUOT, EFBIG):
        return full(path)
    if isinstance(problem, NotOurs):
        return not_ours(path, problem)
    if problem.errno in (EACCES, EPERM, EROFS):
        return read_only(path)
    return JournalFailed(path, f"could not be opened or written: {problem.strerror or problem}")


def full(path: Path) -> JournalFull:
    return JournalFull(
        path,
        "the disk is full, nothing was written: make room (`wattloom tasks prune` removes old runs), or put the "
        "journal elsewhere (WATTLOOM_LOCAL__JOURNAL)",
    )


def read_only(path: Path) -> JournalReadOnly:
    return JournalReadOnly(
        path,
        f"may not be written: give yourself write access to it and to {path.parent}, or put the journal elsewhere "
        "(WATTLOOM_LOCAL__JOURNAL)",
    )


def not_ours(path: Path, problem: NotOurs) -> JournalNotOurs:
    part = "" if problem.filename == str(path) else f"{problem.filename} "  # its folder, or a file beside it
    return JournalNotOurs(
        path,
        f"{part}{problem.strerror}. What stands in a journal is run, so nobody else may write there: mend "
        f"that, or put the journal into a folder of your own (WATTLOOM_LOCAL__JOURNAL=FOLDER/{path.name}; a folder "
        "that is not there is made)",
    )


def corrupt(path: Path, found: str) -> JournalCorrupt:
    return JournalCorrupt(
        path,
        f"is damaged or is not a journal ({found}). Move it away (mv {path} {path}.damaged; the same for "
        f"{path.name}-wal if it is there) and a new one is begun; `wattloom tasks --journal {path.name}.damaged#RUN` "
        f"lists the runs that are whole, `sqlite3 {path.name}.damaged .recover` may save what else it holds",
    )


def damaged(path: Path, run: int, table: str, row: int | str, found: str) -> JournalCorrupt:
    """A row that SQLite gave as if nothing were wrong, and which is not what was written."""
    which = row if isinstance(row, str) else row % ROWS_PER_RUN
    return corrupt(path, f"run {run}: row {which} of its {table} {found}")


def too_new(path: Path, version: int, known: int) -> JournalTooNew:
    return JournalTooNew(
        path,
        f"was written by a later version of Wattloom (journal version {version}, this one knows {known}): "
        "update Wattloom, or put the journal elsewhere (WATTLOOM_LOCAL__JOURNAL)",
    )


def _hardly_free(path: Path) -> bool:
    """Free blocks, not those kept for the superuser: the error has to be told also to a program that runs as root."""
    try:
        free = os.statvfs(path.parent)
    except OSError:
        return False
    return free.f_bavail * free.f_frsize < LEAST_FREE
