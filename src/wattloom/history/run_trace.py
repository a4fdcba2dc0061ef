"""The trace of a run: what ran where, and what happened to the cluster meanwhile, as rows.

Owns what each kind of record says about that, for whoever makes up the joules of a run or lets the same work run under
another policy. Nobody outside asks which record it was: a new kind is a line of the tables below. Rows have what is
needed and no more, and their times count from the log's first event. Watts, and what would have been, are not known
here.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from wattloom.cluster.node import Node
from wattloom.cluster.node_class import Mode
from wattloom.history.digest import Digest
from wattloom.history.replayer import Fold
from wattloom.machines.profile import MachineProfile
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import Conclude, Instruction, Place, Sleep, Wake
from wattloom.units import millicores
from wattloom.workload.function import Function
from wattloom.workload.task import Task

OutsideEvent = ev.CapChanged | ev.CancelRequested | ev.SignalChanged | ev.PlanChanged | ev.ModelChanged
"""What comes from outside, and would have come whatever was decided."""


class _AtSomeTime(msgspec.Struct, frozen=True, gc=False):
    """Something that changed, and when."""

    time: float


class NodeAdded(_AtSomeTime, frozen=True):
    node: Node


class NodeUpdated(_AtSomeTime, frozen=True):
    """As it is from now on. What runs there goes on."""

    node: Node


class NodeRemoved(_AtSomeTime, frozen=True):
    """With all that ran there."""

    node: str


class NodeModeSet(_AtSomeTime, frozen=True):
    """Awake, on its way there, or asleep."""

    node: str
    mode: Mode


class NodeFrequencySet(_AtSomeTime, frozen=True):
    """As a share of what it runs at by itself."""

    node: str
    share: float


class LoadChanged(_AtSomeTime, frozen=True):
    """A task keeps so many millicores of a node busy from now on; negative: so many less."""

    node: str
    task: str
    millicores: int


class CameFromOutside(_AtSomeTime, frozen=True):
    """What may be told to an engine again, at its time in the trace."""

    event: OutsideEvent


TraceRow = NodeAdded | NodeUpdated | NodeRemoved | NodeModeSet | NodeFrequencySet | LoadChanged | CameFromOutside


class Arrived(msgspec.Struct, frozen=True, gc=False):
    """A task as it came, and when."""

    time: float
    task: Task


class RanAs(msgspec.Struct, frozen=True, gc=False):
    """The build of a task's last placement, and the machine it was on."""

    variant: str
    machine: str


FELL_ASLEEP: Final = ("node's falling asleep by itself", "times a node fell asleep by itself")
OWN_FAILURES: Final = ("failure of a function's own", "failures of functions' own")
OTHER_FAILURES: Final = ("failure of the machinery's", "failures of the machinery's")
INCIDENTS: Final = (FELL_ASLEEP, OWN_FAILURES, OTHER_FAILURES)
"""What befalls a run and is nobody's decision: one, and several, in the order in which they are told."""


