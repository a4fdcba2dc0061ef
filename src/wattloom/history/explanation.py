"""Why a task went where it went, or why it waits: every class of candidates with its forecast and reason.

Owns the explanation. It costs nothing while scheduling: it is worked out from the engine's state, now or after
replaying the log up to the decision, by the same code that decided.
"""

from math import inf
from typing import Final

import msgspec

from wattloom.cluster.fit import Terms, guaranteed, tdp_estimated_on, tdp_unkept_on
from wattloom.cluster.index import FIRST_TIER, Rank, rank_of
from wattloom.cluster.node_class import Mode
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.energy.forecast import Forecast, Unknown
from wattloom.policies.protocol import Policy, Proposal, RankingPolicy, Refusal
from wattloom.policies.view import Ask, Cell, View
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.units import MILLI
from wattloom.workload.shape import Shape

UNKNOWN: Final = (Reason.RUNTIME_UNKNOWN, Reason.POWER_UNKNOWN)
EVEN_WHEN_EMPTY: Final = (Reason.TOO_SMALL, Reason.NO_SUCH_RESOURCE)
SHORT_OF: Final = (*EVEN_WHEN_EMPTY, Reason.CPU, Reason.MEMORY, Reason.RESOURCE)
"""Refusals for want of something that is counted."""
TOGETHER: Final = "several tasks were placed together: a place that is better for this one alone may be another's"
ONE_MICROWATT: Final = 1e-6
"""Policies round the watts they rank by: so far from them a key still is those watts."""


class Candidate(msgspec.Struct, frozen=True):
    """Equal nodes, and what was held for or against them."""

    machine: str
    nodes: int
    first: str
    """The first of them by name."""
    cores_in_use: float
    cores: float
    mode: str
    reason: Reason | None
    """What was held against them; None: nothing. They had room, and the policy chose otherwise than by cost."""
    cost: float | None = None
    variant: str = ""
    forecast: Forecast | Unknown | None = None
    watts: float | None = None
    """How much more a node would draw, if that is known: also where the run time is not."""
    lacks: tuple[str, ...] = ()
    """What there is too little of, by name: `cpu`, `memory`, a counted resource, a kind of device."""


class Explanation(msgspec.Struct, frozen=True):
    """One decision laid open."""

    task: str
    function: str
    time: float
    attempt: int
    policy: str
    node: str | None
    """Where it went; None: it had to wait."""
    reason: Reason
    candidates: list[Candidate]
    measure: str = ""
    """Unit of the costs; empty: they have none."""
    notes: list[str] = []
    """What the policy could not go by here, or only by an estimate."""
    plan: "PlanCited | None" = None
    """What the plan says of it, if the policy goes by one."""


class PlanCited(msgspec.Struct, frozen=True):
    """What a plan says of a task, and whether that was done."""

    digest: str
    """Of the plan; empty: there is none."""
    server: str
    """Where it has the function; empty: nowhere."""
    variant: str
    cores: int
    """That are the function's own there."""
    in_use: float
    """Of them, before this decision."""
    rate: float
    """Requests per second it was planned for there."""
    followed: bool
    reason: Reason | None
    """Why the plan was not followed, or why it waits; None: it was followed."""


def explain(ask: Ask, view: View, policy: Policy, planned: Proposal | None = None) -> Explanation:
    """Ask the policy as the engine would, and lay open every class of candidates, best first. `planned`: it was asked
    for several tasks together, and that is its answer for this one."""
    answer = (planned.node, Reason.TAKEN, planned.variant) if planned is not None else _answer(ask, view, policy)
    node, reason, variant = answer
    found = _candidates(ask, view, policy)
    tiers = {site: _tier(ask.shape, site, view, policy) for site, _ in found}
    found.sort(key=lambda item: _order(item[1], tiers[item[0]]))
    task = ask.task
    verdicts = _verdicts(ask.shape, found, tiers, node, view, policy, planned is not None)
    return Explanation(
        task.id,
        task.function,
        view.time,
        ask.attempt + 1,
        policy.name,
        node,
        reason,
        [_with_build(ask.shape, each, node, variant, view) for each in verdicts] if variant else verdicts,
        policy.measure,
        [*_notes(view, policy), *([TOGETHER] if planned is not None else ())],
        _cited(ask, view, policy),
    )


def _with_build(shape: Shape, candidate: Candidate, node: str | None, variant: str, view: View) -> Candidate:
    """The place that was taken, with the build that the policy named."""
    state = view.nodes().get(node or "")
    if candidate.reason != Reason.TAKEN or state is None or state.site is None:
        return candidate
    estimate = view.with_variant(shape, state.site, variant)
    if isinstance(estimate, Reason):
        return candidate
    watts = estimate.watts if estimate.knows_power else None
    return msgspec.structs.replace(candidate, variant=variant, forecast=estimate.forecast, watts=watts)


