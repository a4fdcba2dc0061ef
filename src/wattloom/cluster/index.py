"""The index over all nodes: by class, by site, and ranked by cost.

Owns which node is in which site and the rankings that policies ask for. A ranking is a heap of sites; it catches up
with the sites that have got nodes since it was last asked, so a decision touches the few that changed.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final

from wattloom.cluster.node import Node
from wattloom.cluster.node_class import ClassKey, DeviceUse, Mode, NodeClass, ResourceUse, use_after
from wattloom.cluster.node_numbering import NodeNumbering
from wattloom.cluster.site import NodeState, Site
from wattloom.machines.machine import Machine
from wattloom.workload.shape import Shape

Rank = tuple[int, float, float]
"""Tier, cost, then the policy's second key; the node's name decides what is left. Never NaN: see `rank_of`."""
Entry = tuple[int, float, float, int, Site]
SiteKey = tuple[int, int, int, int, DeviceUse, int, ResourceUse, int]

FIRST_TIER: Final = 0
UNKNOWN_TIER: Final = 2**31
"""Behind all others: what a place costs there is not known."""
MOST_PREFERRED: Final = 64
FRESH_LIMIT: Final = 50_000
EMPTY_LIMIT: Final = 20_000
CLASSES_LIMIT: Final = 1_000


class Index:
    """All nodes of the cluster, findable by what they have left."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.numbering: Final = NodeNumbering(self._renumber)
        self.classes: list[NodeClass] = []
        self.microwatts: int = 0
        """Draw of the whole cluster by the curves."""
        self.unknown_power: int = 0
        """How many nodes have no curve."""
        self.fresh: list[Site] = []
        """Sites that got their first node, in order; rankings read it from where they stopped."""
        self.noting: bool = False
        """Whether every site that gets a node is noted there, since rules tell its nodes apart."""
        self.rankings: dict[int, Ranking] = {}
        self.preferred: dict[tuple[int, float, float], Ranking] = {}
        """The same for tasks that need so many joules and seconds more at a place."""
        self.changes: int = 0
        """Goes up when a class comes or goes, or a forecast changes."""
        self.revision: int = 0
        """Goes up when a node comes or goes, or its labels, taints or number change."""
        self.own_keys: dict[str, int] = {}
        """Labels that some nodes have of their own, and how many do."""
        self._class_of: dict[ClassKey, NodeClass] = {}
        self._sites: dict[SiteKey, Site] = {}
        self._alive: dict[int, Site] = {}
        """Sites that have nodes, by serial."""
        self._serial: int = 0
        self._classes_made: int = 0
        self._most_classes: int = CLASSES_LIMIT

    def add(self, node: Node, machine: Machine) -> NodeState:
        cls = self._class_for(node, machine)
        state = NodeState(node.name, cls, Mode.ASLEEP if node.asleep else Mode.AWAKE, node.own)
        self._site_of(state)
        self.nodes[node.name] = state
        state.number = self.numbering.add(node.name)
        self.revision += 1
        self._count_own(state, 1)
        self._resize(cls, 1)
        self.place(state)
        return state

    def reclassify(self, state: NodeState, node: Node, machine: Machine) -> None:
        """The node has become one of another class. Call `place` when what is taken is in that class's order."""
        old = state.cls
        cls = self._class_for(node, machine)
        self._resize(old, -1)
        self._count_own(state, -1)
        if (cls.labels, cls.taints, node.own) != (old.labels, old.taints, state.own):
            self.revision += 1
        state.cls = cls
        state.own = node.own
        self._count_own(state, 1)
        self._resize(cls, 1)

    def _count_own(self, state: NodeState, by: int) -> None:
        for key in state.own:
            count = self.own_keys.get(key, 0) + by
            if count:
                self.own_keys[key] = count
            else:
                del self.own_keys[key]

    def _resize(self, cls: NodeClass, by: int) -> None:
        cls.size += by
        if not cls.machine.knows_power:
            self.unknown_power += by
        if cls.size == 0 or (by > 0 and cls.size == 1):
            self.kinds_changed()

    def kinds_changed(self) -> None:
        """What the cluster consists of, or what is known of it, is different: whatever was ranked by it is void."""
        self.changes += 1
        self.rankings.clear()
        self.preferred.clear()

    def _class_for(self, node: Node, machine: Machine) -> NodeClass:
        key = NodeClass.key_of(node, machine)
        cls = self._class_of.get(key)
        if cls is None or cls.machine.profile != machine.profile:
            self._forget_classes()
            cls = NodeClass(self._classes_made, key, machine)
            self._classes_made += 1
            self._class_of[key] = cls
            self.classes.append(cls)
        return cls

    def _forget_classes(self) -> None:
        """Nodes that come and go under ever new labels leave classes behind."""
        if len(self.classes) < self._most_classes:
            return
        self.classes = [cls for cls in self.classes if cls.size]
        self._class_of = {key: cls for key, cls in self._class_of.items() if cls.size}
        self._sites = {key: site for key, site in self._sites.items() if site.cls.size}
        for site in self._sites.values():
            site.steps.clear()
        self._most_classes = max(CLASSES_LIMIT, 2 * len(self.classes))
        self.kinds_changed()

    def remove(self, state: NodeState) -> None:
        site = state.site
        assert site is not None
        self._left(site, state.number)
        self._count_awake(site, -1)
        state.site = None
        self._resize(state.cls, -1)
        del self.nodes[state.name]
        self.numbering.remove(state.name)
        self._count_own(state, -1)
        self.revision += 1

    def take(self, state: NodeState, task: str, shape: Shape, guaranteed: int) -> None:
        """A task without devices takes its part; the step from site to site is remembered by shape."""
        state.take(task, shape.cpu, guaranteed, shape.memory)
        self._step(state, shape, shape.index, 1)

    def give_back(self, state: NodeState, task: str, shape: Shape, guaranteed: int) -> None:
        """The inverse of `take`."""
        state.give_back(task, shape.cpu, guaranteed, shape.memory)
        self._step(state, shape, -1 - shape.index, -1)

    def _step(self, state: NodeState, shape: Shape, step: int, sign: int) -> None:
        old = state.site
        assert old is not None
        site = old.steps.get(step)
        if site is None:
            self.take_counted(state, shape, sign)
            self.place(state)
            site = state.site
            assert site is not None
            old.steps[step] = site
        else:
            self._move(state, old, site)
            state.resources = site.resources

    def take_counted(self, state: NodeState, shape: Shape, sign: int) -> None:
        """Take (1) or give back (-1) what is counted beside CPU and memory."""
        if shape.resources and state.resources:
            state.resources = use_after(state.cls, state.resources, shape.resources, sign)

    def place(self, state: NodeState) -> None:
        """Put the node in the site its present use belongs to."""
        site = self._site_of(state)
        self._count_awake(state.site, -1)
        self._count_awake(site, 1)
        self._move(state, state.site, site)

    def _site_of(self, state: NodeState) -> Site:
        cls = state.cls
        key = (
            cls.index, state.demand, state.allocated, state.memory, state.devices, int(state.mode), state.resources,
            state.frequency,
        )  # fmt: skip
        site = self._sites.get(key)
        return site if site is not None else self._new_site(key, cls, state.mode)

    def _count_awake(self, site: Site | None, by: int) -> None:
        if site is not None and site.mode.is_awake:
            site.cls.awake += by

    def _move(self, state: NodeState, old: Site | None, site: Site) -> None:
        if old is not None:
            self._left(old, state.number)
        self.microwatts += site.microwatts
        state.site = site
        fresh = site.count == 0
        site.enter(state.number)
        if fresh:
            self._alive[site.serial] = site
        if fresh or self.noting:
            self.fresh.append(site)
            if len(self.fresh) > FRESH_LIMIT:
                self._trim()

    def _left(self, site: Site, number: int) -> None:
        site.leave(number)
        self.microwatts -= site.microwatts
        if not site.count:
            del self._alive[site.serial]

    @property
    def names(self) -> list[str]:
        """All nodes' names, in order."""
        return self.numbering.names

    def sites(self) -> list[Site]:
        """Every site that has nodes."""
        return list(self._alive.values())

    def rank_by(self, key: int, evaluate: Callable[[Site], object]) -> "Ranking":
        """A new ranking, kept under this key until what it was made from changes."""
        ranking = Ranking(self, evaluate)
        self.rankings[key] = ranking
        return ranking

    def rank_preferred(self, key: tuple[int, float, float], evaluate: Callable[[Site], object]) -> "Ranking":
        """The same, for some nodes only. Few are kept: figures of single tasks come and go."""
        if len(self.preferred) >= MOST_PREFERRED:
            self.preferred.clear()
        ranking = Ranking(self, evaluate)
        self.preferred[key] = ranking
        return ranking

    def _new_site(self, key: SiteKey, cls: NodeClass, mode: Mode) -> Site:
        self._serial += 1
        site = Site(self._serial, cls, key[1], key[2], key[3], key[4], mode, self.numbering, key[6], key[7])
        self._sites[key] = site
        return site

    def _renumber(self) -> None:
        """The numbering has given out new numbers."""
        self.revision += 1
        for site in self._sites.values():
            site.unmark_all()
        for number, name in enumerate(self.numbering.at):
            state = self.nodes[name]
            state.number = number
            site_of = state.site
            assert site_of is not None
            site_of.mark(number)

    def _trim(self) -> None:
        """Shorten what only grows: the list of fresh sites, and the empty sites."""
        for shape, ranking in list(self.rankings.items()):
            try:
                ranking.catch_up()
                ranking.read = 0
            except (Exception, SystemExit):  # other people's code, and this is no time to fail: it is asked anew
                del self.rankings[shape]
        self.preferred.clear()
        self.fresh.clear()
        empty = [key for key, site in self._sites.items() if not site.count]
        if len(empty) > EMPTY_LIMIT:
            for key in empty:
                del self._sites[key]
            for site in self._sites.values():
                site.steps.clear()
            for ranking in self.rankings.values():
                ranking.forget_empty()


