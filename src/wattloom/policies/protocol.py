"""The one protocol between the engine and a policy.

A policy answers two questions: where does this task go (`propose`), and how long does an idle node stay awake
(`linger`). It looks at a view, changes nothing and remembers nothing: the same task on the same view gets the same
answer, in the simulator, on one machine and on Kubernetes.

Most policies only rank: subclass `RankingPolicy` and write `cost`.
"""

from abc import ABC, abstractmethod
from math import inf
from typing import ClassVar

from wattloom.cluster.fit import Terms
from wattloom.cluster.index import Rank
from wattloom.cluster.node_class import NodeClass
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.energy.forecast import Unknown
from wattloom.policies.answers import Proposal, Refusal
from wattloom.policies.view import Ask, View
from wattloom.prediction.outlook import Outlook
from wattloom.workload.shape import Shape

__all__ = ["Ask", "Policy", "Proposal", "RankingPolicy", "Refusal", "View"]


class Policy(ABC):
    """What every policy is."""

    name: ClassVar[str]
    """As users write it."""
    summary: ClassVar[str]
    """One line for `wattloom policies`."""
    options: ClassVar[dict[str, str]] = {}
    """Option and what it does."""
    measure: ClassVar[str] = ""
    """Unit of the cost that `why` shows."""
    terms: Terms = Terms()
    in_full: ClassVar[dict[str, str]] = {}
    """Options, as users write them, with which the terms hold where a node must not be given out beyond its size, as on
    Kubernetes. They are used there unless the user gives them. Empty: a policy that overcommits is refused there."""
    reading_interval_s: float | None = None
    """How often it wants every node's meter read; None: never."""

    @abstractmethod
    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        """A node for the task, or why there is none now."""

    @abstractmethod
    def judge(self, ask: Ask, site: Site, outlook: Outlook, view: View) -> float | Unknown | Reason:
        """What this site, which has room, costs in this policy's own measure, or why the policy passes it over.

        For explanations only. Lower is better.
        """

    def linger(self, cls: NodeClass, view: View) -> float | None:
        """Seconds an idle node of this class stays awake before it is sent to sleep; None: it never sleeps."""
        return None


class RankingPolicy(Policy):
    """A policy whose choice is the site of least cost, where cost depends on the shape and the site alone."""

    needs_power: ClassVar[bool] = False
    needs_runtime: ClassVar[bool] = False

    @abstractmethod
    def cost(self, shape: Shape, site: Site, outlook: Outlook) -> float:
        """Lower is better. Called only where there is room and the needed forecasts are known."""

    def tie(self, shape: Shape, site: Site, outlook: Outlook) -> float:
        """Second key among equal costs, lower first; then the node's name decides."""
        return 0.0

    def unknown(self, outlook: Outlook) -> Unknown | None:
        """Which figure this policy needs and does not have here."""
        if outlook.unknown is None:
            return None
        if self.needs_power and not outlook.knows_power:
            return Unknown("the machine has no power curve")
        if self.needs_runtime and outlook.alone == 0.0:
            return Unknown("no run time is known for this function")
        return None

    def rank(self, shape: Shape, site: Site, view: View) -> Rank | None:
        """Cost and second key; unknown, and what is not a number, ranks behind everything known; None where there is
        no room."""
        outlook = view.room(shape, site)
        if isinstance(outlook, Reason):
            return None
        if self.unknown(outlook) is not None:
            return inf, self.tie(shape, site, outlook)
        return self.cost(shape, site, outlook), self.tie(shape, site, outlook)

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        return view.choose(ask.shape, self)

    def judge(self, ask: Ask, site: Site, outlook: Outlook, view: View) -> float | Unknown | Reason:
        unknown = self.unknown(outlook)
        return unknown if unknown is not None else self.cost(ask.shape, site, outlook)
