"""What waits for the next commit.

Owns the buffer. How it is written is the store's: writing it twice does no harm, so that a commit of which nobody knows
whether it came about can be made again.
"""

from typing import Final

import msgspec

MOST_OUTPUT: Final = 64 * 1024
"""Bytes of output kept of one task: the last ones."""


class RunEnded(msgspec.Struct, frozen=True):
    """It ended properly, with so many tasks left that have no end in the log."""

    run: int
    ended: float
    unfinished: int
    bytes: int
    """Of its log, output and results."""


class RunLookedAt(msgspec.Struct, frozen=True):
    """It was cut off, and has so many unfinished tasks."""

    run: int
    unfinished: int


class RunTakenOver(msgspec.Struct, frozen=True):
    """Another run answers for its unfinished tasks, and has their payloads: its own go, and so do its workers."""

    run: int
    by: int


class WorkerStarted(msgspec.Struct, frozen=True):
    """There is such a progress file, known by its mark."""

    run: int
    file: str
    mark: int


class WorkerGone(msgspec.Struct, frozen=True):
    """Its progress is not needed any more; without a file, nobody's of the run is."""

    run: int
    file: str = ""


Change = RunEnded | RunLookedAt | RunTakenOver | WorkerStarted | WorkerGone


class Pending:
    """A buffer of everything a journal can be given."""

    __slots__ = ("changes", "forgotten", "functions", "learned", "output", "payloads", "records")

    def __init__(self) -> None:
        self.records: Final[list[bytes]] = []
        """Lines of the log."""
        self.payloads: Final[dict[int, bytes]] = {}
        """By chunk."""
        self.forgotten: Final[list[int]] = []
        """Chunks."""
        self.functions: Final[dict[str, tuple[str, int, bytes]]] = {}
        """By digest: name, run that last kept it, and the pickled function."""
        self.output: Final[dict[tuple[int, str], bytes]] = {}
        """By run and task: what is added to it."""
        self.learned: Final[dict[tuple[str, str], bytes]] = {}
        """By function and machine."""
        self.changes: Final[list[Change]] = []
        """Of runs and their workers: they are made in this order, after all else."""

    def is_empty(self) -> bool:
        return not (
            self.records
            or self.payloads
            or self.forgotten
            or self.functions
            or self.output
            or self.learned
            or self.changes
        )

    def size(self) -> int:
        return sum(map(len, self.records)) + sum(map(len, self.payloads.values()))

    def lasting(self) -> int:
        """Bytes that stay as long as the run does: of lines and output."""
        return sum(map(len, self.records)) + sum(map(len, self.output.values()))

    def forget(self, chunk: int) -> None:
        """A chunk that came and went between two commits is never written: its calls' ends are in the same commit."""
        if self.payloads.pop(chunk, None) is None:
            self.forgotten.append(chunk)

    def add_output(self, run: int, task: str, text: bytes) -> None:
        self.output[run, task] = (self.output.get((run, task), b"") + text)[-MOST_OUTPUT:]