class Ranking:
    """Sites in the order of their rank for one kind of task. Ranks do not change while a site lives."""

    def __init__(self, index: Index, evaluate: Callable[[Site], object]) -> None:
        self.index: Final = index
        self.evaluate: Final = evaluate
        self.heap: list[Entry] = []
        self.present: set[int] = set()
        self.ranks: dict[int, Rank | None] = {}
        self.aside: dict[int, Entry] = {}
        """Sites that had none of the nodes that were asked for last, by serial."""
        self.asked_for: int = 0
        self.revision: int = index.revision
        """Of which revision the numbers are."""
        self.read: int = len(index.fresh)
        for site in index.sites():
            self._offer(site)

    def best(self) -> Site | None:
        """The site with the lowest rank; among equals the one whose first node comes first by name."""
        self.catch_up()
        if self.aside:
            self._take_back(-1)
        heap = self.heap
        while heap and not heap[0][4].count:
            self.present.discard(heappop(heap)[3])
        if not heap:
            return None
        top = heap[0]
        if len(heap) == 1 or not (_equal(top, heap[1]) or (len(heap) > 2 and _equal(top, heap[2]))):
            return top[4]
        return self._first_by_name()

    @property
    def least(self) -> float:
        """The cost of the site that `best` has just found."""
        return self.heap[0][1]

    def best_where(self, accept: Callable[[Site], bool]) -> Site | None:
        """The first site, by the same rule, that is also acceptable for a reason that no rank knows."""
        self.catch_up()
        if self.aside:
            self._take_back(-1)
        aside: list[Entry] = []
        found: Site | None = None
        try:
            while self.heap and found is None:
                equals = self._take_equals()
                aside += equals
                for entry in sorted(equals, key=_by_first_name):
                    if accept(entry[4]):
                        found = entry[4]
                        break
        finally:
            for entry in aside:
                heappush(self.heap, entry)
        return found

    def best_among(self, nodes: int, accept: Callable[[Site], bool] | None = None) -> Site | None:
        """The same for a site that has one of these nodes; among equals the first such node's name decides.

        Sites that have none are put aside until they get one, or the nodes asked for are others.
        """
        self.catch_up()
        self._take_back(nodes)
        kept: list[Entry] = []
        found: Site | None = None
        first = ""
        try:
            while self.heap and found is None:
                equals = self._take_equals()
                kept += equals
                for entry in equals:
                    name = entry[4].first_of(nodes)
                    if name is None:
                        self.aside[entry[3]] = entry
                    elif (found is None or name < first) and (accept is None or accept(entry[4])):
                        found, first = entry[4], name
        finally:
            for entry in kept:
                if entry[3] not in self.aside:
                    heappush(self.heap, entry)
        return found

    def _take_back(self, nodes: int) -> None:
        """What was put aside for want of these nodes counts again."""
        renumbered = self.revision != self.index.revision
        gained = nodes & ~self.asked_for
        self.revision, self.asked_for = self.index.revision, nodes
        if not self.aside or not (gained or renumbered):
            return
        for entry in list(self.aside.values()):
            if renumbered or entry[4].whole() & gained:
                del self.aside[entry[3]]
                heappush(self.heap, entry)

    def _take_equals(self) -> list[Entry]:
        """Take out the entries of the lowest rank, one at least; empty sites are dropped for good."""
        top = heappop(self.heap)
        equals: list[Entry] = []
        entry = top
        while True:
            if entry[4].count:
                equals.append(entry)
            else:
                self.present.discard(entry[3])
            if not self.heap or not _equal(top, self.heap[0]):
                return equals
            entry = heappop(self.heap)

    def rank(self, site: Site) -> Rank | None:
        """What `evaluate` said of this site."""
        if site.serial not in self.ranks:
            self.ranks[site.serial] = rank_of(self.evaluate(site))
        return self.ranks[site.serial]

    def catch_up(self) -> None:
        fresh = self.index.fresh
        for position in range(self.read, len(fresh)):
            self._offer(fresh[position])
        self.read = len(fresh)

    def forget_empty(self) -> None:
        self.heap += self.aside.values()
        self.aside.clear()
        self.heap = [entry for entry in self.heap if entry[4].count]
        heapify(self.heap)
        self.present = {entry[3] for entry in self.heap}
        self.ranks = {entry[3]: (entry[0], entry[1], entry[2]) for entry in self.heap}

    def _offer(self, site: Site) -> None:
        serial = site.serial
        if not site.count:
            return
        if serial in self.present:
            if serial in self.aside:
                heappush(self.heap, self.aside.pop(serial))
            return
        rank = self.rank(site)
        if rank is not None:
            heappush(self.heap, (rank[0], rank[1], rank[2], serial, site))
            self.present.add(serial)

    def _first_by_name(self) -> Site:
        equals = self._take_equals()
        first = equals[0][4]
        for entry in equals:
            heappush(self.heap, entry)
            if entry[4].first() < first.first():
                first = entry[4]
        return first


