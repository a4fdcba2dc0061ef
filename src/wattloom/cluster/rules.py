"""Rules that tell the nodes of one class apart: names, labels of their own, ports, spreading, affinity.

Owns the answer which nodes a shape may go to now, as a set of nodes, and why not to the others. They mean what they
mean to Kubernetes' own scheduler. Nothing of this costs anything until a task or a node comes that has such rules.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from wattloom.cluster.index import Index
from wattloom.cluster.matching import selects
from wattloom.cluster.node_sets import NodeSets
from wattloom.cluster.reasons import Reason
from wattloom.cluster.shape_constraints import ShapeConstraints
from wattloom.cluster.site import NodeState
from wattloom.cluster.task_group import DomainCount, TaskGroup, is_meant
from wattloom.cluster.task_groups import SOME_ADDRESS, TaskGroups
from wattloom.cluster.topology import EVERY
from wattloom.workload.constraints import Spread
from wattloom.workload.shape import Shape

ANY_ADDRESS: Final = "0.0.0.0"
Verdict = tuple[Reason, int]
"""A reason, and the nodes it is not held against."""


class Rules:
    """Which nodes each shape may go to."""

    def __init__(self, index: Index) -> None:
        self.active: bool = False
        """Whether anything here matters at all."""
        self._index: Final = index
        self._groups: Final = TaskGroups(index)
        self._node_sets: Final = NodeSets(index)
        self._revision: int = -1
        self._looked_at: int = -1
        """The revision when those who wait were last looked at."""

    # -- who is where --------------------------------------------------------------------------------------------------

    def activate(self, placed: Iterable[tuple[Shape, NodeState, bool]]) -> None:
        """From now on it matters who is where: tell it of each task that is on a node, and whether it leaves."""
        self.active = True
        self._index.noting = True
        for shape, node, leaving in placed:
            self.took(shape, node)
            if leaving:
                self.leaves(shape, node)

    def took(self, shape: Shape, node: NodeState) -> None:
        """A task of this shape is on this node now."""
        self._groups.took(shape, node)

    def left(self, shape: Shape, node: NodeState, leaving: bool) -> None:
        """It is not any more: the inverse of `took`, and of `leaves` if it was leaving."""
        self._groups.left(shape, node, leaving)

    def leaves(self, shape: Shape, node: NodeState) -> None:
        """It is being removed: it is there, and not counted where tasks are to be spread."""
        self._groups.leaves(shape, node)

    def drop(self, shapes: list[Shape]) -> None:
        """No task of these shapes is left."""
        if self.active:
            self._groups.drop(shapes)

    # -- which nodes ---------------------------------------------------------------------------------------------------

    def allowed(self, shape: Shape) -> int:
        """The nodes that its rules, and others', let a task of this shape go to; `EVERY`: all."""
        shape_constraints = self._constraints_of(shape)
        if shape_constraints.stamp != self._groups.stamp:
            if shape_constraints.outdated:
                mask = EVERY
                for _, fits in self._verdicts(shape_constraints):
                    mask &= fits
                shape_constraints.allowed = mask
            shape_constraints.stamp = self._groups.stamp
        return shape_constraints.allowed

    def verdicts(self, shape: Shape) -> list[Verdict]:
        """The same, reason by reason, in the order in which Kubernetes asks."""
        return self._verdicts(self._constraints_of(shape))

    def why(self, shape: Shape, node: NodeState) -> Reason | None:
        """What is held against this node; None: nothing."""
        if self.allowed(shape) >> node.number & 1:
            return None
        for reason, fits in self.verdicts(shape):
            if not fits >> node.number & 1:
                return reason
        return None

    def _constraints_of(self, shape: Shape) -> ShapeConstraints:
        """What is known of the shape, true of the nodes as they are."""
        if self._index.numbering.stale:
            self._index.numbering.settle()
        if self._revision != self._index.revision:
            self._revision = self._index.revision
            self._node_sets.invalidate()
        self._groups.see_the_revision()
        shape_constraints = self._groups.shape_constraints(shape)
        if shape_constraints.worked_out_at != self._revision:
            self._work_out(shape_constraints)
        return shape_constraints

    def _verdicts(self, shape_constraints: ShapeConstraints) -> list[Verdict]:
        found: list[Verdict] = []
        if shape_constraints.node_affinity != EVERY:
            found.append((Reason.AFFINITY, shape_constraints.node_affinity))
        for domain_count in shape_constraints.ports:
            found.append((Reason.PORT, ~domain_count.some()))
        if shape_constraints.volumes != EVERY:
            found.append((Reason.VOLUME, shape_constraints.volumes))
        for domain_count, ahead, from_none in shape_constraints.spread:
            found.append((Reason.SPREAD, domain_count.up_to(ahead if from_none else ahead + domain_count.least())))
        if shape_constraints.affinity:
            found.append((Reason.COMPANY_MISSING, _with_affinity(shape_constraints)))
        for domain_count in shape_constraints.anti_affinity:
            found.append((Reason.COMPANY_UNWANTED, ~domain_count.some()))
        for key, group in shape_constraints.kept_by:
            if group.anybody:
                found.append((Reason.KEPT_AWAY, ~self._domain_count(group, key).some()))
        return found

    # -- who is asked again --------------------------------------------------------------------------------------------

    @property
    def has_moved(self) -> bool:
        """Whether somebody who waits may have got more nodes to go to."""
        return bool(self._groups.moved) or self._looked_at != self._index.revision

    def refused(self, shape: Shape) -> None:
        """Its tasks found no place on the nodes that are allowed now."""
        shape_constraints = self._constraints_of(shape)
        shape_constraints.refused = self.allowed(shape)
        shape_constraints.refused_at = self._revision

    def given_more(self, waiting: Mapping[int, object]) -> list[int]:
        """Which of the shapes that wait, by index, have got nodes to go to that they were not refused on."""
        moved = self._groups.moved
        if not waiting:
            self._nobody_waits()
            return []
        asked: set[int] = set()
        if self._looked_at != self._index.revision:
            self._looked_at = self._index.revision
            asked.update(waiting)
        for group in moved:
            group.moved = False
            if len(group.watchers) < len(waiting):
                asked.update([index for index in group.watchers if index in waiting])
            else:
                asked.update([index for index in waiting if index in group.watchers])
        moved.clear()
        return [index for index in sorted(asked) if self._has_gained(index)]

    def _nobody_waits(self) -> None:
        for group in self._groups.moved:
            group.moved = False
        self._groups.moved.clear()
        self._looked_at = self._index.revision

    def _has_gained(self, index: int) -> bool:
        shape_constraints = self._groups.known(index)
        if shape_constraints is None:
            return False
        mask = self.allowed(shape_constraints.shape)
        if shape_constraints.refused_at != self._revision:
            return mask != EVERY or shape_constraints.refused != EVERY
        gained = mask & ~shape_constraints.refused != 0
        shape_constraints.refused = mask
        return gained

    # -- what does not change while the nodes are the same -------------------------------------------------------------

    def _work_out(self, shape_constraints: ShapeConstraints) -> None:
        constraints, node_sets = shape_constraints.constraints, self._node_sets
        shape_constraints.worked_out_at = self._revision
        shape_constraints.stamp = -1
        shape_constraints.asks = []
        apart_from_class = shape_constraints.asks_names or not shape_constraints.keys.isdisjoint(self._index.own_keys)
        chosen = EVERY
        if apart_from_class or constraints.spread:
            chosen = node_sets.chosen(shape_constraints.shape.requirements, constraints)
        shape_constraints.node_affinity = chosen if apart_from_class else EVERY
        shape_constraints.volumes = node_sets.with_volumes(constraints) if apart_from_class else EVERY
        shape_constraints.ports = self._port_counts(shape_constraints)
        shape_constraints.spread = self._spread_counts(shape_constraints, chosen)
        self._work_out_affinity(shape_constraints)

    def _port_counts(self, shape_constraints: ShapeConstraints) -> list[DomainCount]:
        """Who has the ports it wants: on every address, all who have them on any do."""
        found: list[DomainCount] = []
        for port in shape_constraints.constraints.ports:
            all_of_them = port.address == ANY_ADDRESS
            for address in (SOME_ADDRESS,) if all_of_them else (port.address, ANY_ADDRESS):
                found.append(self._watched(shape_constraints, self._groups.having(port, address), ""))
        return found

    def _spread_counts(self, shape_constraints: ShapeConstraints, chosen: int) -> list[tuple[DomainCount, int, bool]]:
        """Only nodes that have the labels of all spreads count, and that the task may choose, if that is honoured."""
        constraints = shape_constraints.constraints
        labelled = EVERY
        for spread in constraints.spread:
            labelled &= self._node_sets.topology(spread.key).everywhere
        found: list[tuple[DomainCount, int, bool]] = []
        for spread in constraints.spread:
            among = labelled & chosen if spread.honor_affinity else labelled
            if spread.honor_taints:
                among &= self._node_sets.tolerating(constraints.tolerations)
            group = self._spread_group(spread, shape_constraints.namespace)
            domain_count = self._watched(shape_constraints, group, spread.key, among)
            itself = 1 if selects(spread.selector, shape_constraints.labels) else 0
            found.append((domain_count, spread.most - itself, domain_count.domains < (spread.least_domains or 1)))
        return found

    def _spread_group(self, spread: Spread, namespace: str) -> TaskGroup:
        """An empty selector means the task itself, but nobody who is there already: Kubernetes counts so."""
        return self._groups.selected(((spread.selector or None, (namespace,)),), True)

    def _work_out_affinity(self, shape_constraints: ShapeConstraints) -> None:
        constraints = shape_constraints.constraints
        wanted = tuple(dict.fromkeys((term.selector, term.namespaces) for term in constraints.affinity))
        if wanted:
            group = self._groups.selected(wanted, False)
            keys = dict.fromkeys(term.key for term in constraints.affinity)
            shape_constraints.affinity = [self._watched(shape_constraints, group, key) for key in keys]
            shape_constraints.affinity_to_itself = all(
                is_meant(each, shape_constraints.labels, shape_constraints.namespace) for each in wanted
            )
        shape_constraints.anti_affinity = [
            self._watched(shape_constraints, group, group.key) for group in shape_constraints.unwanted
        ]

    def _watched(
        self, shape_constraints: ShapeConstraints, group: TaskGroup, key: str, among: int = EVERY
    ) -> DomainCount:
        group.watchers.add(shape_constraints.shape.index)
        shape_constraints.asks.append(group)
        return self._domain_count(group, key, among)

    def _domain_count(self, group: TaskGroup, key: str, among: int = EVERY) -> DomainCount:
        return group.domain_count(key, self._node_sets.topology(key), among, self._index.nodes)


def _with_affinity(shape_constraints: ShapeConstraints) -> int:
    """The nodes that have somebody of the wanted tasks in each of the domains; the first of such tasks may choose."""
    first = shape_constraints.affinity_to_itself and all(
        domain_count.empty for domain_count in shape_constraints.affinity
    )
    found = EVERY
    for domain_count in shape_constraints.affinity:
        found &= domain_count.among if first else domain_count.some()
    return found
