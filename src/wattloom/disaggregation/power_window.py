"""What was drawn in a stretch of a recording, and what was known of watts at its end.

Owns the form of these figures: functions + idle + unattributed = meter. Their arithmetic is in `over_time`.
"""

from typing import Any

import msgspec


class FunctionWindow(msgspec.Struct, frozen=True):
    """What a function drew in a window."""

    function: str
    begun: int
    """Calls that began in it, as late as the meter shows them; those in a gap are left out."""
    seconds: float
    """That its calls ran, several at once counted severally, gaps left out."""
    joules: float
    watts: float
    """Of one running call, as known at the end of the window."""
    spread: float
    """One standard deviation of `watts`."""

    def to_json(self) -> dict[str, Any]:
        found = msgspec.structs.asdict(self)
        del found["function"]
        return found


class PowerWindow(msgspec.Struct, frozen=True):
    """A stretch of the recording, by the meter's clock. Functions that have not run yet are not in it."""

    start_s: float
    end_s: float
    metered_s: float
    """Less than its length where there is a gap in it: what was drawn there is unknown."""
    functions: list[FunctionWindow]
    idle_j: float
    unattributed_j: float
    meter_j: float
    idle_w: float
    idle_spread_w: float

    def of(self, function: str) -> FunctionWindow | None:
        """None: it has not run yet."""
        return next((each for each in self.functions if each.function == function), None)

    def to_json(self) -> dict[str, Any]:
        """Functions by their names."""
        found = msgspec.structs.asdict(self)
        found["functions"] = {each.function: each.to_json() for each in self.functions}
        return found
