"""HEATS' score (E4): energy and run time, weighed as the task's owner wishes (E1).

Owns that rule. Energy and seconds are each divided by the largest among the candidates, so that their weights are
comparable; the source says 'normalizing the predictions' and leaves the way open. The score of a node depends on who
else is a candidate, so nothing of it can be kept from one decision to the next.
"""

from collections.abc import Iterable
from math import inf
from typing import ClassVar, Final

from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.energy.forecast import Unknown
from wattloom.errors import PolicyError
from wattloom.policies.protocol import Policy, Proposal, Refusal
from wattloom.policies.view import Ask, View
from wattloom.prediction.placement_estimate import PlacementEstimate

Pair = tuple[float, float]
"""Joules and seconds."""
DIGITS: Final = 9
"""Of a score, which is about 1 at most: scores that differ by less are equal, and the name decides."""


class Weighted(Policy):
    """Least weighted sum of joules and seconds."""

    name = "weighted"
    summary = "least weighted sum of joules and seconds, by each task's own weights (HEATS)"
    options: ClassVar[dict[str, str]] = {
        "energy_weight": "1 is all for energy, 0 all for speed, for every task (default none: each task's own weight)"
    }

    def __init__(self, energy_weight: float | None = None) -> None:
        if energy_weight is not None and not 0.0 <= energy_weight <= 1.0:
            raise PolicyError("energy_weight", f"must be between 0 and 1, not {energy_weight}")
        self.energy_weight = energy_weight

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        known, unknown = _candidates(ask, view)
        if known:
            scale = _scale(known)
            weight = self._weight(ask)
            scores = {pair: _score(pair, weight, scale) for pair in known}
            least = min(scores.values())
            best = [site for pair, score in scores.items() if score == least for site in known[pair]]
            return Proposal(min(view.first(ask.shape, site) for site in best), least)
        if unknown:
            return Proposal(min(view.first(ask.shape, site) for site in unknown), inf)
        return Refusal(view.why_none(ask.shape))

    def judge(self, ask: Ask, site: Site, estimate: PlacementEstimate, view: View) -> float | Unknown | Reason:
        if estimate.unknown is not None:
            return Unknown(str(estimate.unknown))
        known, _ = _candidates(ask, view)
        return _score((estimate.joules, estimate.seconds), self._weight(ask), _scale(known))

    def _weight(self, ask: Ask) -> float:
        return ask.task.energy_weight if self.energy_weight is None else self.energy_weight


def _candidates(ask: Ask, view: View) -> tuple[dict[Pair, list[Site]], list[Site]]:
    """Sites with room by their forecast, since many differ in memory alone; and those without a forecast."""
    known: dict[Pair, list[Site]] = {}
    unknown: list[Site] = []
    for site, estimate in view.fitting(ask.shape):
        if estimate.unknown is not None:
            unknown.append(site)
            continue
        pair = (estimate.joules, estimate.seconds)
        if pair in known:
            known[pair].append(site)
        else:
            known[pair] = [site]
    return known, unknown


def _scale(pairs: Iterable[Pair]) -> Pair:
    """Largest joules and seconds; 1 where all are 0."""
    joules, seconds = 0.0, 0.0
    for pair in pairs:
        joules = max(joules, abs(pair[0]))
        seconds = max(seconds, pair[1])
    return joules or 1.0, seconds or 1.0


def _score(pair: Pair, weight: float, scale: Pair) -> float:
    return round(weight * pair[0] / scale[0] + (1.0 - weight) * pair[1] / scale[1], DIGITS)
