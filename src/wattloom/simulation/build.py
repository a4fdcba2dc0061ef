"""From a scenario and a seed to a trial.

Owns the naming of nodes, the true run times on every machine of the cluster, and the checks that span tables.
"""

from pathlib import Path
from typing import Final

import msgspec

from wattloom.bounds import LONGEST_S
from wattloom.cluster.node import Node
from wattloom.errors import InputError, ScenarioError
from wattloom.machines.catalogue import machines as catalogue
from wattloom.machines.own_profile import read_profile
from wattloom.machines.profile import MachineProfile
from wattloom.machines.profile_curve import machine_profile
from wattloom.planning.plan_file import read_plan
from wattloom.planning.plan_store import keep_plan
from wattloom.scheduling.events import NodeJoined, NodeLost, PlanChanged
from wattloom.simulation.arrivals import SHORTEST_S, arrivals_of
from wattloom.simulation.scenario import FunctionEntry, NodeGroup, Scenario, VariantEntry
from wattloom.simulation.trial import ColdStart, Happening, Trial
from wattloom.units import GIB, MIB
from wattloom.workload.function import Function, Variant
from wattloom.workload.requirements import Requirements

MOST_NODES: Final = 1_000_000
PROFILE: Final = ".json"
"""How a machine that is the name of a profile's file ends."""


def trial_of(scenario: Scenario, seed: int, folder: Path = Path()) -> Trial:
    """Everything a simulation needs but the policy."""
    profiles = _profiles(scenario, folder)
    nodes = _nodes(scenario, {profile.name: profile for profile in profiles})
    functions, seconds = _functions(scenario, profiles)
    return Trial(
        name=scenario.name,
        machines=profiles,
        functions=functions,
        nodes=nodes,
        arrivals=arrivals_of(scenario, seed, folder),
        seconds=seconds,
        happenings=[*_plan(scenario, folder), *_faults(scenario, nodes)],
        cold_starts={
            name: ColdStart(entry.cold_start_s, entry.keep_alive_s)
            for name, entry in scenario.functions.items()
            if entry.cold_start_s > 0.0
        },
        power_cap_w=scenario.power_cap_w,
        scheduler=scenario.scheduler,
        assumptions=list(scenario.assumptions),
    )


def _profiles(scenario: Scenario, folder: Path) -> list[MachineProfile]:
    """The machines that nodes are of: from the file, from the catalogue, or measured profiles of their own files."""
    described: dict[str, MachineProfile] = {}
    for name, entry in scenario.machines.items():
        try:
            described[name] = entry.profile(name, f"machines.{name}")
        except InputError as problem:
            raise ScenarioError(problem.field, problem.problem) from problem
    profiles: dict[str, MachineProfile] = {}
    for number, group in enumerate(scenario.nodes):
        name = group.machine
        if name in described:
            profiles[name] = described[name]
        elif name in catalogue():
            profiles[name] = catalogue()[name]
        elif name.endswith(PROFILE):
            profiles[name] = _measured(name, folder, f"nodes[{number}].machine")
        else:
            known = ", ".join([*scenario.machines, *catalogue()])
            raise ScenarioError(f"nodes[{number}].machine", f"{name!r} is neither in this file nor known ({known})")
    return list(profiles.values())


def _measured(name: str, folder: Path, field: str) -> MachineProfile:
    """What `wattloom profile cpu` has written."""
    try:
        return machine_profile(read_profile(folder / name), name=name)
    except InputError as problem:
        raise ScenarioError(field, str(problem)) from problem


def _nodes(scenario: Scenario, profiles: dict[str, MachineProfile]) -> list[Node]:
    nodes: dict[str, Node] = {}
    _refuse_too_many(scenario)
    for number, group in enumerate(scenario.nodes):
        profile = profiles[group.machine]
        if group.asleep and (profile.sleep_w is None or not profile.watts):
            raise ScenarioError(f"nodes[{number}].asleep", f"{group.machine} has no sleeping power: it cannot sleep")
        for name in _names(group):
            if name in nodes:
                raise ScenarioError(f"nodes[{number}].name", f"{name} is there twice; give each group a name")
            nodes[name] = Node(
                name=name,
                machine=group.machine,
                cpu=group.cpu,
                memory=None if group.memory_gib is None else round(group.memory_gib * GIB),
                labels=group.labels,
                devices=group.devices,
                cap_w=group.cap_w,
                asleep=group.asleep,
            )
            problem = nodes[name].problem()
            if problem is not None:
                raise ScenarioError(f"nodes[{number}].{problem[0]}", problem[1])
    return list(nodes.values())


