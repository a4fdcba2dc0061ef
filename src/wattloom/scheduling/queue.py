"""The queue: order of arrival within priority, without one task blocking all behind it.

Tasks of one shape stand in one lane: if the first does not fit, none of them does, so a pass over the queue asks once
per lane, not once per task. A blocked lane is left alone until something is freed that its tasks fit on.
"""

from heapq import heappop, heappush
from typing import Final

from wattloom.cluster.reasons import Reason
from wattloom.scheduling.state import Stage, TaskRecord
from wattloom.workload.shape import Shape

Entry = tuple[int, int, int, TaskRecord]


class Lane:
    """Queued tasks of one shape, in order."""

    __slots__ = ("blocked_by", "blocked_since", "entries", "shape", "watched")

    def __init__(self, shape: Shape) -> None:
        self.shape: Final = shape
        self.entries: list[Entry] = []
        self.blocked_by: Reason | None = None
        """Why its first task found no place; None: it has not been asked since something changed."""
        self.blocked_since: float = 0.0
        self.watched: bool = False
        """Whether a timer looks after its first task's patience."""

    def push(self, record: TaskRecord) -> None:
        heappush(self.entries, (record.order[0], record.order[1], record.epoch, record))

    def head(self) -> TaskRecord | None:
        """The first task that is still queued."""
        entries = self.entries
        while entries:
            entry = entries[0]
            record = entry[3]
            if record.stage == Stage.QUEUED and record.epoch == entry[2]:
                return record
            heappop(entries)
        return None


class Queue:
    """All lanes."""

    def __init__(self) -> None:
        self.lanes: dict[int, Lane] = {}
        self.blocked: dict[int, Lane] = {}
        self._ready: list[tuple[int, int, int]] = []

    def push(self, record: TaskRecord) -> None:
        shape = record.shape
        lane = self.lanes.get(shape.index)
        if lane is None:
            lane = Lane(shape)
            self.lanes[shape.index] = lane
        lane.push(record)
        if lane.blocked_by is None:
            heappush(self._ready, (record.order[0], record.order[1], shape.index))

    def next(self) -> tuple[Lane, TaskRecord] | None:
        """The lane whose first task comes first among the lanes not blocked."""
        ready = self._ready
        while ready:
            priority, arrival, index = ready[0]
            lane = self.lanes[index]
            head = lane.head() if lane.blocked_by is None else None
            if head is None:
                heappop(ready)
            elif head.order == (priority, arrival):
                return lane, head
            else:
                heappop(ready)
                heappush(ready, (head.order[0], head.order[1], index))
        return None

    def block(self, lane: Lane, reason: Reason, time: float) -> None:
        lane.blocked_by = reason
        lane.blocked_since = time
        self.blocked[lane.shape.index] = lane

    def unblock(self, lane: Lane) -> None:
        if lane.blocked_by is None:
            return
        lane.blocked_by = None
        del self.blocked[lane.shape.index]
        head = lane.head()
        if head is not None:
            heappush(self._ready, (head.order[0], head.order[1], lane.shape.index))
