"""What the engine knows of each task, and the stages of its life.

Owns the record of a task, and the one table of legal changes from stage to stage, checked where a stage changes. What a
task has of a node is its `allocation`.
"""

from typing import Final

from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import NodeState
from wattloom.errors import InvariantBroken
from wattloom.policies.view import Ask
from wattloom.scheduling.allocation import Allocation
from wattloom.workload.shape import Shape
from wattloom.workload.task import Task


class Stage:
    """Where a task is. Numbers and no enumeration: every event looks at them, and compiled code compares numbers ten
    times as fast."""

    NEW: Final = 0
    """Accepted, and nothing more."""
    HELD_BACK: Final = 1
    """Waits for tasks it comes after."""
    QUEUED: Final = 2
    BACKING_OFF: Final = 3
    ASSIGNED: Final = 4
    """Has a node that is waking up."""
    PLACED: Final = 5
    BEHIND: Final = 6
    """Will run on a share that another task of its shape still has."""
    RUNNING: Final = 7
    EVICTING: Final = 8
    """Asked to make room: it goes back to the queue."""
    CANCELLING: Final = 9
    ENDED: Final = 10
    """Nothing is known of it from now on but its outcome."""


STAGES: Final = (
    "new", "held back", "queued", "backing off", "assigned", "placed", "behind another", "running", "evicting",
    "cancelling", "ended",
)  # fmt: skip
"""What each is called, by its number."""

ON_A_NODE: Final = (
    Stage.ASSIGNED, Stage.PLACED, Stage.BEHIND, Stage.RUNNING, Stage.EVICTING, Stage.CANCELLING,
)  # fmt: skip

FOUND: Final = (Stage.PLACED, Stage.RUNNING)
"""A task may be found on a node, with or without the news that it began, from wherever it waits."""

CHANGES: Final[dict[int, tuple[int, ...]]] = {
    Stage.NEW: (Stage.HELD_BACK, Stage.QUEUED, Stage.BEHIND, *FOUND, Stage.ENDED),
    Stage.HELD_BACK: (Stage.QUEUED, *FOUND, Stage.ENDED),
    Stage.QUEUED: (Stage.QUEUED, Stage.BACKING_OFF, Stage.ASSIGNED, Stage.BEHIND, *FOUND, Stage.ENDED),
    Stage.BACKING_OFF: (Stage.QUEUED, *FOUND, Stage.ENDED),
    Stage.ASSIGNED: (Stage.QUEUED, Stage.BACKING_OFF, *FOUND, Stage.ENDED),
    Stage.PLACED: (Stage.QUEUED, Stage.BACKING_OFF, *FOUND, Stage.EVICTING, Stage.CANCELLING, Stage.ENDED),
    Stage.BEHIND: (Stage.QUEUED, Stage.BACKING_OFF, *FOUND, Stage.CANCELLING, Stage.ENDED),
    Stage.RUNNING: (Stage.QUEUED, Stage.EVICTING, Stage.CANCELLING, Stage.ENDED),
    Stage.EVICTING: (Stage.QUEUED, Stage.BACKING_OFF, Stage.PLACED, Stage.RUNNING, Stage.CANCELLING, Stage.ENDED),
    Stage.CANCELLING: (Stage.PLACED, Stage.BEHIND, Stage.RUNNING, Stage.ENDED),
    Stage.ENDED: (),
}
"""Where a task may go from each stage. Nothing else happens, or it is a defect."""

ALLOWED: Final = [sum(1 << stage for stage in CHANGES[each]) for each in range(len(STAGES))]
"""The same as bits, by stage."""

NOBODY: Final[set[str]] = set()
"""The tasks that a task with none to wait for waits for. Shared: never added to."""

Order = tuple[int, int]
"""Higher priority first, then order of arrival."""


class TaskRecord(Ask):
    """One accepted task on its way to exactly one end."""

    __slots__ = (
        "after",
        "allocation",
        "ask_at",
        "by_choice",
        "checkpoint",
        "epoch",
        "failures",
        "losses",
        "name",
        "order",
        "reason",
        "refusals",
        "stage",
        "waiting_since",
    )  # fmt: skip

    def __init__(self, task: Task, shape: Shape, time: float, arrival: int) -> None:
        super().__init__(task, shape, time, 0)
        self.name: Final[str] = task.id
        self.order: Order = (-task.priority, arrival)
        self.stage: int = Stage.NEW
        """For looking: `enter` changes it."""
        self.allocation: Allocation | None = None
        """What it has, or will have, of a node; None: it has no place."""
        self.epoch: int = 0
        """Goes up each time it is queued: old places in the queue are void."""
        self.after: set[str] = NOBODY
        """Tasks it still waits for."""
        self.failures: int = 0
        self.losses: int = 0
        self.refusals: int = 0
        """Starts refused in a row."""
        self.ask_at: float = 0.0
        """When a timer will have it asked again; past: none will."""
        self.by_choice: bool = False
        """Whether the policy, when last asked, chose to wait until some time."""
        self.checkpoint: tuple[str, int] | None = None
        """Name and bytes of the last one that was reported, in whichever attempt."""
        self.waiting_since: float = time
        self.reason: Reason | None = None
        """Why it waits, as its owner was told."""

    def enter(self, stage: int) -> None:
        """Go on to another stage: the only place where one changes."""
        if not ALLOWED[self.stage] >> stage & 1:
            raise InvariantBroken(f"{self.name} cannot go from {STAGES[self.stage]} to {STAGES[stage]}")
        self.stage = stage

    @property
    def on_a_node(self) -> bool:
        return self.stage >= Stage.ASSIGNED

    @property
    def node(self) -> str:
        """The name of the node it is on; empty: it has no place."""
        allocation = self.allocation
        return "" if allocation is None else allocation.node.name

    def at(self, node: NodeState) -> Allocation:
        """What it has of this node, which may be the one that it moves to. Only for a node that it is on."""
        has = self.holding
        return has if has.node is node or has.target is None else has.target

    @property
    def holding(self) -> Allocation:
        """Its allocation. Only for a task that has one."""
        allocation = self.allocation
        assert allocation is not None
        return allocation


def by_order(record: TaskRecord) -> Order:
    return record.order