class RunTrace:
    """One reading of a log: `rows`, one after the other, and what they have come to so far."""

    def __init__(self, fold: Fold) -> None:
        self._fold: Final = fold
        self.machines: Final[dict[str, MachineProfile]] = {}
        self.functions: Final[dict[str, Function]] = {}
        self.arrivals: Final[dict[str, Arrived]] = {}
        self.found: int = 0
        """How often a task was found on a node that others had placed there."""
        self.waits: Final[dict[str, float]] = {}
        """Seconds from arrival to the first start, by task, in the order of starts."""
        self.ends: Final[dict[str, float]] = {}
        """When tasks finished, in that order."""
        self.seconds: Final[dict[str, float]] = {}
        """What finished tasks took alone, where that was reported."""
        self.ran_as: Final[dict[str, RanAs]] = {}
        self.used_machines: Final[set[str]] = set()
        """Those on which tasks ran."""
        self.archs: Final[dict[str, set[tuple[str, ...]]]] = {}
        """By function: the architectures its tasks asked for, where they were not the function's own."""
        self.changed: Final[set[str]] = set()
        """Tasks that had other needs later."""
        self.removed: int = 0
        """Tasks that others took away."""
        self.ended_otherwise: int = 0
        self.last_end: float = 0.0
        self.decisions: int = 0
        self.digest: Final = Digest()
        self.cap_w: float | None = None
        """The cap from the first event on."""
        self.readings: int = 0
        self.metered_j: float = 0.0
        self.metered_as: Final[set[str]] = set()
        """Provenances of what the meter counted."""
        self.incidents: Final[dict[tuple[str, str], int]] = dict.fromkeys(INCIDENTS, 0)
        self._cpu: Final[dict[str, int]] = {}
        """Millicores that each task keeps busy."""
        self._on: dict[str, tuple[str, int]] = {}
        """Where each task is, and the millicores it keeps busy there."""
        self._shares: Final = Shares()
        self._modes: Final[dict[str, Mode]] = {}
        self._machine_of: Final[dict[str, str]] = {}

    def rows(self) -> Iterator[TraceRow]:
        """What every record has changed, after the fold has taken it."""
        fold = self._fold
        for record in fold.records():
            then = RECORDS.get(type(record))
            if then is not None:
                yield from then(self, record, fold.passed)

    # -- tasks -------------------------------------------------------------------------------------------------------

    def _submitted(self, event: ev.TaskSubmitted | ev.TaskOrphaned, time: float) -> Sequence[TraceRow]:
        self._arrives(event.task, time)
        return ()

    def _arrives(self, task: Task, time: float) -> None:
        self.arrivals[task.id] = Arrived(time, task)
        function = self.functions[task.function].requirements
        requirements = task.requirements or function
        self._cpu[task.id] = millicores(requirements.cpu)
        if requirements.arch != function.arch:
            self.archs.setdefault(task.function, set()).add(requirements.arch)

    def _found(self, event: ev.TaskFound, time: float) -> Iterator[TraceRow]:
        """It is on that node, wherever it was meant to be, and the node is awake."""
        task, node = event.task, event.node
        self.found += 1
        if task.id not in self.arrivals:
            self._arrives(task, time)
        self._runs(task.id, self.functions[task.function].variants[0].name, node)
        self._waited(task.id, time)
        yield from self._off(task.id, time)
        if event.behind:
            self._shares.stand_behind(task.id, event.behind)
            return
        if self._modes.get(node) in (Mode.ASLEEP, Mode.WAKING):
            yield self._turns(node, Mode.AWAKE, time)
        yield self._onto(task.id, node, time)

    def _place(self, place: Place, time: float) -> Iterator[TraceRow]:
        self._runs(place.task, place.variant, place.node)
        self.decisions += 1
        self.digest.add(place)
        yield from self._off(place.task, time)
        if place.behind:
            self._shares.stand_behind(place.task, place.behind)
        else:
            yield self._onto(place.task, place.node, time)

    def _started(self, event: ev.TaskStarted, time: float) -> Sequence[TraceRow]:
        self._waited(event.task, time)
        return ()

    def _waited(self, task: str, until: float) -> None:
        self.waits.setdefault(task, until - self.arrivals[task].time)

    def _migrated(self, event: ev.TaskMigrated, time: float) -> Iterator[TraceRow]:
        before = self.ran_as.get(event.task)
        self._runs(event.task, "" if before is None else before.variant, event.node)
        yield from self._off(event.task, time)
        yield self._onto(event.task, event.node, time)

    def _changed(self, event: ev.TaskChanged, time: float) -> Iterator[TraceRow]:
        task = event.task
        self.changed.add(task.id)
        cpu = millicores((task.requirements or self.functions[task.function].requirements).cpu)
        self._cpu[task.id] = cpu
        place = self._on.get(task.id)
        if place is not None:
            self._on[task.id] = (place[0], cpu)
            yield LoadChanged(time, place[0], task.id, cpu - place[1])

    def _finished(self, event: ev.TaskFinished, time: float) -> Sequence[TraceRow]:
        task = event.task
        self.ends[task] = self.last_end = time
        if event.seconds is not None:
            self.seconds[task] = event.seconds
            if task not in self.waits:  # a short one, whose start was not reported
                self.waits[task] = max(0.0, time - event.seconds - self.arrivals[task].time)
        return self._off(task, time)

    def _failed(self, event: ev.TaskFailed, time: float) -> Sequence[TraceRow]:
        self.incidents[OWN_FAILURES] += event.kind == "function"
        self.incidents[OTHER_FAILURES] += event.kind == "infrastructure"
        return self._off(event.task, time)

    def _returned(self, event: ev.TaskReturned, time: float) -> Sequence[TraceRow]:
        return self._off(event.task, time)

    def _removed(self, event: ev.TaskRemoved, time: float) -> Sequence[TraceRow]:
        self.removed += 1
        return self._off(event.task, time)

    def _conclude(self, conclude: Conclude, time: float) -> Sequence[TraceRow]:
        self.ended_otherwise += 1
        self.last_end = time
        return ()

    def _instruction_failed(self, event: ev.InstructionFailed, time: float) -> Sequence[TraceRow]:
        """What was asked for did not happen: as before."""
        self.incidents[OTHER_FAILURES] += 1
        if event.instruction == "place":
            return self._off(event.task, time)
        if event.instruction == "wake":
            return (self._turns(event.node, Mode.ASLEEP, time),)
        if event.instruction == "sleep":
            return (self._turns(event.node, Mode.AWAKE, time),)
        return ()

    def _runs(self, task: str, variant: str, node: str) -> None:
        machine = self._machine_of[node]
        self.ran_as[task] = RanAs(variant, machine)
        self.used_machines.add(machine)

    def _onto(self, task: str, node: str, time: float) -> TraceRow:
        cpu = self._cpu[task]
        self._on[task] = (node, cpu)
        return LoadChanged(time, node, task, cpu)

    def _off(self, task: str, time: float) -> Sequence[TraceRow]:
        """It has left its node, if it was on one; who stood behind it has its share now."""
        place = self._on.pop(task, None)
        successor = self._shares.leave(task)
        if place is None:
            return ()
        if successor is not None:
            self._on[successor] = place
            return ()
        return (LoadChanged(time, place[0], task, -place[1]),)

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _joined(self, event: ev.NodeJoined, time: float) -> Sequence[TraceRow]:
        node = event.node
        self._machine_of[node.name] = node.machine
        self._modes[node.name] = Mode.ASLEEP if node.asleep else Mode.AWAKE
        return (NodeAdded(time, node),)

    def _node_changed(self, event: ev.NodeChanged, time: float) -> Sequence[TraceRow]:
        self._machine_of[event.node.name] = event.node.machine
        return (NodeUpdated(time, event.node),)

    def _lost(self, event: ev.NodeLost, time: float) -> Sequence[TraceRow]:
        self._on = {task: place for task, place in self._on.items() if place[0] != event.node}
        return (NodeRemoved(time, event.node),)

    def _awake(self, event: ev.NodeAwake, time: float) -> Sequence[TraceRow]:
        return (self._turns(event.node, Mode.AWAKE, time),)

    def _asleep(self, event: ev.NodeAsleep, time: float) -> Sequence[TraceRow]:
        self.incidents[FELL_ASLEEP] += 1
        return (self._turns(event.node, Mode.ASLEEP, time),)

    def _sleep(self, sleep: Sleep, time: float) -> Sequence[TraceRow]:
        return (self._turns(sleep.node, Mode.ASLEEP, time),)

    def _wake(self, wake: Wake, time: float) -> Sequence[TraceRow]:
        return (self._turns(wake.node, Mode.WAKING, time),)

    def _turns(self, node: str, mode: Mode, time: float) -> TraceRow:
        self._modes[node] = mode
        return NodeModeSet(time, node, mode)

    def _frequency_changed(self, event: ev.FrequencyChanged, time: float) -> Sequence[TraceRow]:
        return (NodeFrequencySet(time, event.node, event.share),)

    # -- what is known, counted and told from outside ----------------------------------------------------------------

    def _machine_defined(self, event: ev.MachineDefined, time: float) -> Sequence[TraceRow]:
        self.machines[event.machine.name] = event.machine
        return ()

    def _function_defined(self, event: ev.FunctionDefined, time: float) -> Sequence[TraceRow]:
        self.functions[event.function.name] = event.function
        return ()

    def _reading(self, event: ev.ReadingArrived, time: float) -> Sequence[TraceRow]:
        self.readings += 1
        return ()

    def _usage(self, event: ev.UsageArrived, time: float) -> Sequence[TraceRow]:
        self.metered_j += event.meter_j
        self.metered_as.add(event.provenance)
        return ()

    def _cap_changed(self, event: ev.CapChanged, time: float) -> Sequence[TraceRow]:
        if time == 0.0:
            self.cap_w = event.watts
            return ()
        return self._outside(event, time)

    def _signal_changed(self, event: ev.SignalChanged, time: float) -> Sequence[TraceRow]:
        begin = event.time - time
        forecast = tuple((at - begin, value) for at, value in event.forecast)
        return self._outside(msgspec.structs.replace(event, forecast=forecast), time)

    def _outside(self, event: OutsideEvent, time: float) -> Sequence[TraceRow]:
        return (CameFromOutside(time, msgspec.structs.replace(event, time=time)),)


