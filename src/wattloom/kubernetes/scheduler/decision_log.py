"""The file that a scheduler's events and decisions are logged to.

Owns how it is opened, when it is long enough, that the one before it is kept, and that nobody else writes it: whoever
has it holds a lock on NAME.lock, which says who that is and which the kernel drops when its holder ends. At any moment
NAME, NAME.1 or both can be read, by anybody: a new one is written as NAME.new and takes its name only when it is whole.
What stands in it is `history.log`'s.
"""

import logging
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from wattloom.errors import InputError
from wattloom.history.holder import holder_of
from wattloom.history.log import VERSION, Header, LogWriter, says_something
from wattloom.journal.errors import JournalBusy, JournalError
from wattloom.journal.lock import Lock

LOG: Final = logging.getLogger(__name__)
BUFFER: Final = 1 << 18
MIB: Final = 1 << 20


class DecisionLog:
    """A file; a log that is there already becomes NAME.1, as does one that is longer than `most` bytes.

    One in which nothing stands, as of a start without a cluster, pushes none out."""

    def __init__(self, path: Path, policy: str, cluster: str, *, most: int = 128 * MIB) -> None:
        self.path: Final = path / "decisions.log" if path.is_dir() else path
        self._header: Final = Header(VERSION, policy, "kubernetes", None, cluster)
        self._most = most
        self._begun_with = 0
        self._said = False
        self._lock = self._taken()
        try:
            self._beside("new").unlink(missing_ok=True)
            if self.path.exists() and says_something(self.path):
                self.path.replace(self._beside("1"))
            self._file = self._opened(self.path)
        except OSError as problem:
            self._lock.release()
            raise self._unwritable(problem) from problem
        self.writer = LogWriter(self._file, self._header)
        self._file.flush()

    @property
    def is_full(self) -> bool:
        """What a log must begin with is not its fault: it may double that in any case."""
        return self._file.tell() > max(self._most, 2 * self._begun_with)

    def flush(self) -> None:
        """A disk that is full is told once: deciding goes on without a log."""
        try:
            self._file.flush()
        except OSError as problem:
            self._cannot(problem)

    def close(self) -> None:
        """Another may have it from now on."""
        self._close_file()
        self._lock.release()

    def begin_new(self) -> LogWriter | None:
        """Another log, beside the present one until `switch`. None: it cannot be written, the present one goes on."""
        try:
            file = self._opened(self._beside("new"))
        except OSError as problem:
            self._cannot(problem)
            self.postpone()
            return None
        self._close_file()
        self._file = file
        self.writer = LogWriter(file, self._header)
        return self.writer

    def postpone(self) -> None:
        """No other log can begin now: the present one may become twice as long."""
        self._begun_with = self._file.tell()

    def switch(self) -> None:
        """All that a new log must begin with is in it: it takes the name."""
        try:
            self._file.flush()
            self._begun_with = self._file.tell()
            if self.path.exists():
                self.path.replace(self._beside("1"))
            self._beside("new").replace(self.path)
        except OSError as problem:
            self._cannot(problem)

    def _taken(self) -> Lock:
        """Before anything is moved: what another scheduler writes stays where it is. One lock, whatever links name."""
        path = self.path.resolve()
        try:
            return Lock.take(path, "wattloom kubernetes scheduler")
        except JournalBusy:
            holder = holder_of(path)
            who = f"process {holder.pid}" if holder is not None and holder.pid else "another process"
            words = f"is in use by {who}; end that, or give each scheduler a log of its own"
            raise InputError(f"log {self.path}", words) from None
        except JournalError as problem:
            raise self._unwritable(problem.__cause__) from problem

    def _unwritable(self, problem: BaseException | None) -> InputError:
        why = getattr(problem, "strerror", None) or problem
        return InputError(f"log {self.path}", f"cannot be written: {why}; name a file in a folder that exists")

    def _close_file(self) -> None:
        with suppress(OSError):
            self._file.close()

    def _cannot(self, problem: OSError) -> None:
        if not self._said:
            self._said = True
            LOG.error("the log %s cannot be written: %s", self.path, problem.strerror or problem)

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{ending}")

    def _opened(self, path: Path) -> IO[bytes]:
        return path.open("wb", buffering=BUFFER)
