"""Function profiles: how fast a function is on a core of a machine, and what one execution costs there.

Owns the figures (in the ISA study E, executions per second and core, and W, energy per execution), their table by
function and machine, and its file. Who finds them out is `profiling`'s or `history`'s business; who plans by them,
`planning`'s.
"""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

import msgspec

from wattloom.bounds import LONGEST_S, MOST_COUNT, MOST_JOULES
from wattloom.energy.forecast import Provenance
from wattloom.errors import InputError
from wattloom.files import UNREADABLE, read_bytes
from wattloom.units import JOULES_PER_WATT_HOUR

VERSION: Final = 1
MARK: Final = "wattloom_function_profiles"
"""By this field a file is known."""
MOST_PER_CORE_S: Final = 1e9
"""Executions per second that one core can be believed to make."""


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mean and where it lies nine times out of ten; both ends equal to it: nothing is known of its spread."""

    value: float
    low: float
    high: float

    def problem(self, most: float) -> str:
        """What is wrong with it; empty: nothing."""
        if not 0.0 < self.value <= most:
            return f"must be positive, at most {most:g}, not {self.value}"
        if not 0.0 <= self.low <= self.value <= self.high <= 2.0 * most:
            return f"must lie between its ends, not {self.value} between {self.low} and {self.high}"
        return ""


def exact(value: float) -> Figure:
    """A figure without a spread."""
    return Figure(value, value, value)


class FunctionProfile(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """One function on one kind of machine, among others as they come."""

    function: str
    machine: str
    """Name of the machine's profile."""
    per_core_s: Figure
    """E: executions per second on a core of its own, all other cores busy."""
    joules: Figure | None = None
    """W: of one execution, without what the machine draws idle. None: not known (never 0)."""
    variant: str = ""
    """The build that ran; empty: there is one only."""
    cold_start_s: float | None = None
    """From nothing to the first execution's beginning. None: not known."""
    memory: int = 0
    """Bytes that one instance holds; 0: not known."""
    executions: int = 0
    """That these figures rest on."""
    bags: int = 0
    """Sets of neighbours it ran among; 0: not taken in bags."""
    provenance: Provenance = "estimated"
    """Of the joules."""
    quantity: Literal["wall", "package"] = "package"
    """What the joules are of."""
    source: str = ""

    @property
    def watt_hours(self) -> float | None:
        """W as the ISA study has it."""
        return None if self.joules is None else self.joules.value / JOULES_PER_WATT_HOUR

    def problem(self) -> tuple[str, str] | None:
        """The first wrong field and what is wrong with it."""
        for name in ("function", "machine"):
            if not getattr(self, name):
                return name, "must not be empty"
        if wrong := self.per_core_s.problem(MOST_PER_CORE_S):
            return "per_core_s", wrong
        if self.joules is not None and (wrong := self.joules.problem(MOST_JOULES)):
            return "joules", wrong
        if self.cold_start_s is not None and not 0.0 <= self.cold_start_s <= LONGEST_S:
            return "cold_start_s", f"must not be negative, at most {LONGEST_S:g} s, not {self.cold_start_s}"
        for name in ("memory", "executions", "bags"):
            if not 0 <= getattr(self, name) <= MOST_COUNT:
                return name, f"must not be negative, not {getattr(self, name)}"
        return None


class FunctionProfiles(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, dict=True):
    """Functions on machines, each pair (and build) once."""

    rows: tuple[FunctionProfile, ...] = ()
    wattloom_function_profiles: int = VERSION

    @cached_property
    def by_pair(self) -> dict[tuple[str, str], FunctionProfile]:
        """By function and machine; of several builds the one that costs least, unknown joules last."""
        found: dict[tuple[str, str], FunctionProfile] = {}
        for row in self.rows:
            pair = row.function, row.machine
            if pair not in found or _cost(row) < _cost(found[pair]):
                found[pair] = row
        return found

    @cached_property
    def builds(self) -> dict[tuple[str, str], tuple[FunctionProfile, ...]]:
        """All builds by function and machine, in the order of the rows."""
        found: dict[tuple[str, str], list[FunctionProfile]] = {}
        for row in self.rows:
            found.setdefault((row.function, row.machine), []).append(row)
        return {pair: tuple(rows) for pair, rows in found.items()}

    def of_build(self, function: str, machine: str, variant: str) -> FunctionProfile | None:
        """Of this build; where it has no profile, of the one that costs least."""
        rows = self.builds.get((function, machine), ())
        return next((row for row in rows if row.variant == variant), self.by_pair.get((function, machine)))

    @property
    def functions(self) -> list[str]:
        return list(dict.fromkeys(row.function for row in self.rows))

    @property
    def machines(self) -> list[str]:
        return list(dict.fromkeys(row.machine for row in self.rows))

    def merged(self, others: Iterable[FunctionProfile]) -> "FunctionProfiles":
        """With these in place of those of the same function, machine and build."""
        rows = {(row.function, row.machine, row.variant): row for row in self.rows}
        rows.update(((row.function, row.machine, row.variant), row) for row in others)
        return FunctionProfiles(tuple(rows.values()))

    def problem(self) -> tuple[str, str] | None:
        """The first wrong field and what is wrong with it."""
        if self.wattloom_function_profiles != VERSION:
            return (
                "wattloom_function_profiles",
                f"version {self.wattloom_function_profiles} is not known, only {VERSION}",
            )
        seen: set[tuple[str, str, str]] = set()
        for number, row in enumerate(self.rows):
            if wrong := row.problem():
                return f"rows[{number}].{wrong[0]}", wrong[1]
            key = row.function, row.machine, row.variant
            if key in seen:
                return f"rows[{number}]", f"{row.function} on {row.machine} is there twice"
            seen.add(key)
        return None


def _cost(row: FunctionProfile) -> tuple[bool, float]:
    return row.joules is None, row.joules.value if row.joules is not None else -row.per_core_s.value


def read_function_profiles(path: Path) -> FunctionProfiles:
    """From a file. InputError names the file and the field."""
    try:
        found = msgspec.json.decode(read_bytes(path), type=FunctionProfiles)
    except OSError as problem:
        raise InputError(str(path), f"cannot be read: {problem.strerror or problem}") from problem
    except msgspec.ValidationError as problem:
        words, _, where = str(problem).partition(" - at `$")
        field = where.rstrip("`").lstrip(".")
        raise InputError(f"{path}: {field}" if field else str(path), words) from problem
    except UNREADABLE as problem:
        raise InputError(str(path), f"holds no function profiles: {problem}") from problem
    if wrong := found.problem():
        raise InputError(f"{path}: {wrong[0]}", wrong[1])
    return found


def encode_function_profiles(profiles: FunctionProfiles) -> bytes:
    """As they stand in a file: the version first, indented; the same profiles give the same bytes."""
    whole = {MARK: profiles.wattloom_function_profiles, "rows": profiles.rows}
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"
