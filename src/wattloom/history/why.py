"""Why a task of a log went where it went, or why it waits.

Owns the answer. It is worked out by folding the log up to each decision and asking the same policy again, so it holds
only as long as the recorded events lead to the recorded decisions. Where they no longer do nothing is explained: the
answer says so, and says what was recorded.
"""

from pathlib import Path
from typing import Any, Final

import msgspec

from wattloom.cluster.reasons import Reason
from wattloom.errors import InputError
from wattloom.history.explanation import Explanation, explain
from wattloom.history.log import Log
from wattloom.history.replayer import Fold, Progress
from wattloom.history.steps import Steps, at_once
from wattloom.history.waiting import Waiting, waiting_now
from wattloom.policies.protocol import Policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import Conclude, Place, Wait
from wattloom.scheduling.state import TaskRecord

SINCE: Final = {"kubernetes": "the scheduler's start"}
"""By backend: what the times of a log count from, where that is not the beginning of the run."""


class Told(msgspec.Struct, frozen=True):
    """An instruction on the task, as recorded."""

    time: float
    instruction: Place | Wait | Conclude


class Why(msgspec.Struct, frozen=True):
    """Every decision on a task, laid open."""

    task: str
    explanations: list[Explanation]
    """Each placement, and each time it had to wait for another reason than before."""
    same_decisions: bool
    """Whether the recorded events lead to the recorded decisions again, up to the last on this task. If not,
    explanations end where they begin to differ."""
    recorded: list[Told]
    """What was recorded of the task."""
    waiting: Waiting | None
    """None: it has a place, or has ended."""
    found_on: str = ""
    """The node that it was found on, if that was not decided in the log: it was before the log began, or elsewhere."""
    aside: str = ""
    """Why nobody decides on it now, in words: it was not given to the engine."""
    since: str = ""
    """What times count from; empty: the beginning of the run."""

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it: what there is not to say of every task is left out where it is not said."""
        more = {"found_on": self.found_on, "aside": self.aside, "since": self.since}
        return {
            "task": self.task,
            "same_decisions": self.same_decisions,
            "decisions": [msgspec.to_builtins(explanation) for explanation in self.explanations],
            "recorded": [{"time": told.time} | msgspec.to_builtins(told.instruction) for told in self.recorded],
            "waiting": msgspec.to_builtins(self.waiting),
        } | {name: words for name, words in more.items() if words}


def why(
    path: Path, task: str, recorded_policy: Policy, progress: Progress | None = None, *, trusted: bool = False
) -> Why:
    """Every decision on a task."""
    return at_once(answering(path, task, recorded_policy, progress, trusted=trusted))


def answering(
    path: Path, task: str, recorded_policy: Policy, progress: Progress | None = None, *, trusted: bool = False
) -> Steps[Why]:
    """The same in steps, one for each record."""
    return _Asked(Fold(Log(path), recorded_policy, progress, trusted=trusted), task, recorded_policy).answer()


class _Asked:
    """One reading of a log with an eye on one task."""

    def __init__(self, fold: Fold, task: str, policy: Policy) -> None:
        self._fold: Final = fold
        self._task: Final = task
        self._policy: Final = policy
        self._explanations: list[Explanation] = []
        self._recorded: list[Told] = []
        self._known: bool = False
        self._first: str = ""
        self._last: str = ""
        """Names of tasks in the log, to say how they look."""
        self._ended: bool = False
        self._node: str = ""
        """Where it is, as recorded."""
        self._found_on: str = ""
        self._same: bool = True
        self._pending: list[tuple[int, Explanation]] = []
        """With the event's line. They hold if the instructions that follow it turn out to be the recorded ones."""
        self._told: bool = False
        """Whether an instruction on the task has followed the last event."""
        fold.engine.watcher = self._watch

    def answer(self) -> Steps[Why]:
        for record in self._fold.records():
            if isinstance(record, ev.Event):
                self._close(self._fold.line)
                self._event(record)
            elif isinstance(record, Place | Wait | Conclude) and record.task == self._task:
                self._told = True
                self._recorded.append(Told(self._fold.time, record))
                self._node = record.node if isinstance(record, Place) else ""
                self._found_on = ""
                self._ended = self._ended or isinstance(record, Conclude)
            yield
        self._close(self._fold.line + 1)
        if not self._known:
            raise InputError("task", f"{self._task} is not in {self._fold.log.path}{self._names()}")
        stands = not self._ended and not self._node
        if stands:
            self._same = self._fold.same
        return Why(
            self._task,
            self._explanations,
            self._same,
            self._recorded,
            self._waiting() if stands else None,
            found_on=self._found_on,
            since=SINCE.get(self._fold.log.header.backend, ""),
        )

    def _watch(self, record: TaskRecord) -> None:
        if record.name == self._task:
            engine = self._fold.engine
            explanation = explain(record, engine.ledger.view, self._policy, engine.placement.planned)
            self._pending.append((self._fold.line, explanation))

    def _close(self, line: int) -> None:
        """The instructions of all events before this line are compared."""
        settled = [explanation for at, explanation in self._pending if at < line]
        if settled or self._told:
            self._same = self._fold.same
        if self._fold.same:
            for explanation in settled:
                if explanation.node is not None or self._last_reason() != explanation.reason:
                    self._explanations.append(explanation)
        self._pending = self._pending[len(settled) :]
        self._told = False

    def _last_reason(self) -> Reason | None:
        return self._explanations[-1].reason if self._explanations else None

    def _event(self, event: ev.AnyEvent) -> None:
        if isinstance(event, ev.TaskSubmitted | ev.TaskOrphaned | ev.TaskFound):
            self._first, self._last = self._first or event.task.id, event.task.id
        if isinstance(event, ev.TaskSubmitted | ev.TaskOrphaned):
            self._known = self._known or event.task.id == self._task
        elif isinstance(event, ev.TaskFound):
            if event.task.id == self._task:
                self._known, self._node = True, event.node
                self._found_on = "" if self._was_sent_to(event.node) else event.node
        elif isinstance(event, ev.TaskMigrated):
            self._node = event.node if event.task == self._task else self._node
        elif isinstance(event, ev.TaskFinished):
            self._ended = self._ended or event.task == self._task
        elif self._left_its_node(event):
            self._node = ""

    def _names(self) -> str:
        if not self._first:
            return ", which has no tasks"
        return f": it has {self._first}" + (f" ... {self._last}" if self._last != self._first else "")

    def _was_sent_to(self, node: str) -> bool:
        """Also if it seemed for a while that it had not arrived."""
        instructions = (told.instruction for told in self._recorded)
        return any(isinstance(each, Place) and each.node == node for each in instructions)

    def _left_its_node(self, event: ev.AnyEvent) -> bool:
        if isinstance(event, ev.NodeLost):
            return event.node == self._node
        if isinstance(event, ev.InstructionFailed):
            return event.instruction == "place" and event.task == self._task
        return isinstance(event, ev.TaskFailed | ev.TaskReturned | ev.TaskRemoved) and event.task == self._task

    def _waiting(self) -> Waiting | None:
        """By the engine if it has followed the log to its end, else by the last that was recorded."""
        if self._fold.same:
            return waiting_now(self._fold.engine, self._task)
        last = self._recorded[-1].instruction if self._recorded else None
        return Waiting(last.reason) if isinstance(last, Wait) else None
