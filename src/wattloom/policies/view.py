"""What a policy may look at: the cluster as it is at one moment.

Owns the questions a policy can ask, answered from the index and the forecasts. What it hands out is for looking: a
policy that changes it breaks the engine, and the conformance kit finds it.
"""

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Final, Protocol

from wattloom.cluster.index import Index, Rank, Ranking, rank_of
from wattloom.cluster.node_class import NodeClass
from wattloom.cluster.reasons import Reason
from wattloom.cluster.rules import Rules
from wattloom.cluster.site import NodeState, Site
from wattloom.cluster.topology import EVERY, mask_of
from wattloom.cluster.warm_instances import WarmInstances
from wattloom.energy.signal import Signal
from wattloom.policies.answers import Proposal, Refusal
from wattloom.policies.ask import Ask
from wattloom.policies.graph import Graph
from wattloom.prediction.placement_estimate import PlacementEstimate, PlacementEstimates
from wattloom.prediction.readings import Readings
from wattloom.workload.preference import Labels, Preference
from wattloom.workload.shape import Shape
from wattloom.workload.task import Task

__all__ = ["Ask", "Best", "Cell", "Ranked", "Ranker", "View"]

FEW: Final = 32
"""So many preferred nodes are looked at one by one; more of them by a ranking of their own."""

Cell = tuple[int, float, float]
"""Nodes as a set, and the joules and seconds that a task takes more there."""
Best = tuple[Rank, str, Site]
"""The lowest rank, the node that has it and the node's site."""


Ranked = Rank | tuple[float, float]
"""Tier, cost and second key; or the last two, which is the first tier."""


class Running:
    """One task that has a place, as a policy that reconsiders sees it."""

    __slots__ = (
        "changing", "checkpoint", "guaranteed", "memory", "node", "progress", "shape", "started", "task", "variant",
    )  # fmt: skip

    def __init__(
        self,
        task: Task,
        shape: Shape,
        node: str,
        variant: str,
        started: bool,
        progress: float,
        guaranteed: int,
        memory: int,
        changing: bool,
        checkpoint: tuple[str, int] | None,
    ) -> None:
        self.task: Final = task
        self.shape: Final = shape
        self.node: Final = node
        self.variant: Final = variant
        self.started: Final = started
        self.progress: Final = progress
        """Share of it that is done, as last reported; 0: nobody has said."""
        self.guaranteed: Final = guaranteed
        """Millicores kept for it."""
        self.memory: Final = memory
        self.changing: Final = changing
        """Whether it is being moved or resized."""
        self.checkpoint: Final = checkpoint
        """Name and bytes of the last one, from which it could go on; None: there is none."""


class Ranker(Protocol):
    """Whoever ranks sites: lower is better, None where there is no room."""

    def rank(self, shape: Shape, site: Site, view: "View", /) -> Ranked | None: ...


