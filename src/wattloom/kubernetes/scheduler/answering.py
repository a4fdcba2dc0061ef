"""What the scheduler's web server answers.

Owns the pages. Everything is read off the scheduler when somebody asks; explanations of pods that have a place are
worked out from the log, one at a time and in turns of a few milliseconds, so that deciding goes on meanwhile.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from wattloom.errors import WattloomError
from wattloom.history.explanation import explain
from wattloom.history.log import Log
from wattloom.history.pod_names import finding
from wattloom.history.steps import Steps
from wattloom.history.waiting import waiting_now
from wattloom.history.why import Why, answering
from wattloom.kubernetes import metrics as m
from wattloom.kubernetes.model.pods import gates
from wattloom.kubernetes.options import usable_spec
from wattloom.kubernetes.state.pod_entry import At, PodEntry
from wattloom.policies.loading import load_recorded
from wattloom.scheduling.state import Stage
from wattloom.serving.pages import JSON, TEXT, Answered, Asked, Page, metrics_text

T = TypeVar("T")

if TYPE_CHECKING:
    from wattloom.kubernetes.scheduler.scheduler import Scheduler

EXPLAIN_S: Final = 120.0
TURN_S: Final = 0.005
"""Of explaining, and then of whatever else there is to do."""
MOST_BYTES: Final = 512 << 20
"""Of a log that is explained here."""
SINCE: Final = "the scheduler's start"
"""From when times count, as `wattloom why` says it."""
STATES: Final = {At.ASIDE: "aside", At.QUEUED: "queued", At.BINDING: "binding"}


class Answering:
    """`open` pages are for everybody."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self._scheduler = scheduler
        self._shown = m.Shown(scheduler.counts, self._figures)
        self._explaining = asyncio.Semaphore(1)
        self.open: dict[str, Page] = {"/healthz": self._healthz, "/readyz": self._readyz}
        self.pages: dict[str, Page] = {"/metrics": self._metrics, "/why": self._why}

    async def _healthz(self, asked: Asked) -> Answered:
        return Answered(200, TEXT, b"ok\n")

    async def _readyz(self, asked: Asked) -> Answered:
        scheduler = self._scheduler
        if not scheduler.state.synced:
            return Answered(503, TEXT, b"not in step with the cluster yet\n")
        return Answered(200, TEXT, b"leader\n" if scheduler.deciding_now else b"standby\n")

    async def _metrics(self, asked: Asked) -> Answered:
        body, kind = metrics_text(self._shown, asked.accept)
        return Answered(200, kind, body)

    def _figures(self) -> dict[m.Metric, m.Figures]:
        scheduler = self._scheduler
        state, recorder = scheduler.state, scheduler.recorder
        pending = Counter(entry.at for entry in state.pods.by_uid.values())
        index = scheduler.driver.engine.ledger.index
        known = sum(node.cls.machine.knows_power for node in index.nodes.values())
        return {
            m.PENDING: {(name,): float(pending[at]) for at, name in STATES.items()},
            m.IN_FLIGHT: {(): float(len(scheduler.binder))},
            m.RESTARTS: {(str(each.resource),): float(each.counts.restarts) for each in state.reflectors},
            m.EVENTS_QUEUED: {(): float(len(recorder))},
            m.EVENTS_WRITTEN: {(): float(recorder.written)},
            m.EVENTS_DROPPED: {(): float(recorder.dropped)},
            m.CONDITIONS_WRITTEN: {(): float(scheduler.conditions.written)},
            m.CONDITIONS_DROPPED: {(): float(scheduler.conditions.dropped)},
            m.LEADING: {(): float(scheduler.deciding_now)},
            m.NODES: {("known",): float(known), ("unknown",): float(len(index.nodes) - known)},
            m.THROTTLED: {(): float(scheduler.api.throttled)},
            m.REFUSED: {(): float(scheduler.driver.refused + scheduler.scheduling.queue.failed)},
        }

    # -- why ---------------------------------------------------------------------------------------------------------

    async def _why(self, asked: Asked) -> Answered:
        name = asked.query.get("pod", "")
        if name.count("/") != 1:
            return Answered(400, TEXT, b"a pod is named NAMESPACE/POD: /why?pod=NAMESPACE/POD\n")
        scheduler = self._scheduler
        if not scheduler.deciding_now:
            holder = scheduler.election.holder if scheduler.election is not None else ""
            return Answered(503, TEXT, f"this replica stands by; {holder or 'nobody'} leads: ask there\n".encode())
        entry = self._entry(name)
        if entry is not None and entry.at is At.ASIDE:
            return _answer(name, aside=_why_aside(entry))
        if scheduler.log is not None:
            return await self._from_log(name)
        return self._from_here(name, entry)

    def _entry(self, name: str) -> PodEntry | None:
        namespace, _, pod = name.partition("/")
        for entry in self._scheduler.state.pods.by_uid.values():
            if entry.reference.name == pod and entry.reference.namespace == namespace:
                return entry
        return None

    async def _from_log(self, name: str) -> Answered:
        log = self._scheduler.log
        assert log is not None
        log.flush()
        try:
            async with asyncio.timeout(EXPLAIN_S), self._explaining:
                found = await in_turns(self._explained(log.path, name))
        except (TimeoutError, _TooLong):
            return Answered(503, TEXT, b"the log is too long to be explained here: copy it and use --log\n")
        except (WattloomError, OSError) as problem:
            return Answered(404, TEXT, f"{problem}\n".encode())
        return Answered(200, JSON, msgspec.json.encode(found.to_json()))

    def _explained(self, log: Path, name: str) -> Steps[Why]:
        """What is read is our own log: a file of Python that decides here may be asked again."""
        path, task = yield from finding(log, name)
        if path.stat().st_size > MOST_BYTES:
            raise _TooLong
        spec = Log(path).header.policy
        ours = usable_spec(self._scheduler.options.policy)
        return (yield from answering(path, task, load_recorded(spec, str(path), trusted=spec == ours)))

    def _from_here(self, name: str, entry: PodEntry | None) -> Answered:
        """A pod that waits is asked about now; of one that has a place, the decision alone is remembered."""
        scheduler = self._scheduler
        engine = scheduler.driver.engine
        task = entry.task.id if entry is not None and entry.task is not None else ""
        task = task or next((each for each in reversed(scheduler.scheduling.last_placed) if _is_of(each, name)), "")
        record, placed = engine.ledger.tasks.get(task), scheduler.scheduling.last_placed.get(task)
        if record is None and placed is None:
            return Answered(404, TEXT, f"{name} is not known here\n".encode())
        waits = record is not None and record.stage in (Stage.QUEUED, Stage.BACKING_OFF)
        told = explain(record, engine.ledger.view, engine.policy) if record is not None and waits else None
        return _answer(
            task,
            decisions=[] if told is None else [msgspec.to_builtins(told)],
            recorded=[] if placed is None else [{"time": placed[0]} | msgspec.to_builtins(placed[1])],
            waiting=None if told is None else msgspec.to_builtins(waiting_now(engine, task)),
            **({"found_on": record.node} if record is not None and placed is None and record.node else {}),
        )


class _TooLong(Exception):
    """The engine that a log is told to takes as much memory as the one that wrote it."""


async def in_turns(steps: Steps[T], clock: Callable[[], float] = monotonic) -> T:
    """The steps' result. After each turn others have as long."""
    with closing(steps):
        while True:
            until = clock() + TURN_S
            try:
                while clock() < until:
                    next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            await asyncio.sleep(TURN_S)


def _answer(task: str, **known: Any) -> Answered:
    """In the form of `wattloom why --json`."""
    nothing = {"task": task, "same_decisions": True, "decisions": [], "recorded": [], "waiting": None}
    return Answered(200, JSON, msgspec.json.encode(nothing | known | {"since": SINCE}))


def _why_aside(entry: PodEntry) -> str:
    pod = entry.pod
    if pod is not None and pod.metadata.deletion_timestamp is not None:
        return "it is being deleted"
    if pod is not None and gates(pod):
        return f"it is gated by {', '.join(each.name for each in pod.spec.scheduling_gates)}"
    return entry.told or "its turn has not come yet"


def _is_of(task: str, name: str) -> bool:
    return task.partition("#")[0] == name
