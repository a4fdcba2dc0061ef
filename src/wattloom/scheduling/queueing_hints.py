"""Queueing hints: what has changed, and which waiting tasks may have a place by that.

Owns who is asked again. A lane that nothing has changed for is left alone: asking costs a proposal.
"""

from typing import Final

from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import NodeState
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.scheduling.ledger import Ledger
from wattloom.scheduling.queue import Queue
from wattloom.scheduling.state import TaskRecord

ASKED_ANYWAY: Final = (Reason.CLUSTER_WATTS, Reason.BAD_PROPOSAL)
"""Refusals that do not hang on one node: there may be another place now, wherever something was given back."""
POWER: Final = (Reason.CLUSTER_WATTS, Reason.POWER_UNKNOWN, Reason.BAD_PROPOSAL)
"""Refusals that watts may end. What a bad proposal hides may be one of them."""


class QueueingHints:
    """Unblocks lanes."""

    def __init__(self, ledger: Ledger, queue: Queue) -> None:
        self._ledger: Final = ledger
        self._queue: Final = queue

    def room_at(self, node: NodeState) -> None:
        """Something was given back here: whoever fits now is asked again."""
        site, ledger = node.site, self._ledger
        assert site is not None
        for lane in list(self._queue.blocked.values()):
            if lane.blocked_by not in ASKED_ANYWAY:
                if not isinstance(ledger.estimates.at(lane.shape, site), PlacementEstimate):
                    continue
                if ledger.rules.active and ledger.view.refusal(lane.shape, node) is not None:
                    continue
            self._queue.unblock(lane)

    def rules_moved(self) -> None:
        """Tasks have come or gone that others' rules count: whoever may go to more nodes now is asked again."""
        queue = self._queue
        for index in self._ledger.rules.given_more(queue.blocked):
            queue.unblock(queue.blocked[index])

    def power(self, first: TaskRecord | None) -> None:
        """The cluster draws less, or what it draws is better known: for those that wait for watts, and for the task
        that goes first."""
        for lane in list(self._queue.blocked.values()):
            if lane.blocked_by in POWER or (first is not None and first.shape is lane.shape):
                self._queue.unblock(lane)

    def function(self, name: str) -> None:
        """What is expected of this function has changed."""
        for lane in list(self._queue.blocked.values()):
            if lane.shape.function.name == name:
                self._queue.unblock(lane)

    def everything(self) -> None:
        for lane in list(self._queue.blocked.values()):
            self._queue.unblock(lane)
