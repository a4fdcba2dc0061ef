"""Costs as scores from 0 to 10, the form in which kube-scheduler wants an extender's opinion.

Owns that translation. Costs that hardly differ get scores that hardly differ, so that what Kubernetes itself prefers
decides between them; what is unknown is never better than what is known.
"""

from collections.abc import Mapping
from math import inf, isfinite
from typing import Final

from wattloom.bounds import MOST_FIGURE
from wattloom.cluster.index import FIRST_TIER, UNKNOWN_TIER, Rank

BEST: Final = 10
"""kube-scheduler's MaxExtenderPriority."""
LEAST_OF_BEST_TIER: Final = 3
LEAST_SPAN: Final = 0.25
"""Costs within this share of the cheapest are not stretched over the whole scale."""
NO_RANK: Final[Rank] = (UNKNOWN_TIER, inf, inf)


def scores(ranks: Mapping[int, Rank | None]) -> dict[int, int]:
    """A score for each, by the same keys. Best tier first: what it costs is known; known, and of a later tier of the
    policy; only the watts are known. The first there is gets 3 to 10, the next ones 2 and 1, and what is not known at
    all 0."""
    tiers: tuple[dict[int, float], ...] = ({}, {}, {})
    for key, rank in ranks.items():
        of, cost, tie = rank or NO_RANK
        if of == FIRST_TIER:
            tiers[0][key] = cost
        elif of < UNKNOWN_TIER:
            tiers[1][key] = cost
        elif isfinite(tie):
            tiers[2][key] = tie
    found = dict.fromkeys(ranks, 0)
    below = LEAST_OF_BEST_TIER - 1
    for number, tier in enumerate(each for each in tiers if each):
        found.update(_spread(tier) if number == 0 else dict.fromkeys(tier, below + 1 - number))
    return found


def _spread(costs: dict[int, float]) -> dict[int, int]:
    costs = {key: max(cost, -MOST_FIGURE) for key, cost in costs.items()}
    best, worst = min(costs.values()), max(costs.values())
    span = max(worst - best, LEAST_SPAN * abs(best))
    if not span:
        return dict.fromkeys(costs, BEST)
    steps = BEST - LEAST_OF_BEST_TIER
    return {key: BEST - round(steps * (cost - best) / span) for key, cost in costs.items()}
