"""Sites: nodes of one class at the same load, which no policy can tell apart but by name.

Owns what is taken of each node and of each site, in whole units: taking and giving back are exact inverses. A policy
ranks sites, not nodes, so a decision costs the same on a hundred nodes as on fifty thousand.
"""

from heapq import heappop, heappush
from math import inf
from typing import Final

from wattloom.cluster.node_class import DeviceUse, Mode, NodeClass, ResourceUse
from wattloom.cluster.node_numbering import NodeNumbering

MICRO = 1_000_000
FULL: Final = 1000
"""The frequency that a node runs at by itself: frequencies are counted in thousandths of it."""
PAGE: Final = 60
"""Nodes to a page: their bits fit a machine word."""


class Site:
    """Nodes of one class with equal use. Empty sites are kept for a while, since loads come back."""

    __slots__ = (
        "_heap",
        "_pages",
        "_whole",
        "allocated",
        "cls",
        "count",
        "demand",
        "devices",
        "frequency",
        "machine",
        "memory",
        "microwatts",
        "mode",
        "numbering",
        "resources",
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
        numbering: NodeNumbering,
        resources: ResourceUse = (),
        frequency: int = FULL,
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
        self.resources: Final = resources
        self.frequency: Final = frequency
        """In thousandths of what its nodes run at by themselves."""
        machine = cls.machine if frequency == FULL else cls.machine.at(frequency)
        self.machine: Final = machine
        """As fast as it is at this frequency."""
        watts = machine.load(demand)[1]
        if mode == Mode.ASLEEP:
            watts = machine.sleep_w
        elif mode == Mode.WAKING:
            watts = machine.waking_watts(demand)
        self.microwatts: Final = round(watts * MICRO)
        """Draw of each node by its curve, whole so that sums are exact; 0 where unknown."""
        self.count: int = 0
        self.numbering: Final = numbering
        self._pages: dict[int, int] = {}
        """Who is here, a bit for each node's number, by pages of so many."""
        self._whole: int = -1
        """The same as one number, once somebody has asked for it; -1: nobody has."""
        self._heap: list[int] = []
        """The pages in order, with some that have become empty."""
        self.steps: dict[int, Site] = {}
        """Where a node gets to from here when a task of a shape (by index; -1 - index: its reverse) is taken."""

    def first(self) -> str:
        """The first node by name. Only for a site that has nodes."""
        numbering, pages, heap = self.numbering, self._pages, self._heap
        if numbering.stale:
            numbering.settle()
        page = heap[0]
        mask = pages[page]
        while not mask:
            del pages[heappop(heap)]
            page = heap[0]
            mask = pages[page]
        return numbering.at[page * PAGE + (mask & -mask).bit_length() - 1]

    def whole(self) -> int:
        """Who is here, as one set."""
        if self._whole < 0:
            self._whole = 0
            for page, mask in self._pages.items():
                self._whole |= mask << page * PAGE
        return self._whole

    def first_of(self, among: int) -> str | None:
        """The first node by name that is also among these; None: none is. The numbering must not be stale."""
        both = self.whole() & among
        return self.numbering.at[(both & -both).bit_length() - 1] if both else None

    def members(self) -> list[str]:
        """All nodes, by name."""
        at = self.numbering.at
        numbers = [page * PAGE + bit for page, mask in self._pages.items() for bit in range(PAGE) if mask >> bit & 1]
        return sorted([at[number] for number in numbers])

    def enter(self, number: int) -> None:
        self.count += 1
        self.mark(number)

    def leave(self, number: int) -> None:
        self.count -= 1
        self._pages[number // PAGE] ^= 1 << number % PAGE
        if self._whole >= 0:
            self._whole ^= 1 << number

    def mark(self, number: int) -> None:
        """Note who is here, by number."""
        page = number // PAGE
        mask = self._pages.get(page)
        if mask is None:
            heappush(self._heap, page)
            mask = 0
        self._pages[page] = mask | 1 << number % PAGE
        if self._whole >= 0:
            self._whole |= 1 << number

    def unmark_all(self) -> None:
        """The numbers are about to change."""
        self._pages.clear()
        self._heap.clear()
        self._whole = -1

    def __repr__(self) -> str:
        return f"<Site {self.cls.machine.name} demand={self.demand} x{self.count} {self.mode.name.lower()}>"


class NodeState:
    """What is taken of one node, and who took it."""

    __slots__ = (
        "allocated",
        "cls",
        "demand",
        "devices",
        "frequency",
        "memory",
        "mode",
        "name",
        "number",
        "over",
        "own",
        "resources",
        "site",
        "sleep_at",
        "tasks",
        "timer_at",
    )

    def __init__(self, name: str, cls: NodeClass, mode: Mode, own: dict[str, str] | None = None) -> None:
        self.name: Final = name
        self.number: int = -1
        """Its number in the numbering."""
        self.cls = cls
        self.mode = mode
        self.frequency: int = FULL
        """In thousandths of what it runs at by itself, as last reported."""
        self.demand: int = 0
        self.allocated: int = 0
        self.memory: int = 0
        self.devices: DeviceUse = tuple((0,) * count for _, count in cls.devices)
        self.resources: ResourceUse = (0,) * len(cls.resources)
        self.own: dict[str, str] = own or {}
        """Labels that only this node has."""
        self.over: bool = False
        """Whether more may be taken than there is: it was found so, or the node has become smaller."""
        self.tasks: set[str] = set()
        self.sleep_at: float = inf
        """When it is to be sent to sleep if nothing comes; inf: never."""
        self.timer_at: float = inf
        """When a timer will look whether it sleeps; inf: none will."""
        self.site: Site | None = None
        """None until the index has put it somewhere."""

    def label(self, name: str) -> str | None:
        """The value of a label, of its own or of its class."""
        value = self.own.get(name)
        return value if value is not None else self.cls.labels.get(name)

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
