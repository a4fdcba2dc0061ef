"""What the engine wants done: it is written down, then carried out, then whoever waits is told.

Owns the way from an instruction to a worker and from an end to a future. What workers say is `hearing`'s, the loop is
the dispatcher's; both are built on this. One thread alone.
"""

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import InvalidStateError
from concurrent.futures._base import CANCELLED, CANCELLED_AND_NOTIFIED, RUNNING
from contextlib import suppress
from selectors import DefaultSelector
from typing import Any, Final

from wattloom.cluster.reasons import Reason
from wattloom.errors import EventRefused, WattloomError, clean
from wattloom.local import errors
from wattloom.local.books import Books
from wattloom.local.desk import Desk
from wattloom.local.frames import EndFrame
from wattloom.local.future import tell_waiters
from wattloom.local.job import Job
from wattloom.local.keys import Keys
from wattloom.local.nodes import LocalNode
from wattloom.local.packing import unpack
from wattloom.local.workforce import Upbringing, WorkerProcess, Workforce
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Conclude, Evict, Place, Wait, Wake
from wattloom.units import GIB

LOOK_EVERY_S: Final = 0.05
"""How often busy workers are looked at."""
MOST_AHEAD: Final = 1 << 20
"""Bytes that are sent to a worker beyond the call it makes."""
LOG: Final = logging.getLogger("wattloom")


