"""Escheduler's ExEC (S2): the node with the most energy capacity left.

Owns that rule. Capacity left is the node's limit less what it is expected to draw: the last reading and the usual draw
of what was placed since, or the forecast if it was never measured. A task is never deferred if a node fits.
"""

from math import inf, isfinite
from typing import ClassVar

from wattloom.cluster.node_class import NodeClass
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import MICRO, Site
from wattloom.energy.forecast import Unknown
from wattloom.errors import PolicyError
from wattloom.policies.by_name import has_room
from wattloom.policies.protocol import Policy, Proposal, Refusal
from wattloom.policies.view import Ask, View
from wattloom.prediction.outlook import Outlook

Figures = tuple[float, float]
"""For nodes of one site: their limit in watts, and the cost of one that was never measured."""


class ExecCapacity(Policy):
    """Most watts left."""

    name = "exec"
    summary = "the node with the most watts left by its meter (Escheduler's ExEC)"
    options: ClassVar[dict[str, str]] = {"interval_s": "seconds between readings of each node's meter (default 5)"}

    def __init__(self, interval_s: float = 5.0) -> None:
        if not (interval_s > 0.0 and isfinite(interval_s)):
            raise PolicyError("interval_s", f"must be a positive number of seconds, not {interval_s}")
        self.reading_interval_s = interval_s

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        shape, nodes, expected = ask.shape, view.nodes(), view.readings.expected
        asked: dict[Site | None, Figures | None] = {}
        chosen, least = "", inf
        for name in view.names():
            site = nodes[name].site
            if site in asked:
                figures = asked[site]
            else:
                figures = asked[site] = _figures(site) if site is not None and has_room(shape, site, view) else None
            if figures is None:
                continue
            watts = expected(name)
            cost = figures[1] if watts is None else watts - figures[0]
            if cost < least or not chosen:
                chosen, least = name, cost
        return Proposal(chosen, least) if chosen else Refusal(view.why_none(shape))

    def judge(self, ask: Ask, site: Site, outlook: Outlook, view: View) -> float | Unknown | Reason:
        """Watts left on the site's best node, negative because more are better."""
        limit, unmeasured = _figures(site)
        readings = [view.readings.expected(name) for name in site.members()]
        least = min(unmeasured if watts is None else watts - limit for watts in readings)
        return least if least < inf else Unknown("neither a meter nor a power curve says what is left")


def _figures(site: Site) -> Figures:
    limit = _limit(site.cls)
    if limit is None:
        return -inf, inf
    return limit, (site.microwatts / MICRO - limit if site.cls.machine.knows_power else inf)


def _limit(cls: NodeClass) -> float | None:
    """The cap, else the TDP, else the top of the curve."""
    if cls.cap_w is not None:
        return cls.cap_w
    machine = cls.machine
    if machine.profile.tdp_w is not None:
        return machine.profile.tdp_w
    return machine.full_watts if machine.knows_power else None
