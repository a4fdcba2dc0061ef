"""The file that a scheduler's events and decisions are logged to.

Owns how it is opened, and that what an earlier life has left there is kept. What stands in it is `scheduling.log`'s.
"""

from pathlib import Path
from typing import IO, Final

from wattloom.errors import InputError
from wattloom.scheduling.log import VERSION, Header, LogWriter

BUFFER: Final = 1 << 18


class DecisionLog:
    """A file; a log that is there already is moved to NAME.before."""

    def __init__(self, path: Path, policy: str, cluster: str) -> None:
        self.path: Final = path / "decisions.log" if path.is_dir() else path
        self._file: Final = self._opened()
        self.writer: Final = LogWriter(self._file, Header(VERSION, policy, "kubernetes", None, cluster))
        self._file.flush()

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _opened(self) -> IO[bytes]:
        try:
            if self.path.exists():
                self.path.replace(self.path.with_name(f"{self.path.name}.before"))
            return self.path.open("wb", buffering=BUFFER)
        except OSError as problem:
            words = f"cannot be written: {problem.strerror or problem}; name a file in a folder that exists"
            raise InputError(f"log {self.path}", words) from problem
