"""The profile of a GPU as a file: what it drew and did at each share of its utilisation, and how that was found out.

Owns the form (JSON, the same version as profiles of CPUs, kind `gpu`) and what is wrong with one. Opens no files.
"""

from typing import Annotated, Any, Literal

import msgspec

from wattloom.energy.forecast import Provenance
from wattloom.files import UNREADABLE
from wattloom.machines.profile_file import Figure, Part, Power, Profile, Text, decode_as
from wattloom.metering.devices import Kind, Source

Share = Annotated[int, msgspec.Meta(ge=1, le=100)]
By = Literal["time", "units", "command"]


class GpuIdentity(Part, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Which device, and in what state it was."""

    uuid: Text
    name: str
    kind: Kind
    memory: Annotated[int, msgspec.Meta(ge=0)] | None = None
    limit_w: Figure | None = None
    """The power limit in force: with another one it is another curve."""
    note: str = ""


class GpuMeterUsed(Part, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Where the joules came from."""

    name: Text
    provenance: Provenance
    source: Source
    lag_s: Figure = 0.0


class GpuMethod(Part, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """How it was measured. Points are only put together if all of this is the same."""

    load: Text
    """The command, or `built in`."""
    by: By
    """What the share is of: the time, the multiprocessors, or whatever the command makes of it."""
    seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)]
    settle_s: Annotated[float, msgspec.Meta(ge=0, le=86_400)]
    tolerance: Annotated[float, msgspec.Meta(gt=0, le=1)]


class GpuPoint(Part, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The device at one share. Share 0 is idle."""

    share: Annotated[int, msgspec.Meta(ge=0, le=100)]
    power: Power | None = None
    """None: not known, see `problem`."""
    utilisation: Figure | None = None
    """What the driver said meanwhile, 0 to 1: a check that the load did what it was told."""
    ops_per_s: Figure | None = None
    """Work done per second, in the load's own unit. None: it does not say."""
    temperature_c: float | None = None
    settled: bool = True
    settle_s: Figure = 0.0
    others: Figure = 0.0
    """Utilisation by processes that are not our load."""
    problem: str = ""


class GpuProfile(Profile, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A whole file of one device."""

    wattloom_profile: Literal[1]
    kind: Literal["gpu"]
    name: Text
    began: Text
    finished: str = ""
    """When the last point was done. Empty: it was interrupted, and can be resumed."""
    device: GpuIdentity
    meter: GpuMeterUsed
    method: GpuMethod
    points: tuple[GpuPoint, ...] = ()

    def at(self, share: int) -> GpuPoint | None:
        return next((point for point in self.points if point.share == share), None)

    @property
    def idle(self) -> Power | None:
        found = self.at(0)
        return found.power if found is not None else None

    def problem(self) -> tuple[str, str] | None:
        shares = [point.share for point in self.points]
        for number, point in enumerate(self.points):
            if point.share in shares[:number]:
                return f"points[{number}]", f"share {point.share} is there twice"
            if point.power is None and not point.problem:
                return f"points[{number}].problem", "must say why the power is not known"
        return None


def is_gpu_profile(data: bytes) -> bool:
    """Whether the bytes of a file say that they are the profile of a GPU."""
    try:
        whole: Any = msgspec.json.decode(data)
    except UNREADABLE:
        return False
    return isinstance(whole, dict) and whole.get("kind") == "gpu"


def decode_gpu_profile(data: bytes, where: str) -> GpuProfile:
    """InputError names the file and the field."""
    return decode_as(GpuProfile, data, where)
