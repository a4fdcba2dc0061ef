"""All groups and who belongs to which: where the tasks of each shape are, and in which counts they are.

Owns the bookkeeping when a task takes or leaves a node. What follows from the counts is `rules`' work.
"""

from typing import Final

from wattloom.cluster.index import Index
from wattloom.cluster.selector_index import SelectorIndex, ShapeIndex
from wattloom.cluster.shape_constraints import ShapeConstraints
from wattloom.cluster.site import NodeState
from wattloom.cluster.task_group import Selection, TaskGroup
from wattloom.workload.constraints import AffinityTerm, Port
from wattloom.workload.shape import Shape

SOME_ADDRESS: Final = "*"
"""Under which a port is counted whatever its address."""
FEW: Final = 8
"""Up to so many wishes to be apart are counted one by one, and shared by all tasks that have them; more of one task are
counted together, as one."""


class TaskGroups:
    """Who is where, counted in all the ways that rules ask for."""

    def __init__(self, index: Index) -> None:
        self.stamp: int = 0
        """Goes up when a count changes, or the nodes do."""
        self.moved: list[TaskGroup] = []
        """TaskGroups that somebody has joined or left since those who wait were last looked at."""
        self._index: Final = index
        self._revision: int = -1
        self._shape_constraints: dict[int, ShapeConstraints] = {}
        self._selected: dict[tuple[tuple[Selection, ...], bool], TaskGroup] = {}
        self._unwanted: dict[tuple[AffinityTerm, ...], TaskGroup] = {}
        """Tasks that one of these wishes to be apart means, by the wishes; all are about domains of one label."""
        self._made: int = 0
        self._ports: dict[tuple[str, int, str], TaskGroup] = {}
        self._by_selector: Final = SelectorIndex()
        self._by_label: Final = ShapeIndex()

    def see_the_revision(self) -> bool:
        """Whether nodes, labels or numbers are others than before: whatever was counted by domain is void then."""
        if self._revision == self._index.revision:
            return False
        self._revision = self._index.revision
        self.stamp += 1
        for group in (*self._selected.values(), *self._ports.values()):
            group.invalidate_counts()
        for group in self._unwanted.values():
            group.invalidate_counts()
            if group.keepers is not None:
                group.keepers.invalidate_counts()
        return True

    # -- who is where --------------------------------------------------------------------------------------------------

    def took(self, shape: Shape, node: NodeState) -> None:
        """A task of this shape is on this node now."""
        shape_constraints = self.shape_constraints(shape)
        shape_constraints.homes[node.name] = shape_constraints.homes.get(node.name, 0) + 1
        if shape_constraints.counted_by:
            self.see_the_revision()
            for group in shape_constraints.counted_by:
                self._shift(group, node, 1)

    def left(self, shape: Shape, node: NodeState, leaving: bool) -> None:
        """It is not any more: the inverse of `took`, and of `leaves` if it was leaving."""
        shape_constraints = self.shape_constraints(shape)
        _one_less(shape_constraints.homes, node.name)
        if leaving:
            _one_less(shape_constraints.leaving, node.name)
        if shape_constraints.counted_by:
            self.see_the_revision()
            for group in shape_constraints.counted_by:
                if not (leaving and group.present):
                    self._shift(group, node, -1)

    def leaves(self, shape: Shape, node: NodeState) -> None:
        """It is being removed: it is there, and not counted where tasks are to be spread."""
        shape_constraints = self.shape_constraints(shape)
        shape_constraints.leaving[node.name] = shape_constraints.leaving.get(node.name, 0) + 1
        self.see_the_revision()
        for group in shape_constraints.counted_by:
            if group.present:
                self._shift(group, node, -1)

    def _shift(self, group: TaskGroup, node: NodeState, by: int) -> None:
        group.shift(node, by)
        self.stamp += 1
        group.shifted_at = self.stamp
        if not group.moved:
            group.moved = True
            self.moved.append(group)

    def drop(self, shapes: list[Shape]) -> None:
        """No task of these shapes is left: whom only they counted is not counted any more."""
        for shape in shapes:
            self._shape_constraints.pop(shape.index, None)
        kept = list(self._shape_constraints.values())
        self._shape_constraints.clear()
        self._selected.clear()
        self._unwanted.clear()
        self._ports.clear()
        self._by_selector.clear()
        self._by_label.clear()
        self.moved.clear()
        self.stamp += 1
        for shape_constraints in kept:
            shape_constraints.counted_by.clear()
            shape_constraints.kept_by.clear()
            shape_constraints.unwanted.clear()
            shape_constraints.worked_out_at = -1
            self._enlist(shape_constraints)

    # -- who is counted ------------------------------------------------------------------------------------------------

    def known(self, index: int) -> ShapeConstraints | None:
        return self._shape_constraints.get(index)

    def shape_constraints(self, shape: Shape) -> ShapeConstraints:
        known = self._shape_constraints.get(shape.index)
        if known is None:
            known = ShapeConstraints(shape)
            self._enlist(known)
        return known

    def _enlist(self, shape_constraints: ShapeConstraints) -> None:
        """Put it into the groups it belongs to, and under those who keep it away."""
        for group in self._by_selector.groups(shape_constraints.labels, shape_constraints.namespace):
            self._admit(shape_constraints, group)
        self._shape_constraints[shape_constraints.shape.index] = shape_constraints
        self._by_label.add(shape_constraints)
        for terms in _counted_together(shape_constraints.constraints.anti_affinity):
            group = self._apart_from(terms)
            shape_constraints.unwanted.append(group)
            if group.keepers is not None:
                self._join(shape_constraints, group.keepers)
        for port in dict.fromkeys(shape_constraints.constraints.ports):
            self._join(shape_constraints, self.having(port, port.address))
            self._join(shape_constraints, self.having(port, SOME_ADDRESS))

    def _admit(self, shape_constraints: ShapeConstraints, group: TaskGroup) -> None:
        """It is one of those whom the group's selectors mean."""
        self._join(shape_constraints, group)
        keepers = group.keepers
        if keepers is not None:
            shape_constraints.kept_by.append((group.key, keepers))
            keepers.watchers.add(shape_constraints.shape.index)
            shape_constraints.stamp = -1

    def _join(self, shape_constraints: ShapeConstraints, group: TaskGroup) -> None:
        shape_constraints.counted_by.append(group)
        for name, count in shape_constraints.homes.items():
            if group.present:
                count -= shape_constraints.leaving.get(name, 0)
            if count:
                group.shift(self._index.nodes[name], count)

    def selected(self, selections: tuple[Selection, ...], present: bool) -> TaskGroup:
        """The tasks that all these mean; `present`: without those that are being removed."""
        group = self._selected.get((selections, present))
        if group is None:
            group = self._new(present)
            self._selected[selections, present] = group
            self._by_selector.add(selections, group)
            for shape_constraints in self._by_label.meant(selections):
                self._admit(shape_constraints, group)
        return group

    def _apart_from(self, terms: tuple[AffinityTerm, ...]) -> TaskGroup:
        """The tasks that one of these means."""
        group = self._unwanted.get(terms)
        if group is None:
            group = self._new(False, terms[0].key, self._new())
            self._unwanted[terms] = group
            meant: dict[int, ShapeConstraints] = {}
            for term in terms:
                selections = ((term.selector, term.namespaces),)
                self._by_selector.add(selections, group)
                meant.update({each.shape.index: each for each in self._by_label.meant(selections)})
            for shape_constraints in meant.values():
                self._admit(shape_constraints, group)
        return group

    def _new(self, present: bool = False, key: str = "", keepers: TaskGroup | None = None) -> TaskGroup:
        self._made += 1
        return TaskGroup(self._made, present, key, keepers)

    def having(self, port: Port, address: str) -> TaskGroup:
        """The tasks that have this port under this address."""
        key = (port.protocol, port.port, address)
        group = self._ports.get(key)
        if group is None:
            group = self._new()
            self._ports[key] = group
        return group


def _counted_together(terms: tuple[AffinityTerm, ...]) -> list[tuple[AffinityTerm, ...]]:
    """A few one by one, since others may have the same; many, which hardly anybody else has, by the label they name."""
    by_key: dict[str, dict[AffinityTerm, None]] = {}
    for term in terms:
        by_key.setdefault(term.key, {})[term] = None
    found: list[tuple[AffinityTerm, ...]] = []
    for alike in by_key.values():
        if len(alike) <= FEW:
            found += [(term,) for term in alike]
        else:
            found.append(tuple(alike))
    return found


def _one_less(counts: dict[str, int], name: str) -> None:
    count = counts[name] - 1
    if count:
        counts[name] = count
    else:
        del counts[name]
