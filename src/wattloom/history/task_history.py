"""What became of every task of a run: the one fold of a log's records into tasks.

Owns that fold: listing, costs of functions and recovery read off it how a task stands. It follows a walk over
lines, of which it decodes only what it needs, so that it is fast and logs of other versions can be read too; or it is
told whole records by whoever has them. Whether the engine would decide so again is not asked here.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

from wattloom.cluster.reasons import Reason
from wattloom.history.records import Happened, Part, Position, Record, Walk
from wattloom.scheduling import events as ev
from wattloom.scheduling.events import Past
from wattloom.scheduling.instructions import Conclude, Evict, Instruction, Outcome, Place
from wattloom.workload.function import Function
from wattloom.workload.task import Task


class TaskHistory(msgspec.Struct, gc=False):
    """One task, as far as it has come. Times are those of the log."""

    task: str
    function: str
    submitted: float
    source: bytes | Task
    """The line that brought it, or by which it is known since it has changed; or what stood in it."""
    attempt: int = 0
    place: int = 0
    """The number of its last `place`; 0: it had none."""
    share: int = 0
    """The `place` by which the share was taken on which it is to run: its own, or that of the first before it."""
    node: str = ""
    """Where it is, or was last."""
    variant: str = ""
    """The build that was chosen for it; empty: it was found, not placed."""
    on_node: bool = False
    placed: float | None = None
    """When, the last time."""
    started: float | None = None
    """When its last attempt did; None: that was not reported."""
    ended: float | None = None
    outcome: Outcome | None = None
    """None: it has not ended."""
    cancelled: bool = False
    """Whether its end was asked for."""
    makes_room: bool = False
    """Whether it was asked to leave its node for something better."""
    failures: int = 0
    losses: int = 0
    message: str = ""
    seconds: float | None = None
    """As the backend reported them."""
    joules: float | None = None
    """Of all attempts."""
    spread_j: float | None = None
    provenance: str = ""
    setup_s: float | None = None
    """Of a cold start, before its seconds."""

    def went_before(self, past: Past) -> None:
        """What earlier runs have seen of it."""
        self.submitted = self.submitted if past.submitted is None else past.submitted
        self.attempt, self.place, self.share = past.attempts, past.place, past.share
        self.failures, self.losses = past.failures, past.losses
        self.joules, self.spread_j, self.provenance = past.joules, past.spread_j, past.provenance

    def pay(self, joules: float, spread_j: float, provenance: str) -> None:
        """For one attempt. Spreads are added as they are, as for futures: errors of one meter go the same way."""
        self.joules = (self.joules or 0.0) + joules
        self.spread_j = (self.spread_j or 0.0) + spread_j
        self.provenance = provenance

    def submission(self) -> Task:
        """The task as it was submitted."""
        source = self.source
        return source if isinstance(source, Task) else msgspec.json.decode(source, type=_Submission).task


# -- what is decoded of each kind: whole records have these fields too ------------------------------------------------


class _Submission(msgspec.Struct, gc=False):
    task: Task


class _Named(msgspec.Struct, gc=False):
    id: str
    function: str


class _Submitted(Happened, gc=False):
    task: _Named
    past: Past | None = None


class _Found(_Submitted, gc=False, kw_only=True):
    node: str
    attempt: int = 0
    started: bool = True


class _Defined(Happened, gc=False):
    function: dict[str, Any]


class _OfTask(Happened, gc=False):
    task: str


class _Finished(_OfTask, gc=False):
    seconds: float | None = None
    cpu_s: float | None = None
    setup_s: float | None = None


class _Failed(_OfTask, gc=False):
    seconds: float | None = None
    kind: str = "function"
    message: str = ""
    cpu_s: float | None = None


class _Migrated(_OfTask, gc=False):
    node: str


class _Refused(Happened, gc=False):
    instruction: str
    task: str = ""


class _Lost(Happened, gc=False):
    node: str


class _Usage(Happened, gc=False):
    node: str = ""
    tasks: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    provenance: str = "estimated"
    cpu_second: tuple[float, float, float] = (0.0, 0.0, 0.0)
    cpu_second_of: dict[str, tuple[float, float, float]] = msgspec.field(default_factory=dict)


class _Place(Part, gc=False):
    task: str
    attempt: int
    node: str
    variant: str = ""
    behind: str = ""
    number: int = 0


class _Evict(Part, gc=False):
    task: str
    reason: str


class _Conclude(Part, gc=False):
    task: str
    outcome: Outcome
    message: str = ""


class RunHistory:
    """All tasks of a run, in order of submission: fed by a `walk`, or record by record with `tell`. `ended` says
    whether those that have ended are wanted: a long run has many more of them than of others."""

    def __init__(self, walk: Walk | None = None, *, ended: bool = True) -> None:
        self._keep_ended: Final = ended
        self._at: Final = Position() if walk is None else walk.at
        self.by_task: Final[dict[str, TaskHistory]] = {}
        self.open: Final[dict[str, TaskHistory]] = {}
        """Those that have not ended."""
        self._functions: Final[dict[str, dict[str, Any] | Function]] = {}
        self._places = 0
        """The number of the last one: logs before version 4 have it not, and are counted."""
        self._unpaid: Final[dict[str, list[tuple[TaskHistory, float]]]] = {}
        """Short attempts that have ended, by node, with their CPU seconds: the next reading says what these cost."""
        if walk is not None:
            self._follow(walk)

    def _follow(self, walk: Walk) -> None:
        for kind, (part, then) in EVENTS.items():
            walk.on_event(kind, part, partial(then, self))
        for instruction, (some, following) in INSTRUCTIONS.items():
            walk.on_instruction(instruction, some, partial(following, self))

    def tell(self, record: Record) -> None:
        """A whole record, in place of a line."""
        kind = type(record)
        if isinstance(record, ev.Event):
            self._at.time = record.time
            if kind in EVENTS:
                EVENTS[kind][1](self, record)
        elif kind in INSTRUCTIONS:
            INSTRUCTIONS[kind][1](self, record)

    def definition(self, function: str) -> Function | None:
        """A function as it was last defined; None: not at all, or in a way that this version does not know."""
        found = self._functions.get(function)
        try:
            return None if found is None else msgspec.convert(found, Function)
        except msgspec.ValidationError:
            return None

    # -- events ------------------------------------------------------------------------------------------------------

    def _submitted(self, event: _Submitted | ev.TaskSubmitted) -> None:
        self._new(event)

    def _new(self, event: _Submitted | ev.TaskSubmitted) -> TaskHistory:
        task = event.task
        source = task if isinstance(task, Task) else self._at.line
        found = TaskHistory(task.id, task.function, event.time, source)
        if event.past is not None:
            found.went_before(event.past)
        self.by_task[task.id] = self.open[task.id] = found
        return found

    def _orphaned(self, event: _Submitted) -> None:
        self._new(event).losses += 1

    def _found(self, event: _Found) -> None:
        """It runs on a node already: also one that was never submitted here."""
        found = self.open.get(event.task.id) or self._new(event)
        found.attempt, found.node, found.variant = event.attempt or found.attempt + 1, event.node, ""
        found.on_node, found.placed, found.started = True, event.time, event.time if event.started else None

    def _changed(self, event: _Submitted | ev.TaskChanged) -> None:
        task = event.task
        if (found := self.open.get(task.id)) is not None:
            found.function = task.function
            found.source = task if isinstance(task, Task) else self._at.line

    def _migrated(self, event: _Migrated) -> None:
        if (found := self.open.get(event.task)) is not None:
            found.node = event.node

    def _started(self, event: _OfTask) -> None:
        if (found := self.open.get(event.task)) is not None:
            found.started = event.time

    def _finished(self, event: _Finished) -> None:
        if (found := self.open.pop(event.task, None)) is not None:
            if not self._keep_ended:
                del self.by_task[event.task]
                return
            found.outcome, found.ended, found.seconds = "finished", event.time, event.seconds
            found.setup_s = event.setup_s
            found.message = ""
            self._owe(found, event.cpu_s)

    def _failed(self, event: _Failed) -> None:
        if (found := self.open.get(event.task)) is not None:
            found.failures += event.kind == "function"
            found.losses += event.kind != "function" and not found.makes_room
            found.makes_room = False
            found.seconds = event.seconds
            found.message = event.message
            found.on_node = False
            self._owe(found, event.cpu_s)

    def _owe(self, task: TaskHistory, cpu_s: float | None) -> None:
        """None: the attempt has a figure of its own."""
        if cpu_s is not None:
            self._unpaid.setdefault(task.node, []).append((task, cpu_s))

    def _returned(self, event: _OfTask) -> None:
        if (found := self.open.get(event.task)) is not None:
            found.on_node = False

    def _cancel_requested(self, event: _OfTask) -> None:
        if (found := self.open.get(event.task)) is not None:
            found.cancelled = True

    def _instruction_failed(self, event: _Refused) -> None:
        found = self.open.get(event.task)
        if found is not None and event.instruction == "place":
            found.on_node = False
        elif found is not None and event.instruction == "evict":
            found.cancelled = False

    def _node_lost(self, event: _Lost) -> None:
        for task in self.open.values():
            if task.on_node and task.node == event.node:
                task.on_node = False
                task.losses += 1

    def _function_defined(self, event: _Defined | ev.FunctionDefined) -> None:
        function = event.function
        name = function.name if isinstance(function, Function) else str(function.get("name", ""))
        self._functions[name] = function

    def _usage_arrived(self, event: _Usage) -> None:
        for name, (joules, spread) in event.tasks.items():
            if (task := self.by_task.get(name)) is not None:
                task.pay(joules, spread, event.provenance)
        for task, cpu_s in self._unpaid.pop(event.node, ()):
            each, spread, clock = event.cpu_second_of.get(task.function, event.cpu_second)
            task.pay(cpu_s * each, cpu_s * spread + clock, event.provenance)

    # -- instructions ------------------------------------------------------------------------------------------------

    def _place(self, instruction: _Place) -> None:
        self._places = number = instruction.number or self._places + 1
        if (found := self.open.get(instruction.task)) is not None:
            found.attempt, found.node, found.place = instruction.attempt, instruction.node, number
            found.variant = instruction.variant
            found.on_node, found.placed, found.started = True, self._at.time, None
            holder = self.open.get(instruction.behind)
            found.share = number if holder is None else holder.share

    def _evict(self, instruction: _Evict) -> None:
        if (found := self.open.get(instruction.task)) is not None:
            found.makes_room = instruction.reason == Reason.EVICTED

    def _conclude(self, instruction: _Conclude) -> None:
        if (found := self.open.pop(instruction.task, None)) is not None:
            if not self._keep_ended:
                del self.by_task[instruction.task]
            found.outcome, found.ended = instruction.outcome, self._at.time
            found.message = instruction.message or found.message


_Then = Callable[[RunHistory, Any], None]
EVENTS: Final[dict[type[ev.Event], tuple[type[Happened], _Then]]] = {
    ev.TaskSubmitted: (_Submitted, RunHistory._submitted),
    ev.TaskOrphaned: (_Submitted, RunHistory._orphaned),
    ev.TaskFound: (_Found, RunHistory._found),
    ev.TaskStarted: (_OfTask, RunHistory._started),
    ev.TaskFinished: (_Finished, RunHistory._finished),
    ev.TaskFailed: (_Failed, RunHistory._failed),
    ev.TaskReturned: (_OfTask, RunHistory._returned),
    ev.TaskChanged: (_Submitted, RunHistory._changed),
    ev.TaskRemoved: (_OfTask, RunHistory._returned),
    ev.TaskMigrated: (_Migrated, RunHistory._migrated),
    ev.CancelRequested: (_OfTask, RunHistory._cancel_requested),
    ev.InstructionFailed: (_Refused, RunHistory._instruction_failed),
    ev.NodeLost: (_Lost, RunHistory._node_lost),
    ev.FunctionDefined: (_Defined, RunHistory._function_defined),
    ev.UsageArrived: (_Usage, RunHistory._usage_arrived),
}
"""What moves a task, how much of it is needed, and what follows."""
INSTRUCTIONS: Final[dict[type[Instruction], tuple[type[Part], _Then]]] = {
    Place: (_Place, RunHistory._place),
    Evict: (_Evict, RunHistory._evict),
    Conclude: (_Conclude, RunHistory._conclude),
}
