"""Warnings of the library as a command says them: a line each on stderr.

Owns the form. Errors, which end a command, are `failing`'s.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from wattloom.cli.printing import say


class _Said(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(f"{record.levelname.lower()}: {self.format(record)}", err=True)


@contextmanager
def warnings_in_words() -> Iterator[None]:
    """While a command runs, what the library warns of is said as the command's own words."""
    library, said = logging.getLogger("wattloom"), _Said(logging.WARNING)
    library.addHandler(said)
    try:
        yield
    finally:
        library.removeHandler(said)
