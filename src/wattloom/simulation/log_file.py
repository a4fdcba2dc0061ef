"""The file that a simulated run is logged to.

Owns how it is opened and whose fault it is when it cannot be written. What stands in it is `history.log`'s.
"""

from contextlib import ExitStack
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import Any

from wattloom.errors import InputError
from wattloom.history.log import Header, LogWriter


class _LogFile(FileIO):
    """A disk that fills up is the log's error, not the policy's or the simulator's."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as problem:
            raise InputError(f"log {self.name}", f"cannot be written: {problem.strerror or problem}") from problem


def log_writer(stack: ExitStack, path: Path, header: Header) -> LogWriter:
    """The header is on disk before the first event, so that even a killed run leaves a log."""
    try:
        file = stack.enter_context(BufferedWriter(_LogFile(path, "wb")))
    except OSError as problem:
        raise InputError(
            f"log {path}", f"cannot be written: {problem.strerror or problem}; name a file in a folder that exists"
        ) from problem
    writer = LogWriter(file, header)
    file.flush()
    return writer
