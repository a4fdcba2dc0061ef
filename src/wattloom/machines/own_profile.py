"""This machine's own profile: where it lies, whether it is of this machine, and what is taken from it.

Owns the default place and the test of identity. How a profile becomes a curve is `machines.profile_curve`'s business;
how one is measured is the room `profiling`'s.
"""

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from wattloom.errors import InputError
from wattloom.files import read_bytes
from wattloom.machines.profile import MachineProfile
from wattloom.settings import state_folder

if TYPE_CHECKING:  # the form of a profile is loaded where there is one: most programs start without
    from wattloom.machines.profile_file import CpuProfile, MachineIdentity

SYSTEM: Final = Path("/sys/devices/system/cpu")
MACHINE_ID: Final = Path("/etc/machine-id")
DIGITS: Final = 12


class Here(msgspec.Struct, frozen=True):
    """What of this machine may be used, as the kernel tells."""

    model: str
    arch: str
    sockets: int
    cores: int
    threads: int
    memory: int
    virtual: bool


def profiles_folder() -> Path:
    """Where this user's profiles are, unless a command is told otherwise."""
    return state_folder() / "profiles"


def profile_path(name: str, machine_id: str, folder: Path | None = None) -> Path:
    """Where the profile of a machine is: by the name of its processor and its own id, as home folders are shared."""
    stem = f"{name}-{machine_id}" if machine_id else name
    return (profiles_folder() if folder is None else folder) / f"{stem}.json"


def read_profile(path: Path) -> "CpuProfile":
    """A profile from a file. InputError says what is wrong with it."""
    data = profile_bytes(path)
    from wattloom.machines.profile_file import decode_profile  # only where there is one: it takes time to load

    return decode_profile(data, str(path))


def profile_bytes(path: Path) -> bytes:
    """What stands in a file, whatever kind of profile it is."""
    try:
        return read_bytes(path)
    except OSError as problem:
        raise InputError(str(path), f"cannot be read: {problem.strerror}") from problem


def same_machine(profile: "MachineIdentity", here: Here, machine_id: str) -> str:
    """What of the machine is another than in the profile. Empty: it is the same one, or a part of it."""
    if profile.machine_id != machine_id:
        return "it is another system"
    for field in ("model", "arch", "virtual"):
        if getattr(profile, field) != getattr(here, field):
            return f"{field} was {getattr(profile, field)!r} and is {getattr(here, field)!r}"
    if here.cores > profile.cores or here.threads > profile.threads:
        return f"{profile.cores} cores with {profile.threads} threads were profiled, and there are more"
    return ""


def with_own(base: MachineProfile, here: Here, name: str, folder: Path | None, machine_id: Path) -> MachineProfile:
    """The machine with what its own profile knows better, if it has one.

    Watts only if they were measured: an estimated profile knows nothing that the estimate did not. Speed and the
    slow-down of siblings were counted in any case. A file that cannot be read is as good as none here; `wattloom
    profile show` says what is wrong with it.
    """
    identity = digest(machine_id)
    path = profile_path(name, identity, folder)
    try:
        profile = read_profile(path)
        return base if same_machine(profile.machine, here, identity) else _better(base, profile, path)
    except InputError:
        return base


def _better(base: MachineProfile, profile: "CpuProfile", path: Path) -> MachineProfile:
    from wattloom.machines.profile_curve import machine_profile, part_of, smt_slowdown, speed, usual_setting

    setting = usual_setting(profile)
    slowdown = smt_slowdown(profile, setting) or base.smt_slowdown
    better = msgspec.structs.replace(
        base,
        smt_slowdown=min(slowdown, max(1.0, base.threads / base.cores)) if base.threads > base.cores else slowdown,
        # The catalogue's speeds are all of one benchmark; ours is compared with them by one machine only.
        speed=base.speed if base.provenance == "modelled" else speed(profile, setting) or base.speed,
    )
    if profile.meter.provenance != "measured":
        return better
    own = part_of(machine_profile(profile), base.cores, base.threads)
    return msgspec.structs.replace(
        better, watts=own.watts, provenance=own.provenance, quantity=own.quantity, source=f"{own.source}: {path}"
    )


# -- the state a machine is in -----------------------------------------------------------------------------------------


def state_of(here: Here, facts: dict[str, str], proc: Path, system: Path, machine_id: Path) -> "MachineIdentity":
    """The machine with all that may change its power without being another machine."""
    from wattloom.machines.profile_file import MachineIdentity

    policy = system / "cpufreq" / "policy0"
    return MachineIdentity(
        **msgspec.structs.asdict(here),
        machine_id=digest(machine_id),
        microcode=facts.get("microcode", ""),
        kernel=text(proc / "sys" / "kernel" / "osrelease"),
        driver=text(policy / "scaling_driver"),
        governor=text(policy / "scaling_governor"),
        boost=boost(system),
    )


def digest(machine_id: Path) -> str:
    """Of the system's id, which itself is nobody's business. Empty: it has none."""
    found = text(machine_id)
    return hashlib.sha256(f"wattloom {found}".encode()).hexdigest()[:DIGITS] if found else ""


def boost(system: Path) -> bool | None:
    """Whether frequencies above the nominal one are allowed. None: the kernel does not say."""
    general, intel = text(system / "cpufreq" / "boost"), text(system / "intel_pstate" / "no_turbo")
    if general in ("0", "1"):
        return general == "1"
    return intel == "0" if intel in ("0", "1") else None


def text(path: Path) -> str:
    """What a file of the kernel says; empty: it is not there."""
    try:
        return re.sub(r"[^ -~]+", " ", path.read_text(errors="replace")).strip()
    except OSError:
        return ""