def _cited(ask: Ask, view: View, policy: Policy) -> PlanCited | None:
    try:
        cited = policy.cite(ask, view)
    except Exception:  # as the engine: it is the policy's failure, not ours
        return None
    if cited is None:
        return None
    followed, share = cited.instead is None, (cited.cores, cited.in_use, cited.rate)
    return PlanCited(cited.plan, cited.server, cited.variant, *share, followed, cited.instead)


def _notes(view: View, policy: Policy) -> list[str]:
    if not policy.terms.tdp:
        return []
    machines = [cls.machine for cls in view.classes()]
    return [*tdp_unkept_on(machines), *tdp_estimated_on(machines)]


def _answer(ask: Ask, view: View, policy: Policy) -> tuple[str | None, Reason, str]:
    """What the engine would make of the policy's answer: the node, why or why not, and the build if it named one."""
    try:
        answer = policy.propose(ask, view)
    except Exception:  # as the engine: it is the policy's failure, not ours
        return None, Reason.POLICY_FAILED, ""
    if isinstance(answer, Refusal):
        return None, answer.reason, ""
    state = view.nodes().get(answer.node)
    if state is None or state.site is None:
        return None, Reason.BAD_PROPOSAL, ""
    estimate = view.with_variant(ask.shape, state.site, answer.variant)
    reason = view.refusal(ask.shape, state) if isinstance(estimate, PlacementEstimate) else estimate
    return (answer.node, Reason.TAKEN, answer.variant) if reason is None else (None, reason, "")


def lacking(shape: Shape, site: Site, terms: Terms, *, empty: bool = False) -> tuple[str, ...]:
    """All that nodes of the site have too little of for the shape now, or even when `empty`, by name."""
    cls, cpu = site.cls, guaranteed(shape, terms)
    found: list[str] = []
    if cpu and cpu > cls.cpu - (0 if empty else site.allocated):
        found.append("cpu")
    if shape.memory and shape.memory > cls.memory - (0 if empty else site.memory):
        found.append("memory")
    for name, amount in shape.resources:
        position = cls.position_of.get(name, -1)
        taken = 0 if empty or position < 0 else site.resources[position]
        if amount > cls.resources.get(name, 0) - taken:
            found.append(name)
    there = dict(cls.devices)
    for kind, share in shape.devices[shape.variants[0].name].items():
        if share > there.get(kind, 0) * MILLI:
            found.append(kind)
    return tuple(found)


def _verdicts(
    shape: Shape,
    found: list[tuple[Site, Candidate]],
    tiers: dict[Site, int],
    node: str | None,
    view: View,
    policy: Policy,
    together: bool,
) -> list[Candidate]:
    """The taken site says so, and its equals that they came second."""
    state = view.nodes().get(node) if node is not None else None
    here = [candidate for site, candidate in found if state is not None and state.site is site]
    fits = [candidate for candidate in here if candidate.forecast is not None]
    best = next((candidate for candidate in fits if candidate.first == node), next(iter(fits), None))
    equal = Reason.TIE if _goes_by_cost(found, policy) else None
    result: list[Candidate] = []
    for site, candidate in found:
        reason = candidate.reason
        if candidate is best:
            reason = Reason.TAKEN
        elif best is None or state is None or state.site is None:
            pass
        elif reason == Reason.DEARER and tiers[site] > tiers[state.site]:
            reason = Reason.LATER_TIER
        elif together and reason == Reason.DEARER and _is_less(candidate.cost, best.cost):
            reason = None
        elif reason == Reason.DEARER and candidate.cost == best.cost:
            reason = equal
        elif _without_a_figure(best) and _without_a_figure(candidate):
            ranks = _rank(shape, site, view, policy), _rank(shape, state.site, view, policy)
            reason = _among_unknown(candidate, best, *ranks)
        result.append(candidate if reason == candidate.reason else msgspec.structs.replace(candidate, reason=reason))
    return result


def _is_less(cost: float | None, than: float | None) -> bool:
    return cost is not None and than is not None and cost < than


def _without_a_figure(candidate: Candidate) -> bool:
    """It has room, and the policy has no cost for it because a figure is missing."""
    return candidate.forecast is not None and candidate.cost is None and candidate.reason in UNKNOWN


def _rank(shape: Shape, site: Site, view: View, policy: Policy) -> Rank | None:
    """By which a policy that ranks has chosen; None: it does not tell."""
    rank = getattr(policy, "rank", None)
    try:
        return rank_of(rank(shape, site, view)) if rank is not None else None
    except Exception:  # as above
        return None


def _tier(shape: Shape, site: Site, view: View, policy: Policy) -> int:
    rank = _rank(shape, site, view, policy)
    return FIRST_TIER if rank is None else rank[0]