def _refuse_too_many(scenario: Scenario) -> None:
    """Before any is made."""
    total = sum(group.count for group in scenario.nodes)
    if total > MOST_NODES:
        raise ScenarioError("nodes", f"would make {total:,} nodes; a simulation takes at most {MOST_NODES:,}")


def _names(group: NodeGroup) -> list[str]:
    prefix = group.name or Path(group.machine.removesuffix(PROFILE)).name
    if group.count == 1 and group.name:
        return [prefix]
    width = len(str(group.count))
    return [f"{prefix}-{n:0{width}d}" for n in range(1, group.count + 1)]


Seconds = dict[tuple[str, str, str], float]


def _functions(scenario: Scenario, profiles: list[MachineProfile]) -> tuple[list[Function], Seconds]:
    functions: list[Function] = []
    truth: Seconds = {}
    for name, entry in scenario.functions.items():
        variants: list[Variant] = []
        for variant_name, variant in _variants(entry).items():
            field = f"functions.{name}"
            seconds = _seconds(variant, entry, profiles, scenario, field)
            truth |= {(name, variant_name, machine): value for machine, value in seconds.items()}
            variants.append(
                Variant(
                    name=variant_name,
                    arch=_listed(variant.arch),
                    devices=tuple(sorted(variant.devices.items())),
                    seconds=seconds if scenario.forecasts == "declared" else {},
                )
            )
        function = Function(name, _requirements(entry), tuple(variants))
        problem = function.problem()
        if problem is not None:
            raise ScenarioError(f"functions.{name}.{_field_in_file(problem[0])}", problem[1])
        functions.append(function)
    return functions, truth


def _field_in_file(field: str) -> str:
    """Requirements have no table of their own in a file, and memory is in MiB there."""
    field = field.removeprefix("requirements.")
    return "memory_mib" if field == "memory" else field


def _variants(entry: FunctionEntry) -> dict[str, VariantEntry]:
    if entry.variants:
        return entry.variants
    return {"default": VariantEntry(seconds=entry.seconds, work_s=entry.work_s)}


def _seconds(
    variant: VariantEntry, entry: FunctionEntry, profiles: list[MachineProfile], scenario: Scenario, field: str
) -> dict[str, float]:
    """Run time alone on each machine of the cluster the build can run on."""
    seconds: dict[str, float] = {}
    work = variant.work_s if variant.work_s is not None else entry.work_s
    builds, wishes = _listed(variant.arch), _listed(entry.arch)
    for profile in profiles:
        allowed = (not builds or profile.arch in builds) and (not wishes or profile.arch in wishes)
        given = variant.seconds.get(profile.name, entry.seconds.get(profile.name))
        if not allowed:
            continue
        if given is not None:
            seconds[profile.name] = given
        elif work is not None:
            seconds[profile.name] = work / profile.speed
        else:
            raise ScenarioError(f"{field}.seconds.{profile.name}", "is missing, and there is no work_s to scale")
    for machine, value in seconds.items():
        if not SHORTEST_S <= value <= LONGEST_S:
            raise ScenarioError(
                f"{field}.seconds.{machine}", f"must be from {SHORTEST_S:g} to {LONGEST_S:g} s, not {value:g} s"
            )
    named = {*variant.seconds, *entry.seconds}
    for machine in sorted(named - {profile.name for profile in profiles}):
        if machine not in scenario.machines and machine not in catalogue():
            raise ScenarioError(f"{field}.seconds.{machine}", "no such machine")
    return seconds


def _listed(given: str | list[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _requirements(entry: FunctionEntry) -> Requirements:
    return Requirements(
        cpu=entry.cpu,
        memory=round(entry.memory_mib * MIB),
        arch=_listed(entry.arch),
        labels=tuple(sorted(entry.labels.items())),
        devices=tuple(sorted(entry.devices.items())),
    )


def _plan(scenario: Scenario, folder: Path) -> list[Happening]:
    """The plan that holds, kept where the policy finds it by its digest."""
    if not scenario.plan:
        return []
    try:
        return [PlanChanged(0.0, keep_plan(read_plan(folder / scenario.plan)))]
    except InputError as problem:
        raise ScenarioError("plan", str(problem)) from problem


def _faults(scenario: Scenario, nodes: list[Node]) -> list[Happening]:
    by_name = {node.name: node for node in nodes}
    happenings: list[Happening] = []
    for number, fault in enumerate(scenario.faults):
        node = by_name.get(fault.node)
        if node is None:
            raise ScenarioError(f"faults[{number}].node", f"no node {fault.node!r} in this scenario")
        happenings.append(NodeLost(fault.at_s, node.name))
        if fault.back_after_s is not None:
            back = msgspec.structs.replace(node, asleep=False)
            happenings.append(NodeJoined(fault.at_s + fault.back_after_s, back))
    return happenings
