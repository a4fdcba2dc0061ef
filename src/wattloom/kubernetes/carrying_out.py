"""What the engine wants done, done: pods bound, and their owners told.

Owns the bindings under way and what each outcome means for the pod. Decides nothing: what could not be bound goes
back to the engine.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from wattloom.kubernetes import binding, wording
from wattloom.kubernetes.binding import Binder
from wattloom.kubernetes.deciding import Deciding
from wattloom.kubernetes.metrics import Counts
from wattloom.kubernetes.pod_conditions import NOT_FOLLOWED, UNSCHEDULABLE, PodConditions
from wattloom.kubernetes.pod_entry import PodEntry
from wattloom.kubernetes.pod_roll import PodRoll
from wattloom.kubernetes.telling import Teller
from wattloom.kubernetes.unsupported import Unsupported
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Evict, Place, Wait

LOG: Final = logging.getLogger(__name__)
REMEMBERED: Final = 10_000
RESULTS: Final = {
    binding.Bound: "bound",
    binding.AlreadyBound: "already-bound",
    binding.PodGone: "pod-gone",
    binding.NodeGone: "node-gone",
    binding.Refused: "refused",
    binding.Unsure: "unsure",
}


class CarryingOut:
    """`carry_out` takes an instruction and returns at once. `done` is called after each binding."""

    def __init__(
        self,
        deciding: Callable[[], Deciding],
        pods: Callable[[], PodRoll],
        binder: Binder,
        teller: Teller,
        conditions: PodConditions,
        counts: Counts,
        done: Callable[[], None],
    ) -> None:
        self.placed: dict[str, tuple[float, Place]] = {}
        """The last placements by task, with their time."""
        self._deciding, self._pods = deciding, pods
        self._binder = binder
        self._teller = teller
        self._conditions = conditions
        self._counts = counts
        self._done = done
        self._queue: deque[tuple[PodEntry, str]] = deque()
        """Bindings that nobody has taken up yet, with their nodes."""
        self._busy = 0
        self._tasks: set[asyncio.Task[None]] = set()
        """Those who bind, one pod after the other for as long as there are any."""

    def carry_out(self, instruction: AnyInstruction) -> None:
        if isinstance(instruction, Place):
            self._place(instruction)
        elif isinstance(instruction, Wait):
            entry = self._pods().by_task.get(instruction.task)
            if entry is not None:
                entry.waits = instruction.reason, instruction.message
        elif isinstance(instruction, Evict):  # nobody asks for that: pods are deleted by their owners
            asyncio.get_running_loop().call_soon(self._will_not, instruction)

    def not_followed(self, entry: PodEntry, wrong: Unsupported) -> None:
        """It stays aside; its owner is told which field is in the way, once."""
        if entry.told != wrong.message:
            entry.told = wrong.message
            self._teller.failed(entry.reference, wrong.message)
            self._conditions.waits(entry, wrong.message, UNSCHEDULABLE if wrong.passing else NOT_FOLLOWED)

    async def end(self, patience_s: float) -> None:
        """Until the bindings under way are known, or patience ends."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience_s)
        for task in self._tasks:
            task.cancel()

    @property
    def under_way(self) -> int:
        return len(self._queue) + self._busy

    def _place(self, place: Place) -> None:
        pods, deciding = self._pods(), self._deciding()
        entry = pods.by_task[place.task]
        engine = deciding.engine
        pods.placed(entry, place.node, place.attempt)
        record = engine.ledger.tasks.get(place.task)
        policy = engine.policy
        entry.note = wording.scheduled(place, record, len(engine.ledger.nodes), policy.name, policy.measure)
        if entry.task is not None:
            entry.note += wording.without_effect(entry.task, policy)
        entry.waits = None
        self._remember(place, engine.time)
        self._queue.append((entry, place.node))
        if len(self._tasks) < self._binder.in_flight:
            task = asyncio.get_running_loop().create_task(self._bind_on())
            self._tasks.add(task)

    async def _bind_on(self) -> None:
        """Nobody counts as binding after the last look at the queue, so that what is put there is always taken up."""
        this = asyncio.current_task()
        assert this is not None
        try:
            while self._queue:
                await self._bind_next()
        finally:
            self._tasks.discard(this)

    async def _bind_next(self) -> None:
        entry, node = self._queue.popleft()
        self._busy += 1
        try:
            await self._bind(entry, node)
        except Exception as problem:
            LOG.exception("a binding failed in an unforeseen way")
            self._pods().not_bound(entry, f"unforeseen: {problem!r}")
        finally:
            self._busy -= 1
        self._done()

    async def _bind(self, entry: PodEntry, node: str) -> None:
        pod = entry.reference
        outcome = await self._binder.bind(pod.namespace, pod.name, pod.uid, node)
        self._counts.bound(RESULTS[type(outcome)])
        if isinstance(outcome, binding.Bound):
            self._counts.creation_to_bind.observe(_age_s(entry.created))
            self._teller.scheduled(pod, entry.note)
            entry.note = ""
        elif isinstance(outcome, binding.AlreadyBound):
            LOG.info("%s/%s: somebody else has bound it to %s", pod.namespace, pod.name, outcome.node)
        else:
            self._failed(entry, outcome)

    def _failed(self, entry: PodEntry, outcome: binding.Outcome) -> None:
        pods = self._pods()
        if isinstance(outcome, binding.PodGone):
            entry.unwanted = True
            pods.not_bound(entry, "it was deleted")
        elif isinstance(outcome, binding.NodeGone):
            pods.not_bound(entry, f"node {outcome.node} is gone")
        elif isinstance(outcome, binding.Refused | binding.Unsure):
            LOG.warning("%s/%s: not bound: %s", entry.reference.namespace, entry.reference.name, outcome.message)
            pods.not_bound(entry, outcome.message)

    def _will_not(self, evict: Evict) -> None:
        deciding = self._deciding()
        deciding.tell(ev.InstructionFailed(deciding.now, "evict", evict.task, evict.attempt, message="not done here"))

    def _remember(self, place: Place, time: float) -> None:
        self.placed[place.task] = time, place
        if len(self.placed) > REMEMBERED:
            del self.placed[next(iter(self.placed))]


def _age_s(created: str) -> float:
    if not created:
        return 0.0
    return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(created)).total_seconds())
