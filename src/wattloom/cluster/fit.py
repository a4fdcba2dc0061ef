"""Whether a task of some shape fits on nodes of some class at some load, and if not, why.

Owns every check that holds for all nodes of a site: CPU, memory, what else is counted, architecture, labels, taints,
devices, watts. The same function is asked when candidates are ranked, when a proposal is committed and when a decision
is explained. What differs from node to node within a site is `rules`' work.
"""

from collections.abc import Iterable

import msgspec

from wattloom.cluster.matching import refusal
from wattloom.cluster.node_class import Mode, NodeClass, take_devices
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.machines.machine import PACKAGE_ERROR, PACKAGE_OF_IDLE, PACKAGE_OF_LOAD, Machine
from wattloom.units import MILLI
from wattloom.workload.function import Variant
from wattloom.workload.shape import Shape


class Terms(msgspec.Struct, frozen=True):
    """On what terms a policy wants tasks placed."""

    guarantee: float = 1.0
    """Share of the requested CPU that is guaranteed: 0.8 is the 80% rule, 0 ignores CPU requests."""
    tdp: bool = False
    """Whether the watts booked on a node must stay within its TDP (see `booked_watts`)."""

    @property
    def overcommits(self) -> bool:
        """Whether tasks may be given a node that request more CPU together than it has."""
        return not self.guarantee >= 1.0


def guaranteed(shape: Shape, terms: Terms) -> int:
    """Millicores set aside for a task of this shape."""
    return shape.cpu if terms.guarantee == 1.0 else round(shape.cpu * terms.guarantee)


def usable_variants(shape: Shape, cls: NodeClass) -> tuple[Variant, ...]:
    """The builds that run on this class at all."""
    return tuple(variant for variant in shape.variants if _variant_problem(shape, variant, cls) is None)


def never(shape: Shape, cls: NodeClass, terms: Terms) -> Reason | None:
    """Why no node of this class can take this shape even when empty."""
    arch = shape.requirements.arch
    if arch and cls.machine.profile.arch not in arch:
        return Reason.ARCHITECTURE
    if any(name not in cls.own and cls.labels.get(name) != value for name, value in shape.requirements.labels):
        return Reason.LABELS
    refused = refusal(shape.requirements.constraints, cls)
    if refused is not None:
        return refused
    problems = [_variant_problem(shape, variant, cls) for variant in shape.variants]
    if None not in problems:
        return problems[0]
    if guaranteed(shape, terms) > cls.cpu or shape.memory > cls.memory:
        return Reason.TOO_SMALL
    for name, amount in shape.resources:
        if amount > cls.resources.get(name, 0):
            return Reason.TOO_SMALL if cls.resources.get(name) else Reason.NO_SUCH_RESOURCE
    return _watts_problem(cls, shape.cpu, terms)


def now(shape: Shape, variant: Variant, site: Site, terms: Terms) -> Reason | None:
    """Why the nodes of this site cannot take this shape now; `never` was asked before."""
    if site.mode == Mode.HELD:
        return Reason.HELD
    return room(shape, variant, site, terms)


def room(shape: Shape, variant: Variant, site: Site, terms: Terms) -> Reason | None:
    """The same for the one task a node is held for. Who wants nothing of something fits where too much is taken."""
    cls = site.cls
    cpu = guaranteed(shape, terms)
    if cpu and site.allocated + cpu > cls.cpu:
        return Reason.CPU
    if shape.memory and site.memory + shape.memory > cls.memory:
        return Reason.MEMORY
    if shape.resources and _lacks_counted(shape, site):
        return Reason.RESOURCE
    wanted = shape.devices[variant.name]
    if wanted and take_devices(cls, site.devices, wanted) is None:
        return Reason.DEVICES
    asleep = site.mode in (Mode.ASLEEP, Mode.WAKING)
    return _watts_problem(cls, site.demand + shape.cpu, terms, asleep)


def _lacks_counted(shape: Shape, site: Site) -> bool:
    cls = site.cls
    for name, amount in shape.resources:
        position = cls.position_of.get(name, -1)
        if position < 0 or site.resources[position] + amount > cls.resources[name]:
            return True
    return False


def _watts_problem(cls: NodeClass, demand: int, terms: Terms, asleep: bool = False) -> Reason | None:
    machine = cls.machine
    if cls.cap_w is not None:
        if not machine.knows_power:
            return Reason.POWER_UNKNOWN
        if (machine.waking_watts(demand) if asleep else machine.load(demand)[1]) > cls.cap_w:
            return Reason.NODE_WATTS
    if terms.tdp and machine.knows_power:
        tdp = machine.profile.tdp_w
        if tdp is not None and booked_watts(cls, demand) > tdp:
            return Reason.TDP
    return None


def booked_watts(cls: NodeClass, demand: int) -> float:
    """What tasks that want so many millicores take of a node's TDP, its idle draw with it: the curve's watts, and of
    each core beyond those it gives out as much as of the last one. A curve ends, and what is booked must not."""
    machine = cls.machine
    watts = machine.load(demand)[1]
    beyond = demand - cls.cpu
    if beyond > 0:
        full = machine.load(cls.cpu)[1]
        watts = max(watts, full + machine.last_core_watts(cls.cpu) * beyond / MILLI)
    return machine.package_watts(watts)


def tdp_unkept_on(machines: Iterable[Machine]) -> list[str]:
    """Where nothing can be held against a TDP, and why."""
    without: dict[str, set[str]] = {}
    for machine in machines:
        if machine.profile.tdp_w is None or not machine.knows_power:
            missing = "TDP" if machine.profile.tdp_w is None else "power curve"
            without.setdefault(missing, set()).add(machine.name)
    return [f"TDP is not kept on {', '.join(sorted(names))}: no {what} is known" for what, names in without.items()]


def tdp_estimated_on(machines: Iterable[Machine]) -> list[str]:
    """Where what is held against a TDP is an estimate, and which."""
    names = {m.name for m in machines if m.knows_power and m.profile.tdp_w is not None and m.profile.quantity == "wall"}
    if not names:
        return []
    shares = f"{PACKAGE_OF_IDLE:.0%} of idle and {PACKAGE_OF_LOAD:.0%} of the rest at the plug, ± {PACKAGE_ERROR:.0%}"
    return [f"TDP is held against an estimate of the CPU packages' watts on {', '.join(sorted(names))}: {shares}"]


def tdp_doubts(machines: Iterable[Machine]) -> list[str]:
    """What users are told before anything is placed: where no TDP is kept, and where an estimate leaves cores empty."""
    known = list(machines)
    return [*tdp_unkept_on(known), *tdp_estimated_on(machine for machine in known if _above_tdp(machine))]


def _above_tdp(machine: Machine) -> bool:
    """Whether its packages, at full load by its curve, would draw more than its TDP."""
    tdp = machine.profile.tdp_w
    return tdp is not None and machine.package_watts(machine.full_watts) > tdp


def _variant_problem(shape: Shape, variant: Variant, cls: NodeClass) -> Reason | None:
    if variant.arch and cls.machine.profile.arch not in variant.arch:
        return Reason.ARCHITECTURE
    there = dict(cls.devices)
    for kind, share in shape.devices[variant.name].items():
        if kind not in there:
            return Reason.NO_SUCH_DEVICE
        if share > there[kind] * MILLI:
            return Reason.TOO_SMALL
    return None
