"""How long to wait before something is tried again.

Owns the growth and the chance in it, so that a thousand clients of a server that comes back do not ask in step.
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
