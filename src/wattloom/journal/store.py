"""What a journal wants of whoever keeps it: one commit that is there entirely or not at all, and reading it back.

Owns the protocol. `sqlite_store` keeps a journal in a file; a database server would be a second implementation
(`wattloom.testing.store_conformance` says what it must do). Knows no SQL and no file. What is written, and when, is the
journal's; bytes are bytes here.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

from wattloom.journal.payloads import KeptFunction
from wattloom.journal.pending import Pending
from wattloom.journal.retention import Retention


class RunStart(msgspec.Struct, frozen=True):
    """What is known of a run when it begins."""

    began: float
    """Unix time at which the log's clock stands at 0."""
    program: str
    pid: int
    boot: str
    """Which start of the machine."""
    header: bytes
    """First line of the log."""


class Store(Protocol):
    """A journal's keeper, opened for writing: nobody else can have it until it is closed, or its holder ends. Used from
    one thread at a time. Everything raises a JournalError in words when it cannot be done."""

    @property
    def path(self) -> Path:
        """Where it is, or how it is called, for messages."""

    @property
    def is_open(self) -> bool:
        """Not any more in a forked child: it is the parent's."""

    # -- writing

    def begin_run(self, start: RunStart) -> int:
        """Begin a log, at once; its number, higher than any before it, also of runs that are gone."""

    def sign(self, run: int) -> None:
        """Say to whoever finds it taken which run is under way; 0: none."""

    def commit(self, pending: Pending, row: int | None) -> int:
        """Everything that waits, in one transaction; the lines go into this row of the log. Written again it does no
        harm: of a commit that failed nobody may know. Returns the bytes of functions that were not there before."""

    # -- reading

    def runs_to_recover(self, current: int | None) -> list[int]:
        """Runs that were cut off, or left tasks, and that no other has taken over; but for the present one."""

    def boot_of(self, run: int) -> str:
        """In which start of the machine it ran."""

    def log_of(self, run: int) -> Iterator[tuple[int, bytes]]:
        """Number and lines of each row, in order. Raises JournalCorrupt at one that is not as it was written."""

    def payloads_of(self, run: int) -> Iterator[tuple[int, bytes]]:
        """Number and body of each chunk that was not forgotten; likewise."""

    def workers_of(self, run: int) -> dict[str, int]:
        """The progress files of workers that are not gone, and the mark of each."""

    def function(self, digest: str) -> KeptFunction | None: ...

    def learned(self, function: str, machine: str) -> Any:
        """The bytes that were kept last; None: none."""

    # -- room

    def prune(self, retention: Retention, now: float) -> list[int]:
        """Let runs go that may not stay; their numbers. `now`: unix time."""

    def tidy(self, seconds: float) -> bool:
        """Spend about so long on giving their room back; whether there is more to do."""

    def close(self) -> None:
        """Let others have it. What was not committed did not happen."""