class Shares:
    """Who stands behind whom on a share of a node, as recorded."""

    def __init__(self) -> None:
        self._behind: dict[str, dict[str, None]] = {}
        """By who has the share: those behind, in order."""
        self._waits: dict[str, dict[str, None]] = {}
        """By who stands behind: the line he stands in."""

    def stand_behind(self, task: str, holder: str) -> None:
        line = self._behind.setdefault(holder, {})
        line[task] = None
        self._waits[task] = line

    def leave(self, task: str) -> str | None:
        """It has gone. Who has its share now, if it had one and somebody stood behind it."""
        line = self._waits.pop(task, None)
        if line is not None:
            line.pop(task, None)
        line = self._behind.pop(task, None)
        if not line:
            return None
        successor = next(iter(line))
        del line[successor]
        del self._waits[successor]
        self._behind[successor] = line
        return successor


_Then = Callable[[RunTrace, Any, float], Sequence[TraceRow] | Iterator[TraceRow]]
RECORDS: Final[dict[type[ev.Event] | type[Instruction], _Then]] = {
    ev.TaskSubmitted: RunTrace._submitted,
    ev.TaskOrphaned: RunTrace._submitted,
    ev.TaskFound: RunTrace._found,
    ev.TaskStarted: RunTrace._started,
    ev.TaskMigrated: RunTrace._migrated,
    ev.TaskChanged: RunTrace._changed,
    ev.TaskFinished: RunTrace._finished,
    ev.TaskFailed: RunTrace._failed,
    ev.TaskReturned: RunTrace._returned,
    ev.TaskRemoved: RunTrace._removed,
    ev.InstructionFailed: RunTrace._instruction_failed,
    ev.NodeJoined: RunTrace._joined,
    ev.NodeChanged: RunTrace._node_changed,
    ev.NodeLost: RunTrace._lost,
    ev.NodeAwake: RunTrace._awake,
    ev.NodeAsleep: RunTrace._asleep,
    ev.FrequencyChanged: RunTrace._frequency_changed,
    ev.MachineDefined: RunTrace._machine_defined,
    ev.FunctionDefined: RunTrace._function_defined,
    ev.ReadingArrived: RunTrace._reading,
    ev.UsageArrived: RunTrace._usage,
    ev.CapChanged: RunTrace._cap_changed,
    ev.SignalChanged: RunTrace._signal_changed,
    ev.CancelRequested: RunTrace._outside,
    ev.PlanChanged: RunTrace._outside,
    ev.ModelChanged: RunTrace._outside,
    Place: RunTrace._place,
    Conclude: RunTrace._conclude,
    Sleep: RunTrace._sleep,
    Wake: RunTrace._wake,
}
"""What says something of what ran where, and what follows from it."""
