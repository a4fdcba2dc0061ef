"""The journal of one program: what was accepted, what was decided and how it ended, safe before it is acted upon.

Owns the order of writing: everything goes into a buffer, and a commit puts the whole buffer into the store in one
transaction, or nothing of it. Used from one thread at a time. Knows no worker, no engine and no SQL; calls and results
are bytes to it.
"""

import os
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from wattloom.errors import clean
from wattloom.history.log import Header
from wattloom.history.stored_log import rows_of
from wattloom.journal import errors, recovery
from wattloom.journal.payloads import Call, KeptFunction, Unfinished
from wattloom.journal.pending import Pending, RunEnded, RunLookedAt, RunTakenOver, WorkerGone, WorkerStarted
from wattloom.journal.retention import MEGABYTE, Retention
from wattloom.journal.schema import Durability
from wattloom.journal.spool import Spool, spool_path
from wattloom.journal.sqlite_store import SqliteStore
from wattloom.journal.store import RunStart, Store

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
LEAST_RUN: Final = 1 << 20
KEPT_RUNS: Final = 4
TIDYING_S: Final = 0.05
"""Time that is spent on tidying up when a journal is opened."""
CALLS: Final = msgspec.msgpack.Encoder()
JSON: Final = msgspec.json.Encoder()


class Journal:
    """An open journal. Nobody else can write to it until it is closed, or this process ends."""

    def __init__(self, store: Store, spool: Spool, program: str = "", retention: Retention | None = None) -> None:
        self._retention: Final = retention or Retention()
        self.store: Final = store
        self.path: Final = store.path
        self.spool: Final = spool
        self.program: Final = program
        self.run: int | None = None
        """The run that is being written."""
        self._written = 0
        """Of its log and output, on disk."""
        self._new_functions = 0
        """Bytes of functions that were not in the journal before this run."""
        self._pending = Pending()
        self._row = 0
        self._chunk = 0
        self._functions: set[str] = set()
        """Digests that this run has kept."""
        _OPEN.add(self)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        durability: Durability = "process",
        program: str = "",
        retention: Retention | None = None,
    ) -> "Journal":
        """Open the file, or begin a new one. Old runs are pruned as far as `retention` (default: see there) allows.

        Raises a JournalError: it is in use, may not be written, is damaged, too new, or the disk is full.
        """
        program = clean(program)
        store = SqliteStore.open(path, durability, program)
        try:
            store.prune(retention or Retention(), time.time())
            store.tidy(TIDYING_S)
            spool = Spool(spool_path(store.path), sync=durability == "machine")
            spool.refuse_foreign()
            return cls(store, spool, program, retention)
        except BaseException:
            store.close()
            raise

    # -- runs --------------------------------------------------------------------------------------------------------

    def begin_run(self, header: Header, began: float) -> int:
        """Begin a log. `began` is the unix time at which the log's clock stands at 0. Returns the run's number."""
        if self.run is not None:
            raise ValueError(f"run {self.run} has not ended")
        start = RunStart(began, self.program, os.getpid(), boot_id(), JSON.encode(header))
        self.run = self.store.begin_run(start)
        self._row = self._chunk = rows_of(self.run)[0]
        self._written = self._new_functions = 0
        self._functions.clear()
        self.store.sign(self.run)
        return self.run

    def end_run(self, ended: float, unfinished: int = 0) -> None:
        """Commit, and note that the run ended properly, with so many tasks left that have no end in the log."""
        run = self._current()
        self.commit()
        self._pending.changes.append(RunEnded(run, ended, unfinished, self._written))
        if not unfinished:
            self._pending.changes.append(WorkerGone(run))
        self.commit()
        self.run = None
        self.store.sign(0)

    def turn_over(self, header: Header, began: float, ended: float, unfinished: int) -> int:
        """End the run and begin another, which has to say before the next commit how its unfinished tasks stand: with
        that commit they are the new run's, and till then the old one's."""
        run = self._current()
        self.commit()
        written = self._written
        self.run = None
        new = self.begin_run(header, began)
        self._pending.changes.extend([RunEnded(run, ended, unfinished, written), WorkerGone(run)])
        if unfinished:
            self.taken_over(run)
        return new

    def unfinished(self) -> list[Unfinished]:
        """Every accepted task without an end, of all earlier runs that nobody has taken over. Reads their logs."""
        found: list[Unfinished] = []
        for run in self.store.runs_to_recover(self.run):
            left = recovery.unfinished_of(self.store, run, boot_id())
            found += left
            self._pending.changes.append(RunLookedAt(run, len(left)))
        return found

    def taken_over(self, run: int) -> None:
        """With the next commit: the present run answers for that run's unfinished tasks, and has their payloads."""
        self._pending.changes.append(RunTakenOver(run, self._current()))

    def workers_of(self, run: int) -> dict[str, int]:
        """The progress files of a run that have to be in the spool, and the mark of each."""
        return self.store.workers_of(run)

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
        self._pending.changes.append(WorkerStarted(self._current(), file, mark))

    def worker_gone(self, file: str) -> None:
        """From the next commit on its progress is not needed: what became of its calls is in the log."""
        self._pending.changes.append(WorkerGone(self._current(), file))

    def forget(self, chunk: int) -> None:
        """Delete a chunk of payloads with the next commit."""
        self._pending.forget(chunk)

    def keep_function(self, digest: str, name: str, blob: bytes) -> None:
        """A pickled function: each is stored once, however often it is kept."""
        if digest in self._functions:
            return
        self._pending.functions[digest] = (name, self._current(), blob)
        self._functions.add(digest)

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

    def commit(self) -> None:
        """Put everything on disk, in one transaction. If it fails nothing is written, and the buffer is kept: a later
        commit may succeed."""
        pending = self._pending
        if pending.is_empty():
            return
        row = self._row + 1 if pending.records else None
        new_functions = self.store.commit(pending, row)
        if row is not None:
            self._row = row
        self._written += pending.lasting()
        self._new_functions += new_functions
        self._pending = Pending()

    # -- what is read ------------------------------------------------------------------------------------------------

    def function(self, digest: str) -> KeptFunction | None:
        if (found := self._pending.functions.get(digest)) is not None:
            return KeptFunction(digest, found[0], found[2])
        return self.store.function(digest)

    def learned(self, function: str, machine: str) -> Any:
        """What `learn` was given last; None: nothing yet."""
        found = self._pending.learned.get((function, machine))
        kept = self.store.learned(function, machine) if found is None else found
        try:
            return None if kept is None else msgspec.json.decode(kept)
        except (msgspec.MsgspecError, ValueError, TypeError) as problem:
            raise errors.corrupt(self.path, f"what was learned of {function} cannot be read: {problem}") from problem

    def prune(self, room: int = 0) -> None:
        """Strike out runs that need not be kept any more, as when it was opened, so that the present one has so many
        bytes of what may be kept. Their rows are `tidy`'s."""
        megabytes = max(0.0, self._retention.megabytes - room / MEGABYTE)
        self.store.prune(msgspec.structs.replace(self._retention, megabytes=megabytes), time.time())

    def tidy(self, seconds: float = TIDYING_S) -> bool:
        """Spend about so long on clearing away what was pruned; whether there is more to do. For idle moments."""
        return self.store.tidy(seconds)

    # -- the end -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Commit what is left, tidy up and let others have it. A run that was not ended counts as cut off."""
        if not self.store.is_open:
            return
        try:
            self.commit()
        finally:
            self.store.close()
            self.run = None
            _OPEN.discard(self)

    def _current(self) -> int:
        if self.run is None:
            raise ValueError("no run was begun")
        return self.run

    def _leave_to_the_parent(self) -> None:
        """In a forked child, whose store is closed: what waits is the parent's to write."""
        self._pending = Pending()


_OPEN: Final[weakref.WeakSet[Journal]] = weakref.WeakSet()


def _after_fork() -> None:
    for journal in list(_OPEN):
        journal._leave_to_the_parent()


os.register_at_fork(after_in_child=_after_fork)


def boot_id() -> str:
    """Which start of the machine this is."""
    with suppress(OSError):
        return BOOT_ID.read_text().strip()
    return ""
