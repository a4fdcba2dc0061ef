"""What a meter is: the one seam behind which a dozen sources of joules look the same.

Owns the protocol and the reading. A meter may read files; it has no clock: the time of a reading is handed in. What
cannot be read is `Unknown` with the reason, never zero.
"""

from collections.abc import Callable
from typing import Literal, Protocol, runtime_checkable

import msgspec

from wattloom.energy.forecast import Provenance, Unknown

Quantity = Literal["wall", "package", "device", "share"]
"""What the joules are of: the plug; the CPU packages with their memory; accelerators, which are beside these; or what a
host ascribes to this virtual machine."""


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One good reading."""

    time: float
    """The time the count is of, in seconds: the one that was handed in. A slow source, which is read in the background,
    gives the time of its last reading, which is earlier."""
    joules: float
    """Cumulative, since an arbitrary zero. Never falls within an epoch; wraps are undone."""
    resolution_j: float
    """One standard deviation of this reading alone: the step of the counter and when it was last brought up to date."""
    busy_s: float | None = None
    """Cumulative CPU seconds that were busy in what is metered, where the meter knows it better than /proc/stat."""
    epoch: int = 0
    """Readings of two epochs must not be subtracted: the count broke off between them."""


class Zone(msgspec.Struct, frozen=True, gc=False):
    """A part that a meter sees: a package, its memory, a rail, a device."""

    name: str
    joules: float
    """Cumulative, since the meter's first good reading of it."""
    inside: str = ""
    """The zone it is a part of, which holds its joules too. Empty: of none."""
    counted: bool = True
    """Whether it is in the meter's sum. Zones overlap: the others must not be added to it."""


@runtime_checkable
class Meter(Protocol):
    """A source of joules. Counts from the first good reading on; asked by one thread.

    Beside what is listed a meter may have: `period_s`, `only_named` (see the functions of those names below) and
    `zones() -> list[Zone]`, the parts as of the last good reading.
    """

    name: str
    summary: str
    """One line."""
    quantity: Quantity
    provenance: Provenance
    model_error: float
    """How far one function's joules per CPU second are from the machine's mean: one relative standard deviation."""

    def available(self) -> str | None:
        """None if it works here; else what is missing and how to allow it, in words."""

    def read(self, now: float) -> Sample | Unknown:
        """The count at `now`. Unknown if the read failed, the count went backwards beyond a wrap, or it jumped."""


MakeMeter = Callable[..., Meter]
"""What an entry point of the group `wattloom.meters` names: called with the profile of this machine; and, if it has a
parameter `settings` (`wattloom.setting_groups`), with what is set under the meter's name."""


def period_s(meter: Meter) -> float:
    """How old a figure of this meter may be, in seconds, since its source has a new one but so often. 0: always new."""
    return float(getattr(meter, "period_s", 0.0))


def only_named(meter: Meter) -> bool:
    """Whether it is used only where somebody names it, since it is not of this machine as it is now."""
    return bool(getattr(meter, "only_named", False))


def zones(meter: Meter) -> list[Zone]:
    """The parts a meter sees, if it sees any."""
    seen = getattr(meter, "zones", None)
    return list(seen()) if callable(seen) else []
