"""One program at a time: an exclusive lock on a file beside the journal, which says who has it.

Owns the lock file. The kernel drops the lock when its holder ends, however it ends: there are no stale ones. The lock
is not on the journal itself, since SQLite has locks of its own there, which closing the file would drop.
"""

import fcntl
import os
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from wattloom.history.holder import LENGTH, Holder, lock_path, signed_in
from wattloom.journal import errors
from wattloom.ownership import refuse_foreign_descriptor

LONGEST_PROGRAM: Final = 150


class Lock:
    """Held from `take` to `release`, or to the end of the process."""

    def __init__(self, path: Path, descriptor: int, program: str) -> None:
        self.path: Final = path
        self._descriptor = descriptor
        self._program: Final = program[-LONGEST_PROGRAM:]
        _HELD.add(self)

    @classmethod
    def take(cls, journal: Path, program: str = "") -> "Lock":
        """Raises JournalBusy, which names the holder."""
        path = lock_path(journal)
        try:
            descriptor = _opened(path)
        except OSError as problem:
            raise errors.of_system(journal, problem) from problem
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_there(path, descriptor):  # it was removed, with its journal, when we had just opened it
                os.close(descriptor)
                return cls.take(journal, program)
            found = cls(path, descriptor, program)
            found.sign()
            return found
        except BlockingIOError:
            holder = signed_in(descriptor)
            os.close(descriptor)
            raise errors.JournalBusy(journal, _in_use(holder)) from None
        except OSError as problem:
            os.close(descriptor)
            raise errors.of_system(journal, problem) from problem

    def sign(self, run: int = 0) -> None:
        """Say who has the journal, and for which run."""
        text = msgspec.json.encode(Holder(os.getpid(), self._program, run))
        with suppress(OSError):  # it is locked, signed or not
            os.pwrite(self._descriptor, text.ljust(LENGTH), 0)

    def remove(self) -> None:
        """The file too, with its journal."""
        self.path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """The file stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        _HELD.discard(self)


_HELD: Final[weakref.WeakSet[Lock]] = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    """A forked child has the parent's locks too, and would keep them beyond its end. Closing drops only the child's."""
    for lock in list(_HELD):
        lock.release()


os.register_at_fork(after_in_child=_leave_to_the_parent)


def _opened(path: Path) -> int:
    """Made for this user only, or there and nobody else's: whoever holds a lock keeps others out."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        refuse_foreign_descriptor(path, descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _is_there(path: Path, descriptor: int) -> bool:
    """Whether the file that is locked is the one by that name: else two programs would lock two of them."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _in_use(holder: Holder) -> str:
    if holder.pid == os.getpid():
        return "is in use by this program already: use one executor, or give each a journal of its own"
    named = f" ({holder.program})" if holder.program else ""
    who = f"process {holder.pid}{named}" if holder.pid else "another process"
    return f"is in use by {who}: wait for it or end it, or use another journal (WATTLOOM_LOCAL__JOURNAL)"
