"""Files that are whole or not there, on any disk, whenever we are stopped.

Owns how a profile is written and dated, and the lock that lets only one profile be taken at a time.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from wattloom.errors import InputError, WattloomError

LOCK: Final = "profiling.lock"


class StoreError(WattloomError):
    """A profile could not be written. What was written before is whole."""


class Busy(WattloomError):
    """Another profile is being taken."""


def store(path: Path, content: bytes) -> None:
    """Put the content there, all of it or nothing: a new file, brought to the disk, takes the old one's place."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as part:
            try:
                part.write(content)
                part.flush()
                os.fsync(part.fileno())
                os.chmod(part.name, 0o644)
                os.replace(part.name, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(part.name)
                raise
        _bring_to_disk(path.parent)
    except OSError as problem:
        raise StoreError(f"{path}: cannot be written: {problem.strerror or problem}") from problem


def refuse_missing_folder(output: Path | None) -> None:
    """Only the default place is made: a folder that was mistyped should not appear somewhere."""
    if output is not None and not output.parent.is_dir():
        raise InputError("output", f"there is no folder {output.parent}: make it, or write elsewhere")


def date() -> str:
    """Now, as it stands in a profile."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def _bring_to_disk(folder: Path) -> None:
    """The new name too."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def alone(folder: Path, patience_s: float = 2.0) -> Iterator[int]:
    """Two profiles at a time would measure each other's load. The kernel gives the lock back when we die, and all to
    whom its descriptor was handed on; that may take a moment."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as problem:
        raise StoreError(f"{folder}: cannot be written: {problem.strerror}") from problem
    try:
        if not _locked(handle, patience_s):
            raise Busy(f"another profile is being taken here ({folder / LOCK} is held); wait for its end")
        yield handle
    finally:
        os.close(handle)


def _locked(handle: int, patience_s: float) -> bool:
    end = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.02)
        else:
            return True
