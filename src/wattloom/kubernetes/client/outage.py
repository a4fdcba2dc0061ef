"""That an API server is not heard: said once for all that listen to it, and once more when it is heard again.

Owns what is said of it. Every listener would have its own line otherwise, several times a second.
"""

import logging
from collections.abc import Hashable
from typing import Final

LOG: Final = logging.getLogger(__name__)


class Outage:
    """Told by each listener, under its name, when it begins and when it ends for that one."""

    def __init__(self) -> None:
        self._said = False
        self._deaf: Final[set[Hashable]] = set()

    def begins(self, listener: Hashable, error: Exception) -> None:
        news = not self._said and listener not in self._deaf
        LOG.log(logging.WARNING if news else logging.DEBUG, "the API server is not heard: %s: %s", listener, error)
        self._said = self._said or news
        self._deaf.add(listener)

    def ends(self, listener: Hashable) -> None:
        if listener in self._deaf:
            self._deaf.discard(listener)
            LOG.log(logging.INFO if self._said else logging.DEBUG, "the API server is heard again: %s", listener)
            self._said = False
