"""Which functions the extender's engine still needs to know.

Owns their end: most pods of a controller of their own come once, and a cluster makes such controllers for ever. The
last functions that nobody calls are kept with what was learned of them, for they may come back; older ones are not.
"""

from itertools import islice
from typing import Final

from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.scheduling import events as ev

MOST_IDLE: Final = 2_000
"""Functions that are kept although no pod calls them; when there are more, a tenth of them is forgotten at once."""
MOST_ENDED: Final = 1_000
"""Names of tasks that ended: here none comes back."""


class Functions:
    """Told of calls by `called` and `left`, and by `asked` of functions that are about to be looked at."""

    def __init__(self, driver: TimedDriver) -> None:
        self._driver: Final = driver
        self._calls: Final[dict[str, int]] = {}
        self._idle: Final[dict[str, None]] = {}
        """The oldest first."""

    def asked(self, function: str) -> None:
        if function not in self._calls:
            self._rest(function)

    def called(self, function: str) -> None:
        self._idle.pop(function, None)
        self._calls[function] = self._calls.get(function, 0) + 1

    def left(self, function: str) -> None:
        self._calls[function] -= 1
        if not self._calls[function]:
            del self._calls[function]
            self._rest(function)

    def _rest(self, function: str) -> None:
        self._idle.pop(function, None)
        self._idle[function] = None
        if len(self._idle) > MOST_IDLE:
            oldest = tuple(islice(self._idle, MOST_IDLE // 10))
            for name in oldest:
                del self._idle[name]
            known = self._driver.engine.ledger.functions
            there = tuple(name for name in oldest if name in known)
            self._driver.tell(ev.FunctionsForgotten(self._driver.now, there))
