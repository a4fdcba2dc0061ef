"""A plan: functions with wanted rates, servers, and who runs where.

Owns the values that a plan is made of and made from, their checks, and the plan's digest. Solving it and its file are
its neighbours' business.
"""

from hashlib import blake2b
from typing import Final, Literal

import msgspec

from wattloom.bounds import MOST_COUNT, MOST_FILED_CORES, MOST_WATTS

VERSION: Final = 1
MOST_RATE: Final = 1e12
"""Requests per second of one function."""

Goal = Literal["energy", "cores", "weighted"]


class Demand(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A function and how often it must be possible to call it."""

    function: str
    rate: float
    """R: requests per second."""
    memory: int = 0
    """Bytes that each core of it needs; 0: not counted."""
    arch: tuple[str, ...] = ()
    """Architectures it runs on; empty: any."""
    labels: dict[str, str] = {}
    """Labels that its server must have."""
    cpu: float = 1.0
    """Cores that one execution keeps busy."""

    def problem(self) -> tuple[str, str] | None:
        """The first wrong field and what is wrong with it."""
        if not self.function:
            return "function", "must not be empty"
        if not 0.0 <= self.rate <= MOST_RATE:
            return "rate", f"must not be negative, at most {MOST_RATE:g}/s, not {self.rate}"
        if not 0 <= self.memory <= MOST_COUNT:
            return "memory", f"must not be negative, not {self.memory}"
        if not 0.0 < self.cpu <= MOST_FILED_CORES:
            return "cpu", f"must be positive, not {self.cpu}"
        return None


class Server(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """One server that functions can be put on."""

    name: str
    machine: str
    """Name of its machine's profile."""
    cores: int
    """C: what may be given out of it."""
    memory: int = 0
    """Bytes; 0: not counted."""
    arch: str = ""
    labels: dict[str, str] = {}
    idle_w: float | None = None
    """What it draws when it is on and does nothing. None: not known."""
    off_w: float = 0.0
    """What it draws when it is off."""
    may_be_off: bool = False
    """If nothing runs on it."""

    def problem(self) -> tuple[str, str] | None:
        """The first wrong field and what is wrong with it."""
        for name in ("name", "machine"):
            if not getattr(self, name):
                return name, "must not be empty"
        if not 0 < self.cores <= MOST_FILED_CORES:
            return "cores", f"must be positive, at most {MOST_FILED_CORES}, not {self.cores}"
        if not 0 <= self.memory <= MOST_COUNT:
            return "memory", f"must not be negative, not {self.memory}"
        for name in ("idle_w", "off_w"):
            watts = getattr(self, name)
            if watts is not None and not 0.0 <= watts <= MOST_WATTS:
                return name, f"must not be negative, at most {MOST_WATTS:g} W, not {watts}"
        return None


class Assignment(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A function (or a part of its rate) on a server."""

    function: str
    server: str
    rate: float
    """Of this part, in requests per second."""
    cores: int
    """A: whole cores that are its own there."""
    watts: float | None
    """What its executions draw: joules of one, times the rate. None: not known."""
    per_core_s: float
    """E that was planned with."""
    variant: str = ""


class Plan(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Who runs where, what that costs, and how far that can be from the best."""

    policy: str
    """`energy-aware`, `core-aware`, `weighted`, `round-robin`, `x86-first`, `arm-first`."""
    goal: Goal
    assignments: tuple[Assignment, ...]
    off: tuple[str, ...] = ()
    """Servers that are off."""
    servers: tuple[Server, ...] = ()
    demand: tuple[Demand, ...] = ()
    active_w: float | None = None
    """What all executions draw. None: of one of them that is not known."""
    idle_w: float | None = None
    """What the servers that are on draw idle, and those that are off."""
    cores: int = 0
    objective: float
    """In the goal's measure: watts, cores, or both weighted."""
    bound: float | None = None
    """No plan can be below this, proven. None: nothing was proven."""
    moves: int = 0
    """Functions that are elsewhere than in the plan this one was made from."""
    move_price: float = 0.0
    """Of each of them, in the goal's measure; the objective holds it."""
    quantile: float = 0.5
    """Of each E that was planned with: 0.5 is its middle."""
    core_price_w: float = 1.0
    """Goal `weighted`: watts that a core was worth."""
    seconds: float = 0.0
    """It took to find."""
    notes: tuple[str, ...] = ()
    """What a reader should know beside the figures."""
    wattloom_plan: int = VERSION

    @property
    def gap(self) -> float | None:
        """How far above the best possible the plan may be, as a part of the bound: 0 is proven best. None: nobody can
        say, for there is no bound, or the plan is above one of 0."""
        if self.bound is None:
            return None
        if self.objective <= self.bound:
            return 0.0
        return (self.objective - self.bound) / self.bound if self.bound > 0.0 else None

    @property
    def digest(self) -> str:
        """Names the plan in a log: of what it says is to be done, not of how it was found."""
        said = msgspec.json.encode((self.assignments, self.off))
        return blake2b(said, digest_size=16).hexdigest()
