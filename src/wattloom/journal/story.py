"""The story of every task of a run, read from the lines of its log, fast.

Owns the fold from lines to stories. It decodes of each line only what it needs and takes no notice of kinds it does not
know, so that logs of other versions can be listed too; but a line that is no record at all is damage, and is said.
Whether the engine would decide so again is not asked here.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import msgspec

from wattloom.errors import LogError
from wattloom.journal.size import Moment
from wattloom.scheduling.events import Past
from wattloom.scheduling.instructions import Outcome
from wattloom.workload.function import Function
from wattloom.workload.task import Task

EVENT: Final = b'{"event":"'
INSTRUCTION: Final = b'{"instruction":"'
FIRST_LINE: Final = 1
"""The header's number; lines are counted from there."""
LONGEST_EXCERPT: Final = 60
NOTHING_PAST: Final = Past()


class Story:
    """One task, as far as it has come. Times are those of the log."""

    __slots__ = (
        "attempt", "cancelled", "ended", "failures", "function", "joules", "line", "losses", "message", "node",
        "on_node", "outcome", "place", "placed", "provenance", "seconds", "share", "spread_j", "started", "submitted",
        "task",
    )  # fmt: skip

    def __init__(self, task: str, function: str, submitted: float, line: bytes, past: Past) -> None:
        self.task = task
        self.function = function
        self.submitted = submitted if past.submitted is None else past.submitted
        self.line = line
        """Its `task-submitted`, whole."""
        self.attempt = past.attempts
        self.place = past.place
        """The number of its last `place`; 0: it had none."""
        self.share = past.share
        """The `place` by which the share was taken on which it is to run: its own, or that of the first before it."""
        self.node = ""
        """Where it is, or was last."""
        self.on_node = False
        self.placed: float | None = None
        """When, the last time."""
        self.started: float | None = None
        """When its last attempt did; None: that was not reported."""
        self.ended: float | None = None
        self.outcome: Outcome | None = None
        """None: it has not ended."""
        self.cancelled = False
        """Whether its end was asked for."""
        self.failures = past.failures
        self.losses = past.losses
        self.message = ""
        self.seconds: float | None = None
        """As the backend reported them."""
        self.joules: float | None = past.joules
        """Of all attempts."""
        self.spread_j: float | None = past.spread_j
        self.provenance = past.provenance

    def pay(self, joules: float, spread_j: float, provenance: str) -> None:
        """For one attempt. Spreads are added as they are, as for futures: errors of one meter go the same way."""
        self.joules = (self.joules or 0.0) + joules
        self.spread_j = (self.spread_j or 0.0) + spread_j
        self.provenance = provenance

    def submission(self) -> Task:
        """The task as it was submitted."""
        return msgspec.json.decode(self.line, type=_Submission).task


# -- what is decoded of each kind --------------------------------------------------------------------------------------


class _Record(msgspec.Struct, gc=False):
    """Of which nothing is needed."""


class _Moment(msgspec.Struct, gc=False):
    time: Moment


class _Submission(msgspec.Struct, gc=False):
    task: Task


class _Named(msgspec.Struct, gc=False):
    id: str
    function: str


class _Submitted(_Moment, gc=False):
    task: _Named
    past: Past | None = None


class _Found(_Submitted, gc=False, kw_only=True):
    node: str
    attempt: int = 0
    started: bool = True


class _Defined(_Moment, gc=False):
    function: dict[str, Any]


class _OfTask(_Moment, gc=False):
    task: str


class _Finished(_OfTask, gc=False):
    seconds: float | None = None
    cpu_s: float | None = None


class _Failed(_OfTask, gc=False):
    seconds: float | None = None
    kind: str = "function"
    message: str = ""
    cpu_s: float | None = None


class _Refused(_Moment, gc=False):
    instruction: str
    task: str = ""


class _Lost(_Moment, gc=False):
    node: str


