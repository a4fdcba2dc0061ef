"""The power curve of a machine as long as nobody has measured it: the catalogue's, else the one that is estimated.

Owns the choice, for this machine and for nodes of a cluster, and how far it is off. The estimate is `curve_estimate`'s,
the same that `wattloom machines curve` tells.
"""

import re
from functools import lru_cache
from typing import Final

import msgspec

from wattloom.machines.catalogue import machines
from wattloom.machines.machine import curve_from_load
from wattloom.machines.processors import SAME_MODEL, Match, package_of, usual_cores
from wattloom.machines.profile import MachineProfile

THIS_MACHINE: Final = 0.05
"""Spread left when the curve was measured on the machine itself."""
FUNCTIONS_DIFFER: Final = 0.4
"""Spread of watts per CPU second among workloads on one machine. From kepler-model-db, node nx12: package and memory
watts above the lowest, over CPU time, in 809 busy intervals: relative standard deviation 0.43."""
VCPU: Final = 0.35
"""A virtual CPU is a core or half of one, and the guest cannot tell: half the logarithm of two."""


def match_of(profile: MachineProfile) -> Match:
    """What the curve of this machine's profile was taken from."""
    name = re.sub(r"-\d+vcpu$", "", profile.name)
    if profile.watts and profile.provenance != "estimated":
        idle, full = profile.watts[0][1], profile.watts[-1][1]
        if profile.provenance == "measured":
            return Match("profile", profile.name, idle, full - idle, THIS_MACHINE, 1)
        return Match("catalogue", profile.name, idle, full - idle, SAME_MODEL, 1)
    return package_of(name, profile.cores)


@lru_cache(maxsize=1024)  # of a cluster's nodes most are alike
def with_curve(bare: MachineProfile, sockets: int, virtual: bool) -> MachineProfile:
    """The profile with a power curve, and where that comes from."""
    known = None if virtual else _in_catalogue(bare.name, sockets)
    if known is None:
        return _estimated(bare, sockets, virtual)
    whole = known.cores == bare.cores and known.threads == bare.threads
    share = bare.cores / known.cores
    part = "" if whole else f"{bare.cores} of {known.cores} cores of "
    return msgspec.structs.replace(
        bare,
        name=known.name if whole else bare.name,
        watts=known.watts if whole else tuple((cores * share, watts * share) for cores, watts in known.watts),
        speed=known.speed,
        smt_slowdown=known.smt_slowdown if bare.threads > bare.cores else bare.smt_slowdown,
        tdp_w=None if known.tdp_w is None else known.tdp_w * share,
        provenance="modelled",
        quantity=known.quantity,
        source=f"{part}catalogue machine {known.name}: {known.source}",
    )


def curve_error(profile: MachineProfile) -> float:
    """How far a function's joules per CPU second may be off on this curve: one relative standard deviation."""
    virtual = profile.name.endswith("vcpu")
    if profile.provenance == "measured":
        curve = THIS_MACHINE
    elif profile.provenance == "modelled":
        curve = SAME_MODEL
    else:
        curve = match_of(profile).spread
    parts = (curve, FUNCTIONS_DIFFER, VCPU if virtual else 0.0)
    return float(sum(part * part for part in parts) ** 0.5)


def _in_catalogue(slug: str, sockets: int) -> MachineProfile | None:
    """The machine with this processor, if possible with as many."""
    found = [profile for name, profile in machines().items() if re.fullmatch(rf"{re.escape(slug)}-\d+s(-\w+)?", name)]
    exact = [profile for profile in found if f"-{sockets}s" in profile.name]
    return next(iter(exact or found), None)


def _estimated(bare: MachineProfile, sockets: int, virtual: bool) -> MachineProfile:
    """From the processor's own results, or its family's, or its kind's.

    A guest has a share of a package of its host; of how many cores that is it cannot see, so it is taken as the usual
    one of its family.
    """
    from wattloom.machines.curve_estimate import curve  # only here: machines of the catalogue need no model

    # Where guests are shown one thread per core, most hosts give them one hardware thread for it, half a core.
    cores = bare.cores * (0.5 if virtual and bare.threads == bare.cores and bare.arch == "x86_64" else 1.0)
    halves = ", a virtual CPU taken as half a core" if cores < bare.cores else ""
    size = (usual_cores(bare.name) if virtual else None) or max(1, round(bare.cores / sockets))
    one = package_of(bare.name, size)
    told = curve(cpu=bare.name, cores=None if virtual else cores, package=size)
    share = cores / one.cores if virtual else 1.0
    load_watts = tuple(share * watts for watts in told.watts)
    idle, active = one.idle_w / one.cores, one.active_w / one.cores
    return msgspec.structs.replace(
        bare,
        name=f"{bare.name}-{bare.threads}vcpu" if virtual else bare.name,
        watts=curve_from_load(load_watts, bare.cores, bare.threads, bare.smt_slowdown),
        provenance="estimated",
        quantity="wall",
        source=f"{idle:.2f} W idle and {active:.2f} W more when busy per core{halves}: {one.who}; between idle and "
        f"busy as learned from other machines ({told.nearness})",
    )
