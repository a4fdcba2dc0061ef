"""A plan as it is carried out here: the plan's servers as nodes of this machine, scaled to the cores there are.

Owns the scale. A plan of one server that is this machine is carried out on all of it. Other plans have servers shown
as virtual nodes with equal shares of the cores, and all rates are scaled by one factor, so that each function is as
busy against its cores as it was planned to be. Where shares had to become smaller than a core, functions of a server
share cores, and that is said. The simulator is given the very same nodes and rates.
"""

import os
from collections.abc import Sequence
from math import ceil
from typing import Final

import msgspec

from wattloom.errors import InputError
from wattloom.local.nodes import VirtualNode
from wattloom.machines.catalogue import machines as catalogue
from wattloom.machines.profile import MachineProfile
from wattloom.machines.this_machine import this_machine
from wattloom.planning.plan import Assignment, Demand, Plan, Server
from wattloom.units import GIB

HERE: Final = "here"
"""The node that this machine is, where it is not shown as several."""
ROUNDING: Final = 1e-9
MOST_SCALE: Final = 1e6


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """A plan and the nodes it is carried out on."""

    plan: Plan
    """With the names of nodes here, and scaled rates and cores."""
    original: Plan
    nodes: tuple[VirtualNode, ...]
    """Empty: this machine, as one node."""
    machines: dict[str, MachineProfile]
    """What each node is, by its name."""
    scale: float
    """Rates here over rates of the plan."""
    speed: float
    """Executions per second and core here over those of the plan."""
    notes: tuple[str, ...]

    def machine_of(self, node: str) -> str:
        """The plan's machine that a node stands for."""
        if not self.nodes:
            return next(iter(self.machines.values())).name
        return next((each.machine for each in self.original.servers if each.name == node), node)


def carried_out(
    plan: Plan,
    *,
    servers: Sequence[str] = (),
    scale: float | None = None,
    nodes: Sequence[VirtualNode] = (),
    here: MachineProfile | None = None,
    cores: int | None = None,
) -> Carried:
    """The plan as it is carried out on this machine. `servers`: only these of it. `nodes`: what servers are to be shown
    as, by name; without, by the catalogue or by the plan's own figures. InputError: it cannot be."""
    here = here or this_machine()
    cores = cores or len(os.sched_getaffinity(0))
    chosen = _chosen(plan, servers, cores)
    whole = len(chosen) == 1 and chosen[0].machine == here.name
    if whole:
        profiles = {chosen[0].name: here}
        share = here.threads
    else:
        share = cores // len(chosen)
        known = {each.name: each.machine for each in nodes}
        profiles = {each.name: _profile(each, plan, share, known.get(each.name)) for each in chosen}
    parts = [each for each in plan.assignments if each.server in profiles]
    speed = 1.0 if whole else min(1.0, _speed(profiles, here))
    factor = _scale(parts, chosen, share) * speed if scale is None else scale
    if not 0.0 < factor <= MOST_SCALE:
        raise InputError("scale", f"must be positive, at most {MOST_SCALE:g}, not {factor}")
    names = {chosen[0].name: HERE} if whole else {each.name: each.name for each in chosen}
    scaled = [_scaled(each, names, factor, speed, share, plan) for each in parts]
    shown = tuple(VirtualNode(each.name, profiles[each.name], float(share)) for each in chosen)
    return Carried(
        plan=_plan(plan, scaled, [_server(each, names, profiles, share) for each in chosen], factor),
        original=plan,
        nodes=() if whole else shown,
        machines={names[name]: profile for name, profile in profiles.items()},
        scale=factor,
        speed=speed,
        notes=tuple(_notes(plan, chosen, whole, cores, share, factor, speed, scaled)),
    )


def _chosen(plan: Plan, named: Sequence[str], cores: int) -> list[Server]:
    """The servers that are shown: those named; all, if there are cores for them; else those that have functions."""
    used = list(dict.fromkeys(each.server for each in plan.assignments))
    if not used:
        raise InputError("plan", "has no function on any server: there is nothing to carry out")
    known = {each.name: each for each in plan.servers}
    for name in named:
        if name not in known and name not in used:
            raise InputError("server", f"{name} is not in the plan; its servers are {', '.join(used)}")
    wanted = list(named) or [name for name in known if name in used or len(known) <= cores] or used
    if len(wanted) > cores:
        raise InputError(
            "servers",
            f"the plan has functions on {len(wanted)} servers, and this machine has {cores} cores, one for each at "
            f"least: name some of them, as in --server {wanted[0]}",
        )
    return [known.get(name) or _unnamed(name, plan) for name in wanted]


def _unnamed(name: str, plan: Plan) -> Server:
    """Of a plan that names no servers: as large as what is put on it."""
    cores = sum(each.cores for each in plan.assignments if each.server == name)
    return Server(name=name, machine=name, cores=max(1, cores))


