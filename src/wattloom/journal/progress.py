"""How far a worker has come, in a few integers that it shares with its parent through a small file.

Owns the file's form. The numbers are in the page cache, so they outlive a kill -9 of everybody: after a crash one knows
which of the calls sent to a worker had begun. Calls are numbered upwards, and a worker begins them in that order.
"""

import ctypes
import mmap
import os
import sys
import time
from pathlib import Path
from typing import Final

from wattloom.journal import errors
from wattloom.ownership import refuse_foreign_folder

MARK: Final = 0x5774_6C6D_0001
"""Says that the file is one of these, and its version."""
BEGUN: Final = 1
ENDED: Final = 2
LIMIT: Final = 3
REGISTERED: Final = 4
SHARE: Final = 5
OWN: Final = 6
"""A number by which this file is known from all others, also from one of the same name."""
WORDS: Final = 8
"""Of 64 bits each, so that one of them is never seen half-written."""
NO_LIMIT: Final = 2**63 - 1
MEMBARRIER: Final = {"x86_64": 324, "aarch64": 283, "riscv64": 283}
"""Number of the system call, by machine."""
ON_REGISTERED_CORES: Final = 2
REGISTER: Final = 4
LONG_S: Final = 0.002
"""Far longer than a written word can stay unseen by another core."""


class Progress:
    """One worker's progress. The parent creates it, the worker opens it."""

    __slots__ = ("_map", "path", "words")

    def __init__(self, path: Path, mapped: mmap.mmap) -> None:
        self.path = path
        self._map: Final = mapped
        self.words: Final = memoryview(mapped).cast("Q")
        """The fields themselves, for a worker to which even a method is too slow."""

    @classmethod
    def create(cls, path: Path, own: int = 0) -> "Progress":
        """A new file; the folder is made if need be. Raises a JournalError if there is no room for it, or the like."""
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            refuse_foreign_folder(path.parent)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                # Written, not just made long: on a full disk this fails now, and not with SIGBUS when a word is set.
                first = [MARK, 0, 0, NO_LIMIT, 0, 0, own, 0]
                os.write(descriptor, b"".join(word.to_bytes(8, sys.byteorder) for word in first))
                return cls(path, mmap.mmap(descriptor, WORDS * 8))
            finally:
                os.close(descriptor)
        except OSError as problem:
            raise errors.of_system(path, problem) from problem

    @classmethod
    def open(cls, path: Path) -> "Progress":
        """By the worker, or after a crash. Raises OSError if it is not there, ValueError if it is something else."""
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(descriptor).st_size != WORDS * 8:
                raise ValueError(f"{path} is not a progress file")
            found = cls(path, mmap.mmap(descriptor, WORDS * 8))
        finally:
            os.close(descriptor)
        if found.words[0] != MARK:
            found.close()
            raise ValueError(f"{path} is not a progress file")
        found.words[REGISTERED] = _membarrier(REGISTER)
        return found

    # -- the worker --------------------------------------------------------------------------------------------------

    def begin(self, number: int) -> bool:
        """About to begin this call. False: it was taken back, or was about to be. It must not be begun then, and the
        parent is to be told, which may not be sure of it."""
        words = self.words
        before = words[BEGUN]
        words[BEGUN] = number
        if number <= words[LIMIT]:
            return True
        words[BEGUN] = before
        return False

    def end(self, number: int) -> None:
        """This call has ended; what it gave may not have been sent yet."""
        self.words[ENDED] = number

    # -- the parent --------------------------------------------------------------------------------------------------

    def begun(self) -> int:
        """The call that was begun last; 0: none."""
        return self.words[BEGUN]

    def ended(self) -> int:
        """The call that ended last; 0: none. Less than `begun`: one was running."""
        return self.words[ENDED]

    @property
    def limit(self) -> int:
        """Calls with higher numbers are not begun."""
        return self.words[LIMIT]

    @limit.setter
    def limit(self, number: int) -> None:
        self.words[LIMIT] = number

    @property
    def share(self) -> int:
        """The placement that gave the worker the share it works on: the calls it has are on that share."""
        return self.words[SHARE]

    @share.setter
    def share(self, place: int) -> None:
        self.words[SHARE] = place

    @property
    def own(self) -> int:
        """What it was created with; 0: by an earlier version."""
        return self.words[OWN]

    def take_back(self, above: int) -> int:
        """Keep the worker from beginning calls above this number. Returns the highest that has begun all the same, or
        `above`: those beyond are the parent's again, for certain. One up to it which the worker then reports as not
        begun is so too.

        The worker writes, then reads the limit; the parent sets the limit, then reads. A barrier on the worker's core
        between the two makes sure that one of them sees the other. It takes a few microseconds.
        """
        self.words[LIMIT] = above
        if not (self.words[REGISTERED] and _membarrier(ON_REGISTERED_CORES)):
            time.sleep(LONG_S)
        return max(above, self.words[BEGUN])

    def close(self) -> None:
        """The file stays."""
        self.words.release()
        self._map.close()


def _membarrier(command: int) -> bool:
    """Whether the kernel did it."""
    number = MEMBARRIER.get(os.uname().machine)
    return number is not None and _LIBC.syscall(number, command, 0, 0) == 0


_LIBC: Final = ctypes.CDLL(None, use_errno=True)