def rank_of(said: object) -> Rank | None:
    """A policy's word on a site as a rank. A pair, cost and second key, is of the first tier; what costs beyond all
    numbers is of the last. What is not a number comes last, what cannot be one is an error."""
    if said is None:
        return None
    if not isinstance(said, tuple) or len(said) not in (2, 3):
        raise TypeError(f"a rank is a tier, a cost and a second key, or the last two, not {said!r}")
    cost, tie = _key(said[-2]), _key(said[-1])
    tier = _tier(said[0]) if len(said) == 3 else FIRST_TIER
    return (tier if cost < inf else UNKNOWN_TIER), cost, tie


def _tier(said: object) -> int:
    if not isinstance(said, int):
        raise TypeError(f"a rank is of a tier that is a whole number, not {said!r}")
    return max(FIRST_TIER, min(said, UNKNOWN_TIER))


def _key(said: object) -> float:
    if not isinstance(said, (float, int)):
        raise TypeError(f"a rank is made of numbers, not {said!r}")
    try:
        number = float(said)
    except OverflowError:  # a whole number that no float can hold
        return inf if said > 0 else -inf
    return number if number == number else inf


def _equal(a: Entry, b: Entry) -> bool:
    return a[0] == b[0] and a[1] == b[1] and a[2] == b[2]


def _by_first_name(entry: Entry) -> str:
    return entry[4].first()
