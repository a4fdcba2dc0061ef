"""The nodes as rules see them: by the values of a label, by name, by taint.

Owns the sets of nodes that selectors, terms and tolerations name. They hold until nodes, labels or numbers change.
"""

from typing import Final

from wattloom.cluster.index import Index
from wattloom.cluster.matching import holds, tolerated
from wattloom.cluster.topology import EVERY, Topology, mask_of
from wattloom.workload.constraints import Constraints, NodeTerm, Taint, Toleration
from wattloom.workload.requirements import Requirements


class NodeSets:
    """Sets of nodes, made when asked for."""

    def __init__(self, index: Index) -> None:
        self._index: Final = index
        self._topologies: dict[str, Topology] = {}
        self._by_taints: dict[tuple[Taint, ...], int] = {}

    def invalidate(self) -> None:
        """Nodes, labels or numbers have changed."""
        self._topologies.clear()
        self._by_taints.clear()

    def topology(self, key: str) -> Topology:
        """The domains of a label; of none (an empty name): each node by itself."""
        known = self._topologies.get(key)
        if known is None:
            nodes = self._index.nodes.values()
            known = Topology([(node.label(key) if key else node.name, node.number) for node in nodes])
            self._topologies[key] = known
        return known

    def chosen(self, requirements: Requirements, constraints: Constraints) -> int:
        """The nodes that labels, selector and terms of a task let it go to."""
        found = EVERY
        for name, value in (*requirements.labels, *constraints.selector):
            found &= self.topology(name).mask(value)
        return found if constraints.terms is None else found & self.with_one_of(constraints.terms, named=True)

    def with_volumes(self, constraints: Constraints) -> int:
        """The nodes from which each of its volumes can be reached. Volumes know nodes by their labels alone."""
        found = EVERY
        for terms in constraints.volumes:
            found &= self.with_one_of(terms, named=False)
        return found

    def with_one_of(self, terms: tuple[NodeTerm, ...], named: bool) -> int:
        """The nodes for which one of the terms holds."""
        found = 0
        for term in terms:
            if term.labels or term.fields:
                found |= self._with_all_of(term, named)
        return found

    def _with_all_of(self, term: NodeTerm, named: bool) -> int:
        found = EVERY
        for expression in term.labels:
            found &= self.topology(expression.key).where(expression)
        for expression in term.fields:
            if named:
                found &= self.topology("").where(expression)
            elif not holds(expression, ""):
                return 0
        return found

    def tolerating(self, tolerations: tuple[Toleration, ...]) -> int:
        """The nodes that no taint keeps a task with these tolerations away from."""
        if not self._by_taints:
            numbers: dict[tuple[Taint, ...], list[int]] = {}
            for node in self._index.nodes.values():
                numbers.setdefault(node.cls.taints, []).append(node.number)
            self._by_taints = {taints: mask_of(found) for taints, found in numbers.items()}
        found = 0
        for taints, mask in self._by_taints.items():
            if tolerated(taints, tolerations):
                found |= mask
        return found
