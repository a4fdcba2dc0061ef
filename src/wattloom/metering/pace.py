"""How often a source is asked: as often as it has news, and no oftener than it and we can bear.

Owns that arithmetic. Knows neither clocks nor sources.
"""

from typing import Final

SLOWEST_S: Final = 2.0
"""While somebody wants to know."""
DOZING_S: Final = 5.0
"""While nobody does, and after failures."""
OUR_SHARE: Final = 0.01
"""Of one core, for asking."""
ITS_SHARE: Final = 0.25
"""Of the time, in which the source is at work for us."""


class Pace:
    """The seconds to wait until the next question."""

    __slots__ = ("_cost_s", "_failures", "_least_s", "_wait_s", "bearable_s")

    def __init__(self, least_s: float) -> None:
        self._least_s = least_s
        self._wait_s = least_s
        self._cost_s = 0.0
        self._failures = 0
        self.bearable_s = least_s
        """What the last answers allow, by what they cost."""

    def answered(self, news: bool, took_s: float, cpu_s: float) -> None:
        """It answered. News: ask sooner; none: later. Both within what the answer has cost."""
        cost_s = max(cpu_s / OUR_SHARE, took_s * (1.0 - ITS_SHARE) / ITS_SHARE)
        # The first answer loads modules and opens connections, and a busy machine delays one now and then.
        self.bearable_s = max(self._least_s, min(cost_s, self._cost_s))
        self._cost_s = cost_s
        self._failures = 0
        slowest = max(SLOWEST_S, self.bearable_s)
        self._wait_s = min(max(self._wait_s * (0.5 if news else 1.25), self.bearable_s), slowest)

    def failed(self) -> None:
        """It did not: once is nothing, but if it goes on, give it time."""
        self._wait_s = min(self.bearable_s * 2.0**self._failures, max(DOZING_S, self.bearable_s))
        self._failures = min(self._failures + 1, 10)

    def wait_s(self, wanted: bool) -> float:
        return self._wait_s if wanted else max(DOZING_S, self._wait_s)
