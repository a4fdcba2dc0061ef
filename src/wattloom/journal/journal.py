"""The journal of one program: what was accepted, what was decided and how it ended, safe before it is acted upon.

Owns the order of writing: everything goes into a buffer, and a commit puts the whole buffer on disk in one transaction,
or nothing of it. Used from one thread at a time. Knows no worker and no engine; calls and results are bytes to it.
"""

import os
import sqlite3
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from errno import EISDIR
from pathlib import Path
from typing import Any, Final

import msgspec

from wattloom.errors import clean
from wattloom.journal import errors, recovery
from wattloom.journal.calls import Call, KeptFunction, KeptResult, Unfinished
from wattloom.journal.forking import unforked
from wattloom.journal.lock import Lock
from wattloom.journal.pending import Pending
from wattloom.journal.retention import MEGABYTE, Retention, clear_away, let_go
from wattloom.journal.schema import Durability, connect
from wattloom.journal.size import WRITTEN
from wattloom.journal.spool import Spool, spool_path
from wattloom.ownership import real_path, refuse_foreign_folder
from wattloom.scheduling.log import Header
from wattloom.scheduling.stored_log import damage, rows_of

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
LEAST_RUN: Final = 1 << 20
KEPT_RUNS: Final = 4
TIDYING_S: Final = 0.05
"""Time that is spent on tidying up when a journal is opened."""
LOOKED_AT: Final = f"UPDATE runs SET unfinished = ?, bytes = {WRITTEN} WHERE run = ?"
CALLS: Final = msgspec.msgpack.Encoder()
JSON: Final = msgspec.json.Encoder()