class _Usage(_Moment, gc=False):
    node: str = ""
    tasks: dict[str, tuple[float, float]] = {}
    provenance: str = "estimated"
    cpu_second: tuple[float, float, float] = (0.0, 0.0, 0.0)
    cpu_second_of: dict[str, tuple[float, float, float]] = {}


class _Place(msgspec.Struct, gc=False):
    task: str
    attempt: int
    node: str
    behind: str = ""
    number: int = 0


class _Conclude(msgspec.Struct, gc=False):
    task: str
    outcome: Outcome
    message: str = ""


_Kind = TypeVar("_Kind")
_Taker = Callable[[bytes], None]


class Stories:
    """All tasks of a run, in order of submission. `source` is named when a line cannot be read; `ended` says whether
    those that have ended are wanted: a long run has many more of them than of others."""

    def __init__(self, source: str = "", *, ended: bool = True) -> None:
        self._source: Final = source
        self._keep_ended: Final = ended
        self._line = FIRST_LINE
        self.by_task: Final[dict[str, Story]] = {}
        self.open: Final[dict[str, Story]] = {}
        """Those that have not ended."""
        self.time = 0.0
        """Of the last event."""
        self._functions: Final[dict[str, dict[str, Any]]] = {}
        self._places = 0
        """The number of the last one: logs before version 4 have it not, and are counted."""
        self._unpaid: Final[dict[str, list[tuple[Story, float]]]] = {}
        """Short attempts that have ended, by node, with their CPU seconds: the next reading says what these cost."""
        self._events: Final[dict[bytes, _Taker]] = {
            b"task-submitted": self._submitted,
            b"task-orphaned": self._orphaned,
            b"task-found": self._found,
            b"task-started": self._on(_OfTask, self._started),
            b"task-finished": self._on(_Finished, self._finished),
            b"task-failed": self._on(_Failed, self._failed),
            b"task-returned": self._on(_OfTask, self._returned),
            b"cancel-requested": self._on(_OfTask, self._cancel_requested),
            b"instruction-failed": self._on(_Refused, self._instruction_failed),
            b"node-lost": self._on(_Lost, self._node_lost),
            b"function-defined": self._on(_Defined, self._function_defined),
            b"usage-arrived": self._on(_Usage, self._usage_arrived),
        }
        self._instructions: Final[dict[bytes, _Taker]] = {
            b"place": self._on(_Place, self._place),
            b"conclude": self._on(_Conclude, self._conclude),
        }
        self._moment: Final = self._on(_Moment, lambda _: None)
        self._record: Final = self._on(_Record, lambda _: None)

    def take(self, lines: Iterable[bytes]) -> "Stories":
        """Read lines, or further lines. Raises LogError, with the source and the number of the line, at one that is
        no record."""
        line = b""
        try:
            for line in lines:
                self._line += 1
                if line.startswith(EVENT):
                    self._events.get(line[10 : line.index(b'"', 10)], self._moment)(line)
                elif line.startswith(INSTRUCTION):
                    self._instructions.get(line[16 : line.index(b'"', 16)], self._record)(line)
                else:
                    raise ValueError("is neither an event nor an instruction")
        except (msgspec.MsgspecError, ValueError) as problem:
            raise LogError(f"{self._source}:{self._line}", f"is damaged: {problem} ({excerpt(line)})") from problem
        return self

    def definition(self, function: str) -> Function | None:
        """A function as it was last defined; None: not at all, or in a way that this version does not know."""
        found = self._functions.get(function)
        try:
            return None if found is None else msgspec.convert(found, Function)
        except msgspec.ValidationError:
            return None

    # -- events ------------------------------------------------------------------------------------------------------

    def _on(self, kind: type[_Kind], then: Callable[[_Kind], None]) -> _Taker:
        decode = msgspec.json.Decoder(kind).decode

        def taker(line: bytes) -> None:
            record = decode(line)
            self.time = getattr(record, "time", self.time)
            then(record)

        return taker

    def _submitted(self, line: bytes) -> None:
        event = _SUBMITTED.decode(line)
        self.time = event.time
        name = event.task.id
        self.by_task[name] = self.open[name] = Story(
            name, event.task.function, event.time, line, event.past or NOTHING_PAST
        )

    def _orphaned(self, line: bytes) -> None:
        self._submitted(line)
        self.open[_SUBMITTED.decode(line).task.id].losses += 1

    def _found(self, line: bytes) -> None:
        """It runs on a node already: also one that was never submitted here."""
        event = _FOUND.decode(line)
        if event.task.id not in self.open:
            self._submitted(line)
        self.time = event.time
        story = self.open[event.task.id]
        story.attempt, story.node = event.attempt or story.attempt + 1, event.node
        story.on_node, story.placed, story.started = True, event.time, event.time if event.started else None

    def _started(self, event: _OfTask) -> None:
        if (story := self.open.get(event.task)) is not None:
            story.started = event.time

    def _finished(self, event: _Finished) -> None:
        if (story := self.open.pop(event.task, None)) is not None:
            if not self._keep_ended:
                del self.by_task[event.task]
                return
            story.outcome, story.ended, story.seconds = "finished", event.time, event.seconds
            story.message = ""
            self._owe(story, event.cpu_s)

    def _failed(self, event: _Failed) -> None:
        if (story := self.open.get(event.task)) is not None:
            story.failures += event.kind == "function"
            story.losses += event.kind != "function"
            story.seconds = event.seconds
            story.message = event.message
            story.on_node = False
            self._owe(story, event.cpu_s)

    def _owe(self, story: Story, cpu_s: float | None) -> None:
        """None: the attempt has a figure of its own."""
        if cpu_s is not None:
            self._unpaid.setdefault(story.node, []).append((story, cpu_s))

    def _returned(self, event: _OfTask) -> None:
        if (story := self.open.get(event.task)) is not None:
            story.on_node = False

    def _cancel_requested(self, event: _OfTask) -> None:
        if (story := self.open.get(event.task)) is not None:
            story.cancelled = True

    def _instruction_failed(self, event: _Refused) -> None:
        story = self.open.get(event.task)
        if story is not None and event.instruction == "place":
            story.on_node = False
        elif story is not None and event.instruction == "evict":
            story.cancelled = False

    def _node_lost(self, event: _Lost) -> None:
        for story in self.open.values():
            if story.on_node and story.node == event.node:
                story.on_node = False
                story.losses += 1

    def _function_defined(self, event: _Defined) -> None:
        self._functions[str(event.function.get("name", ""))] = event.function

    def _usage_arrived(self, event: _Usage) -> None:
        for name, (joules, spread) in event.tasks.items():
            if (story := self.by_task.get(name)) is not None:
                story.pay(joules, spread, event.provenance)
        for story, cpu_s in self._unpaid.pop(event.node, ()):
            each, spread, clock = event.cpu_second_of.get(story.function, event.cpu_second)
            story.pay(cpu_s * each, cpu_s * spread + clock, event.provenance)

    # -- instructions ------------------------------------------------------------------------------------------------

    def _place(self, instruction: _Place) -> None:
        self._places = number = instruction.number or self._places + 1
        if (story := self.open.get(instruction.task)) is not None:
            story.attempt, story.node, story.place = instruction.attempt, instruction.node, number
            story.on_node, story.placed, story.started = True, self.time, None
            holder = self.open.get(instruction.behind)
            story.share = number if holder is None else holder.share

    def _conclude(self, instruction: _Conclude) -> None:
        if (story := self.open.pop(instruction.task, None)) is not None:
            if not self._keep_ended:
                del self.by_task[instruction.task]
            story.outcome, story.ended = instruction.outcome, self.time
            story.message = instruction.message or story.message


def excerpt(line: bytes) -> str:
    """How a line begins, printable."""
    return repr(line[:LONGEST_EXCERPT])[1:]


_SUBMITTED: Final = msgspec.json.Decoder(_Submitted)
_FOUND: Final = msgspec.json.Decoder(_Found)
