"""The queue: order of arrival within priority, without one task blocking all behind it.

Tasks of one shape stand in one lane: if the first does not fit, none of them does, so a pass over the queue asks once
per lane, not once per task. A blocked lane is left alone until something is freed that its tasks fit on.
"""

from heapq import heapify, heappop, heappush, nsmallest
from typing import Final

from wattloom.cluster.reasons import Reason
from wattloom.scheduling.state import Order, Stage, TaskRecord
from wattloom.workload.shape import Shape

Entry = tuple[int, int, int, TaskRecord]

SLACK: Final = 64
"""Void entries that a lane may keep beyond a few times its tasks."""


class Lane:
    """Queued tasks of one shape, in order."""

    __slots__ = ("blocked_by", "entries", "listed", "look_at", "shape", "unasked", "watched")

    def __init__(self, shape: Shape) -> None:
        self.shape: Final = shape
        self.entries: list[Entry] = []
        self.blocked_by: Reason | None = None
        """Why its first task found no place; None: it has not been asked since something changed."""
        self.watched: bool = False
        """Whether a timer looks after its first task's patience."""
        self.look_at: float = 0.0
        """Not before this is its first task's patience looked at again."""
        self.listed: Order | None = None
        """Where it stands among the lanes to be asked; None: nowhere."""
        self.unasked: list[Entry] = []
        """Tasks that may wait, each as long as it likes, and were not asked yet: the first cannot answer for them."""

    def push(self, record: TaskRecord) -> None:
        entry = (record.order[0], record.order[1], record.epoch, record)
        if len(self.entries) + len(self.unasked) > 4 * self.shape.live + SLACK:
            self._drop_void()
        heappush(self.entries, entry)
        if self.shape.waits:
            self.unasked.append(entry)

    def take_unasked(self) -> list[TaskRecord]:
        """Those that were not asked yet, in order; the list is empty then."""
        unasked = sorted({entry[:3]: entry[3] for entry in self.unasked if _stands(entry)}.items())
        self.unasked.clear()
        return [record for _, record in unasked]

    def ask_alone(self, record: TaskRecord) -> None:
        """It is to be asked for itself when the lane is asked next."""
        self.unasked.append((record.order[0], record.order[1], record.epoch, record))

    def _drop_void(self) -> None:
        self.entries[:] = [entry for entry in self.entries if _stands(entry)]
        heapify(self.entries)
        self.unasked[:] = [entry for entry in self.unasked if _stands(entry)]

    def head(self) -> TaskRecord | None:
        """The first task that is still queued."""
        entries = self.entries
        while entries:
            if _stands(entries[0]):
                return entries[0][3]
            heappop(entries)
        return None


def _place_in_line(entry: Entry) -> tuple[int, int]:
    return entry[0], entry[1]


def _stands(entry: Entry) -> bool:
    """Whether the entry is the task's present place in the queue."""
    record = entry[3]
    return record.stage == Stage.QUEUED and record.epoch == entry[2]


class Queue:
    """All lanes."""

    def __init__(self) -> None:
        self.lanes: dict[int, Lane] = {}
        self.blocked: dict[int, Lane] = {}
        self.ready: list[tuple[int, int, int]] = []
        """Heads of lanes that may be asked, in order; some are void. Empty: nobody is to be asked."""

    def push(self, record: TaskRecord) -> None:
        shape = record.shape
        lane = self.lanes.get(shape.index)
        if lane is None:
            lane = Lane(shape)
            self.lanes[shape.index] = lane
        lane.push(record)
        if lane.blocked_by is None:
            self._list(lane, record.order)

    def next(self) -> tuple[Lane, TaskRecord] | None:
        """The lane whose first task comes first among the lanes not blocked."""
        ready = self.ready
        while ready:
            priority, arrival, index = ready[0]
            lane = self.lanes.get(index)
            if lane is None or lane.listed != (priority, arrival):
                heappop(ready)
                continue
            head = lane.head() if lane.blocked_by is None else None
            if head is not None and head.order == lane.listed:
                return lane, head
            heappop(ready)
            lane.listed = None
            if head is not None:
                self._list(lane, head.order)
        return None

    def standing(self, most: int) -> list[TaskRecord]:
        """The first so many tasks of all lanes that may be asked, in order."""
        open_lanes = [lane for lane in self.lanes.values() if lane.blocked_by is None]
        entries = [entry for lane in open_lanes for entry in lane.entries if _stands(entry)]
        return [entry[3] for entry in nsmallest(most, entries, key=_place_in_line)]

    def _list(self, lane: Lane, order: Order) -> None:
        """One valid entry per lane: the earliest; older ones are void."""
        if lane.listed is None or order < lane.listed:
            lane.listed = order
            heappush(self.ready, (order[0], order[1], lane.shape.index))

    def block(self, lane: Lane, reason: Reason) -> None:
        lane.blocked_by = reason
        self.blocked[lane.shape.index] = lane

    def unblock(self, lane: Lane) -> None:
        if lane.blocked_by is None:
            return
        lane.blocked_by = None
        del self.blocked[lane.shape.index]
        head = lane.head()
        if head is not None:
            self._list(lane, head.order)

    def drop(self, shape: Shape) -> None:
        """No task of this shape is left."""
        self.lanes.pop(shape.index, None)
        self.blocked.pop(shape.index, None)
