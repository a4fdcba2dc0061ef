"""Why a task went where it went, or why it waits: every class of candidates with its forecast and reason.

Owns the explanation. It costs nothing while scheduling: it is worked out from the engine's state, now or after
replaying the log up to the decision, by the same code that decided.
"""

import msgspec

from wattloom.cluster.node_class import Mode
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.energy.forecast import Forecast, Unknown
from wattloom.policies.protocol import Policy, RankingPolicy, Refusal
from wattloom.policies.view import Ask, View
from wattloom.prediction.outlook import Outlook
from wattloom.units import MILLI


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


def explain(ask: Ask, view: View, policy: Policy) -> Explanation:
    """Ask the policy as the engine would, and lay open every class of candidates, best first."""
    node, reason = _answer(ask, view, policy)
    found = sorted(_candidates(ask, view, policy), key=_order)
    task = ask.task
    return Explanation(
        task.id,
        task.function,
        view.time,
        ask.attempt + 1,
        policy.name,
        node,
        reason,
        _verdicts(found, node, view, policy),
        policy.measure,
    )


def _answer(ask: Ask, view: View, policy: Policy) -> tuple[str | None, Reason]:
    """What the engine would make of the policy's answer."""
    try:
        answer = policy.propose(ask, view)
    except Exception:  # as the engine: it is the policy's failure, not ours
        return None, Reason.POLICY_FAILED
    if isinstance(answer, Refusal):
        return None, answer.reason
    state = view.nodes().get(answer.node)
    if state is None or state.site is None:
        return None, Reason.BAD_PROPOSAL
    outlook = view.outlook(ask.shape, state.site)
    reason = view.refusal(ask.shape, state) if isinstance(outlook, Outlook) else outlook
    return (answer.node, Reason.TAKEN) if reason is None else (None, reason)


def _verdicts(found: list[tuple[Site, Candidate]], node: str | None, view: View, policy: Policy) -> list[Candidate]:
    """The taken site says so, and its equals that they came second."""
    state = view.nodes().get(node) if node is not None else None
    here = [candidate for site, candidate in found if state is not None and state.site is site]
    best = next((candidate for candidate in here if candidate.forecast is not None), None)
    equal = Reason.TIE if _goes_by_cost(found, policy) else None
    result: list[Candidate] = []
    for _, candidate in found:
        if candidate is best:
            result.append(msgspec.structs.replace(candidate, reason=Reason.TAKEN))
        elif best is not None and candidate.reason == Reason.DEARER and candidate.cost == best.cost:
            result.append(msgspec.structs.replace(candidate, reason=equal))
        else:
            result.append(candidate)
    return result


def _goes_by_cost(found: list[tuple[Site, Candidate]], policy: Policy) -> bool:
    """A policy that does not rank and finds that nothing costs anything chooses by something else, say by lot."""
    return isinstance(policy, RankingPolicy) or any(candidate.cost for _, candidate in found)


def _candidates(ask: Ask, view: View, policy: Policy) -> list[tuple[Site, Candidate]]:
    """Equal nodes at the same load, and those of them apart that a rule is held against."""
    verdicts = view.verdicts(ask.shape)
    found: list[tuple[Site, Candidate]] = []
    for site in view.sites():
        outlook = view.outlook(ask.shape, site)
        parts = (
            _parts(site, verdicts) if verdicts and isinstance(outlook, Outlook) else [(None, site.count, site.first())]
        )
        for reason, count, first in parts:
            known = outlook if reason is None else reason
            found.append((site, _candidate(ask, site, count, first, known, view, policy)))
    return found


def _parts(site: Site, verdicts: list[tuple[Reason, int]]) -> list[tuple[Reason | None, int, str]]:
    """The site's nodes by the first rule that is held against them, how many there are, and the first of them."""
    parts: list[tuple[Reason | None, int, str]] = []
    left = site.whole()
    for reason, fits in verdicts:
        if left & ~fits:
            parts.append((reason, (left & ~fits).bit_count(), site.first_of(left & ~fits) or ""))
            left &= fits
    if left:
        parts.append((None, left.bit_count(), site.first_of(left) or ""))
    return parts


def _candidate(
    ask: Ask, site: Site, count: int, first: str, outlook: Outlook | Reason, view: View, policy: Policy
) -> Candidate:
    reason, cost, variant, forecast = Reason.DEARER, None, "", None
    if isinstance(outlook, Outlook):
        variant, forecast = outlook.variant.name, outlook.forecast
        verdict = _judge(ask, site, outlook, view, policy)
        if isinstance(verdict, Reason):
            reason = verdict
        elif isinstance(verdict, Unknown):
            reason = outlook.unknown or Reason.RUNTIME_UNKNOWN
        else:
            cost = float(verdict)
    else:
        reason = outlook
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
    )


def _judge(ask: Ask, site: Site, outlook: Outlook, view: View, policy: Policy) -> float | Unknown | Reason:
    try:
        return policy.judge(ask, site, outlook, view)
    except Exception:  # as above
        return Reason.POLICY_FAILED


def _order(item: tuple[Site, Candidate]) -> tuple[int, float, str]:
    candidate = item[1]
    if candidate.cost is not None:
        return 0, candidate.cost, candidate.first
    return (1 if candidate.forecast is not None else 2), 0.0, candidate.first
