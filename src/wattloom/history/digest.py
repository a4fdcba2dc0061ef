"""The digest of a run's decisions.

Owns what it is made of. Apart from the log because every placement passes here, and this can be compiled.
"""

from hashlib import sha256
from typing import Final

from wattloom.scheduling.instructions import Place

LINES_AT_ONCE: Final = 512


class Digest:
    """A fingerprint of decisions: equal digests, equal placements in equal order."""

    def __init__(self) -> None:
        self._hash: Final = sha256()
        self._lines: Final[list[str]] = []

    def add(self, place: Place) -> None:
        self._lines.append(f"{place.task} {place.attempt} {place.node} {place.variant}\n")
        if len(self._lines) >= LINES_AT_ONCE:
            self._take_in()

    def hex(self) -> str:
        self._take_in()
        return self._hash.hexdigest()[:32]

    def _take_in(self) -> None:
        self._hash.update("".join(self._lines).encode())
        self._lines.clear()
