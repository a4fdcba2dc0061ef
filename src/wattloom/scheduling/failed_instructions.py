"""What is undone when a backend could not carry an instruction out.

Owns the undo of each: the place that was refused, the task that would not stop, the node that did not wake.
"""

from typing import Final

from wattloom.cluster.node_class import Mode
from wattloom.cluster.reasons import Reason
from wattloom.cluster.warm_instances import add
from wattloom.errors import EventRefused
from wattloom.scheduling import events as ev
from wattloom.scheduling.event_checks import (
    attempt_named,
    node_named,
    resizing_named,
)
from wattloom.scheduling.idle_sleep import IdleSleep
from wattloom.scheduling.ledger import Ledger
from wattloom.scheduling.moves import Moves
from wattloom.scheduling.placement import BACK_OFF_MOST_S, Placement
from wattloom.scheduling.reservations import Reservations
from wattloom.scheduling.state import Stage, by_order
from wattloom.scheduling.task_ends import TaskEnds
from wattloom.scheduling.turn import Turn


class FailedInstructions:
    """The handler of `instruction-failed`."""

    def __init__(
        self,
        turn: Turn,
        ledger: Ledger,
        reservations: Reservations,
        placement: Placement,
        moves: Moves,
        idle_sleep: IdleSleep,
        ends: TaskEnds,
    ) -> None:
        self._turn: Final = turn
        self._ledger: Final = ledger
        self._reservations: Final = reservations
        self._placement: Final = placement
        self._moves: Final = moves
        self._idle_sleep: Final = idle_sleep
        self._ends: Final = ends

    def instruction_failed(self, event: ev.InstructionFailed) -> None:
        if event.instruction == "place":
            self._undo_place(event)
        elif event.instruction == "evict":
            self._undo_evict(event)
        elif event.instruction == "sleep":
            node = node_named(self._ledger, event.node)
            if node.mode != Mode.ASLEEP:
                raise EventRefused("node", f"{event.node} was not asked to sleep")
            self._ledger.set_mode(node, Mode.AWAKE)
            self._placement.freed(node)
            self._idle_sleep.watch(node, self._turn.time, BACK_OFF_MOST_S)
        elif event.instruction == "wake":
            self._undo_wake(event)
        elif event.instruction in ("migrate", "resize"):
            self._undo_move(event)
        elif event.instruction == "set-frequency":
            if self._moves.frequencies.pop(node_named(self._ledger, event.node).name, None) is None:
                raise EventRefused("node", f"{event.node} was not asked to run at another frequency")
        elif event.instruction in ("prepare", "release"):
            self._undo_instance(event)
        else:
            raise EventRefused("instruction", f"is not known: {event.instruction}")

    def _undo_place(self, event: ev.InstructionFailed) -> None:
        """It was not started: free what it had, and try again later."""
        record = attempt_named(self._ledger, event.task, event.attempt)
        if record.holding.started:
            raise EventRefused("task", f"{event.task} was reported as started")
        cancelled = record.stage == Stage.CANCELLING
        self._placement.release(record)
        if cancelled:
            self._ends.end(record, "cancelled", Reason.CANCELLED, event.message)
        else:
            self._placement.back_off(record, Reason.START_REFUSED, event.message)

    def _undo_evict(self, event: ev.InstructionFailed) -> None:
        """It goes on: nobody is kept waiting for the room that it was to make."""
        record = attempt_named(self._ledger, event.task, event.attempt)
        if record.stage not in (Stage.CANCELLING, Stage.EVICTING):
            raise EventRefused("task", f"{event.task} is not being cancelled")
        allocation = record.holding
        kept_for = self._reservations.held.get(record.node) if record.stage == Stage.EVICTING else None
        if not allocation.taken:
            record.enter(Stage.BEHIND)
        else:
            record.enter(Stage.RUNNING if allocation.started else Stage.PLACED)
        if kept_for is not None:
            self._reservations.release(kept_for)

    def _undo_move(self, event: ev.InstructionFailed) -> None:
        """It is as it was: what was taken for more is given back."""
        if event.instruction == "migrate":
            record = attempt_named(self._ledger, event.task, event.attempt)
            if record.holding.target is None:
                raise EventRefused("task", f"{event.task} was not asked to move")
            self._placement.freed(self._moves.stays(record))
        else:
            self._moves.resized(resizing_named(self._ledger, event.task, event.attempt), done=False)

    def _undo_instance(self, event: ev.InstructionFailed) -> None:
        instances = self._ledger.view.instances
        asked = instances.coming if event.instruction == "prepare" else instances.going
        key = (node_named(self._ledger, event.node).name, event.function, event.variant)
        if key not in asked:
            raise EventRefused("function", f"{event.function} was not asked for on {event.node}")
        add(asked, key, -1)

    def _undo_wake(self, event: ev.InstructionFailed) -> None:
        node = node_named(self._ledger, event.node)
        if node.mode != Mode.WAKING:
            raise EventRefused("node", f"{event.node} was not asked to wake")
        records = sorted((self._ledger.tasks[task] for task in node.tasks), key=by_order)
        self._ledger.set_mode(node, Mode.ASLEEP)
        for record in records:
            self._placement.leave(record)
            self._placement.back_off(record, Reason.START_REFUSED, event.message or f"node {event.node} did not wake")
        self._placement.freed(node)
