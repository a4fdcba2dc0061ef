"""Taking turns: the next node by name after the one that was last given a task.

Owns that rule. The ISA study's round-robin (I5) takes turns with functions, each of which then stays on its server;
this one does with every task, so it is the source's only where a function has one task. Whose turn it is comes from the
view: a restart does not begin at the first node again.
"""

from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.energy.forecast import Unknown
from wattloom.policies.by_name import nodes_with_room, steps_to
from wattloom.policies.protocol import Policy, Proposal, Refusal
from wattloom.policies.view import Ask, View
from wattloom.prediction.placement_estimate import PlacementEstimate


class RoundRobin(Policy):
    """Next node by name."""

    name = "round-robin"
    summary = (
        "the next node by name, after the last one used, that has room; task by task, where the ISA study's "
        "takes turns with functions"
    )

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        for steps, name in nodes_with_room(ask.shape, view, after=view.last_node):
            return Proposal(name, float(steps))
        return Refusal(view.why_none(ask.shape))

    def judge(self, ask: Ask, site: Site, estimate: PlacementEstimate, view: View) -> float | Unknown | Reason:
        """Nodes that come before it in the turn."""
        return float(steps_to(ask.shape, site, view, after=view.last_node))