class Journal:
    """An open journal. Nobody else can write to it until it is closed, or this process ends."""

    def __init__(
        self,
        path: Path,
        lock: Lock,
        connection: sqlite3.Connection,
        spool: Spool,
        program: str,
        retention: Retention,
    ) -> None:
        self._retention: Final = retention
        self.path: Final = path
        self.spool: Final = spool
        self.program: Final = program
        self.run: int | None = None
        """The run that is being written."""
        self._written = 0
        """Of its log, output and results, on disk."""
        self._new_functions = 0
        """Bytes of functions that were not in the journal before this run."""
        self._lock: Final = lock
        self._connection: sqlite3.Connection | None = connection
        self._pending = Pending()
        self._row = 0
        self._chunk = 0
        self._functions: set[str] = set()
        """Digests that this run has kept."""
        _OPEN.add(self)

    @classmethod
    @unforked
    def open(
        cls,
        path: Path,
        *,
        durability: Durability = "process",
        program: str = "",
        retention: Retention | None = None,
    ) -> "Journal":
        """Open it, or begin a new one. Old runs are pruned as far as `retention` (default: see there) allows.

        Raises a JournalError: it is in use, may not be written, is damaged, too new, or the disk is full.
        """
        path, program = path.absolute(), clean(program)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.is_dir():
                raise IsADirectoryError(EISDIR, "it is a folder; name a file")
            refuse_foreign_folder(path.parent)
            path = real_path(path)  # else each link to it would have a lock and a spool of its own
            refuse_foreign_folder(path.parent)
        except OSError as problem:
            raise errors.of_system(path, problem) from problem
        lock = Lock.take(path, program)
        connection = None
        try:
            connection = connect(path, durability)
            retention = retention or Retention()
            let_go(connection, path, retention, time.time())
            clear_away(connection, path, TIDYING_S)
            spool = Spool(spool_path(path), sync=durability == "machine")
            spool.refuse_foreign()
            return cls(path, lock, connection, spool, program, retention)
        except BaseException:
            if connection is not None:
                connection.close()
            lock.release()
            raise

    # -- runs --------------------------------------------------------------------------------------------------------

    @unforked
    def begin_run(self, header: Header, began: float) -> int:
        """Begin a log. `began` is the unix time at which the log's clock stands at 0. Returns the run's number."""
        if self.run is not None:
            raise ValueError(f"run {self.run} has not ended")
        row = (began, self.program, os.getpid(), boot_id(), JSON.encode(header))
        connection = self._opened()
        try:
            cursor = connection.execute(
                "INSERT INTO runs (began, program, pid, boot, header) VALUES (?, ?, ?, ?, ?)", row
            )
        except sqlite3.Error as problem:
            raise errors.of_sqlite(self.path, problem) from problem
        assert cursor.lastrowid is not None
        self.run = cursor.lastrowid
        self._row = self._chunk = rows_of(self.run)[0]
        self._written = self._new_functions = 0
        self._functions.clear()
        self._lock.sign(self.run)
        return self.run

    def end_run(self, ended: float, unfinished: int = 0) -> None:
        """Commit, and note that the run ended properly, with so many tasks left that have no end in the log."""
        run = self._current()
        self.commit()
        self._pending.change(
            "UPDATE runs SET ended = ?, unfinished = ?, bytes = ? WHERE run = ?", ended, unfinished, self._written, run
        )
        if not unfinished:
            self._pending.change("DELETE FROM workers WHERE run = ?", run)
        self.commit()
        self.run = None
        self._lock.sign()

    @unforked
    def turn_over(self, header: Header, began: float, ended: float, unfinished: int) -> int:
        """End the run and begin another, which has to say before the next commit how its unfinished tasks stand: with
        that commit they are the new run's, and till then the old one's."""
        run = self._current()
        self.commit()
        written = self._written
        self.run = None
        new = self.begin_run(header, began)
        self._pending.change(
            "UPDATE runs SET ended = ?, unfinished = ?, bytes = ? WHERE run = ?", ended, unfinished, written, run
        )
        self._pending.change("DELETE FROM workers WHERE run = ?", run)
        if unfinished:
            self.taken_over(run)
        return new

    def unfinished(self) -> list[Unfinished]:
        """Every accepted task without an end, of all earlier runs that nobody has taken over. Reads their logs."""
        connection = self._opened()
        found: list[Unfinished] = []
        try:
            for run in recovery.runs_to_recover(connection, self.run):
                left = recovery.unfinished_of(connection, self.path, run, boot_id())
                found += left
                self._pending.change(LOOKED_AT, len(left), run)
        except sqlite3.Error as problem:
            raise errors.of_sqlite(self.path, problem) from problem
        return found

    def taken_over(self, run: int) -> None:
        """With the next commit: the present run answers for that run's unfinished tasks, and has their payloads."""
        self._pending.change("UPDATE runs SET taken_over = ? WHERE run = ?", self._current(), run)
        self._pending.change("DELETE FROM payloads WHERE id BETWEEN ? AND ?", *rows_of(run))
        self._pending.change("DELETE FROM workers WHERE run = ?", run)

    def workers_of(self, run: int) -> dict[str, int]:
        """The progress files of a run that have to be in the spool, and the mark of each."""
        try:
            return recovery.workers_of(self._opened(), run)
        except sqlite3.Error as problem:
            raise errors.of_sqlite(self.path, problem) from problem

    # -- what is written ---------------------------------------------------------------------------------------------

    def append(self, records: bytes) -> None:
        """Lines of the log, whole, each with its line feed."""
        self._current()
        self._pending.records.append(records)

    def keep(self, calls: Sequence[Call]) -> int:
        """Payloads of calls. Returns the chunk's number, to forget it by when all of them have ended."""
        self._current()
        self._chunk += 1
        self._pending.payloads[self._chunk] = CALLS.encode(calls)
        return self._chunk

    def worker_started(self, file: str, mark: int) -> None:
        """From the next commit on there is such a progress file, as long as it is not said that the worker is gone: if
        it cannot be found after a crash, nobody knows what its calls did."""
        self._pending.change("INSERT OR REPLACE INTO workers VALUES (?, ?, ?)", self._current(), file, mark)

    def worker_gone(self, file: str) -> None:
        """From the next commit on its progress is not needed: what became of its calls is in the log."""
        self._pending.change("DELETE FROM workers WHERE run = ? AND file = ?", self._current(), file)

    def forget(self, chunk: int) -> None:
        """Delete a chunk of payloads with the next commit."""
        self._pending.forget(chunk)

    def keep_function(self, digest: str, name: str, blob: bytes) -> None:
        """A pickled function: each is stored once, however often it is kept."""
        if digest in self._functions:
            return
        self._pending.functions[digest] = (name, self._current(), blob)
        self._functions.add(digest)

    def keep_result(self, key: str, task: str, outcome: str, body: bytes, time: float) -> None:
        """The result of a call with an idempotency key; `time` is unix time."""
        self._pending.results[key] = KeptResult(key, task, self._current(), outcome, body, time)

    def keep_output(self, task: str, text: bytes) -> None:
        """What a task wrote to its output; of much, the end is kept."""
        self._pending.add_output(self._current(), task, text)

    def learn(self, function: str, machine: str, figures: Any) -> None:
        """What was learned of a function on a machine: anything that JSON can hold. Replaces what was known."""
        self._pending.learned[function, machine] = JSON.encode(figures)

    @property
    def run_bytes(self) -> int:
        """By which this run has made the journal larger, but for payloads, which go by themselves: a program that never
        ends may begin a new run when this is large. Functions that earlier runs kept are not counted again: a large one
        would make every run a long one."""
        return self._written + self._new_functions

    @property
    def long_run(self) -> int:
        """Bytes from which on a run is long: so few that those which may be kept are several."""
        return max(LEAST_RUN, round(self._retention.megabytes * MEGABYTE / KEPT_RUNS))

    @property
    def pending_bytes(self) -> int:
        """How much of the log and of payloads waits for a commit."""
        return self._pending.size()

    @unforked
    def commit(self) -> None:
        """Put everything on disk, in one transaction. If it fails nothing is written, and the buffer is kept: a later
        commit may succeed."""
        pending = self._pending
        if pending.is_empty():
            return
        connection = self._opened()
        row = self._row + 1 if pending.records else None
        try:
            connection.execute("BEGIN IMMEDIATE")
            new_functions = pending.new_functions(connection)
            pending.write(connection, row)
            connection.execute("COMMIT")
        except BaseException as problem:
            _roll_back(connection)
            if isinstance(problem, sqlite3.Error):
                raise errors.of_sqlite(self.path, problem) from problem
            raise
        if row is not None:
            self._row = row
        self._written += pending.lasting()
        self._new_functions += new_functions
        self._pending = Pending()

    # -- what is read ------------------------------------------------------------------------------------------------

    @unforked
    def function(self, digest: str) -> KeptFunction | None:
        if (found := self._pending.functions.get(digest)) is not None:
            return KeptFunction(digest, found[0], found[2])
        try:
            return recovery.kept_function(self._opened(), self.path, digest)
        except sqlite3.Error as problem:
            raise errors.of_sqlite(self.path, problem) from problem

    def result_of(self, key: str) -> KeptResult | None:
        """The kept result of the last call with this key; None: there is none (any more)."""
        if (found := self._pending.results.get(key)) is not None:
            return found
        row = self._one("SELECT key, task, run, outcome, body, time, checksum FROM results WHERE key = ?", (key,))
        if row is not None and (wrong := damage(0, row[4], row[6])):
            raise errors.damaged(self.path, row[2], "results", repr(key), wrong)
        return None if row is None else KeptResult(*row[:6])

    @unforked
    def learned(self, function: str, machine: str) -> Any:
        """What `learn` was given last; None: nothing yet."""
        if (found := self._pending.learned.get((function, machine))) is not None:
            return msgspec.json.decode(found)
        row = self._one("SELECT figures FROM learned WHERE function = ? AND machine = ?", (function, machine))
        try:
            return None if row is None else msgspec.json.decode(row[0])
        except (msgspec.MsgspecError, ValueError, TypeError) as problem:
            raise errors.corrupt(self.path, f"what was learned of {function} cannot be read: {problem}") from problem

    @unforked
    def prune(self, room: int = 0) -> None:
        """Strike out runs that need not be kept any more, as when it was opened, so that the present one has so many
        bytes of what may be kept. Their rows are `tidy`'s."""
        megabytes = max(0.0, self._retention.megabytes - room / MEGABYTE)
        let_go(self._opened(), self.path, msgspec.structs.replace(self._retention, megabytes=megabytes), time.time())

    @unforked
    def tidy(self, seconds: float = TIDYING_S) -> bool:
        """Spend about so long on clearing away what was pruned; whether there is more to do. For idle moments."""
        return clear_away(self._opened(), self.path, seconds)

    # -- the end -----------------------------------------------------------------------------------------------------

    @unforked
    def close(self) -> None:
        """Commit what is left, tidy the file up and let others have it. A run that was not ended counts as cut off."""
        if self._connection is None:
            return
        try:
            self.commit()
            with suppress(sqlite3.Error):  # a reader may hold it up: the next one to close does it
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self._connection.close()
            self._connection = None
            self.run = None
            self._lock.release()
            _OPEN.discard(self)

    def _current(self) -> int:
        if self.run is None:
            raise ValueError("no run was begun")
        return self.run

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise ValueError(f"{self.path} is closed")
        return self._connection

    @unforked
    def _one(self, query: str, values: tuple[object, ...]) -> tuple[Any, ...] | None:
        try:
            row: tuple[Any, ...] | None = self._opened().execute(query, values).fetchone()
        except sqlite3.Error as problem:
            raise errors.of_sqlite(self.path, problem) from problem
        return row

    def _leave_to_the_parent(self) -> None:
        """In a forked child: SQLite's connections must neither be used nor closed there."""
        if self._connection is not None:
            _LEFT.append(self._connection)
        self._connection = None
        self._pending = Pending()


_OPEN: Final[weakref.WeakSet[Journal]] = weakref.WeakSet()
_LEFT: Final[list[sqlite3.Connection]] = []


def _after_fork() -> None:
    for journal in list(_OPEN):
        journal._leave_to_the_parent()


os.register_at_fork(after_in_child=_after_fork)


def _roll_back(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def boot_id() -> str:
    """Which start of the machine this is."""
    with suppress(OSError):
        return BOOT_ID.read_text().strip()
    return ""
