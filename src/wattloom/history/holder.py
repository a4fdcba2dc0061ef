"""Who writes a journal, or a log, now: read from the lock file beside it.

Owns the file's name and what stands in it. Reads only: the lock itself is taken by `journal.lock`, and the kernel drops
it when its holder ends, however it ends.
"""

import fcntl
import os
from pathlib import Path
from typing import Final

import msgspec

LENGTH: Final = 1024
"""Bytes of the lock file: always as many, written at once, so that it is never read half-written."""


class Holder(msgspec.Struct, frozen=True):
    """Who has a journal."""

    pid: int
    program: str = ""
    run: int = 0
    """The run that is under way; 0: none."""


def lock_path(journal: Path) -> Path:
    """Beside the journal itself, also if a link to it is named."""
    real = Path(os.path.realpath(journal))
    return real.with_name(real.name + ".lock")


def holder_of(journal: Path) -> Holder | None:
    """Who has the journal now; None: nobody."""
    try:
        descriptor = os.open(lock_path(journal), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return signed_in(descriptor)
    finally:
        os.close(descriptor)
    return None


def signed_in(descriptor: int) -> Holder:
    """The holder may be about to sign: then its number is unknown."""
    try:
        return msgspec.json.decode(os.pread(descriptor, LENGTH, 0), type=Holder)
    except msgspec.DecodeError:
        return Holder(0)
