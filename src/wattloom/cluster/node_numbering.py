"""The numbers of nodes: their names in order, numbered without gaps.

Owns the order and the numbers. A node that comes last by name takes the next number; one that comes in between makes
the numbers stale, and they are given out anew when the order is next asked for, once for however many came.
"""

from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Final

SLACK: Final = 1_024
"""Numbers of nodes that have gone, beyond as many as are left."""


class NodeNumbering:
    """Names in order. A number says where in it; only while the numbering is not stale do numbers follow the names."""

    def __init__(self, renumber: Callable[[], None]) -> None:
        self.names: list[str] = []
        self.at: list[str] = []
        """Names by number; of nodes that have gone, what they were called."""
        self.stale: bool = False
        self._renumber: Final = renumber

    def add(self, name: str) -> int:
        """Its number."""
        if self.names and name < self.names[-1]:
            insort(self.names, name)
            self.stale = True
        else:
            self.names.append(name)
        self.at.append(name)
        return len(self.at) - 1

    def remove(self, name: str) -> None:
        del self.names[bisect_left(self.names, name)]
        if len(self.at) > 2 * len(self.names) + SLACK:
            self.stale = True

    def settle(self) -> None:
        """Give out the numbers anew, in the order of the names."""
        self.at = list(self.names)
        self.stale = False
        self._renumber()
