"""Append-only files that outlive their writers: one line, one write.

Owns the two files of a chaos run (what the program noted, what its tasks did) and their form. Whoever is killed between
two writes leaves whole lines: a line is either there or not.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

EFFECTS = "effects"
NOTES = "notes"


@dataclass(frozen=True)
class Note:
    """A line: when (a clock that all processes of the machine share), what, and about whom."""

    time: float
    what: str
    words: tuple[str, ...]


def append(path: str | Path, *lines: str) -> None:
    """All in one write, behind all that is there."""
    now = time.clock_gettime(time.CLOCK_MONOTONIC)
    text = "".join(f"{now:.6f} {line}\n" for line in lines)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def read(path: Path) -> list[Note]:
    """All lines; a torn last one was not said."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            when, what, *words = line.split()
            found.append(Note(float(when), what, tuple(words)))
    return found