class View:
    """The cluster, read only."""

    def __init__(self, index: Index, estimates: PlacementEstimates, readings: Readings, rules: Rules) -> None:
        self.time: float = 0.0
        self.cap_microwatts: int | None = None
        """Limit on the whole cluster's draw."""
        self.last_node: str = ""
        """Where the last task was placed."""
        self.usual_cost: dict[int, float] = {}
        """By shape index, for tasks that may wait: a moving average of what their places cost."""
        self.queued: int = 0
        """Tasks ready to run that have no place."""
        self.running: list[Running] = []
        """Tasks that have a place: only while a policy reconsiders."""
        self.signals: Final[dict[str, Signal]] = {}
        """By name: carbon, price, whatever was told."""
        self.plan: str = ""
        """Digest of the plan that holds now; empty: there is none."""
        self.model: str = ""
        """Digest of the model that holds now."""
        self.instances: Final = WarmInstances()
        self._index: Final = index
        self._rules: Final = rules
        self._among: int = EVERY
        self._runs_on: dict[int, list[tuple[NodeClass, float]]] = {}
        self._runs_on_at: int = -1
        self._fastest: dict[int, float] = {}
        self._estimates: Final = estimates
        self.readings: Final = readings
        """What meters last said."""
        self.shape_of: Callable[[str], Shape] | None = None
        """The shape of a task that has a place: the engine knows."""
        self.more_preferences: Callable[[Ask], Iterable[Preference]] | None = None
        """What the engine knows beside what a task itself prefers."""
        self.graph_revision: int = 0
        self.graph: Final = Graph(self.fastest, lambda: (self.graph_revision, self._index.changes))
        """Who comes after whom."""
        self._more: tuple[float, float] | None = None
        """Joules and seconds more, while a place that some task prefers is ranked."""
        self._labelled: dict[Labels, int] = {}
        self._labelled_at: int = -1

    def estimate(self, shape: Shape, site: Site) -> PlacementEstimate | Reason:
        """What a task of this shape would do there, or why it does not fit there now."""
        estimate = self._estimates.at(shape, site)
        if self.cap_microwatts is not None and isinstance(estimate, PlacementEstimate):
            if self._index.unknown_power:
                return Reason.POWER_UNKNOWN
            if self._index.microwatts + estimate.added_microwatts > self.cap_microwatts:
                return Reason.CLUSTER_WATTS
        return estimate

    def with_variant(self, shape: Shape, site: Site, variant: str) -> PlacementEstimate | Reason:
        """The same with the build of this name; empty: with the best."""
        estimate = self.estimate(shape, site)
        if not variant or isinstance(estimate, Reason) or estimate.variant.name == variant:
            return estimate
        wanted = self._estimates.with_variant(shape, variant, site)
        if self.cap_microwatts is None or isinstance(wanted, Reason):
            return wanted
        beyond = self._index.microwatts + wanted.added_microwatts > self.cap_microwatts
        return Reason.CLUSTER_WATTS if beyond else wanted

    def in_use(self, node: NodeState, function: str) -> int:
        """Millicores that calls of the function have on the node now."""
        if self.shape_of is None:
            return 0
        shapes = [self.shape_of(task) for task in node.tasks]
        return sum([shape.cpu for shape in shapes if shape.function.name == function])

    def never(self, shape: Shape, node: NodeState) -> Reason | None:
        """Why the node cannot take the shape even when empty, by its size, its labels or the rules as they stand."""
        site = node.site
        barred = None if site is None else self._estimates.never(shape, site)
        return barred or self.refusal(shape, node)

    def room(self, shape: Shape, site: Site) -> PlacementEstimate | Reason:
        """The same without the cluster's power cap: what depends on shape and site alone."""
        estimate = self._estimates.at(shape, site)
        if self._more is not None and isinstance(estimate, PlacementEstimate):
            return estimate.preferred(self._more[0], self._more[1])
        return estimate

    def allowed(self, shape: Shape) -> int:
        """The nodes that rules let the shape go to, as a set (see `cluster.topology`); `EVERY`: there are no rules.

        Nodes of one site may differ in this: `first` knows, a site does not.
        """
        return self._rules.allowed(shape) & self._among if self._rules.active else self._among

    def look_among(self, nodes: int) -> None:
        """Until told otherwise only these nodes are there to choose from: somebody else has chosen them, by rules of
        their own. `EVERY`: all are. Numbers are those after `settle`."""
        self._among = nodes
        if nodes != EVERY:
            self._index.noting = True

    def settle(self) -> int:
        """Give every node its number. The answer goes up whenever numbers may be others than before."""
        if self._index.numbering.stale:
            self._index.numbering.settle()
        return self._index.revision

    def first(self, shape: Shape, site: Site) -> str:
        """The first node of the site, by name, that rules let the shape go to. Only for a site that `fitting` or
        `cheapest` has named."""
        allowed = self.allowed(shape)
        if allowed == EVERY:
            return site.first()
        name = site.first_of(allowed)
        return name if name is not None else site.first()

    def takes(self, shape: Shape, node: NodeState) -> bool:
        """Whether this node could be given a task of the shape now."""
        site = node.site
        if site is None or not isinstance(self.estimate(shape, site), PlacementEstimate):
            return False
        return self.allowed(shape) >> node.number & 1 == 1

    def refusal(self, shape: Shape, node: NodeState) -> Reason | None:
        """Which rule is held against this node, room or not; None: none is."""
        return self._rules.why(shape, node) if self._rules.active else None

    def verdicts(self, shape: Shape) -> list[tuple[Reason, int]]:
        """Rule by rule, the nodes that it lets the shape go to."""
        return self._rules.verdicts(shape) if self._rules.active else []

    def cost(self, shape: Shape, site: Site) -> float:
        """The cost a ranking has kept for this site; 0 where nothing was ranked."""
        ranking = self._index.rankings.get(shape.index)
        rank = ranking.rank(site) if ranking is not None else None
        return 0.0 if rank is None else rank[1]

    def fitting(self, shape: Shape) -> Iterator[tuple[Site, PlacementEstimate]]:
        """Every site that has room for the shape now, on a node it may go to, with the estimate there."""
        allowed = self.allowed(shape)
        for site, estimate in self._estimates.with_room(shape, self._index.sites()):
            if allowed != EVERY and not site.whole() & allowed:
                continue
            if self.cap_microwatts is None or isinstance(self.estimate(shape, site), PlacementEstimate):
                yield site, estimate

    def choose(self, shape: Shape, ranker: Ranker, ask: Ask | None = None) -> Proposal | Refusal:
        """The first node of the site of lowest rank. A rank must depend on the shape and the site alone: it is kept.
        With the task itself, what it prefers counts too."""
        if ask is not None and self.preferences(ask):
            best = self.best(ask, ranker)
            return Refusal(self.why_none(shape)) if best is None else Proposal(best[1], best[0][1])
        site = self.cheapest(shape, ranker)
        if site is None:
            return Refusal(self.why_none(shape))
        if self.cap_microwatts is None and self.allowed(shape) == EVERY:
            return Proposal(site.first(), self._index.rankings[shape.index].least)
        return Proposal(self.first(shape, site), self.cost(shape, site))

    def cheapest(self, shape: Shape, ranker: Ranker) -> Site | None:
        """The site of lowest rank; the same rule."""
        ranking = self._ranking(shape, ranker)
        allowed = self.allowed(shape)
        if allowed != EVERY:
            return self._cheapest_among(shape, ranking, allowed)
        if self.cap_microwatts is None:
            return ranking.best()
        return ranking.best_where(lambda site: isinstance(self.estimate(shape, site), PlacementEstimate))

    # -- what holds for some nodes only --------------------------------------------------------------------------------

    def preferences(self, ask: Ask) -> tuple[Preference, ...]:
        """Where the task needs more or less than elsewhere."""
        prefers = ask.task.prefers
        return prefers if self.more_preferences is None else (*prefers, *self.more_preferences(ask))

    def best(self, ask: Ask, ranker: Ranker) -> Best | None:
        """The lowest rank that any node has for the task, what it prefers included; among equals the first by name.

        No other nodes are looked at than those that it prefers: for all others the site that ranks first answers.
        """
        preferences = self.preferences(ask)
        if not preferences:
            return self._plainly_best(ask.shape, ranker, 0)
        first, *cells = self.cells(ask)
        found = [self._plainly_best(ask.shape, ranker, ~first[0])]
        found += [self._best_of_cell(ask.shape, ranker, cell) for cell in cells]
        return min((each for each in found if each is not None), key=_by_rank_and_name, default=None)

    def cells(self, ask: Ask) -> list[Cell]:
        """All nodes, divided by what the task takes more there: first those where it is nothing."""
        self.settle()
        cells: list[Cell] = [(EVERY, 0.0, 0.0)]
        for preference in self.preferences(ask):
            nodes = self._preferred_nodes(preference)
            plain, *others = cells
            j, s = preference.joules, preference.seconds
            with_it = [(at & nodes, joules + j, seconds + s) for at, joules, seconds in cells]
            without = [(at & ~nodes, joules, seconds) for at, joules, seconds in others]
            cells = [(plain[0] & ~nodes, 0.0, 0.0), *(cell for cell in (*with_it, *without) if cell[0])]
        return cells

    def _preferred_nodes(self, preference: Preference) -> int:
        if preference.node:
            state = self._index.nodes.get(preference.node)
            return 0 if state is None else 1 << state.number
        if self._labelled_at != self._index.revision:
            self._labelled_at = self._index.revision
            self._labelled.clear()
        found = self._labelled.get(preference.labels)
        if found is None:
            nodes = self._index.nodes.values()
            having = [node for node in nodes if all(node.label(key) == value for key, value in preference.labels)]
            found = mask_of([node.number for node in having])
            self._labelled[preference.labels] = found
        return found

    def _plainly_best(self, shape: Shape, ranker: Ranker, without: int) -> Best | None:
        """Of all nodes but these, to which the ranking of sites does not apply."""
        site = self.cheapest(shape, ranker)
        if site is None:
            return None
        name = self.first(shape, site)
        if without and without >> self._index.nodes[name].number & 1:
            among = self.allowed(shape) & ~without
            self._index.noting = True
            site = self._cheapest_among(shape, self._ranking(shape, ranker), among)
            if site is None:
                return None
            name = site.first_of(among) or ""
        rank = self.rank(shape, site, ranker)
        assert rank is not None
        return rank, name, site

    def _best_of_cell(self, shape: Shape, ranker: Ranker, cell: Cell) -> Best | None:
        among, more = self.allowed(shape) & cell[0], (cell[1], cell[2])
        if among > 0 and among.bit_count() <= FEW:
            return self._best_of_few(shape, ranker, among, more)
        key = (shape.index, cell[1], cell[2])
        ranking = self._index.preferred.get(key)
        if ranking is None:
            self._index.noting = True
            ranking = self._index.rank_preferred(key, lambda site: self._rank_with(shape, site, ranker, more))
        site = self._cheapest_among(shape, ranking, among)
        rank = ranking.rank(site) if site is not None else None
        return None if site is None or rank is None else (rank, site.first_of(among) or "", site)

    def _best_of_few(self, shape: Shape, ranker: Ranker, among: int, more: tuple[float, float]) -> Best | None:
        found: list[Best] = []
        at = self._index.numbering.at
        sites: dict[int, Rank | None] = {}
        while among:
            node = self._index.nodes[at[(among & -among).bit_length() - 1]]
            among &= among - 1
            site = node.site
            if site is None or not isinstance(self.estimate(shape, site), PlacementEstimate):
                continue
            if site.serial not in sites:
                sites[site.serial] = rank_of(self._rank_with(shape, site, ranker, more))
            rank = sites[site.serial]
            if rank is not None:
                found.append((rank, node.name, site))
        return min(found, key=_by_rank_and_name, default=None)

    def _rank_with(self, shape: Shape, site: Site, ranker: Ranker, more: tuple[float, float]) -> Ranked | None:
        """The rank where the task takes so many joules and seconds more."""
        self._more = more
        try:
            return ranker.rank(shape, site, self)
        finally:
            self._more = None

    def rank(self, shape: Shape, site: Site, ranker: Ranker) -> Rank | None:
        """The rank of one site; the same rule."""
        return self._ranking(shape, ranker).rank(site)

    def _ranking(self, shape: Shape, ranker: Ranker) -> Ranking:
        ranking = self._index.rankings.get(shape.index)
        if ranking is None:
            ranking = self._index.rank_by(shape.index, lambda site: ranker.rank(shape, site, self))
        return ranking

    def _cheapest_among(self, shape: Shape, ranking: Ranking, allowed: int) -> Site | None:
        if self.cap_microwatts is None:
            return ranking.best_among(allowed)
        return ranking.best_among(allowed, lambda site: isinstance(self.estimate(shape, site), PlacementEstimate))

    def sites(self) -> list[Site]:
        return self._index.sites()

    def classes(self) -> list[NodeClass]:
        return [cls for cls in self._index.classes if cls.size]

    def nodes(self) -> dict[str, NodeState]:
        """All nodes by name. Look, do not touch."""
        return self._index.nodes

    def names(self) -> list[str]:
        """All nodes' names, in order. Look, do not touch."""
        return self._index.names

    def runs_on(self, shape: Shape) -> list[tuple[NodeClass, float]]:
        """Classes that could take the shape when empty, with its seconds alone there (inf if unknown)."""
        found = self._runs_on.get(shape.index)
        if found is None or self._runs_on_at != self._index.changes:
            if self._runs_on_at != self._index.changes:
                self._runs_on.clear()
                self._fastest.clear()
                self._runs_on_at = self._index.changes
            found = self._estimates.alone(shape, self.classes())
            self._runs_on[shape.index] = found
        return found

    def fastest(self, shape: Shape) -> float:
        """The shape's least seconds alone on any class of this cluster; inf if unknown."""
        found = self._fastest.get(shape.index) if self._runs_on_at == self._index.changes else None
        if found is None:
            found = min((seconds for _, seconds in self.runs_on(shape)), default=inf)
            self._fastest[shape.index] = found
        return found

    def why_none(self, shape: Shape) -> Reason:
        """Why no site can take this shape now, in one word."""
        if not self._index.nodes:
            return Reason.NO_NODES
        allowed = self.allowed(shape)
        ever = False
        barred: Reason | None = None
        for site in self._index.sites():
            if self._estimates.never(shape, site) is not None:
                continue
            if allowed != EVERY and not site.whole() & allowed:
                barred = barred or self.refusal(shape, self._index.nodes[site.first()])
                continue
            ever = True
            if self.cap_microwatts is not None and isinstance(self._estimates.at(shape, site), PlacementEstimate):
                return Reason.POWER_UNKNOWN if self._index.unknown_power else Reason.CLUSTER_WATTS
        return Reason.NO_ROOM if ever else barred or Reason.NEVER_FITS


def _by_rank_and_name(best: Best) -> tuple[Rank, str]:
    return best[0], best[1]
