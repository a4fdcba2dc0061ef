"""Policies by the tutorial: one with `cost`, `tie` and an option, one that overrides `rank`, one that proposes."""
# mypy: ignore-errors
# As the tutorial has it: without annotations.

from wattloom.cluster.fit import Terms
from wattloom.policies.protocol import Policy, Proposal, RankingPolicy, Refusal


class Fastest(RankingPolicy):
    """Seconds, with a price on energy; among equals, the place that needs the fewest joules."""

    name = "outside-fastest"
    summary = "seconds plus a price on joules"
    options = {"price": "seconds that a joule is worth (default 0)"}  # noqa: RUF012
    needs_runtime = True
    needs_power = True

    def __init__(self, price: float = 0.0) -> None:
        self.price = price

    def cost(self, shape, site, outlook):
        return outlook.seconds + self.price * outlook.joules

    def tie(self, shape, site, outlook):
        return outlook.joules


class Crowded(RankingPolicy):
    """The least watts, and among equals the fullest place: the second key is put into the rank by hand."""

    name = "outside-crowded"
    summary = "fewest watts more, then the fullest place"
    measure = "W"
    terms = Terms(guarantee=0.8)
    needs_power = True

    def cost(self, shape, site, outlook):
        return round(outlook.watts, 6)

    def rank(self, shape, site, view):
        ranked = super().rank(shape, site, view)
        return None if ranked is None else (ranked[0], -site.demand)


class Nearest(Policy):
    """The first place by name among those that are soonest done, for the task's own attempt; idle nodes go to sleep."""

    name = "outside-nearest"
    summary = "soonest done, by looking at every place"
    measure = "s"

    def propose(self, ask, view):
        places = [(self.seconds(outlook), view.first(ask.shape, site)) for site, outlook in view.fitting(ask.shape)]
        if not places:
            return Refusal(view.why_none(ask.shape))
        seconds, node = min(places)
        return Proposal(node, seconds)

    def judge(self, ask, site, outlook, view):
        return self.seconds(outlook)

    def linger(self, cls, view):
        return 30.0

    def seconds(self, outlook):
        """What is unknown is the worst there is."""
        return float("inf") if outlook.unknown is not None else outlook.seconds
