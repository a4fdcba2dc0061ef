"""Large arguments as files beside the journal, one per task: written once, mapped by the worker.

Owns the spool folder and the form of its files: a small index, then the buffers, each at an offset that suits arrays.
Which call uses which file is in the journal.
"""

import mmap
import os
import re
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from wattloom.journal import errors
from wattloom.ownership import create_folder

ALIGNMENT: Final = 64
WORD: Final = 8
MOST_PIECES: Final = 512
"""Pieces handed to the system at once; it takes 1024."""
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+=-]{0,199}")
UNREADY: Final = ".part"


class Spool:
    """A folder of buffers. `sync`: wait until they are on the disk."""

    def __init__(self, folder: Path, *, sync: bool = False) -> None:
        self.folder: Final = folder
        self._sync: Final = sync
        self._made = False

    def path(self, name: str) -> Path:
        """Where a file is. Raises ValueError if it cannot be a file's name."""
        if NAME.fullmatch(name) is None or name.endswith(UNREADY):
            raise ValueError(f"cannot be the name of a spool file: {name!r}")
        return self.folder / name

    def write(self, name: str, buffers: Sequence[bytes | bytearray | memoryview]) -> int:
        """Write a file whole, without copying the buffers on the way; its size. It is there entirely or not at all."""
        ready = self.path(name)
        unready = ready.with_name(name + UNREADY)
        pieces = _laid_out([memoryview(buffer).cast("B") for buffer in buffers])
        try:
            self._make()
            self._leave_room(ready, sum(map(len, pieces)))
            unready.unlink(missing_ok=True)  # of one that was cut off
            with open(unready, "xb", buffering=0, opener=_for_this_user) as file:
                size = _write_all(file.fileno(), pieces)
                if self._sync:
                    os.fsync(file.fileno())
            unready.rename(ready)
            if self._sync:
                _sync_folder(self.folder)
        except OSError as problem:
            with suppress(OSError):
                unready.unlink()
            raise errors.of_system(ready, problem) from problem
        return size

    def map(self, name: str) -> list[memoryview]:
        """The buffers of a file. They may be changed, which the file does not notice."""
        return map_file(self.path(name))

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self.path(name).unlink()

    def refuse_foreign(self) -> None:
        """Raises a JournalError if the folder is there and is not ours alone."""
        try:
            if os.path.lexists(self.folder):
                create_folder(self.folder)
        except OSError as problem:
            raise errors.of_system(self.folder, problem) from problem

    def sweep(self, wanted: Collection[str]) -> int:
        """Delete all files but these; how many."""
        if not self.folder.is_dir():
            return 0
        gone = [entry for entry in self.folder.iterdir() if entry.name not in wanted and entry.is_file()]
        for entry in gone:
            entry.unlink(missing_ok=True)
        return len(gone)

    def _leave_room(self, ready: Path, size: int) -> None:
        """A file that would take the journal's last room is not begun: a commit meanwhile would fail for it."""
        disk = os.statvfs(self.folder)
        if disk.f_blocks and size + errors.LEAST_FREE > disk.f_bavail * disk.f_frsize:  # no blocks: it does not say
            raise errors.full(ready)

    def _make(self) -> None:
        if not self._made:
            create_folder(self.folder)
            self._made = True


def spool_path(journal: Path) -> Path:
    return journal.with_name(journal.name + ".spool")


def map_file(path: Path) -> list[memoryview]:
    """The buffers of a spool file, also where there is no Spool: in a worker."""
    with open(path, "rb", opener=_without_links) as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    count = int.from_bytes(whole[:WORD], sys.byteorder)
    lengths = whole[WORD : WORD * (count + 1)].cast("Q").tolist()
    found, at = [], _aligned(WORD * (count + 1))
    for length in lengths:
        found.append(whole[at : at + length])
        at = _aligned(at + length)
    return found


def _for_this_user(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)


def _laid_out(buffers: list[memoryview]) -> list[memoryview | bytes]:
    """Number of buffers, their lengths, then each of them, with gaps so that all begin at a multiple of ALIGNMENT."""
    words = [len(buffers), *map(len, buffers)]
    pieces: list[memoryview | bytes] = [b"".join(word.to_bytes(WORD, sys.byteorder) for word in words)]
    for buffer in buffers:
        pieces[-1:] = [pieces[-1], bytes(-len(pieces[-1]) % ALIGNMENT)]
        pieces.append(buffer)
    return [piece for piece in pieces if len(piece)]


def _write_all(descriptor: int, pieces: list[memoryview | bytes]) -> int:
    total = 0
    left = [memoryview(piece) for piece in pieces]
    while left:
        written = os.writev(descriptor, left[:MOST_PIECES])
        total += written
        while left and written >= len(left[0]):
            written -= len(left.pop(0))
        if left and written:
            left[0] = left[0][written:]
    return total


def _aligned(size: int) -> int:
    return size + -size % ALIGNMENT


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