def watts_per_core(plan: Plan, servers: Sequence[Server]) -> float | None:
    """What a busy core of these draws by the plan, on average over what runs there. None: it is not known."""
    names = {each.name for each in servers}
    parts = [each for each in plan.assignments if each.server in names and each.rate > 0.0]
    if not parts or any(each.watts is None for each in parts):
        return None
    return sum(each.watts or 0.0 for each in parts) / sum(each.rate / each.per_core_s for each in parts)


def made_profile(name: str, arch: str, cores: int, idle_w: float | None, core_w: float | None) -> MachineProfile:
    """A machine of so many cores by the plan's figures: a straight line from idle."""
    watts = () if idle_w is None or core_w is None else ((0.0, idle_w), (float(cores), idle_w + cores * core_w))
    return MachineProfile(
        name=name,
        arch=arch or "x86_64",
        cores=cores,
        threads=cores,
        memory=64 * GIB,
        watts=watts,
        provenance="modelled",
    )


def _profile(server: Server, plan: Plan, share: int, given: str | MachineProfile | None) -> MachineProfile:
    """What a server is shown as: what was given for it; by the plan's figures for so many cores; by the catalogue."""
    if isinstance(given, MachineProfile):
        return given
    known = catalogue().get(given or server.machine)
    if given is not None:
        if known is None:
            raise InputError("nodes", f"{given} is not in the catalogue (`wattloom machines`)")
        return known
    core_w = watts_per_core(plan, [server])
    idle_w = None if server.idle_w is None else server.idle_w * share / server.cores
    if core_w is None or idle_w is None:
        return known or made_profile(server.name, server.arch, share, None, None)
    made = made_profile(server.name, server.arch or (known.arch if known else ""), share, idle_w, core_w)
    return made if known is None else msgspec.structs.replace(made, speed=known.speed)


def _speed(profiles: dict[str, MachineProfile], here: MachineProfile) -> float:
    """The fastest node runs as fast as this machine can, the others as much slower as their profiles say."""
    return here.speed / max(each.speed for each in profiles.values())


def _scale(parts: Sequence[Assignment], servers: Sequence[Server], share: int) -> float:
    """The largest, up to 1, at which the cores that are given out fit the nodes."""
    given = {server.name: sum(each.cores for each in parts if each.server == server.name) for server in servers}
    return min([1.0, *(share / cores for cores in given.values() if cores)])


def _scaled(part: Assignment, names: dict[str, str], scale: float, speed: float, share: int, plan: Plan) -> Assignment:
    per_core_s, rate = part.per_core_s * speed, part.rate * scale
    cpu = next((each.cpu for each in plan.demand if each.function == part.function), 1.0)
    cores = part.cores if scale == speed else ceil(rate * cpu / per_core_s - ROUNDING)
    return msgspec.structs.replace(
        part,
        server=names[part.server],
        rate=rate,
        cores=max(1, min(cores, share)),
        watts=None if part.watts is None else part.watts * scale,
        per_core_s=per_core_s,
    )


def _server(server: Server, names: dict[str, str], profiles: dict[str, MachineProfile], share: int) -> Server:
    profile = profiles[server.name]
    idle_w = profile.watts[0][1] if profile.watts else None
    return Server(
        name=names[server.name],
        machine=profile.name,
        cores=share,
        arch=profile.arch,
        idle_w=idle_w,
        labels=server.labels,
    )


def _plan(plan: Plan, parts: list[Assignment], servers: list[Server], scale: float) -> Plan:
    functions = {each.function for each in parts}
    demand = [
        msgspec.structs.replace(each, rate=each.rate * scale, memory=0)
        for each in plan.demand
        if each.function in functions
    ]
    known = all(each.watts is not None for each in parts)
    return Plan(
        policy=plan.policy,
        goal=plan.goal,
        assignments=tuple(parts),
        servers=tuple(servers),
        demand=tuple(demand) or tuple(Demand(function=each.function, rate=each.rate) for each in parts),
        active_w=sum(each.watts or 0.0 for each in parts) if known else None,
        cores=sum(each.cores for each in parts),
        objective=plan.objective * scale,
    )


def _notes(
    plan: Plan,
    servers: Sequence[Server],
    whole: bool,
    cores: int,
    share: int,
    scale: float,
    speed: float,
    parts: Sequence[Assignment],
) -> list[str]:
    said: list[str] = []
    left = {each.server for each in plan.assignments} - {each.name for each in servers}
    if left:
        said.append(f"functions on {', '.join(sorted(left))} are left out")
    if not whole:
        what = "1 core" if share == 1 else f"{share} cores"
        said.append(
            f"this machine has {cores} cores: {', '.join(each.name for each in servers)} are shown as virtual nodes of "
            f"{what} each; their joules are modelled"
        )
    if scale != 1.0:
        said.append(f"all rates are {scale:.4g} of the plan's")
    if speed != 1.0:
        said.append(f"cores here are taken to be {speed:.3g} times as fast as the plan's")
    given = {name: sum(each.cores for each in parts if each.server == name) for name in {each.server for each in parts}}
    crowded = sorted(name for name, count in given.items() if count > share)
    if crowded:
        said.append(f"functions on {', '.join(crowded)} share cores: each would have a core of its own by the plan")
    return said
