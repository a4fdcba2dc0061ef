"""Classes of equal nodes, their modes, and how shares of their devices are taken and returned.

Owns what makes two nodes equal but for their names and loads. What is taken of a node now is in `site`.
"""

from enum import IntEnum
from typing import Final, NamedTuple

from wattloom.cluster.node import Node
from wattloom.machines.machine import Machine
from wattloom.units import MILLI, millicores
from wattloom.workload.constraints import Taint


class Mode(IntEnum):
    """Whether a node can run something now."""

    AWAKE = 0
    WAKING = 1
    ASLEEP = 2
    HELD = 3
    """Awake, but kept free for one waiting task."""

    @property
    def is_awake(self) -> bool:
        return self in (Mode.AWAKE, Mode.HELD)


ClassKey = tuple[
    str,
    int,
    int,
    tuple[tuple[str, str], ...],
    tuple[tuple[str, int], ...],
    float | None,
    tuple[tuple[str, int], ...],
    tuple[Taint, ...],
    bool,
    tuple[str, ...],
]


class NodeClass:
    """Nodes that only their names and loads tell apart."""

    __slots__ = (
        "awake",
        "cap_w",
        "closed",
        "cpu",
        "devices",
        "index",
        "key",
        "labels",
        "machine",
        "memory",
        "own",
        "position_of",
        "resources",
        "size",
        "taints",
    )

    def __init__(self, index: int, key: ClassKey, machine: Machine) -> None:
        self.index: Final = index
        self.key: Final = key
        self.machine: Final = machine
        self.cpu: Final = key[1]
        self.memory: Final = key[2]
        self.labels: Final = dict(key[3])
        self.devices: Final = key[4]
        self.cap_w: Final = key[5]
        self.resources: Final = dict(key[6])
        """Counted amounts, in the order in which nodes say what is taken."""
        self.position_of: Final = {name: position for position, (name, _) in enumerate(key[6])}
        """By resource: where in that order it stands."""
        self.taints: Final = key[7]
        self.closed: Final = key[8]
        self.own: Final = frozenset(key[9])
        """Names of labels whose values differ from node to node."""
        self.size: int = 0
        """How many nodes of this class there are."""
        self.awake: int = 0
        """How many of them are awake."""

    @staticmethod
    def key_of(node: Node, machine: Machine) -> ClassKey:
        """What must be equal for two nodes to be of one class."""
        profile = machine.profile
        return (
            node.machine,
            millicores(node.cpu) if node.cpu is not None else profile.threads * MILLI,
            node.memory if node.memory is not None else profile.memory,
            tuple(sorted(node.labels.items())),
            tuple(sorted(node.devices.items())),
            node.cap_w,
            tuple(sorted(node.resources.items())) if node.resources else (),
            _forbidding(node.taints) if node.taints else (),
            node.closed,
            tuple(sorted(node.own)) if node.own else (),
        )

    def __repr__(self) -> str:
        return f"<NodeClass {self.index} {self.machine.name} x{self.size}>"


def _forbidding(taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """Those that keep tasks away, in order; what is only preferred makes no difference."""
    kept = {(taint.key, taint.value, taint.effect): taint for taint in taints if taint.effect != "PreferNoSchedule"}
    return tuple(kept[key] for key in sorted(kept))


ResourceUse = tuple[int, ...]
"""What is in use of each counted resource, in the class's order."""


def use_after(cls: NodeClass, used: ResourceUse, wanted: tuple[tuple[str, int], ...], sign: int) -> ResourceUse:
    """What is in use when a task has taken (1) or given back (-1) its part of what the class has."""
    amounts = dict(wanted)
    return tuple([taken + sign * amounts.get(name, 0) for name, taken in zip(cls.resources, used, strict=True)])


DeviceUse = tuple[tuple[int, ...], ...]
"""Thousandths in use of each device, by kind in the class's order."""


def take_devices(cls: NodeClass, used: DeviceUse, wanted: dict[str, int]) -> tuple[DeviceUse, DeviceUse] | None:
    """(use after, what was taken) if the wanted shares fit, else None.

    Whole devices must be free; a share goes to the fullest device that still has room, so that whole ones stay free.
    """
    after: list[tuple[int, ...]] = []
    taken: list[tuple[int, ...]] = []
    offered = 0
    for (kind, _), use in zip(cls.devices, used, strict=True):
        share = wanted.get(kind, 0)
        grant = _grant(use, share)
        if grant is None:
            return None
        offered += share > 0
        taken.append(grant)
        after.append(tuple(a + b for a, b in zip(use, grant, strict=True)))
    if offered < len(wanted):
        return None
    return tuple(after), tuple(taken)


def _grant(use: tuple[int, ...], share: int) -> tuple[int, ...] | None:
    if share == 0:
        return (0,) * len(use)
    if share < MILLI:
        room = [(-used, position) for position, used in enumerate(use) if used + share <= MILLI]
        if not room:
            return None
        chosen = min(room)[1]
        return tuple(share if position == chosen else 0 for position in range(len(use)))
    count = share // MILLI
    free = [position for position, used in enumerate(use) if used == 0][:count]
    if len(free) < count:
        return None
    return tuple(MILLI if position in free else 0 for position in range(len(use)))


def both(used: DeviceUse, taken: DeviceUse) -> DeviceUse:
    """What is in use with that taken too."""
    return tuple(tuple(a + b for a, b in zip(use, grant, strict=True)) for use, grant in zip(used, taken, strict=True))


def is_use_of(cls: NodeClass, use: DeviceUse) -> bool:
    """Whether these are thousandths of the devices that the class has."""
    counts = [count for _, count in cls.devices]
    return [len(each) for each in use] == counts and all(0 <= share <= MILLI for each in use for share in each)


def return_devices(used: DeviceUse, taken: DeviceUse) -> DeviceUse:
    return tuple(tuple(a - b for a, b in zip(use, grant, strict=True)) for use, grant in zip(used, taken, strict=True))


class DeviceShare(NamedTuple):
    """What a task has of one device of its node."""

    kind: str
    position: int
    """Its place among the node's devices of that kind."""
    share: int
    """In thousandths of the device."""


def shares_of(cls: NodeClass, taken: DeviceUse) -> tuple[DeviceShare, ...]:
    """What was taken, device by device."""
    return tuple(
        [
            DeviceShare(kind, position, share)
            for (kind, _), grant in zip(cls.devices, taken, strict=True)
            for position, share in enumerate(grant)
            if share
        ]
    )


def use_of(cls: NodeClass, shares: tuple[DeviceShare, ...]) -> DeviceUse:
    """The same in the class's order, as far as it has those devices; empty: none are used."""
    if not shares:
        return ()
    of = {(share.kind, share.position): share.share for share in shares}
    return tuple([tuple([of.get((kind, position), 0) for position in range(count)]) for kind, count in cls.devices])
