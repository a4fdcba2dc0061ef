"""What a meter is: the one seam behind which a dozen sources of joules look the same.

Owns the protocol and the reading. A meter may read files; it has no clock: the time of a reading is handed in. What
cannot be read is `Unknown` with the reason, never zero.
"""

from collections.abc import Callable
from typing import Literal, Protocol, runtime_checkable

import msgspec

from wattloom.cluster.profile import MachineProfile
from wattloom.energy.forecast import Provenance, Unknown

Quantity = Literal["wall", "package", "device"]
"""What the joules are of: the plug; the CPU packages with their memory; or accelerators, which are beside these."""


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


@runtime_checkable
class Meter(Protocol):
    """A source of joules. Counts from the first good reading on; asked by one thread."""

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


MakeMeter = Callable[[MachineProfile], Meter]
"""What an entry point of the group `wattloom.meters` names: called with the profile of this machine."""
