"""What is said on a pod's events, in words.

Owns the sentences. For refusals that kube-scheduler knows too, its own phrases are used: people and tools look for
them. Looks at the engine's view and changes nothing.
"""

from collections import Counter
from typing import Final

from wattloom.cluster.fit import Terms
from wattloom.cluster.reasons import Reason
from wattloom.history.explanation import SHORT_OF, lacking
from wattloom.kubernetes.model.annotations import DEADLINE, DEFER
from wattloom.policies.protocol import Policy
from wattloom.policies.view import View
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.prediction.runtimes import ENOUGH_SAMPLES
from wattloom.scheduling.instructions import Place
from wattloom.scheduling.state import TaskRecord
from wattloom.workload.shape import Shape
from wattloom.workload.task import Task

UNDECIDED: Final = "node(s) had room"
IN_FULL: Final = Terms()

PHRASES: Final = {
    Reason.ARCHITECTURE: "node(s) of another architecture",
    Reason.LABELS: "node(s) didn't match Pod's node affinity/selector",
    Reason.TOO_SMALL: "node(s) too small even when empty",
    Reason.CPU: "Insufficient cpu",
    Reason.MEMORY: "Insufficient memory",
    Reason.CLOSED: "node(s) were unschedulable",
    Reason.TAINT: "node(s) had untolerated taint(s)",
    Reason.AFFINITY: "node(s) didn't match Pod's node affinity/selector",
    Reason.VOLUME: "node(s) had volume node affinity conflict",
    Reason.PORT: "node(s) didn't have free ports for the requested pod ports",
    Reason.SPREAD: "node(s) didn't match pod topology spread constraints",
    Reason.COMPANY_MISSING: "node(s) didn't match pod affinity rules",
    Reason.COMPANY_UNWANTED: "node(s) didn't match pod anti-affinity rules",
    Reason.KEPT_AWAY: "node(s) didn't satisfy existing pods anti-affinity rules",
    Reason.NODE_WATTS: "node(s) would draw more than their cap",
    Reason.TDP: "node(s) would draw more than their TDP",
    Reason.CLUSTER_WATTS: "node(s) would take the cluster above its power cap",
    Reason.POWER_UNKNOWN: "node(s) of unknown power, which a cap cannot be kept with",
    Reason.HELD: "node(s) kept free for a pod that has waited longer",
    Reason.TOO_SLOW: "node(s) too slow",
    Reason.PLANNED_ELSEWHERE: "node(s) that the plan does not give the pod's function",
}
WAITS: Final = {
    Reason.WAITING_IS_CHEAPER: "waiting is cheaper than any node that is free now",
    Reason.WAITING_IS_SOONER: "a node that is not free yet would be done sooner",
    Reason.PLANNED_SHARE_IN_USE: "the cores that the plan gives its function are in use",
    Reason.PLANNED_SERVER_FULL: "the node that the plan names has no room",
    Reason.STARVED_AHEAD: "a pod that has waited longer goes first",
    Reason.POLICY_FAILED: "the policy failed",
    Reason.BAD_PROPOSAL: "the policy proposed a node that does not exist",
    Reason.START_REFUSED: "it could not be bound",
    Reason.BACKING_OFF: "it is tried again a little later",
}


def scheduled(place: Place, record: TaskRecord | None, nodes: int, policy: str, measure: str) -> str:
    """Where it goes and what that is expected to cost."""
    name = place.task.partition("#")[0]
    looked = f"{nodes:,} nodes" if nodes != 1 else "1 node"
    words = f"Successfully assigned {name} to {place.node}: chosen by {policy} among {looked}"
    if place.cost is not None and measure:
        words += f", at a cost of {_figure(place.cost)} {measure}"
    allocation = record.allocation if record is not None else None
    return f"{words}; {_forecast(allocation.estimate if allocation is not None else None)}"


def without_effect(task: Task, policy: Policy) -> str:
    """For the owner of a pod who asks to be held back: none of our own policies does that where no node sleeps."""
    asked = [DEFER] if task.defer_s > 0.0 else []
    asked += [DEADLINE] if task.deadline_s is not None else []
    if not asked or not type(policy).__module__.startswith("wattloom.policies"):
        return ""
    return f". {' and '.join(asked)} had no effect: {policy.name} holds no pod back on Kubernetes"


def _forecast(estimate: PlacementEstimate | None) -> str:
    if estimate is None:
        return "no forecast"
    watts = f"{_figure(estimate.watts)} W more" if estimate.knows_power else ""
    if not watts:
        return "forecast: watts unknown (the node has no machine profile)"
    if estimate.alone == 0.0:
        known = f"annotate wattloom.dev/runtime-seconds, or let it run {ENOUGH_SAMPLES} times"
        return f"forecast: {watts} (joules unknown: {known})"
    return f"forecast: {watts} for {_figure(estimate.seconds)} s, {_figure(estimate.joules)} J"


def unavailable(shape: Shape, view: View, reason: Reason, message: str = "", terms: Terms = IN_FULL) -> str:
    """Why no node takes a pod of this shape, counted by reason, in kube-scheduler's manner. `terms`: the policy's."""
    if reason in WAITS:
        return f"{WAITS[reason]}{f': {message}' if message else ''} ({reason.value})"
    total = len(view.nodes())
    if not total:
        return "no nodes available to schedule pods"
    told = ", ".join(f"{count} {phrase}" for phrase, count in sorted(_against(shape, view, terms).items()))
    return f"0/{total} nodes are available: {told}{f'; {message}' if message else ''}."


def _against(shape: Shape, view: View, terms: Terms) -> Counter[str]:
    """Nodes by what is held against them. Sites speak for all their nodes, but for rules that look at single ones.
    As with kube-scheduler, a node counts for each resource that it has too little of."""
    counts: Counter[str] = Counter()
    with_room: set[int] = set()
    for site in view.sites():
        verdict = view.estimate(shape, site)
        if isinstance(verdict, PlacementEstimate):
            with_room.add(site.serial)
            continue
        short_of = lacking(shape, site, terms) if verdict in SHORT_OF else ()
        for phrase in map(_insufficient, short_of) if short_of else (PHRASES.get(verdict, verdict.value),):
            counts[phrase] += site.count
    if with_room:
        for node in view.nodes().values():
            if node.site is not None and node.site.serial in with_room:
                refusal = view.refusal(shape, node)
                counts[UNDECIDED if refusal is None else PHRASES.get(refusal, refusal.value)] += 1
    return counts


def _insufficient(name: str) -> str:
    return "Too many pods" if name == "pods" else f"Insufficient {name}"


def _figure(value: float) -> str:
    """Three figures that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
