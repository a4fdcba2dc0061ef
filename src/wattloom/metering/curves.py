"""The power curve of this machine before anything was measured: the catalogue, else its processor, else its relations.

Owns the choice, the generic figures and how far each is off. Figures are over published SPECpower_ssj2008 results
(SPEC's and their owners'), as collected by ccf-coefficients, March 2026: watts at the plug, idle and above idle at full
load. Shapes are from the curves to 2021 collected in green-coding-solutions/spec-power-raw-data.
"""

import re
from statistics import median
from typing import Final, Literal

import msgspec

from wattloom.cluster.catalogue import machines
from wattloom.cluster.machine import curve_from_load
from wattloom.cluster.processors import Known, known_processors, model_slug, named
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
SAME_FAMILY: Final = 0.25
"""Spread of the watts above idle told from other models of the family: 140 models since 2010, each left out once. By
kind alone it was 0.48 on the same models."""
VCPU: Final = 0.35
"""A virtual CPU is a core or half of one, and the guest cannot tell: half the logarithm of two."""
FEWEST_RELATIONS: Final = 3
"""Models of a family from which its own figures are better than those of the kind."""
SIZE: Final = 0.5
"""Watts of packages of one family grow with the square root of their cores: the rest is the same silicon and board."""


class Match(msgspec.Struct, frozen=True):
    """What a machine's curve was taken from."""

    by: Literal["profile", "catalogue", "processor", "family", "kind"]
    name: str
    idle_w: float
    """Of one package where `by` is not the catalogue."""
    active_w: float
    spread: float
    """One standard deviation of the logarithm of the watts above idle."""
    results: int
    ids: tuple[str, ...] = ()


def kind_of(name: str) -> PerCore:
    """The nearest relations of a machine, by the slug of its processor."""
    return next((kind for kind in KINDS if kind.names.search(name)), ANY)


def relations(model: str, cores: int, without: str = "") -> Match:
    """One package of a processor that no result has: from its family if that has enough models, else from its kind."""
    family = named(model).family
    kin = [
        one for name, one in known_processors().items() if family and name != without and named(name).family == family
    ]
    if len(kin) < FEWEST_RELATIONS:
        kind = kind_of(model)
        return Match("kind", kind.kind, cores * kind.idle_w, cores * kind.active_w, kind.spread, kind.results)
    idle = median(one.idle_w * (cores / one.cores) ** SIZE for one in kin)
    active = median((one.full_w - one.idle_w) * (cores / one.cores) ** SIZE for one in kin)
    return Match("family", family, idle, active, SAME_FAMILY, sum(one.results for one in kin))


def match_of(profile: MachineProfile) -> Match:
    """What the curve of this machine's profile was taken from."""
    name = re.sub(r"-\d+vcpu$", "", profile.name)
    if profile.watts and profile.provenance != "estimated":
        idle, full = profile.watts[0][1], profile.watts[-1][1]
        if profile.provenance == "measured":
            return Match("profile", profile.name, idle, full - idle, THIS_MACHINE, 1)
        return Match("catalogue", profile.name, idle, full - idle, SAME_MODEL, 1)
    known = _known(name)
    if known is None:
        return relations(name, profile.cores)
    spread = max(known.active_spread, SAME_MODEL)
    active = known.full_w - known.idle_w
    return Match("processor", model_slug(name), known.idle_w, active, spread, known.results, known.ids)


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


def _known(name: str) -> Known | None:
    """The processor's published results; names in results may or may not carry the package's letter."""
    return known_processors().get(model_slug(name))


def _in_catalogue(slug: str, sockets: int) -> MachineProfile | None:
    """The machine with this processor, if possible with as many."""
    found = [profile for name, profile in machines().items() if re.fullmatch(rf"{re.escape(slug)}-\d+s(-\w+)?", name)]
    exact = [profile for profile in found if f"-{sockets}s" in profile.name]
    return next(iter(exact or found), None)


def _estimated(bare: MachineProfile, sockets: int, virtual: bool) -> MachineProfile:
    """From the processor's own results, or its family's, or its kind's."""
    # Where guests are shown one thread per core, most hosts give them one hardware thread for it, half a core.
    cores = bare.cores * (0.5 if virtual and bare.threads == bare.cores and bare.arch == "x86_64" else 1.0)
    halves = ", a virtual CPU taken as half a core" if cores < bare.cores else ""
    idle, active, who = _per_core(bare, sockets, virtual)
    load_watts = tuple(cores * (idle + active * share) for share in SHAPE)
    return msgspec.structs.replace(
        bare,
        name=f"{bare.name}-{bare.threads}vcpu" if virtual else bare.name,
        watts=curve_from_load(load_watts, bare.cores, bare.threads, bare.smt_slowdown),
        provenance="estimated",
        quantity="wall",
        source=f"{idle:.2f} W idle and {active:.2f} W more when busy per core{halves}: {who}",
    )


def _per_core(bare: MachineProfile, sockets: int, virtual: bool) -> tuple[float, float, str]:
    """Watts of one core, idle and above idle, and from where."""
    known = _known(bare.name)
    if known is not None:
        some = f" (such as {', '.join(known.ids)})" if known.ids else ""
        who = f"median of {known.results} SPECpower results with this processor{some}"
        return known.idle_w / known.cores, (known.full_w - known.idle_w) / known.cores, who
    kin = [one.cores for name, one in known_processors().items() if named(name).family == named(bare.name).family]
    # A guest sees a few cores of a package of unknown size: taken as the usual one of the family.
    package = round(median(kin)) if virtual and named(bare.name).family else max(1, round(bare.cores / sockets))
    near = relations(bare.name, package)
    whose = f"{near.name} processors" if near.by == "family" else near.name
    who = f"{'median' if near.by == 'family' else 'mean'} of {near.results} SPECpower results, {whose}"
    return near.idle_w / package, near.active_w / package, who
