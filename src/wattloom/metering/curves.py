"""The power curve of a machine nobody has measured: from the catalogue if it knows the model, else from its relations.

Owns the generic figures and how far they are off. They are geometric means over published SPECpower_ssj2008 results
(SPEC's and their owners'), as collected by ccf-coefficients, March 2026: watts at the plug, idle and above idle at full
load, over the physical cores of machines with one or two packages. Shape and spread within a model are from the curves
to 2021 collected in green-coding-solutions/spec-power-raw-data.
"""

import re
from typing import Final

import msgspec

from wattloom.cluster.catalogue import machines
from wattloom.cluster.machine import curve_from_load
from wattloom.cluster.profile import MachineProfile


class PerCore(msgspec.Struct, frozen=True):
    """What one physical core of a kind of machine is worth."""

    kind: str
    names: re.Pattern[str]
    idle_w: float
    active_w: float
    """Above idle, with the whole machine busy."""
    spread: float
    """Standard deviation of the logarithm of `active_w` among the results."""
    results: int


KINDS: Final = (
    PerCore("AMD servers of 2019-2026", re.compile("epyc"), 0.71, 2.57, 0.24, 161),
    PerCore("Ampere servers of 2022-2024", re.compile("ampere|altra|neoverse"), 0.71, 0.91, 0.37, 7),
    PerCore(
        "machines of up to 8 cores of 2017-2026",
        re.compile("core-|ryzen|celeron|pentium|xeon-e3-|xeon-e-2"),
        2.69,
        7.76,
        0.25,
        40,
    ),
    PerCore("Intel servers of 2010-2016", re.compile("xeon-(e5|e7|x|l|w)"), 3.95, 11.64, 0.34, 168),
    PerCore("Intel servers of 2019-2026", re.compile("xeon"), 1.51, 4.89, 0.46, 195),
)
ANY: Final = PerCore("servers of 2017-2026", re.compile(""), 1.17, 3.99, 0.55, 445)

SHAPE: Final = (0.0, 0.169, 0.231, 0.293, 0.357, 0.426, 0.505, 0.603, 0.723, 0.873, 1.0)
"""Share of the watts above idle at 0, 10 ... 100% load: medians of 248 machines of 2017-2021 with more than 8 cores."""
SAME_MODEL: Final = 0.08
"""Spread of the watts above idle among machines with the same processors: 526 results of 77 models."""
THIS_MACHINE: Final = 0.05
"""Spread left when the curve was measured on the machine itself."""
FUNCTIONS_DIFFER: Final = 0.4
"""Spread of watts per CPU second among workloads on one machine. From kepler-model-db, node nx12: package and memory
watts above the lowest, over CPU time, in 809 busy intervals: relative standard deviation 0.43."""
VCPU: Final = 0.35
"""A virtual CPU is a core or half of one, and the guest cannot tell: half the logarithm of two."""


def kind_of(name: str) -> PerCore:
    """The nearest relations of a machine, by the slug of its processor."""
    return next((kind for kind in KINDS if kind.names.search(name)), ANY)


def with_curve(bare: MachineProfile, sockets: int, virtual: bool) -> MachineProfile:
    """The profile with a power curve, and where that comes from."""
    known = None if virtual else _in_catalogue(bare.name, sockets)
    if known is None:
        return _generic(bare, virtual)
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
    if profile.provenance == "measured":
        curve = THIS_MACHINE
    elif profile.provenance == "modelled":
        curve = SAME_MODEL
    else:
        curve = kind_of(profile.name).spread
    parts = (curve, FUNCTIONS_DIFFER, VCPU if profile.name.endswith("vcpu") else 0.0)
    return float(sum(part * part for part in parts) ** 0.5)


def _in_catalogue(slug: str, sockets: int) -> MachineProfile | None:
    """The machine with this processor, if possible with as many."""
    found = [profile for name, profile in machines().items() if re.fullmatch(rf"{re.escape(slug)}-\d+s(-\w+)?", name)]
    exact = [profile for profile in found if f"-{sockets}s" in profile.name]
    return next(iter(exact or found), None)


def _generic(bare: MachineProfile, virtual: bool) -> MachineProfile:
    kind = kind_of(bare.name)
    # Where guests are shown one thread per core, most hosts give them one hardware thread for it, half a core.
    cores = bare.cores * (0.5 if virtual and bare.threads == bare.cores and bare.arch == "x86_64" else 1.0)
    load_watts = tuple(cores * (kind.idle_w + kind.active_w * share) for share in SHAPE)
    halves = ", a virtual CPU taken as half a core" if cores < bare.cores else ""
    return msgspec.structs.replace(
        bare,
        name=f"{bare.name}-{bare.threads}vcpu" if virtual else bare.name,
        watts=curve_from_load(load_watts, bare.cores, bare.threads, bare.smt_slowdown),
        provenance="estimated",
        quantity="wall",
        source=(
            f"{kind.idle_w} W idle and {kind.active_w} W more when busy per core{halves}: "
            f"mean of {kind.results} SPECpower results, {kind.kind}"
        ),
    )
