"""The catalogue of machines: profiles with their sources, measured or estimated, and how they are written in TOML.

Owns `machines.toml`, the form of a machine in a file, and what is told of each in a list. Every curve names its source.
"""

from functools import cache
from importlib.resources import files
from typing import Annotated, Final

import msgspec

from wattloom.bounds import MOST_FILED_CORES
from wattloom.errors import InputError
from wattloom.machines.machine import curve_from_load
from wattloom.machines.profile import MachineFigures, MachineProfile
from wattloom.units import GIB

MOST_MEMORY_GIB: Final = 1e6
Cores = Annotated[int, msgspec.Meta(ge=1, le=MOST_FILED_CORES)]


class MachineEntry(MachineFigures, frozen=True, forbid_unknown_fields=True):
    """A machine as a file describes it."""

    arch: str
    """`x86_64` or `aarch64`, as `uname -m` says it."""
    cores: Cores
    """Physical cores."""
    threads: Cores | None = None
    """Hardware threads; left out: as many as cores."""
    memory_gib: float = 0.0
    cores_watts: list[tuple[float, float]] | None = None
    """Power curve as [cores in use, watts] pairs, from 0 cores."""
    load_watts: list[float] | None = None
    """Power curve as watts at equal steps of load, from idle to 100% of the throughput (SPECpower's form)."""

    def profile(self, name: str, field: str) -> MachineProfile:
        """The profile the engine works with. Errors name the field."""
        if not 0.0 <= self.memory_gib <= MOST_MEMORY_GIB:
            raise InputError(f"{field}.memory_gib", f"must be a number, not negative, not {self.memory_gib}")
        if self.cores_watts is not None and self.load_watts is not None:
            raise InputError(f"{field}.load_watts", "give either cores_watts or load_watts, not both")
        threads = self.threads if self.threads is not None else self.cores
        if self.load_watts is not None and len(self.load_watts) < 2:
            raise InputError(f"{field}.load_watts", "must have at least two steps")
        watts: tuple[tuple[float, float], ...] = tuple(self.cores_watts or ())
        profile = MachineProfile(
            name=name,
            arch=self.arch,
            cores=self.cores,
            threads=threads,
            memory=round(self.memory_gib * GIB),
            watts=watts,
            **self.figures(),
        )
        self._refuse(profile, field)
        for waking in ("wake_s", "wake_j"):
            if self.sleep_w is None and getattr(self, waking) != 0.0:
                raise InputError(f"{field}.{waking}", "means nothing without sleep_w: this machine cannot sleep")
        if self.load_watts is not None:
            curve = curve_from_load(tuple(self.load_watts), self.cores, threads, self.smt_slowdown)
            profile = msgspec.structs.replace(profile, watts=curve)
            self._refuse(profile, field)
        return profile

    def _refuse(self, profile: MachineProfile, field: str) -> None:
        """Raise what is wrong with the profile, under the name the field has in a file."""
        problem = profile.problem()
        if problem is not None:
            curve = "load_watts" if self.load_watts is not None else "cores_watts"
            name = {"watts": curve, "memory": "memory_gib"}.get(problem[0], problem[0])
            raise InputError(f"{field}.{name}", problem[1])


@cache
def machines() -> dict[str, MachineProfile]:
    """All machines of the catalogue, by name."""
    text = files("wattloom.machines").joinpath("machines.toml").read_bytes()
    entries = msgspec.toml.decode(text, type=dict[str, MachineEntry])
    return {name: entry.profile(name, name) for name, entry in sorted(entries.items())}


class MachineInfo(msgspec.Struct, frozen=True):
    """A machine of the catalogue, as it is listed."""

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


def machine_list() -> list[MachineInfo]:
    """The catalogue for people and programs."""
    return [_info(profile) for profile in machines().values()]


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
