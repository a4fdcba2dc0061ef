"""The catalogue of machines as a list for people and programs.

Owns what is told of each. The figures are `catalogue`'s.
"""

import msgspec

from wattloom.cluster.catalogue import machines as catalogue
from wattloom.cluster.profile import MachineProfile
from wattloom.units import GIB


class MachineInfo(msgspec.Struct, frozen=True):
    """A machine of the catalogue."""

    name: str
    arch: str
    cores: int
    threads: int
    memory_gib: float
    idle_w: float | None
    """None: the draw is unknown."""
    full_w: float | None
    sleep_w: float | None
    """None: it cannot sleep."""
    speed: float
    provenance: str
    source: str


def machines() -> list[MachineInfo]:
    """The catalogue of machines."""
    return [_info(profile) for profile in catalogue().values()]


def _info(profile: MachineProfile) -> MachineInfo:
    return MachineInfo(
        name=profile.name,
        arch=profile.arch,
        cores=profile.cores,
        threads=profile.threads,
        memory_gib=profile.memory / GIB,
        idle_w=profile.watts[0][1] if profile.watts else None,
        full_w=profile.watts[-1][1] if profile.watts else None,
        sleep_w=profile.sleep_w,
        speed=profile.speed,
        provenance=profile.provenance,
        source=profile.source,
    )
