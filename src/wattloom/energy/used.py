"""What a number of calls used together: seconds and joules, with what their spread can be worked out from.

Owns the sums. Two of them can be added, so figures of many runs come together without keeping the calls.
"""

from math import sqrt
from typing import Final

import msgspec

from wattloom.bounds import LATEST_S, MOST_COUNT, MOST_SUM, out_of_bounds

_MOST: Final = {
    "calls": MOST_COUNT,
    "metered": MOST_COUNT,
    "seconds_squared": MOST_SUM**2,
    "joules_squared": MOST_SUM**2,
}
"""Where it is not `MOST_SUM`."""


class Used(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Sums over calls that ended."""

    calls: int = 0
    seconds: float = 0.0
    seconds_squared: float = 0.0
    joules: float = 0.0
    joules_squared: float = 0.0
    metered: int = 0
    """How many of the calls have joules."""
    core_s: float = 0.0
    """Seconds times the cores asked for."""

    def __add__(self, other: "Used") -> "Used":
        return Used(*(getattr(self, field) + getattr(other, field) for field in self.__struct_fields__))

    @property
    def mean_s(self) -> float:
        return self.seconds / self.calls if self.calls else 0.0

    @property
    def spread_s(self) -> float:
        """Standard deviation of a call's seconds."""
        return _spread(self.calls, self.seconds, self.seconds_squared)

    @property
    def mean_j(self) -> float | None:
        return self.joules / self.metered if self.metered else None

    @property
    def spread_j(self) -> float:
        return _spread(self.metered, self.joules, self.joules_squared)

    def problem(self) -> tuple[str, str] | None:
        """The first wrong field and what is wrong with it."""
        for field in self.__struct_fields__:
            wrong = out_of_bounds(getattr(self, field), _MOST.get(field, MOST_SUM))
            if wrong:
                return field, wrong
        if not self.mean_s <= LATEST_S:
            return "seconds", f"must be at most {LATEST_S:g} s for each of the {self.calls} calls, not {self.seconds}"
        return ("metered", "cannot be more than the calls") if self.metered > self.calls else None


def _spread(count: int, total: float, squared: float) -> float:
    if count < 2:
        return 0.0
    return sqrt(max(0.0, squared - total * total / count) / (count - 1))
