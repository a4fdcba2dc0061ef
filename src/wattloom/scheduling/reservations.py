"""Reservations: what is kept free for a task that others have overtaken too long.

Owns how long that is, the nodes that are kept free, and the one task that goes before all others because it waits for
watts. Every reservation ends in `release`, or in `lost` when its node is.
"""

from collections.abc import Callable
from typing import Final

from wattloom.cluster.node_class import Mode
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import NodeState
from wattloom.scheduling.ledger import Ledger
from wattloom.scheduling.queue import Lane, Queue
from wattloom.scheduling.queueing_hints import QueueingHints
from wattloom.scheduling.state import Order, TaskRecord
from wattloom.scheduling.timers import Timers
from wattloom.scheduling.turn import Turn

PATIENCE_S: Final = 60.0
"""How long a task may be overtaken before a node is kept free for it."""
ROOM: Final = (
    Reason.NO_ROOM, Reason.NEVER_FITS, Reason.NO_NODES, Reason.CPU, Reason.MEMORY, Reason.DEVICES,
    Reason.NODE_WATTS, Reason.TDP, Reason.HELD, Reason.TOO_SMALL,
)  # fmt: skip
"""Refusals that a node kept free can end."""


class Reservations:
    """For whom something is kept."""

    def __init__(
        self,
        turn: Turn,
        ledger: Ledger,
        queue: Queue,
        timers: Timers,
        hints: QueueingHints,
        freed: Callable[[NodeState], None],
    ) -> None:
        self._turn: Final = turn
        self._ledger: Final = ledger
        self._queue: Final = queue
        self._timers: Final = timers
        self._hints: Final = hints
        self._freed: Final = freed
        """Told of a node that is kept free no longer."""
        self.held: Final[dict[str, TaskRecord]] = {}
        """Nodes kept free, and for whom."""
        self.first: TaskRecord | None = None
        """Task that nobody may overtake any more."""
        self.youngest: Order = (-(2**62), -1)
        """The last in order that was placed while others waited."""
        self.unwatched: Final[dict[int, Lane]] = {}
        """Blocked lanes whose patience is looked after from the next placement on: until then nobody overtakes."""

    def power_freed(self) -> None:
        """The cluster draws less, or what it draws is better known: who waits for watts is asked again."""
        self._hints.power(self.first)

    # -- patience ------------------------------------------------------------------------------------------------------

    def blocked(self, lane: Lane) -> None:
        """Its tasks wait from now on."""
        if not lane.watched:
            self.unwatched[lane.shape.index] = lane

    def placed(self, record: TaskRecord) -> None:
        """Something is placed: from now on those who wait may be overtaken."""
        if self.unwatched:
            self._watch_patience()
        if self._queue.blocked and record.order > self.youngest:
            self.youngest = record.order

    def _watch_patience(self) -> None:
        for lane in self.unwatched.values():
            head = lane.head()
            if head is not None and not lane.watched:
                lane.watched = True
                due = max(self._turn.time, head.waiting_since + PATIENCE_S, lane.look_at)
                self._timers.set(due, "patience", "", lane.shape.index)
        self.unwatched.clear()

    def patience_ends(self, lane: Lane) -> None:
        """The first task of a blocked lane has waited long: if others overtook it, nobody may on one node any more."""
        lane.watched = False
        record = lane.head()
        if record is None or lane.blocked_by is None:
            return
        self.unwatched[lane.shape.index] = lane
        time = self._turn.time
        if time < record.waiting_since + PATIENCE_S:
            return
        lane.look_at = time + PATIENCE_S
        if self.youngest < record.order or record in self.held.values() or self.first is record:
            return
        if lane.blocked_by == Reason.CLUSTER_WATTS:
            self.go_first(record)
        elif lane.blocked_by in ROOM:
            self._keep_a_node_free(record)

    def drop(self, index: int) -> None:
        """No task of the shape is left."""
        self.unwatched.pop(index, None)

    # -- a node, or the first turn -------------------------------------------------------------------------------------

    def _keep_a_node_free(self, record: TaskRecord) -> None:
        """Undo: `release`."""
        node = self._ledger.emptiest(record.shape)
        if node is not None and not self._ledger.room_when_released(record.shape, node):
            self.keep(node, record)

    def keep(self, node: NodeState, record: TaskRecord) -> None:
        """Nobody else may go there. Undo: `release`."""
        self.held[node.name] = record
        self._ledger.set_mode(node, Mode.HELD)

    def go_first(self, record: TaskRecord) -> None:
        """Nobody may overtake it any more, if that helps: the others' watts are what it waits for. Undo: `release`."""
        earlier = self.first is None or record.order < self.first.order
        if earlier and self._ledger.fits_under_the_cap(record.shape):
            self.first = record

    def still_helps(self, record: TaskRecord, refusal: Reason) -> bool:
        """Whether holding the others up helps the first."""
        helps = refusal == Reason.CLUSTER_WATTS or refusal in ROOM
        return helps and self._ledger.fits_under_the_cap(record.shape)

    def given_back(self, node: NodeState) -> TaskRecord | None:
        """Something was given back on a node kept free: the task it was kept for, if there is room for it now."""
        record = self.held[node.name]
        if not self._ledger.could_hold(record.shape, node):
            self.lost(node.name)
            self._ledger.set_mode(node, Mode.AWAKE)
            self._freed(node)
        elif self._ledger.room_when_released(record.shape, node):
            self.release(record)
            return record
        return None

    def lost(self, node: str) -> None:
        """The node cannot be kept free any more: the task is asked again, and another may be kept."""
        record = self.held.pop(node, None)
        if record is not None:
            self._queue.unblock(self._queue.lanes[record.shape.index])

    def release(self, record: TaskRecord) -> None:
        """The task has a place, or waits no longer: nothing is kept for it."""
        if self.first is record:
            self.first = None
            self._hints.everything()
        for name, held_for in list(self.held.items()):
            if held_for is record:
                del self.held[name]
                node = self._ledger.index.nodes[name]
                self._ledger.set_mode(node, Mode.AWAKE)
                self._freed(node)
