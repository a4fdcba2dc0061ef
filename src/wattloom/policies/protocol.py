"""The one protocol between the engine and a policy.

A policy answers where a task goes (`propose`; several at once, if it wants to: `propose_many`), how long an idle node
stays awake (`linger`) and, if it wants to be asked, what it would change of what runs (`reconsider`). It looks at a
view, changes nothing and remembers nothing: the same task on the same view gets the same answer, in the simulator, on
one machine and on Kubernetes.

Most policies only rank: subclass `RankingPolicy` and write `cost`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from math import inf
from typing import ClassVar

from wattloom.cluster.fit import Terms
from wattloom.cluster.node_class import NodeClass
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.energy.forecast import Unknown
from wattloom.policies.answers import Citation, Move, Proposal, Refusal
from wattloom.policies.ask import Ask
from wattloom.policies.view import Ranked, View
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.workload.shape import Shape

__all__ = ["Ask", "Policy", "Proposal", "RankingPolicy", "Refusal", "View", "break_even_s", "sleeping"]


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
    sleeps: bool | None = None
    """Whether idle nodes go to sleep. None: as `linger` says. True: also where `linger` says nothing, after as long as
    idling costs what a wake-up does. False: never. The option `sleep`, which every policy has, sets it."""
    most_at_once: int = 1
    """How many waiting tasks it wants to see together (`propose_many`); 1: each alone."""
    sleep_options: ClassVar[tuple[str, ...]] = ()
    """Options of its own that only make sense where nodes sleep."""

    goes_by_plan: ClassVar[bool] = False
    """Whether it is another policy without a plan: it is then not compared with others unless it is named."""

    reconsider_interval_s: float | None = None
    """How often it wants to be asked what it would change of what runs (`reconsider`); None: never."""

    @abstractmethod
    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        """A node for the task, or why there is none now."""

    def propose_many(self, asks: Sequence[Ask], view: View) -> Sequence[Proposal | None]:
        """Nodes for several waiting tasks at once, in their order; None: this one is to be asked alone.

        Put to a policy that says `most_at_once`, before the tasks are asked one by one. Proposals are checked and
        committed one after the other; one that no longer holds then is as good as None.
        """
        return [None] * len(asks)

    @abstractmethod
    def judge(self, ask: Ask, site: Site, estimate: PlacementEstimate, view: View) -> float | Unknown | Reason:
        """What this site, which has room, costs in this policy's own measure, or why the policy passes it over.

        For explanations only. Lower is better.
        """

    def reconsider(self, view: View) -> Iterable[Move]:
        """What it would change of running work (`view.running`) and of nodes. The engine checks each move, and makes it
        or not. Asked only of a policy that names `reconsider_interval_s`, while there are tasks."""
        return ()

    @classmethod
    def recorded(cls, options: dict[str, str]) -> dict[str, str]:
        """Options as a log names them: what a file holds, which may change, by a digest that finds it again."""
        return options

    def plan_problem(self, digest: str) -> str:
        """Why it cannot go by the plan of this digest, which is to hold from now on. Empty: it can, or needs none."""
        return ""

    def cite(self, ask: Ask, view: View) -> Citation | None:
        """For explanations: what a plan says of the task, and why that was not done if it was not. None: it goes by no
        plan."""
        return None

    def linger(self, cls: NodeClass, view: View) -> float | None:
        """Seconds an idle node of this class stays awake before it is sent to sleep; None: the policy has no say, and
        whether it sleeps is up to `sleeps`."""
        return None


def break_even_s(cls: NodeClass) -> float | None:
    """How long an idle node of this class takes to draw what a wake-up costs, less what it would draw asleep: whoever
    sends it to sleep then never pays more than twice the best possible. None: sleep saves nothing."""
    machine = cls.machine
    saved = machine.idle_w - machine.sleep_w
    return machine.profile.wake_j / saved if saved > 0.0 else None


def sleeping(policy: Policy, sleep: bool = True) -> Policy:
    """The policy, with nodes that sleep when idle, or without."""
    policy.sleeps = sleep
    return policy


class RankingPolicy(Policy):
    """A policy whose choice is the site of least cost, where cost depends on the shape and the site alone."""

    needs_power: ClassVar[bool] = False
    needs_runtime: ClassVar[bool] = False

    @abstractmethod
    def cost(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> float:
        """Lower is better. Called only where there is room and the needed forecasts are known."""

    def tie(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> float:
        """Second key among equal costs, lower first; then the node's name decides."""
        return 0.0

    def tier(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> int:
        """A whole number from 0 on: whatever it costs, a site of a lower tier goes before one of a higher."""
        return 0

    def unknown(self, estimate: PlacementEstimate) -> Unknown | None:
        """Which figure this policy needs and does not have here."""
        if estimate.unknown is None:
            return None
        if self.needs_power and not estimate.knows_power:
            return Unknown("the machine has no power curve")
        if self.needs_runtime and estimate.alone == 0.0:
            return Unknown("no run time is known for this function")
        return None

    def rank(self, shape: Shape, site: Site, view: View) -> Ranked | None:
        """Tier, cost and second key; in the first tier the last two alone. Unknown, and what is not a number, ranks
        behind everything known; None where there is no room."""
        estimate = view.room(shape, site)
        if isinstance(estimate, Reason):
            return None
        if self.unknown(estimate) is not None:
            return inf, self.tie(shape, site, estimate)
        tier, cost = self.tier(shape, site, estimate), self.cost(shape, site, estimate)
        tie = self.tie(shape, site, estimate)
        return (tier, cost, tie) if tier else (cost, tie)

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        return view.choose(ask.shape, self, ask)

    def judge(self, ask: Ask, site: Site, estimate: PlacementEstimate, view: View) -> float | Unknown | Reason:
        unknown = self.unknown(estimate)
        return unknown if unknown is not None else self.cost(ask.shape, site, estimate)
