"""A log told to a fresh engine again, record by record.

Owns the comparison of what is decided now with what was decided then, and the check that a log names nothing unknown.
Where the decisions differ the engine soon contradicts the log: it is left alone from there on, and the records go on.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from wattloom.cluster.node import Node
from wattloom.errors import EventRefused, LogError
from wattloom.history.log import FIRST_NUMBERED, Log
from wattloom.history.records import Record
from wattloom.policies.fifo import Fifo
from wattloom.policies.protocol import Policy
from wattloom.prediction.loading import load_recorded_predictor
from wattloom.prediction.protocol import Predictor
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import AnyInstruction, Conclude, Place
from wattloom.workload.task import Task

Progress = Callable[[int, int], None]
"""Told (tasks ended, tasks in all)."""

PROGRESS_EVERY: Final = 1024


class Fold:
    """One reading of a log."""

    def __init__(
        self, log: Log, policy: Policy | None, progress: Progress | None = None, *, trusted: bool = False
    ) -> None:
        """Without a policy the engine is asked nothing: the records are all there is. `trusted`: a predictor that the
        log names may be a file of Python."""
        self.log: Final = log
        predictor = None if policy is None else predictor_of(log, trusted)
        header = log.header
        self.engine: Final = Engine(
            policy or Fifo(), header.lease, header.placed, predictor=predictor, moves=header.moves
        )
        self._numbered: Final = log.header.wattloom_log >= FIRST_NUMBERED
        self.same: bool = policy is not None
        """Whether all instructions so far are those the engine gives."""
        self.given_up_at: int | None = None if policy is not None else 1
        """The line at which the engine, having decided otherwise, could not follow the log any more."""
        self.line: int = 1
        self.time: float = 0.0
        """Of the last event."""
        self.begin: float | None = None
        """Time of the first event: backends count from wherever they like."""
        self._progress: Final = progress
        self._expected: deque[AnyInstruction] = deque()
        self._machines: set[str] = set()
        self._functions: set[str] = set()
        self._nodes: set[str] = set()
        self._tasks: set[str] = set()
        self._ended: int = 0

    @property
    def passed(self) -> float:
        """Seconds since the first event."""
        return self.time - (self.begin or 0.0)

    def records(self) -> Iterator[Record]:
        """Every record, after the engine has taken it. Instructions missing at the very end are no difference: a log
        may be cut off anywhere."""
        total = tasks_in(self.log) if self._progress is not None else 0
        for line, record in self.log.numbered():
            self.line = line
            self._check_names(record)
            if isinstance(record, ev.Event):
                self._event(record)
            else:
                self._instruction(record)
            if self._progress is not None and line % PROGRESS_EVERY == 0:
                self._progress(self._ended, total)
            yield record

    def wrong(self, problem: str) -> LogError:
        """What is wrong with the record at hand."""
        return LogError(f"{self.log.path}:{self.line}", problem)

    # -- the engine --------------------------------------------------------------------------------------------------

    def _event(self, event: ev.AnyEvent) -> None:
        if self.begin is None:
            self.begin = event.time
        elif not event.time >= self.time:
            raise self.wrong(f"time runs backwards, from {self.time} s to {event.time} s")
        self.time = event.time
        self.same = self.same and not self._expected
        self._expected.clear()
        if self.given_up_at is None:
            try:
                self._expected.extend(self._as_written(self.engine.handle(event)))
            except EventRefused as problem:
                if self.same:
                    raise self.wrong(f"cannot be replayed: at {event.time} s, {problem}") from problem
                self.given_up_at = self.line
        self._ended += isinstance(event, ev.TaskFinished)

    def _as_written(self, instructions: list[AnyInstruction]) -> list[AnyInstruction]:
        """As the log's version writes them."""
        if self._numbered:
            return instructions
        return [msgspec.structs.replace(each, number=0) if isinstance(each, Place) else each for each in instructions]

    def _instruction(self, instruction: AnyInstruction) -> None:
        if self.begin is None:
            raise self.wrong("an instruction stands before any event")
        self.same = self.same and bool(self._expected) and self._expected.popleft() == instruction
        self._ended += isinstance(instruction, Conclude)

    # -- names -------------------------------------------------------------------------------------------------------

    def _check_names(self, record: Record) -> None:
        """Nearly all records are of the first three kinds."""
        if isinstance(record, ev.TaskSubmitted):
            self._new_task(record.task)
        elif isinstance(record, Place):
            self._check_node(record.node)
            self._check_task(record.task)
        elif isinstance(record, ev.TaskFinished):
            self._check_task(record.task)
        else:
            self._check_others(record)

    def _new_task(self, task: Task) -> None:
        if task.function not in self._functions:
            raise self.wrong(f"task {task.id} calls function {task.function}, which was not defined")
        self._tasks.add(task.id)

    def _check_others(self, record: Record) -> None:
        if isinstance(record, ev.MachineDefined):
            self._machines.add(record.machine.name)
        elif isinstance(record, ev.FunctionDefined):
            self._functions.add(record.function.name)
        node: Node | str = getattr(record, "node", "")
        if isinstance(node, Node):
            if node.machine not in self._machines:
                raise self.wrong(f"node {node.name} is of machine {node.machine}, which was not defined")
            if isinstance(record, ev.NodeJoined):
                if node.name in self._nodes:
                    raise self.wrong(f"node {node.name} joins, and is here already")
                self._nodes.add(node.name)
            self._check_node(node.name)
        elif node:
            self._check_node(node)
            if isinstance(record, ev.NodeLost):
                self._nodes.remove(node)
        task: Task | str = getattr(record, "task", "")
        if isinstance(task, Task):
            self._new_task(task)
        elif task:
            self._check_task(task)

    def _check_task(self, name: str) -> None:
        if name not in self._tasks:
            raise self.wrong(f"names task {name}, which was not submitted")

    def _check_node(self, name: str) -> None:
        if name not in self._nodes:
            raise self.wrong(f"names node {name}, which is not here")


def predictor_of(log: Log, trusted: bool) -> Predictor:
    """A fresh one of the kind that the log's decisions were made with. Raises PredictorError."""
    return load_recorded_predictor(log.header.predictor, str(log.path), trusted=trusted)


def tasks_in(log: Log) -> int:
    """How many tasks a log has, at the cost of reading it."""
    return log.tasks()
