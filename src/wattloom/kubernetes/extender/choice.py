"""Which of the nodes that kube-scheduler offers a pod should go to, by watts and by the policy.

Owns the choice, and a view of the cluster of its own, so that asking changes nothing of the engine's: what follows from
a choice the engine is told as events.
"""

from typing import Final, NamedTuple, cast

from wattloom.cluster.index import FIRST_TIER, Rank
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.cluster.topology import EVERY
from wattloom.energy.forecast import Unknown
from wattloom.kubernetes.extender.scores import scores
from wattloom.kubernetes.model import event_messages
from wattloom.policies.protocol import Policy, Proposal
from wattloom.policies.view import Ask, Ranker, View
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.scheduling.ledger import Ledger
from wattloom.workload.task import Task

STRANGER: Final = "node(s) not known to Wattloom yet"


class Offer(NamedTuple):
    """Nodes as a set, and the names among them that are not known here."""

    known: int
    strangers: tuple[str, ...]


class Choice:
    """Asks the policy about offers."""

    def __init__(self, policy: Policy, ledger: Ledger) -> None:
        self._policy = policy
        self._ranker: Ranker | None = cast(Ranker, policy) if hasattr(policy, "rank") else None
        self._ledger = ledger
        self._view = View(ledger.index, ledger.estimates, ledger.readings, ledger.rules)
        self._bits: dict[str, int] = {}
        self._bits_at = -1

    def ask(self, task: Task) -> Ask:
        """A question about the task, as things stand now."""
        now = self._ledger.view
        self._view.time, self._view.cap_microwatts = now.time, now.cap_microwatts
        return Ask(task, self._ledger.shape_of(task), now.time, 0)

    def taken(self, node: str) -> None:
        """It was the last answer: some policies go on from there."""
        self._view.last_node = node

    def offer(self, names: list[str]) -> Offer:
        """These nodes as a set, good until the next node comes or goes."""
        revision = self._view.settle()
        if self._bits_at != revision:
            self._bits_at = revision
            self._bits = {name: 1 << node.number for name, node in self._view.nodes().items()}
        bits = self._bits
        try:
            known = sum(map(bits.__getitem__, names))  # a sum of different bits is their set, in one fast loop
            if known.bit_count() == len(names):
                return Offer(known, ())
        except KeyError:
            pass
        different = dict.fromkeys(names)
        return Offer(
            sum(bits[name] for name in different if name in bits),
            tuple(name for name in different if name not in bits),
        )

    def best(self, ask: Ask, offer: Offer, most: int) -> list[str]:
        """The best nodes that watts allow, best first. Strangers count only if nothing else is left, and no cap."""
        view, left = self._view, offer.known
        found: list[str] = []
        try:
            while left and len(found) < most:
                view.look_among(left)
                name = self._one(ask)
                if name is None or not left & self._bits.get(name, 0):  # none, or one that was not offered
                    break
                found.append(name)
                left &= ~self._bits[name]
        finally:
            view.look_among(EVERY)
        if not found and view.cap_microwatts is None:
            found.extend(offer.strangers[:most])
        return found

    def _one(self, ask: Ask) -> str | None:
        if self._ranker is not None:  # a policy may also say "wait": that is not for an extender to say
            site = self._view.cheapest(ask.shape, self._ranker)
            return None if site is None else self._view.first(ask.shape, site)
        answer = self._policy.propose(ask, self._view)
        return answer.node if isinstance(answer, Proposal) else None

    def refused(self, ask: Ask, names: list[str]) -> dict[str, str]:
        """By name: why watts do not allow the node. Those that they allow are not in it."""
        nodes, capped = self._view.nodes(), self._view.cap_microwatts is not None
        reasons: dict[Site, Reason | None] = {}
        found: dict[str, str] = {}
        for name in names:
            site = nodes[name].site if name in nodes else None
            if site is None:
                if capped:
                    found[name] = STRANGER
                continue
            if site not in reasons:
                estimate = self._view.estimate(ask.shape, site)
                reasons[site] = estimate if isinstance(estimate, Reason) else None
            reason = reasons[site]
            if reason is not None:
                found[name] = event_messages.PHRASES.get(reason, reason.value)
        return found

    def scored(self, ask: Ask, names: list[str]) -> list[int]:
        """From 0 to 10 for each of the names, in their order."""
        nodes = self._view.nodes()
        sites = [node.site if (node := nodes.get(name)) is not None else None for name in names]
        by_site = {site.serial: site for site in sites if site is not None}
        known = scores({serial: self._rank(ask, site) for serial, site in by_site.items()})
        return [0 if site is None else known[site.serial] for site in sites]

    def _rank(self, ask: Ask, site: Site) -> Rank | None:
        if self._ranker is not None:
            return self._view.rank(ask.shape, site, self._ranker)
        estimate = self._view.estimate(ask.shape, site)
        cost = (
            self._policy.judge(ask, site, estimate, self._view) if isinstance(estimate, PlacementEstimate) else estimate
        )
        return None if isinstance(cost, Unknown | Reason) else (FIRST_TIER, float(cost), 0.0)
