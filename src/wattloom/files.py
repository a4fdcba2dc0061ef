"""Files as users name them: read whole, up to a size; by lines, up to a length.

Owns the bounds: a path may be that of a device without an end, or of something else than was meant. Whoever reads says
whose file it is; what is raised here is an OSError, or one of `UNREADABLE` by those who decode.
"""

from collections.abc import Iterator
from errno import EFBIG
from pathlib import Path
from typing import IO, Final

import msgspec

MOST_BYTES: Final = 256 << 20
"""Of a file that is read whole: far more than any scenario, profile or recording has."""
LONGEST_LINE: Final = 1 << 20
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that hold no such value: also for such that are no text, or nested without end."""


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """All of a file."""
    with path.open("rb") as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise OSError(EFBIG, f"larger than {most / (1 << 20):g} MiB", str(path))
    return found


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """All of a file in UTF-8; a mark at its beginning that says so is no part of it."""
    return read_bytes(path, most).decode("utf-8-sig")


def lines(file: IO[str]) -> Iterator[str]:
    """The lines of an open file; one that is too long is cut, so that it is wrong and not without end."""
    return iter(lambda: file.readline(LONGEST_LINE), "")
