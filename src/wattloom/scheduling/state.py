"""What the engine knows of each task, and what it remembers of those that ended.

Owns the stages of a task's life, the record that goes through them, and the share on which several may follow each
other.
"""

from enum import IntEnum
from typing import Final

from wattloom.cluster.node_class import DeviceUse
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import NodeState
from wattloom.policies.view import Ask
from wattloom.prediction.outlook import Outlook
from wattloom.workload.shape import Shape
from wattloom.workload.task import Task


class Stage(IntEnum):
    """Where a task is. An ended task has no record any more, only an outcome."""

    HELD_BACK = 0
    """Waits for tasks it comes after."""
    QUEUED = 1
    BACKING_OFF = 2
    ASSIGNED = 3
    """Has a node that is waking up."""
    PLACED = 4
    BEHIND = 5
    """Will run on a share that another task of its shape still has."""
    RUNNING = 6
    CANCELLING = 7


ON_A_NODE: Final = (Stage.ASSIGNED, Stage.PLACED, Stage.BEHIND, Stage.RUNNING, Stage.CANCELLING)

NOBODY: Final[set[str]] = set()
"""The tasks that a task with none to wait for waits for. Shared: never added to."""

Order = tuple[int, int]
"""Higher priority first, then order of arrival."""


class TaskRecord(Ask):
    """One accepted task on its way to exactly one end."""

    __slots__ = (
        "after",
        "ask_at",
        "by_choice",
        "cost",
        "devices",
        "epoch",
        "failures",
        "guaranteed",
        "home",
        "lease",
        "leaving",
        "losses",
        "name",
        "node",
        "order",
        "outlook",
        "reason",
        "refusals",
        "stage",
        "started",
        "waiting_since",
    )  # fmt: skip

    def __init__(self, task: Task, shape: Shape, time: float, arrival: int) -> None:
        super().__init__(task, shape, time, 0)
        self.name: Final[str] = task.id
        self.order: Order = (-task.priority, arrival)
        self.stage: Stage = Stage.HELD_BACK
        self.epoch: int = 0
        """Goes up each time it is queued: old places in the queue are void."""
        self.after: set[str] = NOBODY
        """Tasks it still waits for."""
        self.failures: int = 0
        self.losses: int = 0
        self.refusals: int = 0
        """Starts refused in a row."""
        self.started: bool = False
        """Whether this attempt was reported as started."""
        self.ask_at: float = 0.0
        """When a timer will have it asked again; past: none will."""
        self.by_choice: bool = False
        """Whether the policy, when last asked, chose to wait until some time."""
        self.waiting_since: float = time
        self.reason: Reason | None = None
        """Why it waits, as its owner was told."""
        self.node: str = ""
        self.home: NodeState | None = None
        """The node's state, as long as it is on one."""
        self.leaving: bool = False
        """Whether it is being removed from its node."""
        self.lease: Lease | None = None
        """The share it has, or will have, if others may follow on it."""
        self.guaranteed: int = 0
        self.devices: DeviceUse = ()
        self.outlook: Outlook | None = None
        self.cost: float | None = None
        """In the policy's own measure; None: unknown."""

    @property
    def on_a_node(self) -> bool:
        return self.stage >= Stage.ASSIGNED


class Lease:
    """A share of a node, taken once, on which tasks of one shape follow each other."""

    __slots__ = ("behind", "cost", "holder", "node", "outlook", "shape", "until")

    def __init__(self, holder: TaskRecord, node: NodeState, outlook: Outlook, until: float) -> None:
        self.holder: TaskRecord = holder
        self.node: Final = node
        self.outlook: Final = outlook
        self.cost: Final = holder.cost
        self.shape: Final[Shape] = holder.shape
        self.until: float = until
        """Nobody is placed behind it from then on."""
        self.behind: dict[str, TaskRecord] = {}
        """In the order in which they will run."""
