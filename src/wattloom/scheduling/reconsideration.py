"""Reconsideration: a policy that wants to is asked, now and then, what it would change of what runs.

Owns when it is asked, what it is shown of running work, and that each move it names is made or refused by itself. Only
policies that name an interval are asked.
"""

from typing import Final

from wattloom.bounds import LATEST_S
from wattloom.policies.answers import Move
from wattloom.policies.protocol import Policy
from wattloom.policies.view import Running
from wattloom.scheduling.ledger import Ledger
from wattloom.scheduling.moves import Moves
from wattloom.scheduling.policy_guard import moves_of, reconsider_interval
from wattloom.scheduling.state import Stage, TaskRecord
from wattloom.scheduling.timers import Timers
from wattloom.scheduling.turn import Turn


class Reconsideration:
    """Asks, and has done what may be done."""

    def __init__(self, policy: Policy, turn: Turn, ledger: Ledger, timers: Timers, moves: Moves) -> None:
        self._policy: Final = policy
        self._turn: Final = turn
        self._ledger: Final = ledger
        self._timers: Final = timers
        self._moves: Final = moves
        self._interval: Final = reconsider_interval(policy) or 0.0
        self.unwatched: bool = self._interval > 0.0
        """Whether the policy wants to be asked and no timer will."""
        self.refused: list[tuple[Move, str]] = []
        """Moves of the last time that could not be made, and why."""

    def watch(self) -> None:
        """There is work: ask in a while."""
        due = self._turn.time + self._interval
        if due < LATEST_S:
            self.unwatched = False
            self._timers.set(due, "reconsider", "")

    def due(self) -> None:
        """Ask now."""
        self.unwatched = True
        view = self._ledger.view
        records = self._ledger.tasks.values()
        view.running = [_shown(each) for each in records if each.stage in (Stage.PLACED, Stage.RUNNING)]
        moves = moves_of(self._policy, view)
        view.running = []
        answers = [(move, self._moves.make(move)) for move in moves]
        self.refused = [(move, why) for move, why in answers if why]


def _shown(record: TaskRecord) -> Running:
    has = record.holding
    return Running(
        record.task, record.shape, has.node.name, has.estimate.variant.name, has.started, has.progress,
        has.guaranteed, has.memory_of(record.shape), has.target is not None or has.resizing is not None,
        record.checkpoint,
    )  # fmt: skip
