"""All crowds and who belongs to which: where the tasks of each shape are, and in which counts they are.

Owns the bookkeeping when a task takes or leaves a node. What follows from the counts is `rules`' work.
"""

from typing import Final

from wattloom.cluster.crowd import Crowd, Selection, is_meant
from wattloom.cluster.index import Index
from wattloom.cluster.site import NodeState
from wattloom.cluster.standing import Standing
from wattloom.workload.shape import Shape
from wattloom.workload.where import Company, Port

SOME_ADDRESS: Final = "*"
"""Under which a port is counted whatever its address."""


class Crowds:
    """Who is where, counted in all the ways that rules ask for."""

    def __init__(self, index: Index) -> None:
        self.stamp: int = 0
        """Goes up when a count changes, or the nodes do."""
        self.moved: list[Crowd] = []
        """Crowds that somebody has joined or left since those who wait were last looked at."""
        self._index: Final = index
        self._roster: int = -1
        self._standings: dict[int, Standing] = {}
        self._selected: dict[tuple[tuple[Selection, ...], bool], Crowd] = {}
        self._keeping: dict[Company, Crowd] = {}
        """Tasks with this wish to be apart, by the wish."""
        self._ports: dict[tuple[str, int, str], Crowd] = {}

    def see_the_roster(self) -> bool:
        """Whether nodes, labels or numbers are others than before: whatever was counted by domain is void then."""
        if self._roster == self._index.roster:
            return False
        self._roster = self._index.roster
        self.stamp += 1
        for crowd in (*self._selected.values(), *self._keeping.values(), *self._ports.values()):
            crowd.forget_tallies()
        return True

    # -- who is where --------------------------------------------------------------------------------------------------

    def took(self, shape: Shape, node: NodeState) -> None:
        """A task of this shape is on this node now."""
        standing = self.standing(shape)
        standing.homes[node.name] = standing.homes.get(node.name, 0) + 1
        if standing.counted_by:
            self.see_the_roster()
            for crowd in standing.counted_by:
                self._shift(crowd, node, 1)

    def left(self, shape: Shape, node: NodeState, leaving: bool) -> None:
        """It is not any more: the inverse of `took`, and of `leaves` if it was leaving."""
        standing = self.standing(shape)
        _one_less(standing.homes, node.name)
        if leaving:
            _one_less(standing.leaving, node.name)
        if standing.counted_by:
            self.see_the_roster()
            for crowd in standing.counted_by:
                if not (leaving and crowd.present):
                    self._shift(crowd, node, -1)

    def leaves(self, shape: Shape, node: NodeState) -> None:
        """It is being removed: it is there, and not counted where tasks are to be spread."""
        standing = self.standing(shape)
        standing.leaving[node.name] = standing.leaving.get(node.name, 0) + 1
        self.see_the_roster()
        for crowd in standing.counted_by:
            if crowd.present:
                self._shift(crowd, node, -1)

    def _shift(self, crowd: Crowd, node: NodeState, by: int) -> None:
        crowd.shift(node, by)
        self.stamp += 1
        if not crowd.moved:
            crowd.moved = True
            self.moved.append(crowd)

    def forget(self, shapes: list[Shape]) -> None:
        """No task of these shapes is left: whom only they counted is not counted any more."""
        for shape in shapes:
            self._standings.pop(shape.index, None)
        kept = list(self._standings.values())
        self._standings.clear()
        self._selected.clear()
        self._keeping.clear()
        self._ports.clear()
        self.moved.clear()
        self.stamp += 1
        for standing in kept:
            standing.counted_by.clear()
            standing.kept_by.clear()
            standing.worked_out_at = -1
            self._enlist(standing)

    # -- who is counted ------------------------------------------------------------------------------------------------

    def known(self, index: int) -> Standing | None:
        return self._standings.get(index)

    def standing(self, shape: Shape) -> Standing:
        known = self._standings.get(shape.index)
        if known is None:
            known = Standing(shape)
            self._enlist(known)
        return known

    def _enlist(self, standing: Standing) -> None:
        """Put it into the crowds it belongs to, and under those who keep it away."""
        for crowd in self._selected.values():
            if crowd.includes(standing.tags, standing.space):
                self._join(standing, crowd)
        for company, crowd in self._keeping.items():
            self._keep_away(company, crowd, standing)
        self._standings[standing.shape.index] = standing
        for company in dict.fromkeys(standing.where.apart):
            self._join(standing, self._keepers(company))
        for port in dict.fromkeys(standing.where.ports):
            self._join(standing, self.having(port, port.address))
            self._join(standing, self.having(port, SOME_ADDRESS))

    def _join(self, standing: Standing, crowd: Crowd) -> None:
        standing.counted_by.append(crowd)
        for name, count in standing.homes.items():
            if crowd.present:
                count -= standing.leaving.get(name, 0)
            if count:
                crowd.shift(self._index.nodes[name], count)

    def selected(self, selections: tuple[Selection, ...], present: bool) -> Crowd:
        """The tasks that all these mean; `present`: without those that are being removed."""
        crowd = self._selected.get((selections, present))
        if crowd is None:
            crowd = Crowd(selections, present)
            self._selected[selections, present] = crowd
            for standing in self._standings.values():
                if crowd.includes(standing.tags, standing.space):
                    self._join(standing, crowd)
        return crowd

    def _keepers(self, company: Company) -> Crowd:
        """The tasks that want to be apart from such company."""
        crowd = self._keeping.get(company)
        if crowd is None:
            crowd = Crowd()
            self._keeping[company] = crowd
            for standing in self._standings.values():
                self._keep_away(company, crowd, standing)
        return crowd

    def _keep_away(self, company: Company, crowd: Crowd, standing: Standing) -> None:
        if is_meant((company.selector, company.spaces), standing.tags, standing.space):
            standing.kept_by.append((company.key, crowd))
            crowd.watchers.add(standing.shape.index)
            standing.stamp = -1

    def having(self, port: Port, address: str) -> Crowd:
        """The tasks that have this port under this address."""
        key = (port.protocol, port.port, address)
        crowd = self._ports.get(key)
        if crowd is None:
            crowd = Crowd()
            self._ports[key] = crowd
        return crowd


def _one_less(counts: dict[str, int], name: str) -> None:
    count = counts[name] - 1
    if count:
        counts[name] = count
    else:
        del counts[name]
