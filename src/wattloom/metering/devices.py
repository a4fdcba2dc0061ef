"""What a meter of accelerators tells beside its joules: each device, and who uses it.

Owns the protocol and its records. Knows no driver. A device that cannot be read is Unknown by itself and takes no other
with it; only the sum over all, `read`, is unknown as long as one of its parts is.
"""

from typing import Literal, Protocol, runtime_checkable

import msgspec

from wattloom.energy.forecast import Unknown
from wattloom.metering.protocol import Meter, Sample

Kind = Literal["nvidia", "amd", "other"]
Source = Literal["counter", "power"]
"""Whence a device's joules: its own counter, or its power integrated by us."""


class DeviceReading(msgspec.Struct, frozen=True):
    """One device as it is now. What the driver does not tell is None."""

    index: int
    """The driver's number of it."""
    uuid: str
    """Which device it is, for good: numbers change when cards do."""
    name: str
    kind: Kind
    count: Sample | Unknown
    """Cumulative joules, from this meter's first good reading of the device on."""
    source: Source = "counter"
    watts: float | None = None
    utilisation: float | None = None
    """Share of the last moments in which something ran on it, 0 to 1. Not how much of it was used."""
    memory_used: int | None = None
    """Bytes."""
    memory_total: int | None = None
    limit_w: float | None = None
    """The power limit in force."""
    temperature_c: float | None = None
    lag_s: float = 0.0
    """How far behind the joules are on average: half the window over which the device averages its power."""
    note: str = ""
    """What else one should know of it: that it is cut into instances, say."""


class DeviceProcess(msgspec.Struct, frozen=True):
    """A process that has a context on a device."""

    pid: int
    """As the driver counts them: in a container it may be the host's number."""
    device: str
    """The device's uuid."""
    utilisation: float | None = None
    """Share of the time since the last call in which its kernels ran, 0 to 1. None: the driver does not tell."""
    memory_bytes: int | None = None
    """Of the device's memory. None: the driver does not tell."""


@runtime_checkable
class DeviceMeter(Meter, Protocol):
    """A meter of quantity "device": `read` counts the sum over all visible devices.

    It is for one reader: what happened since "the last call" is since anybody's.
    """

    def devices(self, now: float) -> tuple[DeviceReading, ...]:
        """Every visible device. Empty: the driver does not answer at all, and `available()` says why."""

    def processes(self, now: float) -> tuple[DeviceProcess, ...]:
        """Who has a context on which device. Utilisation is of the time since the last call with an earlier `now`."""