def _among_unknown(candidate: Candidate, best: Candidate, rank: Rank | None, least: Rank | None) -> Reason | None:
    """What decided where the place that was taken lacks a figure too: the policy's second key."""
    if rank is None or least is None or rank[:2] != least[:2]:
        return candidate.reason
    if best.watts is None or not _is_watts(least[2], best.watts) or rank[2] == least[2]:
        return Reason.TIE
    if candidate.watts is None:
        return Reason.POWER_UNKNOWN if rank[2] == inf else Reason.TIE
    return Reason.MORE_WATTS if _is_watts(rank[2], candidate.watts) else Reason.TIE


def _is_watts(key: float, watts: float) -> bool:
    return abs(key - watts) <= ONE_MICROWATT


def _goes_by_cost(found: list[tuple[Site, Candidate]], policy: Policy) -> bool:
    """A policy that does not rank and finds that nothing costs anything chooses by something else, say by lot."""
    return isinstance(policy, RankingPolicy) or any(candidate.cost for _, candidate in found)


def _candidates(ask: Ask, view: View, policy: Policy) -> list[tuple[Site, Candidate]]:
    """Equal nodes at the same load, and those of them apart that a rule is held against."""
    verdicts = view.verdicts(ask.shape)
    cells = view.cells(ask) if view.preferences(ask) else []
    found: list[tuple[Site, Candidate]] = []
    for site in view.sites():
        estimate = view.estimate(ask.shape, site)
        if not isinstance(estimate, PlacementEstimate) or not (verdicts or cells):
            found.append((site, _candidate(ask, site, site.count, site.first(), estimate, view, policy)))
            continue
        for known, nodes in _parts(site, estimate, verdicts, cells):
            first = site.first_of(nodes) or ""
            found.append((site, _candidate(ask, site, nodes.bit_count(), first, known, view, policy)))
    return found


def _parts(
    site: Site, estimate: PlacementEstimate, verdicts: list[tuple[Reason, int]], cells: list[Cell]
) -> list[tuple[PlacementEstimate | Reason, int]]:
    """The site's nodes by the first rule that is held against them; the others by what the task takes more there."""
    parts: list[tuple[PlacementEstimate | Reason, int]] = []
    left = site.whole()
    for reason, fits in verdicts:
        parts.append((reason, left & ~fits))
        left &= fits
    for nodes, joules, seconds in cells:
        parts.append((estimate.preferred(joules, seconds), left & nodes))
        left &= ~nodes
    return [(known, nodes) for known, nodes in (*parts, (estimate, left)) if nodes]


def _candidate(
    ask: Ask, site: Site, count: int, first: str, estimate: PlacementEstimate | Reason, view: View, policy: Policy
) -> Candidate:
    reason, cost, variant, forecast, watts = Reason.DEARER, None, "", None, None
    lacks: tuple[str, ...] = ()
    if isinstance(estimate, PlacementEstimate):
        watts = estimate.watts if estimate.knows_power else None
        variant, forecast = estimate.variant.name, estimate.forecast
        verdict = _judge(ask, site, estimate, view, policy)
        if isinstance(verdict, Reason):
            reason = verdict
        elif isinstance(verdict, Unknown):
            reason = estimate.unknown or Reason.RUNTIME_UNKNOWN
        else:
            cost = float(verdict)
    else:
        reason = estimate
        if reason in SHORT_OF:
            lacks = lacking(ask.shape, site, policy.terms, empty=reason in EVEN_WHEN_EMPTY)
    return Candidate(
        machine=site.cls.machine.name,
        nodes=count,
        first=first,
        cores_in_use=site.demand / MILLI,
        cores=site.cls.cpu / MILLI,
        mode=Mode(site.mode).name.lower(),
        reason=reason,
        cost=cost,
        variant=variant,
        forecast=forecast,
        watts=watts,
        lacks=lacks,
    )


def _judge(ask: Ask, site: Site, estimate: PlacementEstimate, view: View, policy: Policy) -> float | Unknown | Reason:
    try:
        verdict = policy.judge(ask, site, estimate, view)
        if isinstance(verdict, Unknown | Reason):
            return verdict
        cost = float(verdict)
        return cost if cost == cost else Unknown("the policy's cost is not a number")
    except Exception:  # as above
        return Reason.POLICY_FAILED


def _order(candidate: Candidate, tier: int) -> tuple[int, int, float, str]:
    """Best first: by cost, within tiers; then what has none, then what is out of the question."""
    if candidate.cost is not None:
        return 0, tier, candidate.cost, candidate.first
    watts = inf if candidate.watts is None else candidate.watts
    return (1 if candidate.forecast is not None else 2), 0, watts, candidate.first
