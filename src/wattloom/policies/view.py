"""What a policy may look at: the cluster as it is at one moment.

Owns the questions a policy can ask, answered from the index and the forecasts. What it hands out is for looking: a
policy that changes it breaks the engine, and the conformance kit finds it.
"""

from collections.abc import Iterator
from math import inf
from typing import Final, Protocol

from wattloom.cluster.index import Index, Rank, Ranking
from wattloom.cluster.node_class import NodeClass
from wattloom.cluster.reasons import Reason
from wattloom.cluster.rules import Rules
from wattloom.cluster.site import NodeState, Site
from wattloom.cluster.topology import EVERY
from wattloom.policies.answers import Proposal, Refusal
from wattloom.prediction.outlook import Outlook, Outlooks
from wattloom.prediction.readings import Readings
from wattloom.workload.shape import Shape
from wattloom.workload.task import Task


class Ask:
    """One task that wants a place."""

    __slots__ = ("attempt", "shape", "submitted", "task")

    def __init__(self, task: Task, shape: Shape, submitted: float, attempt: int) -> None:
        self.task = task
        self.shape = shape
        self.submitted = submitted
        self.attempt = attempt
        """How often it has been placed."""


class Ranker(Protocol):
    """Whoever ranks sites: lower is better, None where there is no room."""

    def rank(self, shape: Shape, site: Site, view: "View", /) -> Rank | None: ...


class View:
    """The cluster, read only."""

    def __init__(self, index: Index, outlooks: Outlooks, readings: Readings, rules: Rules) -> None:
        self.time: float = 0.0
        self.cap_microwatts: int | None = None
        """Limit on the whole cluster's draw."""
        self.last_node: str = ""
        """Where the last task was placed."""
        self.usual_cost: dict[int, float] = {}
        """By shape index, for tasks that may wait: a moving average of what their places cost."""
        self.queued: int = 0
        """Tasks ready to run that have no place."""
        self._index: Final = index
        self._rules: Final = rules
        self._among: int = EVERY
        self._runs_on: dict[int, list[tuple[NodeClass, float]]] = {}
        self._runs_on_at: int = -1
        self._fastest: dict[int, float] = {}
        self._outlooks: Final = outlooks
        self.readings: Final = readings
        """What meters last said."""

    def outlook(self, shape: Shape, site: Site) -> Outlook | Reason:
        """What a task of this shape would do there, or why it does not fit there now."""
        outlook = self._outlooks.at(shape, site)
        if self.cap_microwatts is not None and isinstance(outlook, Outlook):
            if self._index.unknown_power:
                return Reason.POWER_UNKNOWN
            if self._index.microwatts + outlook.added_microwatts > self.cap_microwatts:
                return Reason.CLUSTER_WATTS
        return outlook

    def room(self, shape: Shape, site: Site) -> Outlook | Reason:
        """The same without the cluster's power cap: what depends on shape and site alone."""
        return self._outlooks.at(shape, site)

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
        if self._index.roll.stale:
            self._index.roll.settle()
        return self._index.roster

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
        if site is None or not isinstance(self.outlook(shape, site), Outlook):
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
        return 0.0 if rank is None else rank[0]

    def fitting(self, shape: Shape) -> Iterator[tuple[Site, Outlook]]:
        """Every site that has room for the shape now, on a node it may go to, with the outlook there."""
        allowed = self.allowed(shape)
        for site, outlook in self._outlooks.with_room(shape, self._index.sites()):
            if allowed != EVERY and not site.whole() & allowed:
                continue
            if self.cap_microwatts is None or isinstance(self.outlook(shape, site), Outlook):
                yield site, outlook

    def choose(self, shape: Shape, ranker: Ranker) -> Proposal | Refusal:
        """The first node of the site of lowest rank. A rank must depend on the shape and the site alone: it is kept."""
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
        return ranking.best_where(lambda site: isinstance(self.outlook(shape, site), Outlook))

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
        return ranking.best_among(allowed, lambda site: isinstance(self.outlook(shape, site), Outlook))

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
            found = self._outlooks.alone(shape, self.classes())
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
            if self._outlooks.never(shape, site) is not None:
                continue
            if allowed != EVERY and not site.whole() & allowed:
                barred = barred or self.refusal(shape, self._index.nodes[site.first()])
                continue
            ever = True
            if self.cap_microwatts is not None and isinstance(self._outlooks.at(shape, site), Outlook):
                return Reason.POWER_UNKNOWN if self._index.unknown_power else Reason.CLUSTER_WATTS
        return Reason.NO_ROOM if ever else barred or Reason.NEVER_FITS
