"""A machine profile: a kind of machine as measured or quoted.

Owns the profile's fields, which of them all written forms of a machine share (catalogue, custom resource), and the
validation of their values. What they mean under load is `machine`'s business.
"""

from itertools import pairwise
from typing import Any, Final, Literal

import msgspec

from wattloom.bounds import LONGEST_S, MOST_CORES, MOST_COUNT, MOST_JOULES, MOST_SPEED, MOST_WATTS, out_of_bounds
from wattloom.energy.forecast import Provenance

MOST_THREADS: Final = 8
"""Of one core."""


class MachineFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a machine in the same words everywhere; its size and its curve have several forms."""

    smt_slowdown: float = 1.5
    """How much longer two tasks on one physical core run than one alone."""
    speed: float = 1.0
    """Speed of one core against the catalogue's reference: for forecasts on machines never tried, and in a scenario a
    function's `work_s` is divided by it."""
    tdp_w: float | None = None
    sleep_w: float | None = None
    """Draw when asleep. None: the machine cannot sleep."""
    wake_s: float = 0.0
    wake_j: float = 0.0
    provenance: Provenance = "estimated"
    quantity: Literal["wall", "package"] = "wall"
    """What the watts are of: the plug or the CPU package."""
    source: str = ""
    """Where the figures come from; a SPECpower curve with its result id."""

    def figures(self) -> dict[str, Any]:
        """These, by name, for another form of the same machine."""
        return {name: getattr(self, name) for name in MachineFigures.__struct_fields__}


class MachineProfile(MachineFigures, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
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

    def problem(self) -> tuple[str, str] | None:
        """The first wrong field and what is wrong with it."""
        if not self.name:
            return "name", "must not be empty"
        if not 1 <= self.cores <= MOST_CORES:
            return "cores", f"must be at least 1, at most {MOST_CORES}, not {self.cores}"
        if not self.cores <= self.threads <= min(MOST_THREADS * self.cores, MOST_CORES):
            words = f"must be between cores and {MOST_THREADS} times as many, at most {MOST_CORES}"
            return "threads", f"{words}, not {self.threads}"
        if not 0 <= self.memory <= MOST_COUNT:
            return "memory", f"must not be negative, at most {MOST_COUNT} bytes, not {self.memory}"
        if not 1.0 <= self.smt_slowdown <= MOST_SPEED:
            return "smt_slowdown", f"must be at least 1, at most {MOST_SPEED:g}, not {self.smt_slowdown}"
        if self.threads > self.cores and self.smt_slowdown > self.threads / self.cores:
            return "smt_slowdown", f"above {self.threads / self.cores}, more threads would do less work"
        if not 1.0 / MOST_SPEED <= self.speed <= MOST_SPEED:
            return "speed", f"must be between {1.0 / MOST_SPEED} and {MOST_SPEED:.0f}, not {self.speed}"
        for field, value, most, unit in (
            ("wake_s", self.wake_s, LONGEST_S, " s"),
            ("wake_j", self.wake_j, MOST_JOULES, " J"),
            ("sleep_w", self.sleep_w, MOST_WATTS, " W"),
            ("tdp_w", self.tdp_w, MOST_WATTS, " W"),
        ):
            wrong = "" if value is None else out_of_bounds(value, most, unit)
            if wrong:
                return field, wrong
        if self.wake_j > MOST_WATTS * self.wake_s > 0.0:
            return "wake_j", f"{self.wake_j} J in {self.wake_s} s are more than {MOST_WATTS:.0f} W"
        return self._curve_problem()

    def _curve_problem(self) -> tuple[str, str] | None:
        if not self.watts:
            return None
        cores = [point[0] for point in self.watts]
        if cores[0] != 0.0:
            return "watts", "the curve must begin at 0 cores"
        if any(not a < b for a, b in pairwise(cores)):
            return "watts", "cores must rise from point to point"
        if cores[-1] > MOST_CORES:
            return "watts", f"must be for at most {MOST_CORES} cores, not {cores[-1]}"
        for _, watts in self.watts:
            wrong = out_of_bounds(watts, MOST_WATTS, " W")
            if wrong:
                return "watts", wrong
        if any(point[1] < self.watts[0][1] for point in self.watts):
            return "watts", "a busy machine cannot draw less than an idle one"
        if self.sleep_w is not None and self.sleep_w > self.watts[0][1]:
            return "sleep_w", "a sleeping machine cannot draw more than an idle one"
        return None
