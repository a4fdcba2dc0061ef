"""What the engine wants done, carried out: the way from an instruction to a worker.

Owns what each instruction means on this machine. Their order is the driver's; workers are their host's, and what those
say is `worker_events`'. One thread alone.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final, assert_never

from wattloom.cluster.reasons import Reason
from wattloom.driving.driver import Driver
from wattloom.errors import EventRefused, WattloomError, clean
from wattloom.local import errors
from wattloom.local.accounting import Accounting
from wattloom.local.idempotency import Keys
from wattloom.local.job import Job
from wattloom.local.journaled_run import JournaledRun
from wattloom.local.open_calls import OpenCalls
from wattloom.local.run_clock import RunClock
from wattloom.local.worker_host import WorkerHost
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import (
    AnyInstruction,
    Conclude,
    Evict,
    Migrate,
    Place,
    Prepare,
    Release,
    Resize,
    SetFrequency,
    Sleep,
    Wait,
    Wake,
)
from wattloom.units import GIB

LOG: Final = logging.getLogger("wattloom")


class Instructions:
    """Tells the engine what happened, and does what it says."""

    def __init__(
        self,
        engine: Engine,
        journaled: JournaledRun,
        host: WorkerHost,
        calls: OpenCalls,
        keys: Keys,
        accounting: Accounting | None,
        clock: RunClock,
        cancel_later: Callable[[str], None],
    ) -> None:
        """`cancel_later`: have `cancel` called for a task, when the present event is done with."""
        self.driver: Final = Driver(engine, self._carry_out, journaled, refused=_note_refused)
        self._journaled: Final = journaled
        self._host: Final = host
        self._calls: Final = calls
        self._jobs: Final = calls.jobs
        self._keys: Final = keys
        self._accounting: Final = accounting
        self._clock: Final = clock
        self._cancel_later: Final = cancel_later
        self._refusal: str = ""
        """Why no worker could be started last."""
        self._waking: Final[list[tuple[float, str]]] = []

    def tell(self, event: ev.AnyEvent) -> None:
        """Tell the engine, and do what it says; while instructions are carried out, when that is done: workers get
        placements in the order in which they are written down. What it cannot believe is noted: no reason to give
        everything up."""
        try:
            self.driver.tell(event)
        except EventRefused as problem:
            _note_refused(event, problem)

    def _carry_out(self, instructions: list[AnyInstruction], now: float) -> None:
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
                self._wake(instruction)
            elif isinstance(instruction, Sleep):
                self._note_mode(instruction.node, "asleep")
            elif isinstance(instruction, (Migrate, Resize, SetFrequency, Prepare, Release)):
                raise AssertionError(f"this backend makes no such moves, and its engine was told so: {instruction}")
            else:
                assert_never(instruction)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _place(self, place: Place) -> None:
        job = self._jobs[place.task]
        job.number = place.number
        job.started = False
        job.error = None
        job.cpu_s = None
        job.attempt = place.attempt
        job.variant = place.variant
        job.worker = None
        holder = self._jobs[place.behind] if place.behind else None
        job.share = job.number if holder is None else holder.share
        if (holder is not None and holder.worker is None) or not self._is_placed(job, place.node, holder):
            # No worker was started for it, or for the one it stands behind: the engine will try again later.
            self.tell(
                ev.InstructionFailed(self._clock.now, "place", place.task, place.attempt, place.node, self._refusal)
            )

    def _is_placed(self, job: Job, node: str, behind: Job | None) -> bool:
        try:
            self._host.place(job, node, behind)
        except (OSError, WattloomError) as problem:
            self._refusal = clean(f"no worker can be started: {problem}")
            return False
        return True

    def _conclude(self, conclude: Conclude) -> None:
        job = self._jobs.pop(conclude.task)
        self._journaled.ended(job)
        if job.key:
            self._keys.ended(job, self._clock.unix(), unknown=conclude.outcome == "unknown")
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
        self._calls.resolve_later(job)

    def _has_to_wait(self, wait: Wait) -> None:
        """Here nodes neither come nor grow: what fits nowhere would wait for ever."""
        if wait.reason == Reason.NEVER_FITS:
            job = self._jobs[wait.task]
            job.error = errors.TaskRejected(wait.task, f"{job.function} fits nowhere here: {self._too_much(job)}")
            self._cancel_later(wait.task)

    def _too_much(self, job: Job) -> str:
        """What it asks for, and what there is."""
        needs = job.task.requirements or self.driver.engine.ledger.functions[job.function].requirements
        nodes = self._host.nodes
        here = sorted({node.profile.arch for node in nodes})
        if needs.arch and not set(needs.arch) & set(here):
            return f"it runs on {' or '.join(needs.arch)}, and this is {' and '.join(here)}"
        cores = max(node.node.cpu or node.profile.threads for node in nodes)
        memory = max(node.profile.memory if node.node.memory is None else node.node.memory for node in nodes)
        if needs.cpu > cores:
            return f"it asks for {needs.cpu:g} cores, and the largest node has {cores:g}"
        return f"it asks for {needs.memory / GIB:,.1f} GiB, and the largest node has {memory / GIB:,.1f} GiB"

    def _evict(self, evict: Evict) -> None:
        job = self._jobs[evict.task]
        if self._host.take_back(job, self._clock.now):
            self.tell(ev.TaskFailed(self._clock.now, evict.task, evict.attempt, "evicted"))
        else:
            self._host.cut_off(job, "it was cancelled")

    def cancel(self, task: str) -> None:
        """Nobody wants it any more."""
        if task in self._jobs:
            with suppress(EventRefused):
                self.driver.tell(ev.CancelRequested(self._clock.now, task))
        elif self._keys.cancelled(task):
            self._calls.unresolved.pop(task, None)

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _wake(self, wake: Wake) -> None:
        profile = next(node.profile for node in self._host.nodes if node.name == wake.node)
        self._waking.append((self._clock.now + profile.wake_s, wake.node))
        self._note_mode(wake.node, "waking")

    def _note_mode(self, node: str, mode: str) -> None:
        if self._accounting is not None:
            self._accounting.node_mode(node, mode, self._clock.now)

    @property
    def next_awake(self) -> float | None:
        """When the next node is up that was told to wake."""
        return min((due for due, _ in self._waking), default=None)

    def pass_time(self, now: float) -> None:
        """Nodes that wake take their time."""
        for due, node in [each for each in self._waking if each[0] <= now]:
            self._waking.remove((due, node))
            self._note_mode(node, "awake")
            self.tell(ev.NodeAwake(now, node))


def _note_refused(event: ev.AnyEvent, problem: EventRefused) -> None:
    LOG.error("the engine refused %s: %s", event, problem)
