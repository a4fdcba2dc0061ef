"""How long to wait before something is tried again, and how much may be done in what time.

Owns the growth and the chance in it, so that a thousand clients of a server that comes back do not ask in step; and
the budget that nobody's writing may exceed.
"""

import asyncio
import random
from typing import Final


class Backoff:
    """Doubles from `first_s` up to `longest_s`, each wait shortened by chance to as little as half."""

    def __init__(self, first_s: float = 0.2, longest_s: float = 30.0) -> None:
        self._first_s: Final = first_s
        self._longest_s: Final = longest_s
        self.times = 0

    def reset(self) -> None:
        self.times = 0

    def next_s(self) -> float:
        wait_s = min(self._longest_s, self._first_s * 2.0 ** min(self.times, 30))
        self.times += 1
        return wait_s * random.uniform(0.5, 1.0)

    async def wait(self) -> None:
        await asyncio.sleep(self.next_s())


class Budget:
    """`burst` at once, and `per_s` more each second, by whatever clock `take` is told the time of."""

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s: Final = per_s
        self._burst: Final = burst
        self._left = burst
        self._at = 0.0

    def left(self, clock: float) -> float:
        return min(self._burst, self._left + max(0.0, clock - self._at) * self._per_s)

    def take(self, clock: float) -> bool:
        """One of it, if there is one."""
        left = self.left(clock)
        if left < 1.0:
            return False
        self._left, self._at = left - 1.0, clock
        return True
