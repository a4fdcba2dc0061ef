"""TaskGroups: tasks that some rule counts, and how many of them are in each domain.

Owns the counts. They follow each task that takes or leaves a node, so that a question about thousands of nodes is
answered from a few numbers. Who belongs to a group is `rules`' decision.
"""

from typing import Final

from wattloom.cluster.matching import selects
from wattloom.cluster.site import NodeState
from wattloom.cluster.topology import Topology, mask_of
from wattloom.workload.constraints import Expression

Selection = tuple[tuple[Expression, ...] | None, tuple[str, ...]]
"""Which tasks, by their labels, in which namespaces; no namespaces: in all."""


class DomainCount:
    """How many tasks of a group are in each domain of a topology, counted on some of its nodes."""

    __slots__ = ("_by_count", "_counts", "among", "domains", "key", "topology")

    def __init__(
        self, key: str, topology: Topology, among: int, on: dict[str, int], nodes: dict[str, NodeState]
    ) -> None:
        self.key: Final = key
        """The label; empty: each node is a domain."""
        self.topology: Final = topology
        self.among: Final = topology.everywhere & among
        """The nodes that count: all have the label."""
        self.domains: Final = topology.domains(self.among)
        self._counts: dict[str, int] = {}
        """By domain, where there are any."""
        self._by_count: dict[int, int] = {}
        """The nodes whose domains have so many tasks; no empty sets."""
        self._count_all(on, nodes)

    def _count_all(self, on: dict[str, int], nodes: dict[str, NodeState]) -> None:
        counts, topology = self._counts, self.topology
        for name, count in on.items():
            node = nodes[name]
            value = self._domain(node)
            if value is not None and self.among >> node.number & 1:
                counts[value] = counts.get(value, 0) + count
        alone: dict[int, list[int]] = {}
        for value, count in counts.items():
            number = topology.number(value)
            if number >= 0:
                alone.setdefault(count, []).append(number)
            else:
                self._by_count[count] = self._by_count.get(count, 0) | topology.mask(value) & self.among
        for count, numbers in alone.items():
            self._by_count[count] = self._by_count.get(count, 0) | mask_of(numbers)
        rest = self.among
        for mask in self._by_count.values():
            rest ^= mask
        if rest:
            self._by_count[0] = rest

    def _domain(self, node: NodeState) -> str | None:
        return node.label(self.key) if self.key else node.name

    def shift(self, node: NodeState, by: int) -> None:
        """So many have come to this node, or left it."""
        value = self._domain(node)
        if value is None or not self.among >> node.number & 1:
            return
        count = self._counts.get(value, 0)
        mask = self.topology.mask(value) & self.among
        by_count = self._by_count
        left = by_count[count] ^ mask
        if left:
            by_count[count] = left
        else:
            del by_count[count]
        count += by
        by_count[count] = by_count.get(count, 0) | mask
        if count:
            self._counts[value] = count
        else:
            del self._counts[value]

    @property
    def empty(self) -> bool:
        return not self._counts

    def some(self) -> int:
        """The nodes in whose domain there is one at least."""
        return self.among ^ self._by_count.get(0, 0) if self._counts else 0

    def least(self) -> int:
        """How many there are in the emptiest domain."""
        return min(self._by_count, default=0)

    def up_to(self, most: int) -> int:
        """The nodes in whose domain there are not more."""
        found = 0
        for count, mask in self._by_count.items():
            if count <= most:
                found |= mask
        return found


class TaskGroup:
    """Tasks that are counted together."""

    __slots__ = ("_domain_counts", "_on", "keepers", "key", "moved", "number", "present", "shifted_at", "watchers")

    def __init__(self, number: int, present: bool = False, key: str = "", keepers: "TaskGroup | None" = None) -> None:
        self.number: Final = number
        """In the order in which groups were made."""
        self.present: Final = present
        """Whether tasks that are being removed do not count any more."""
        self.key: Final = key
        """By which label the domains are told apart that `keepers` keep it out of."""
        self.keepers: Final = keepers
        """Those who want to be apart from this group, and so keep its tasks away from where they are; None: nobody."""
        self.watchers: set[int] = set()
        """Shapes, by index, whose rules ask for this group."""
        self.shifted_at: int = 0
        """At which stamp of all groups somebody last came or went."""
        self.moved: bool = False
        """Whether somebody has come or gone since those who wait were last looked at."""
        self._on: dict[str, int] = {}
        self._domain_counts: dict[tuple[str, int], DomainCount] = {}

    @property
    def anybody(self) -> bool:
        """Whether it has anybody at all."""
        return bool(self._on)

    def shift(self, node: NodeState, by: int) -> None:
        """So many have come to this node, or left it."""
        name = node.name
        count = self._on.get(name, 0) + by
        if count:
            self._on[name] = count
        else:
            del self._on[name]
        for domain_count in self._domain_counts.values():
            domain_count.shift(node, by)

    def domain_count(self, key: str, topology: Topology, among: int, nodes: dict[str, NodeState]) -> DomainCount:
        """The counts by the domains of a label, kept up to date until the nodes change."""
        known = self._domain_counts.get((key, among))
        if known is None:
            known = DomainCount(key, topology, among, self._on, nodes)
            self._domain_counts[key, among] = known
        return known

    def invalidate_counts(self) -> None:
        """Nodes, their labels or their numbers have changed."""
        self._domain_counts.clear()


def is_meant(selection: Selection, labels: dict[str, str], namespace: str) -> bool:
    namespaces = selection[1]
    return (not namespaces or namespace in namespaces) and selects(selection[0], labels)
