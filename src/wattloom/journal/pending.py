"""What waits for the next commit.

Owns the buffer and the statements that write it. Writing it twice does no harm: a commit of which nobody knows whether
it came about can be made again.
"""

import sqlite3
from typing import Final

from wattloom.journal.calls import KeptResult
from wattloom.scheduling.stored_log import checksum

MOST_OUTPUT: Final = 64 * 1024
"""Bytes of output kept of one task: the last ones."""


class Pending:
    """A buffer of everything a journal can be given."""

    __slots__ = ("_changes", "_forgotten", "functions", "learned", "output", "payloads", "records", "results")

    def __init__(self) -> None:
        self.records: Final[list[bytes]] = []
        self.payloads: Final[dict[int, bytes]] = {}
        self._forgotten: Final[list[tuple[int]]] = []
        self.functions: Final[dict[str, tuple[str, int, bytes]]] = {}
        self.results: Final[dict[str, KeptResult]] = {}
        self.output: Final[dict[tuple[int, str], bytes]] = {}
        self.learned: Final[dict[tuple[str, str], bytes]] = {}
        self._changes: Final[list[tuple[str, tuple[object, ...]]]] = []

    def is_empty(self) -> bool:
        return not (
            self.records
            or self.payloads
            or self._forgotten
            or self.functions
            or self.results
            or self.output
            or self.learned
            or self._changes
        )

    def size(self) -> int:
        return sum(map(len, self.records)) + sum(map(len, self.payloads.values()))

    def lasting(self) -> int:
        """Bytes that stay as long as the run does: of lines, results and output."""
        results = sum(len(each.body) for each in self.results.values())
        return sum(map(len, self.records)) + results + sum(map(len, self.output.values()))

    def new_functions(self, connection: sqlite3.Connection) -> int:
        """Bytes of functions that are not in the journal yet."""
        known = "SELECT 1 FROM functions WHERE digest = ?"
        return sum(
            len(blob)
            for digest, (_, _, blob) in self.functions.items()
            if connection.execute(known, (digest,)).fetchone() is None
        )

    def forget(self, chunk: int) -> None:
        """A chunk that came and went between two commits is never written: its calls' ends are in the same commit."""
        if self.payloads.pop(chunk, None) is None:
            self._forgotten.append((chunk,))

    def change(self, statement: str, *values: object) -> None:
        """A statement on runs: they are carried out in this order, after all else."""
        self._changes.append((statement, values))

    def add_output(self, run: int, task: str, text: bytes) -> None:
        self.output[run, task] = (self.output.get((run, task), b"") + text)[-MOST_OUTPUT:]

    def write(self, connection: sqlite3.Connection, row: int | None) -> None:
        """All of it, within the caller's transaction. The lines go into this row of the log."""
        if self.functions:
            connection.executemany(
                "INSERT INTO functions (digest, name, run, blob, checksum) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (digest) DO UPDATE SET run = excluded.run",
                [(digest, name, run, blob, checksum(0, blob)) for digest, (name, run, blob) in self.functions.items()],
            )
        if self.payloads:
            connection.executemany(
                "INSERT OR REPLACE INTO payloads (id, body, checksum) VALUES (?, ?, ?)",
                [(chunk, body, checksum(chunk, body)) for chunk, body in self.payloads.items()],
            )
        if row is not None:
            records = b"".join(self.records)
            connection.execute(
                "INSERT OR REPLACE INTO log (id, records, checksum) VALUES (?, ?, ?)",
                (row, records, checksum(row, records)),
            )
        if self._forgotten:
            connection.executemany("DELETE FROM payloads WHERE id = ?", self._forgotten)
        if self.results or self.output or self.learned:
            self._write_what_lasts(connection)
        for statement, values in self._changes:
            connection.execute(statement, values)

    def _write_what_lasts(self, connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT OR REPLACE INTO results (key, task, run, outcome, body, time, checksum) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (each.key, each.task, each.run, each.outcome, each.body, each.time, checksum(0, each.body))
                for each in self.results.values()
            ],
        )
        connection.executemany(
            "INSERT INTO output (run, task, text) VALUES (?, ?, ?) "
            f"ON CONFLICT (run, task) DO UPDATE SET text = substr(CAST(text || excluded.text AS BLOB), -{MOST_OUTPUT})",
            [(run, task, text) for (run, task), text in self.output.items()],
        )
        connection.executemany(
            "INSERT OR REPLACE INTO learned (function, machine, figures) VALUES (?, ?, ?)",
            [(function, machine, figures) for (function, machine), figures in self.learned.items()],
        )
