"""A machine profile: a kind of machine as measured or quoted.

Owns the profile's fields and the validation of their values. What they mean under load is `machine`'s business.
"""

from itertools import pairwise
from typing import Literal

import msgspec

from wattloom.energy.forecast import Provenance


class MachineProfile(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A machine type as measured or quoted."""

    name: str
    arch: str
    cores: int
    """Physical cores."""
    threads: int
    """Hardware threads; equal to `cores` without SMT."""
    memory: int
    """Bytes."""
    watts: tuple[tuple[float, float], ...] = ()
    """(cores in demand, watts), rising in cores, from 0. Empty: the draw is unknown."""
    smt_slowdown: float = 1.5
    """How much longer two tasks on one physical core run than one alone."""
    speed: float = 1.0
    """Speed of one core against the catalogue's reference: for forecasts on machines never tried."""
    tdp_w: float | None = None
    sleep_w: float | None = None
    """Draw when asleep. None: the machine cannot sleep."""
    wake_s: float = 0.0
    wake_j: float = 0.0
    provenance: Provenance = "estimated"
    quantity: Literal["wall", "package"] = "wall"
    """What the watts are of: the plug or the CPU package."""
    source: str = ""

    def problem(self) -> tuple[str, str] | None:
        """The first wrong field and what is wrong with it."""
        if not self.name:
            return "name", "must not be empty"
        if self.cores < 1:
            return "cores", f"must be at least 1, not {self.cores}"
        if not self.cores <= self.threads <= 8 * self.cores:
            return "threads", f"must be between cores and 8 times as many, not {self.threads}"
        if self.memory < 0:
            return "memory", "must not be negative"
        if not 1.0 <= self.smt_slowdown < float("inf"):
            return "smt_slowdown", f"must be at least 1, not {self.smt_slowdown}"
        if self.threads > self.cores and self.smt_slowdown > self.threads / self.cores:
            return "smt_slowdown", f"above {self.threads / self.cores}, more threads would do less work"
        if not 0.0 < self.speed < float("inf"):
            return "speed", f"must be positive, not {self.speed}"
        for field in ("wake_s", "wake_j", "sleep_w", "tdp_w"):
            value = getattr(self, field)
            if value is not None and not 0.0 <= value < float("inf"):
                return field, f"must be a number, not negative, not {value}"
        return self._curve_problem()

    def _curve_problem(self) -> tuple[str, str] | None:
        if not self.watts:
            return None
        cores = [point[0] for point in self.watts]
        if cores[0] != 0.0:
            return "watts", "the curve must begin at 0 cores"
        if any(not a < b < float("inf") for a, b in pairwise(cores)):
            return "watts", "cores must rise from point to point"
        if any(not 0.0 <= point[1] < float("inf") for point in self.watts):
            return "watts", "a power must be a number, not negative"
        if any(point[1] < self.watts[0][1] for point in self.watts):
            return "watts", "a busy machine cannot draw less than an idle one"
        if self.sleep_w is not None and self.sleep_w > self.watts[0][1]:
            return "sleep_w", "a sleeping machine cannot draw more than an idle one"
        return None
