"""Allocations: what a task has of a node, from the decision until it is given back.

Owns the allocation, and the lease by which several tasks follow each other on one. Who takes and gives back is the
ledger's work.
"""

from typing import TYPE_CHECKING, Final

from wattloom.cluster.node_class import DeviceShare
from wattloom.cluster.site import NodeState
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.workload.shape import Shape

if TYPE_CHECKING:
    from wattloom.scheduling.state import TaskRecord


class Allocation:
    """One attempt's part of a node. It begins with the decision and ends when the task has left."""

    __slots__ = (
        "attempt",
        "cost",
        "devices",
        "estimate",
        "guaranteed",
        "lease",
        "leaving",
        "memory",
        "node",
        "number",
        "progress",
        "resizing",
        "started",
        "taken",
        "target",
    )  # fmt: skip

    def __init__(self, node: NodeState, estimate: PlacementEstimate, cost: float | None, attempt: int) -> None:
        self.node: Final = node
        self.attempt: Final = attempt
        self.estimate: PlacementEstimate = estimate
        """The build that runs there, and what was expected of it."""
        self.cost: float | None = cost
        """In the policy's own measure; None: unknown."""
        self.taken: bool = False
        """Whether the node's part is taken in this task's name. If not, it stands behind the one that has it."""
        self.guaranteed: int = 0
        """Millicores that are kept for it."""
        self.devices: tuple[DeviceShare, ...] = ()
        self.number: int = 0
        """The how-manieth placement this is; 0: the backend was not told to place it."""
        self.started: bool = False
        """Whether this attempt was reported as started."""
        self.leaving: bool = False
        """Whether it is being removed from its node."""
        self.lease: Lease | None = None
        """The share it has, or will have, if others may follow on it."""
        self.memory: int = -1
        """Bytes that are kept for it; negative: it has the millicores and bytes that its shape wants."""
        self.progress: float = 0.0
        """Share of the work that is done, as last reported."""
        self.target: Allocation | None = None
        """What is taken for it on the node that it is moving to."""
        self.resizing: tuple[tuple[int, int], tuple[int, int]] | None = None
        """Millicores and bytes before and after, while it is being resized; the larger of both are taken."""

    def memory_of(self, shape: Shape) -> int:
        """Bytes that are kept for a task of this shape."""
        return self.memory if self.memory >= 0 else shape.memory


class Lease:
    """A share of a node, taken once, on which tasks of one shape follow each other."""

    __slots__ = ("behind", "cost", "estimate", "holder", "node", "shape", "until")

    def __init__(self, holder: "TaskRecord", allocation: Allocation, until: float) -> None:
        self.holder: TaskRecord = holder
        self.node: Final = allocation.node
        self.estimate: Final = allocation.estimate
        self.cost: Final = allocation.cost
        self.shape: Final[Shape] = holder.shape
        self.until: float = until
        """Nobody is placed behind it from then on."""
        self.behind: dict[str, TaskRecord] = {}
        """In the order in which they will run."""