class Carrying:
    """Jobs, the workers that make them, and what is to be done when the journal has it."""

    def __init__(
        self, books: Books, keys: Keys, nodes: list[LocalNode], desk: Desk | None, upbringing: Upbringing
    ) -> None:
        self._books: Final = books
        self._nodes: Final = nodes
        self._desk: Final = desk
        self._selector: Final = DefaultSelector()
        self._workforce: Final = Workforce(nodes, books.journal, books.run, upbringing, self._selector)
        self._keys: Final = keys
        self._jobs: Final[dict[str, Job]] = {}
        """Calls that the engine has."""
        self._unresolved: Final[dict[str, Job]] = {}
        """Calls whose callers have not been told how they ended: those, and a few more."""
        self._metered: Final[set[int]] = set()
        """Workers that the desk knows."""
        self._to_send: dict[int, WorkerProcess] = {}
        self._to_resolve: list[Job] = []
        self._after_commit: list[Callable[[], None]] = []
        self._later: Final[deque[ev.AnyEvent]] = deque()
        """What came up while instructions were carried out."""
        self._carrying: bool = False
        self._refusal: str = ""
        """Why no worker could be started last."""
        self._waking: Final[list[tuple[float, str]]] = []
        self._look_at: float | None = None
        self._now: float = 0.0
        """Seconds since the run began, as this turn sees it."""

    def tell(self, event: ev.AnyEvent) -> None:
        """Tell the engine, and do what it says; while instructions are carried out, when that is done: workers get
        placements in the order in which they are written down."""
        if self._carrying:
            self._later.append(event)
        elif instructions := self._heard(event):
            self.carry_out(instructions)

    def _heard(self, event: ev.AnyEvent) -> list[AnyInstruction]:
        """What the engine says to it. What it cannot believe is noted: no reason to give everything up."""
        try:
            return self._books.tell(event)
        except EventRefused as problem:
            LOG.error("the engine refused %s: %s", event, problem)
            return []

    def carry_out(self, instructions: list[AnyInstruction]) -> None:
        """All of them, then what follows from those that could not be."""
        self._carrying = True
        try:
            self._carry_out(instructions)
            while self._later:
                self._carry_out(self._heard(self._later.popleft()))
        finally:
            self._carrying = False

    def _carry_out(self, instructions: list[AnyInstruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, Place):
                self._place(instruction)
            elif isinstance(instruction, Conclude):
                self._conclude(instruction)
            elif isinstance(instruction, Evict):
                self._evict(instruction)
            elif isinstance(instruction, Wait):
                self._has_to_wait(instruction)
            elif isinstance(instruction, Wake):
                profile = next(node.profile for node in self._nodes if node.name == instruction.node)
                self._waking.append((self._now + profile.wake_s, instruction.node))
                if self._desk is not None:
                    self._desk.node_mode(instruction.node, "waking", self._now)
            elif self._desk is not None:
                self._desk.node_mode(instruction.node, "asleep", self._now)

    # -- instructions --------------------------------------------------------------------------------------------------

    def _place(self, place: Place) -> None:
        job = self._jobs[place.task]
        job.number = place.number
        job.started = False
        job.error = None
        job.cpu_s = None
        job.attempt = place.attempt
        if place.behind:
            holder = self._jobs[place.behind]
            worker, job.share = holder.worker, holder.share
        else:
            worker, job.share = self._worker_for(place), job.number
        job.worker = worker
        if worker is None:
            self._later.append(self._not_placed(place))
            return
        worker.outbox.append(job)
        self._to_send[worker.number] = worker
        if self._desk is not None and worker.pid not in self._metered:
            self._metered.add(worker.pid)
            self._desk.worker_started(worker)

    def _worker_for(self, place: Place) -> WorkerProcess | None:
        """A worker for a new share; None: none can be started now, and the engine will try again later."""
        try:
            return self._workforce.take(place.node)
        except (OSError, WattloomError) as problem:
            self._refusal = clean(f"no worker can be started: {problem}")
            return None

    def _not_placed(self, place: Place) -> ev.AnyEvent:
        """No worker was started for it, or for the one it stands behind."""
        return ev.InstructionFailed(self._now, "place", place.task, place.attempt, place.node, self._refusal)

    def _conclude(self, conclude: Conclude) -> None:
        job = self._jobs.pop(conclude.task)
        self._books.ended(job)
        if job.key:
            self._keys.ended(job, self.unix(self._now), unknown=conclude.outcome == "unknown")
        if conclude.outcome == "failed" and job.error is None:
            job.error = errors.WorkerLost(conclude.task, conclude.message or str(conclude.reason))
        elif conclude.outcome == "unknown":
            job.error = errors.OutcomeUnknown(
                conclude.task,
                f"{job.function} may or may not have run to its end: {conclude.message}. It is not marked idempotent, "
                "so it was not run again",
            )
        elif conclude.outcome == "rejected":
            job.error = errors.TaskRejected(conclude.task, conclude.message or str(conclude.reason))
        self._to_resolve.append(job)

    def _has_to_wait(self, wait: Wait) -> None:
        """Here nodes neither come nor grow: what fits nowhere would wait for ever."""
        if wait.reason == Reason.NEVER_FITS:
            job = self._jobs[wait.task]
            job.error = errors.TaskRejected(wait.task, f"{job.function} fits nowhere here: {self._too_much(job)}")
            self.cancel_later(wait.task)

    def unix(self, now: float) -> float:
        """A time of the run, as the world counts."""
        raise NotImplementedError

    def cancel_later(self, task: str) -> None:
        """When the present event is done with."""
        raise NotImplementedError

    def cancel(self, task: str) -> None:
        """Nobody wants it any more."""
        if task in self._jobs:
            with suppress(EventRefused):
                self.carry_out(self._books.tell(ev.CancelRequested(self._now, task)))
        elif self._keys.cancelled(task):
            self._unresolved.pop(task, None)

    def _too_much(self, job: Job) -> str:
        """What it asks for, and what there is."""
        needs = job.task.requirements or self._books.engine.ledger.functions[job.function].requirements
        cores = max(node.node.cpu or node.profile.threads for node in self._nodes)
        memory = max(node.profile.memory if node.node.memory is None else node.node.memory for node in self._nodes)
        if needs.cpu > cores:
            return f"it asks for {needs.cpu:g} cores, and the largest node has {cores:g}"
        return f"it asks for {needs.memory / GIB:,.1f} GiB, and the largest node has {memory / GIB:,.1f} GiB"

    def _evict(self, evict: Evict) -> None:
        job = self._jobs[evict.task]
        worker = job.worker
        assert worker is not None
        if job in worker.outbox:
            worker.outbox.remove(job)
            self.rest_if_free(worker)  # before the engine gives it something else to do
            self.tell(ev.TaskFailed(self._now, evict.task, evict.attempt, "evicted"))
        else:
            self._workforce.kill(worker, "it was cancelled")

    def rest_if_free(self, worker: WorkerProcess) -> None:
        if worker.is_free and worker.number in self._workforce.workers:
            self._workforce.rest(worker, self._now)

    # -- when the journal has it ---------------------------------------------------------------------------------------

    def deliver(self) -> None:
        """Send what was placed, tell who was waiting."""
        if self._to_send:
            sending, self._to_send = self._to_send, {}
            for worker in sending.values():
                self._send(worker, self._now)  # may find somebody cancelled, and another placed: he is sent next turn
        if self._keys.unsaved:  # no other copy may have to wait for what callbacks do
            self._keys.save(self.unix(self._now))
        if self._to_resolve:
            resolve, self._to_resolve = self._to_resolve, []
            for job in resolve:
                self.resolve(job)
        if self._after_commit:
            then, self._after_commit = self._after_commit, []
            for each in then:
                each()

    def _send(self, worker: WorkerProcess, now: float) -> None:
        if worker.purging:
            return
        jobs, worker.outbox = worker.outbox, []
        going: list[Job] = []
        ahead = 0
        for position, job in enumerate(jobs):
            ahead += len(job.args) + (0 if worker.has(job) else len(job.blob))
            if ahead > MOST_AHEAD and (going or worker.sent):
                worker.outbox.extend(jobs[position:])  # large ones wait here till the worker has come that far
                break
            if job.future._state == RUNNING or job.future.set_running_or_notify_cancel():
                going.append(job)
            else:
                worker.outbox.append(job)
                self.cancel(job.task.id)
        if going:
            self._workforce.send(worker, going, now)
            if self._look_at is None or self._look_at > now + LOOK_EVERY_S:
                self._look_at = now + LOOK_EVERY_S
            if self._desk is not None and worker.ready:
                self._desk.busy(worker, now)

    def resolve(self, job: Job) -> None:
        """The journal knows its end: now its caller may. Nothing that a caller has made may come through here."""
        future = job.future
        if job.spool:
            self._books.journal.spool.delete(job.spool)
        value, error = job.value, job.error
        job.args = b""
        job.value = job.error = None
        if value is None and error is None:
            future.cancel()
        if future._state in (CANCELLED, CANCELLED_AND_NOTIFIED):
            tell_waiters(future)
            self._unresolved.pop(job.task.id, None)
            return
        result: Any = None
        if error is None:
            try:
                result = self.unpacked(value)
            except BaseException as problem:
                error = problem
        try:
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)
        except InvalidStateError:
            pass  # the caller has set it himself
        except BaseException:
            LOG.exception("a done callback of task %s raised", job.task.id)
        self._unresolved.pop(job.task.id, None)

    def unpacked(self, end: EndFrame) -> Any:
        """What a call ended with."""
        if not end.spool:
            return unpack(end.body, [])
        spool = self._books.journal.spool
        try:
            return unpack(end.body, spool.map(end.spool))
        finally:
            spool.delete(end.spool)
