"""Everything the engine can be told. Frozen, serialisable, each with its time.

Owns the events and their names in the log. A new kind of event or field raises `history.log.VERSION`.
"""

from typing import Literal

import msgspec

from wattloom.bounds import LATEST_S, MOST_COUNT, MOST_SUM, out_of_bounds
from wattloom.cluster.node import Node
from wattloom.cluster.node_class import DeviceUse
from wattloom.energy.forecast import Provenance
from wattloom.energy.used import Used
from wattloom.machines.profile import MachineProfile
from wattloom.workload.function import Function
from wattloom.workload.task import Task


class Event(msgspec.Struct, frozen=True, gc=False, tag_field="event", omit_defaults=True, forbid_unknown_fields=True):
    """What happened, and when (seconds, never running backwards)."""

    time: float


class MachineDefined(Event, frozen=True, tag="machine-defined"):
    """A machine profile, before a node of that machine joins."""

    machine: MachineProfile


class FunctionDefined(Event, frozen=True, tag="function-defined"):
    """A function, before a task calls it; again to change it for tasks to come."""

    function: Function


class NodeJoined(Event, frozen=True, tag="node-joined"):
    node: Node


class NodeChanged(Event, frozen=True, tag="node-changed"):
    """Its capacity, labels or cap are different now. What runs there stays."""

    node: Node


class NodeLost(Event, frozen=True, tag="node-lost"):
    """It is gone with all that ran on it."""

    node: str


class NodeAwake(Event, frozen=True, tag="node-awake"):
    node: str


class NodeAsleep(Event, frozen=True, tag="node-asleep"):
    """It went to sleep by itself. (One that is asleep when it joins says so in `Node.asleep`.)"""

    node: str


class CapChanged(Event, frozen=True, tag="cap-changed"):
    """Limit on the whole cluster's draw; None: no limit."""

    watts: float | None


