"""What bags have shown so far: sums for each function in each bag, kept in a file so that a run can go on.

Owns the sums and the file's form. What they come to is `estimating`'s business.
"""

from pathlib import Path
from typing import Final, Literal

import msgspec

from wattloom.affinity.bags import Bag, Lots
from wattloom.energy.forecast import Provenance
from wattloom.errors import InputError
from wattloom.files import UNREADABLE, read_bytes

VERSION: Final = 1


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A part of the file: unknown fields are errors."""


class Trial(_Part, frozen=True, kw_only=True):
    """A function called alone, before all bags."""

    function: str
    variant: str = ""
    cold_start_s: float | None = None
    memory: int = 0
    times: int = 1
    """Executions that are made in one call, so that it is long enough to be metered well."""
    problem: str = ""
    """Why it is left out; empty: it works."""


class Seen(_Part, frozen=True, kw_only=True):
    """One function in one bag: sums over executions."""

    function: str
    executions: int
    seconds: float
    """Of a core of its own."""
    seconds_squared: float = 0.0
    """Of calls: each the seconds of one of its executions, squared, times their number."""
    calls: int = 0
    """Executions that were timed together are one."""
    joules: float = 0.0
    joules_squared: float = 0.0
    metered: int = 0
    """Executions that have joules."""
    doubt_j: float = 0.0
    """Sum of what the account says its figures may be off by, one standard deviation each."""
    waited_s: float = 0.0
    """For a core that others had."""
    problem: str = ""
    """Why it ended early."""


class SeenBag(_Part, frozen=True, kw_only=True):
    """One bag that was run."""

    number: int
    bag: Bag
    seen: tuple[Seen, ...]
    seconds: float
    other_cores: float = 0.0
    """That others kept busy meanwhile."""


class Setting(_Part, frozen=True, kw_only=True):
    """What makes bags comparable: bags of another setting are not gone on with."""

    functions: tuple[str, ...]
    """As they were named, with their arguments."""
    lots: Lots
    seconds: float
    machine: str
    cores: int
    meter: str
    provenance: Provenance
    quantity: Literal["wall", "package"]
    virtual: bool = False


class Bags(_Part, frozen=True, kw_only=True):
    """The file."""

    wattloom_bags: int = VERSION
    setting: Setting
    began: str
    finished: str = ""
    trials: tuple[Trial, ...] = ()
    bags: tuple[SeenBag, ...] = ()

    def trial(self, function: str) -> Trial | None:
        return next((each for each in self.trials if each.function == function), None)

    @property
    def able(self) -> list[Trial]:
        """Functions that work."""
        return [each for each in self.trials if not each.problem]


def read_bags(path: Path) -> Bags:
    """From a file. InputError names it."""
    try:
        found = msgspec.json.decode(read_bytes(path), type=Bags)
    except OSError as problem:
        raise InputError(str(path), f"cannot be read: {problem.strerror or problem}") from problem
    except UNREADABLE as problem:
        raise InputError(str(path), f"holds no bags ({problem}); --fresh begins anew") from problem
    if found.wattloom_bags != VERSION:
        raise InputError(str(path), f"version {found.wattloom_bags} of bags is not known, only {VERSION}")
    return found


def encode_bags(bags: Bags) -> bytes:
    return msgspec.json.format(msgspec.json.encode(bags), indent=1) + b"\n"
