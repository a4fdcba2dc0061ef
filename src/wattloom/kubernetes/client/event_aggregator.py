"""What has been told of which pod, and what is still to be written.

Owns the merging of repeated words into one event with a count, and the order of writing. Writes nothing itself and
waits for nothing: `event_recorder` does.
"""

from collections import deque
from datetime import datetime
from typing import Final

import msgspec

from wattloom.kubernetes.client.backoff import Budget

NOTE_BYTES: Final = 1024
"""What the API server takes as the note of an event."""
NAME_LETTERS: Final = 253
FORGOTTEN_S: Final = 360.0
"""A series that was not heard of for this long begins anew, as in Kubernetes."""
POD_BURST: Final = 25
POD_REFILL_S: Final = 300.0
"""So often may one pod's waiting be written at once, and once more after each so many seconds: client-go's limit."""
ALL_PER_S: Final = 50.0
ALL_BURST: Final = 100
"""The same for all pods that wait together: kube-scheduler's client has as much for all its requests."""


class Pod(msgspec.Struct, frozen=True):
    """Whom an event is about."""

    namespace: str
    name: str
    uid: str


class Line(msgspec.Struct):
    """One event on one pod: what is told, and what of it the API server has."""

    pod: Pod
    reason: str
    note: str
    kind: str
    action: str
    first: datetime
    last: datetime
    count: int = 1
    event: str = ""
    """The name of the event that has been written, or is being, for `event_note`."""
    event_note: str = ""
    written_note: str | None = None
    written_count: int = 0
    written_at: float = 0.0
    queued: bool = False
    writing: bool = False
    budget: Budget = msgspec.field(default_factory=lambda: Budget(1.0 / POD_REFILL_S, POD_BURST))

    @property
    def open(self) -> bool:
        return self.written_note != self.note or self.written_count != self.count


class Series(msgspec.Struct, frozen=True, rename="camel"):
    count: int
    last_observed_time: str


class Metadata(msgspec.Struct, frozen=True):
    namespace: str
    name: str


class Regarding(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str
    name: str
    uid: str
    api_version: str = "v1"
    kind: str = "Pod"


class Event(msgspec.Struct, frozen=True, rename="camel"):
    """As the API server takes it."""

    metadata: Metadata
    event_time: str
    reporting_controller: str
    reporting_instance: str
    action: str
    reason: str
    type: str
    note: str
    regarding: Regarding
    series: Series | msgspec.UnsetType = msgspec.UNSET
    api_version: str = "events.k8s.io/v1"
    kind: str = "Event"


class Counted(msgspec.Struct, frozen=True):
    """What changes on an event that is there."""

    series: Series


class EventAggregator:
    """Lines to write, first come first served. One that repeats is written again at most every `repeat_s`, as often as
    its pod's budget and that of all of them allow, and after those that are told once."""

    def __init__(self, controller: str, instance: str, *, repeat_s: float = 10.0) -> None:
        self._controller, self._instance = controller, instance
        self._repeat_s = repeat_s
        self._queue: deque[Line] = deque()
        self._repeats: deque[Line] = deque()
        self._budget: Final = Budget(ALL_PER_S, ALL_BURST)
        self._repeating: dict[tuple[str, str], Line] = {}
        self._serial = 0

    def __len__(self) -> int:
        return len(self._queue) + len(self._repeats)

    def tell(self, pod: Pod, reason: str, note: str, kind: str, action: str, now: datetime, clock: float) -> None:
        """Something to be told once."""
        failed = self._repeating.pop((pod.uid, "FailedScheduling"), None)
        if failed is not None and failed.open and not failed.queued and not failed.writing:
            self._put(failed, self._queue)
        self._put(Line(pod, reason, clipped(note), kind, action, now, now), self._queue)

    def repeat(self, pod: Pod, reason: str, note: str, kind: str, action: str, now: datetime, clock: float) -> None:
        """Something that may be told again and again: the same words are counted, other words replace them."""
        note, key = clipped(note), (pod.uid, reason)
        line = self._repeating.get(key)
        if line is None or (not line.open and clock - line.written_at > FORGOTTEN_S):
            line = self._repeating[key] = Line(pod, reason, note, kind, action, now, now)
            self._put(line, self._repeats)
            return
        line.last = now
        if line.note == note:
            line.count += 1
        else:
            line.note, line.first = note, now
            line.count = 1
        if not line.queued and not line.writing and self._due(line, clock):
            self._put(line, self._repeats)

    def late(self, clock: float, *, all: bool = False) -> int:
        """Queue what has waited its time; everything, with `all`. How many lines are not wholly written."""
        rest = 0
        for key, line in tuple(self._repeating.items()):
            if line.open:
                rest += 1
                if not line.queued and not line.writing and (all or self._due(line, clock)):
                    self._put(line, self._repeats)
            elif clock - line.written_at > FORGOTTEN_S:
                del self._repeating[key]
        return rest

    def take(self, clock: float) -> Line | None:
        """The next to write, until it is `done`. What is told of it meanwhile makes it late, not double."""
        if self._queue:
            line = self._queue.popleft()
        elif self._repeats and self._budget.take(clock):
            line = self._repeats.popleft()
            line.budget.take(clock)
        else:
            return None
        line.queued, line.writing = False, True
        return line

    def done(self, line: Line) -> None:
        line.writing = False

    def name(self, line: Line) -> None:
        """A name for the event with these words: the same when it is sent again, so that it is not there twice."""
        if not line.event or line.event_note != line.note:
            self._serial += 1
            tail = f".{int(line.first.timestamp() * 1e6):x}{self._serial & 0xFFFF:04x}"
            line.event, line.event_note = line.pod.name[: NAME_LETTERS - len(tail)] + tail, line.note

    def fresh(self, line: Line) -> Event:
        """The event as it is made. Its name stays the same when it is sent again."""
        pod = line.pod
        return Event(
            Metadata(pod.namespace, line.event),
            micro(line.first),
            self._controller,
            self._instance,
            line.action,
            line.reason,
            line.kind,
            line.note,
            Regarding(pod.namespace, pod.name, pod.uid),
            self.series(line) if line.count > 1 else msgspec.UNSET,
        )

    def series(self, line: Line) -> Series:
        return Series(max(2, line.count), micro(line.last))

    def _due(self, line: Line, clock: float) -> bool:
        return line.written_note is None or (
            clock - line.written_at >= self._repeat_s and line.budget.left(clock) >= 1.0
        )

    def _put(self, line: Line, queue: deque[Line]) -> None:
        line.queued = True
        queue.append(line)


def clipped(note: str) -> str:
    """At most as long as the API server takes, cut between letters."""
    if 4 * len(note) <= NOTE_BYTES:
        return note
    data = note.encode()
    if len(data) <= NOTE_BYTES:
        return note
    return data[: NOTE_BYTES - 3].decode("utf-8", "ignore") + "…"


def micro(time: datetime) -> str:
    """A time of UTC in the form that events have."""
    return time.isoformat(timespec="microseconds")[:26] + "Z"
