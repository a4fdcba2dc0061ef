"""Sites: nodes of one class at the same load, which no policy can tell apart but by name.

Owns what is taken of each node and of each site, in whole units: taking and giving back are exact inverses. A policy
ranks sites, not nodes, so a decision costs the same on a hundred nodes as on fifty thousand.
"""

from heapq import heapify, heappop, heappush
from math import inf
from typing import Final

from wattloom.cluster.node_class import DeviceUse, Mode, NodeClass

MICRO = 1_000_000


class Site:
    """Nodes of one class with equal use. Empty sites are kept for a while, since loads come back."""

    __slots__ = (
        "allocated",
        "cls",
        "count",
        "demand",
        "devices",
        "memory",
        "microwatts",
        "mode",
        "names",
        "nodes",
        "serial",
        "steps",
    )

    def __init__(
        self,
        serial: int,
        cls: NodeClass,
        demand: int,
        allocated: int,
        memory: int,
        devices: DeviceUse,
        mode: Mode,
        nodes: "dict[str, NodeState]",
    ) -> None:
        self.serial: Final = serial
        self.cls: Final = cls
        self.demand: Final = demand
        """Millicores its tasks keep busy, on each node."""
        self.allocated: Final = allocated
        """Millicores guaranteed to its tasks: below the demand under the 80% rule."""
        self.memory: Final = memory
        self.devices: Final = devices
        self.mode: Final = mode
        machine = cls.machine
        watts = machine.load(demand)[1]
        if mode == Mode.ASLEEP:
            watts = machine.sleep_w
        elif mode == Mode.WAKING:
            watts = machine.waking_watts(demand)
        self.microwatts: Final = round(watts * MICRO)
        """Draw of each node by its curve, whole so that sums are exact; 0 where unknown."""
        self.count: int = 0
        self.names: list[str] = []
        """A heap of the nodes' names, with some that have left."""
        self.nodes: Final = nodes
        self.steps: dict[int, Site] = {}
        """Where a node gets to from here when a task of a shape (by index; -1 - index: its reverse) is taken."""

    def first(self) -> str:
        """The first node by name. Only for a site that has nodes."""
        names = self.names
        while not self._holds(names[0]):
            heappop(names)
        return names[0]

    def _holds(self, name: str) -> bool:
        node = self.nodes.get(name)
        return node is not None and node.site is self

    def members(self) -> list[str]:
        """All nodes, by name."""
        return sorted({name for name in self.names if self._holds(name)})

    def enter(self, name: str) -> None:
        self.count += 1
        names = self.names
        if len(names) > 2 * self.count + 16:
            names[:] = self.members()
            heapify(names)
        heappush(names, name)

    def __repr__(self) -> str:
        return f"<Site {self.cls.machine.name} demand={self.demand} x{self.count} {self.mode.name.lower()}>"


class NodeState:
    """What is taken of one node, and who took it."""

    __slots__ = (
        "allocated",
        "cls",
        "demand",
        "devices",
        "memory",
        "mode",
        "name",
        "site",
        "sleep_at",
        "tasks",
        "timer_at",
    )

    def __init__(self, name: str, cls: NodeClass, mode: Mode) -> None:
        self.name: Final = name
        self.cls = cls
        self.mode = mode
        self.demand: int = 0
        self.allocated: int = 0
        self.memory: int = 0
        self.devices: DeviceUse = tuple((0,) * count for _, count in cls.devices)
        self.tasks: set[str] = set()
        self.sleep_at: float = inf
        """When it is to be sent to sleep if nothing comes; inf: never."""
        self.timer_at: float = inf
        """When a timer will look whether it sleeps; inf: none will."""
        self.site: Site | None = None
        """None until the index has put it somewhere."""

    def take(self, task: str, cpu: int, guaranteed: int, memory: int) -> None:
        self.demand += cpu
        self.allocated += guaranteed
        self.memory += memory
        self.tasks.add(task)

    def give_back(self, task: str, cpu: int, guaranteed: int, memory: int) -> None:
        self.demand -= cpu
        self.allocated -= guaranteed
        self.memory -= memory
        self.tasks.remove(task)