class Past(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """What earlier runs have seen of a task that did not end in them."""

    attempts: int = 0
    failures: int = 0
    """By the function's own fault."""
    losses: int = 0
    """By others': of its worker, its node or the whole program."""
    submitted: float | None = None
    """When, by this log's clock; None: it counts from now on."""
    joules: float | None = None
    """Of all attempts so far; None: none are known."""
    spread_j: float | None = None
    provenance: str = ""
    place: int = 0
    """The number of its last placement; 0: it has no place."""
    share: int = 0
    """The placement by which the share was taken that it runs on, or will."""

    def problem(self, now: float) -> tuple[str, str] | None:
        """The first field that cannot be true, and why."""
        for field in ("attempts", "failures", "losses", "place", "share"):
            value: int = getattr(self, field)
            if not 0 <= value < MOST_COUNT:  # one more must be told too
                return field, f"must be a count, not {value}"
        if self.submitted is not None and not -LATEST_S <= self.submitted <= now:
            return "submitted", f"must not be after {now}, not {self.submitted}"
        for field, figure in (("joules", self.joules), ("spread_j", self.spread_j)):
            wrong = "" if figure is None else out_of_bounds(abs(figure), MOST_SUM)
            if wrong:
                return field, wrong
        return None


class TaskSubmitted(Event, frozen=True, tag="task-submitted"):
    task: Task
    past: Past | None = None


class TaskOrphaned(Event, frozen=True, tag="task-orphaned"):
    """A task of an earlier life of the backend: it had begun, and nobody saw its end."""

    task: Task
    message: str = ""
    past: Past | None = None


class TaskFound(Event, frozen=True, tag="task-found"):
    """A task that runs on a node already, placed by somebody else or in an earlier life.

    It takes its part without being asked, also beyond what is free. One that still waits here has its place by that.
    """

    task: Task
    node: str
    attempt: int = 0
    """Which attempt this is; 0: the next one."""
    started: bool = True
    """False: it has its place, and nobody has heard yet that it began."""
    past: Past | None = None
    behind: str = ""
    """It has no share of its own: this task, which was found before, has it. Those found behind it before go first."""
    variant: str = ""
    """The build that runs there; empty: the first that can."""
    devices: DeviceUse = ()
    """Thousandths of each device, as in `Place`; empty: what is free there, as far as it goes."""


class TaskLeaving(Event, frozen=True, tag="task-leaving"):
    """It is being removed from its node: it still takes its part, but no longer counts where tasks are to be spread."""

    task: str


class TaskChanged(Event, frozen=True, tag="task-changed"):
    """The same task has other needs: a pod that was resized, say.

    One that waits stands in the queue with them, and has waited no less long. One that is on a node takes its part
    anew, also beyond what is free: it is there. It keeps its attempt, its build and, if it wants as many, its devices.
    """

    task: Task


class TaskRemoved(Event, frozen=True, tag="task-removed"):
    """Somebody has taken it away, wherever it was: a pod that was deleted, say. It has not failed and is not retried;
    it ends as `cancelled`."""

    task: str
    message: str = ""


class TaskStarted(Event, frozen=True, tag="task-started"):
    task: str
    attempt: int


class TaskProgressed(Event, frozen=True, tag="task-progressed"):
    """So much of an attempt is done; and a checkpoint was written from which it could go on, if one is named."""

    task: str
    attempt: int
    share: float
    checkpoint: str = ""
    checkpoint_bytes: int = 0


class TaskMigrated(Event, frozen=True, tag="task-migrated"):
    """It goes on on the node that it was to move to."""

    task: str
    attempt: int
    node: str


class TaskResized(Event, frozen=True, tag="task-resized"):
    """It has the cores and bytes that were to be kept for it."""

    task: str
    attempt: int


class TaskFinished(Event, frozen=True, tag="task-finished"):
    task: str
    attempt: int
    seconds: float | None = None
    """What it would have taken alone on that machine, if the backend knows."""
    cpu_s: float | None = None
    """CPU time it used, where its joules follow from that (see `UsageArrived.cpu_second`)."""
    setup_s: float | None = None
    """Seconds before it in which its function was made ready there: a cold start, and no part of `seconds`."""


class TaskFailed(Event, frozen=True, tag="task-failed"):
    """It ended without a result: by its own fault, by the machinery's, or because it was evicted."""

    task: str
    attempt: int
    kind: Literal["function", "infrastructure", "evicted"] = "function"
    message: str = ""
    cpu_s: float | None = None
    """As that of `TaskFinished`."""
    seconds: float | None = None
    """How long the attempt took, if the backend knows."""


class TaskReturned(Event, frozen=True, tag="task-returned"):
    """It stood behind another and had not begun when it was taken back: it may go elsewhere, and has lost nothing."""

    task: str
    attempt: int


class CancelRequested(Event, frozen=True, tag="cancel-requested"):
    """Its owner does not want it any more."""

    task: str


class InstructionFailed(Event, frozen=True, tag="instruction-failed"):
    """The backend could not carry an instruction out: a bind conflict, a refused start, a node that will not sleep."""

    instruction: Literal["place", "evict", "sleep", "wake", "migrate", "resize", "set-frequency", "prepare", "release"]
    task: str = ""
    attempt: int = 0
    node: str = ""
    message: str = ""
    function: str = ""
    """Of an instance that could not be prepared or released, with its build."""
    variant: str = ""


class FrequencyChanged(Event, frozen=True, tag="frequency-changed"):
    """A node runs at this share of the frequency it has by itself."""

    node: str
    share: float


class InstanceReady(Event, frozen=True, tag="instance-ready"):
    """One more instance of a function is loaded on a node and waits for a call."""

    node: str
    function: str
    variant: str = "default"


class InstanceGone(Event, frozen=True, tag="instance-gone"):
    """One less: it was unloaded, or a call has it now."""

    node: str
    function: str
    variant: str = "default"


class SignalChanged(Event, frozen=True, tag="signal-changed"):
    """A figure from outside that makes a joule dearer or cheaper: carbon, price."""

    name: str
    value: float
    forecast: tuple[tuple[float, float], ...] = ()
    """Times, in order, and the values that are expected from then on."""


class PlanChanged(Event, frozen=True, tag="plan-changed"):
    """Another plan holds, named by its digest: whoever hands the engine its policy finds the plan by it. Empty: none
    does."""

    digest: str


class ModelChanged(Event, frozen=True, tag="model-changed"):
    """Another learned model holds; as of a plan."""

    digest: str


class ReadingArrived(Event, frozen=True, tag="reading-arrived"):
    """A node's measured draw, and that of each task on it as far as the meter can tell."""

    node: str
    watts: float
    tasks: dict[str, float] = {}


class UsageArrived(Event, frozen=True, tag="usage-arrived"):
    """What a node's meter counted over some seconds, split: tasks + idle + unattributed = meter.

    Tasks are counted when they have ended, with all they used; what running ones have used so far is `running_j`.
    """

    node: str
    seconds: float
    meter_j: float
    idle_j: float
    unattributed_j: float
    running_j: float = 0.0
    """Used in these seconds by tasks that had not ended, less what ended ones had used before."""
    provenance: Provenance = "estimated"
    functions: dict[str, Used] = {}
    """By function: its tasks that ended."""
    tasks: dict[str, tuple[float, float]] = {}
    """By task that ended: its joules and their spread. Short ones are left out: they pay by CPU time."""
    cpu_second: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Joules of a CPU second, their spread per second, and the spread of each task beside: for tasks that have ended
    since the last such event and are not in `tasks`."""
    cpu_second_of: dict[str, tuple[float, float, float]] = {}
    """The same by function, where functions are known to differ."""


class FunctionLearned(Event, frozen=True, tag="function-learned"):
    """What earlier runs have shown of a function on a machine."""

    function: str
    machine: str
    used: Used
    variant: str = "default"


class FunctionsForgotten(Event, frozen=True, tag="functions-forgotten"):
    """Nobody calls them any more: they are as if they had never been defined, with all that was learned of them."""

    functions: tuple[str, ...]


class Tick(Event, frozen=True, tag="tick"):
    """Time has passed: due when the engine said so (`next_tick`)."""


AnyEvent = (
    MachineDefined
    | FunctionDefined
    | NodeJoined
    | NodeChanged
    | NodeLost
    | NodeAwake
    | NodeAsleep
    | CapChanged
    | TaskSubmitted
    | TaskOrphaned
    | TaskFound
    | TaskLeaving
    | TaskChanged
    | TaskRemoved
    | TaskStarted
    | TaskProgressed
    | TaskMigrated
    | TaskResized
    | TaskFinished
    | TaskFailed
    | TaskReturned
    | CancelRequested
    | InstructionFailed
    | FrequencyChanged
    | InstanceReady
    | InstanceGone
    | SignalChanged
    | PlanChanged
    | ModelChanged
    | ReadingArrived
    | UsageArrived
    | FunctionLearned
    | FunctionsForgotten
    | Tick
)
