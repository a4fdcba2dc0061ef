"""Escheduler's ExEC (S2): the node with the most energy capacity left.

Owns that rule. Capacity left is the node's limit less what it is expected to draw: the last reading and the usual draw
of what was placed since (`prediction.readings` says of what was never measured), or the forecast if the node was never
measured. Of equal nodes, and of those of which nothing is known, the one with the fewest tasks. A task is never
deferred if a node fits.
"""

from math import inf, isfinite
from typing import ClassVar, Final

from wattloom.cluster.node_class import NodeClass
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import MICRO, Site
from wattloom.energy.forecast import Unknown
from wattloom.errors import PolicyError
from wattloom.policies.protocol import Policy, Proposal, Refusal
from wattloom.policies.view import Ask, View
from wattloom.prediction.placement_estimate import PlacementEstimate

MICROWATTS: Final = 6
ONE_MICROWATT: Final = 1e-6
"""Nodes that differ by less are equal: a sum of watts has as many digits as it has summands."""
Key = tuple[float, float, int, str]
"""Watts above the limit; where there is no limit, watts; tasks; name."""


class ExecCapacity(Policy):
    """Most watts left."""

    name = "exec"
    summary = (
        "the node with the most watts left by its meter and by what was placed since (Escheduler's ExEC); a function "
        "never measured counts by the curve, else as the mean of the others"
    )
    options: ClassVar[dict[str, str]] = {"interval_s": "seconds between readings of each node's meter (default 5)"}

    def __init__(self, interval_s: float = 5.0) -> None:
        if not (interval_s > 0.0 and isfinite(interval_s)):
            raise PolicyError("interval_s", f"must be a positive number of seconds, not {interval_s}")
        self.reading_interval_s = interval_s

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        """One pass over all nodes, as in the source; only one that would be the best so far is asked for room."""
        shape, draws = ask.shape, view.readings.draws
        limits = {cls: _limit(cls) for cls in view.classes()}
        best: Key | None = None
        least = inf
        for name, node in view.nodes().items():
            watts = draws.get(name)
            cost = watts - limits[node.cls] if watts is not None else _unmeasured(node.site, limits[node.cls])
            if cost > least + ONE_MICROWATT:
                continue
            drawn = inf if watts is None else round(watts, MICROWATTS)
            key = (round(cost, MICROWATTS), drawn if cost == inf else 0.0, len(node.tasks), name)
            if (best is None or key < best) and view.takes(shape, node):
                best, least = key, key[0]
        return Proposal(best[3], best[0]) if best is not None else Refusal(view.why_none(shape))

    def judge(self, ask: Ask, site: Site, estimate: PlacementEstimate, view: View) -> float | Unknown | Reason:
        """Watts left on the site's best node, negative because more are better."""
        limit = _limit(site.cls)
        nodes, allowed = view.nodes(), view.allowed(ask.shape)
        members = [name for name in site.members() if allowed >> nodes[name].number & 1]
        readings = [view.readings.expected(name) for name in members or site.members()]
        least = min(watts - limit if watts is not None else _unmeasured(site, limit) for watts in readings)
        least = round(least, MICROWATTS)
        return least if least < inf else Unknown("neither a meter nor a power curve says what is left")


def _unmeasured(site: Site | None, limit: float) -> float:
    """The forecast against the limit; nothing good is said of a node that has neither reading nor curve."""
    return site.microwatts / MICRO - limit if site is not None and site.cls.machine.knows_power else inf


def _limit(cls: NodeClass) -> float:
    """The cap, else the TDP, else the top of the curve; none of them: minus infinity, so that the node comes last."""
    if cls.cap_w is not None:
        return cls.cap_w
    machine = cls.machine
    if machine.profile.tdp_w is not None and machine.profile.quantity == "package":
        return machine.profile.tdp_w
    return machine.full_watts if machine.knows_power else -inf
