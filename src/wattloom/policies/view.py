"""What a policy may look at: the cluster as it is at one moment.

Owns the questions a policy can ask, answered from the index and the forecasts. What it hands out is for looking: a
policy that changes it breaks the engine, and the conformance kit finds it.
"""

from collections.abc import Iterator
from math import inf
from typing import Final, Protocol

from wattloom.cluster.index import Index, Rank
from wattloom.cluster.node_class import NodeClass
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import NodeState, Site
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

    def __init__(self, index: Index, outlooks: Outlooks, readings: Readings) -> None:
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
        self._runs_on: dict[int, list[tuple[NodeClass, float]]] = {}
        self._runs_on_at: int = -1
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

    def cost(self, shape: Shape, site: Site) -> float:
        """The cost a ranking has kept for this site; 0 where nothing was ranked."""
        ranking = self._index.rankings.get(shape.index)
        rank = ranking.rank(site) if ranking is not None else None
        return 0.0 if rank is None else rank[0]

    def fitting(self, shape: Shape) -> Iterator[tuple[Site, Outlook]]:
        """Every site that has room for the shape now, with the outlook there."""
        for site, outlook in self._outlooks.with_room(shape, self._index.sites()):
            if self.cap_microwatts is None or isinstance(self.outlook(shape, site), Outlook):
                yield site, outlook

    def choose(self, shape: Shape, ranker: Ranker) -> Proposal | Refusal:
        """The first node of the site of lowest rank. A rank must depend on the shape and the site alone: it is kept."""
        site = self.cheapest(shape, ranker)
        if site is None:
            return Refusal(self.why_none(shape))
        if self.cap_microwatts is None:
            return Proposal(site.first(), self._index.rankings[shape.index].least)
        return Proposal(site.first(), self.cost(shape, site))

    def cheapest(self, shape: Shape, ranker: Ranker) -> Site | None:
        """The site of lowest rank; the same rule."""
        ranking = self._index.rankings.get(shape.index)
        if ranking is None:
            ranking = self._index.rank_by(shape.index, lambda site: ranker.rank(shape, site, self))
        if self.cap_microwatts is None:
            return ranking.best()
        return ranking.best_where(lambda site: isinstance(self.outlook(shape, site), Outlook))

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
                self._runs_on_at = self._index.changes
            found = self._outlooks.alone(shape, self.classes())
            self._runs_on[shape.index] = found
        return found

    def fastest(self, shape: Shape) -> float:
        """The shape's least seconds alone on any class of this cluster; inf if unknown."""
        return min((seconds for _, seconds in self.runs_on(shape)), default=inf)

    def why_none(self, shape: Shape) -> Reason:
        """Why no site can take this shape now, in one word."""
        if not self._index.nodes:
            return Reason.NO_NODES
        ever = False
        for site in self._index.sites():
            if self._outlooks.never(shape, site) is None:
                ever = True
                if self.cap_microwatts is not None and isinstance(self._outlooks.at(shape, site), Outlook):
                    return Reason.POWER_UNKNOWN if self._index.unknown_power else Reason.CLUSTER_WATTS
        return Reason.NO_ROOM if ever else Reason.NEVER_FITS
