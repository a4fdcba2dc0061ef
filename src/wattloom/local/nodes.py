"""The nodes that this machine is shown as: one, or several virtual ones.

Owns what a node is made of here: its profile, the cores its workers are pinned to, and how much slower than this
machine it makes them. What the engine sees of it is an ordinary node.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from wattloom.cluster.node import Node
from wattloom.errors import InputError
from wattloom.files import UNREADABLE, read_bytes
from wattloom.machines.catalogue import MachineEntry
from wattloom.machines.catalogue import machines as catalogue
from wattloom.machines.profile import MachineProfile

TOPOLOGY: Final = Path("/sys/devices/system/cpu")


class VirtualNode(msgspec.Struct, frozen=True):
    """A part of this machine that is shown as a machine of another kind."""

    name: str
    machine: str | MachineProfile
    """A profile, or the name of one in the catalogue (`wattloom machines`)."""
    cpu: float | None = None
    """Cores that may be given out; None: as many as real ones are given to it."""


class LocalNode(msgspec.Struct, frozen=True):
    """A node as it is carried out here."""

    name: str
    profile: MachineProfile
    node: Node
    cores: list[int]
    """Its workers are pinned to these; empty: to none."""
    slowdown: float = 1.0
    """So many times as long as here does a call take there."""
    virtual: bool = False


def whole_machine(profile: MachineProfile, workers: int | None) -> LocalNode:
    """This machine as one node. `workers`: so many calls of one core at a time."""
    cpu = float(workers) if workers is not None else None
    return LocalNode("here", profile, Node("here", profile.name, cpu=cpu), [])


def virtual_nodes(wanted: Sequence[VirtualNode], here: MachineProfile) -> list[LocalNode]:
    """Every node gets an equal share of the cores; the fastest runs at full speed, the others as much slower as their
    profiles say. There are no more nodes than cores: two calls on one core would slow each other down, and nothing
    measured on them would mean anything."""
    cores = by_physical_core(os.sched_getaffinity(0))
    if len(wanted) > len(cores):
        raise InputError(
            "nodes",
            f"there are {len(wanted)}, and this machine has {len(cores)} cores to give out, one for each at least",
        )
    if len({node.name for node in wanted}) != len(wanted):
        raise InputError("nodes", "two have the same name")
    profiles = [_profile(node) for node in wanted]
    fastest = max(profile.speed for profile in profiles)
    share = len(cores) // len(wanted)
    found: list[LocalNode] = []
    for position, (node, profile) in enumerate(zip(wanted, profiles, strict=True)):
        mine = cores[position * share : (position + 1) * share]
        cpu = node.cpu if node.cpu is not None else float(len(mine))
        if not 0.0 < cpu <= len(mine):
            raise InputError(f"nodes.{node.name}.cpu", f"must be positive and at most {len(mine)}, not {cpu}")
        spec = Node(node.name, profile.name, cpu=cpu)
        found.append(LocalNode(node.name, profile, spec, mine, fastest / profile.speed, virtual=True))
    return found


def by_physical_core(cpus: set[int], topology: Path = TOPOLOGY) -> list[int]:
    """Hardware threads of one core next to each other: so they go to the same node, where the kernel tells."""

    def place(cpu: int) -> tuple[int, int, int]:
        package = core = 0
        with suppress(OSError, ValueError):
            package = int((topology / f"cpu{cpu}" / "topology" / "physical_package_id").read_text())
            core = int((topology / f"cpu{cpu}" / "topology" / "core_id").read_text())
        return package, core, cpu

    return sorted(cpus, key=place)


class NodesFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of virtual nodes, and of machines that are not in the catalogue; written as in a scenario."""

    nodes: list["NodeEntry"]
    machines: dict[str, MachineEntry] = {}


class NodeEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `[[nodes]]` of such a file."""

    name: str
    machine: str
    cpu: float | None = None


def nodes_from(path: str | Path) -> list[VirtualNode]:
    """Virtual nodes from a TOML file, for `Executor(nodes=...)`."""
    try:
        found = msgspec.toml.decode(read_bytes(Path(path)), type=NodesFile)
    except OSError as problem:
        raise InputError(str(path), f"cannot be read: {problem.strerror or problem}") from problem
    except UNREADABLE as problem:
        raise InputError(str(path), str(problem)) from problem
    own = {name: entry.profile(name, f"machines.{name}") for name, entry in found.machines.items()}
    return [VirtualNode(node.name, own.get(node.machine, node.machine), node.cpu) for node in found.nodes]


def _profile(node: VirtualNode) -> MachineProfile:
    if isinstance(node.machine, MachineProfile):
        problem = node.machine.problem()
        if problem is not None:
            raise InputError(f"nodes.{node.name}.machine.{problem[0]}", problem[1])
        return node.machine
    known = catalogue()
    if node.machine not in known:
        raise InputError(f"nodes.{node.name}.machine", f"{node.machine} is not in the catalogue (`wattloom machines`)")
    return known[node.machine]
