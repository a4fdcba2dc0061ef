"""Leases: one decision for many equal, short tasks that run one after another on one share of a node.

Owns who holds a share, who stands behind him, and how the share is handed on. Decides nothing: a lease begins where the
policy has placed a task, and tasks are placed behind it only when there is no room for them anywhere.
"""

from typing import Final

from wattloom.cluster.node_class import Mode
from wattloom.scheduling.allocation import Allocation, Lease
from wattloom.scheduling.lease_terms import LeaseTerms
from wattloom.scheduling.state import Stage, TaskRecord
from wattloom.workload.shape import Shape


class Leases:
    """All leases, by shape."""

    def __init__(self, terms: LeaseTerms | None) -> None:
        self.terms: Final = terms
        self._seconds: Final[float] = 0.0 if terms is None else terms.seconds
        self._ahead_s: Final[float] = 0.0 if terms is None else terms.ahead_s
        self._most: Final[int] = 0 if terms is None else terms.most
        self.by_shape: dict[int, list[Lease]] = {}

    def open(self, record: TaskRecord, allocation: Allocation, time: float) -> None:
        """The policy has placed a task: if it is short and free to follow, others may follow it."""
        shape, estimate = record.shape, allocation.estimate
        if estimate.alone <= 0.0 or estimate.seconds > self._ahead_s or shape.waits:
            return
        if shape.requirements.constraints is not None:  # rules look at where each of its tasks is
            return
        self._begin(record, allocation, time + self._seconds)

    def resume(self, record: TaskRecord, allocation: Allocation, time: float) -> Lease:
        """A share on which others follow already. Nobody else will: the next one is decided on."""
        return self._begin(record, allocation, time)

    def _begin(self, record: TaskRecord, allocation: Allocation, until: float) -> Lease:
        lease = Lease(record, allocation, until)
        allocation.lease = lease
        self.by_shape.setdefault(record.shape.index, []).append(lease)
        return lease

    def roomiest(self, shape: Shape, time: float) -> Lease | None:
        """The lease of this shape with the least work behind it, if one takes more."""
        best: Lease | None = None
        for lease in self.by_shape.get(shape.index, ()):
            if self.takes_more(lease, time) and (best is None or len(lease.behind) < len(best.behind)):
                best = lease
        return best

    def takes_more(self, lease: Lease, time: float) -> bool:
        count = len(lease.behind)
        if time >= lease.until or count >= self._most or lease.node.mode != Mode.AWAKE:
            return False
        return count * lease.estimate.seconds < self._ahead_s

    def put_behind(self, record: TaskRecord, lease: Lease) -> Allocation:
        """It will run on the share; nothing is taken for it."""
        record.enter(Stage.BEHIND)
        allocation = Allocation(lease.node, lease.estimate, lease.cost, record.attempt)
        allocation.lease = lease
        record.allocation = allocation
        lease.behind[record.name] = record
        return allocation

    def step_out(self, record: TaskRecord, lease: Lease) -> None:
        """Undo of `put_behind`: it did not wait for its turn."""
        del lease.behind[record.name]
        record.allocation = None

    def hand_on(self, record: TaskRecord, lease: Lease) -> TaskRecord | None:
        """The holder has gone: the first behind it has the share now. None: nobody was there, the lease is over."""
        if not lease.behind:
            record.holding.lease = None
            self.by_shape[lease.shape.index].remove(lease)
            return None
        name = next(iter(lease.behind))
        successor = lease.behind.pop(name)
        lease.holder = successor
        if successor.stage == Stage.BEHIND:
            successor.enter(Stage.RUNNING if successor.holding.started else Stage.PLACED)
        return successor

    def close(self, lease: Lease) -> None:
        """Nobody will follow on it, and nobody stands behind."""
        assert not lease.behind
        self.by_shape[lease.shape.index].remove(lease)
        lease.holder.holding.lease = None

    def abandon(self, lease: Lease) -> list[TaskRecord]:
        """The node is gone: everybody behind, who now stands nowhere."""
        self.by_shape[lease.shape.index].remove(lease)
        lease.holder.holding.lease = None
        behind = list(lease.behind.values())
        for record in behind:
            self.step_out(record, lease)
        return behind

    def drop(self, shape: Shape) -> None:
        """No task of this shape is left."""
        self.by_shape.pop(shape.index, None)
