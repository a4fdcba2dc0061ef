"""The way of one pod, on one page: seen, waiting its turn, submitted, decided on, bound, told.

`ScheduleOne` reads from top to bottom as that way. It owns the order of the steps and what undoes each; it decides
nothing and sends nothing itself. Each step, where its details are, and its undo:

1. A pod is **seen** (`seen`): `client.reflector` hears of it, `cluster_state` hands it on, `state.pod_cache` knows what
   is new about it. Undo: `PodCache.deleted`, or `PodCache` withdraws it when it changes.
2. It **waits its turn** (`SchedulingQueue`). Undo: none is needed; whoever is gone, gated or known to the engine when
   the turn comes is passed over by `PodCache.submit`.
3. It is **submitted** (`submit`): `state.pod_cache` has `model.templates` make a task of it, `state.driver` tells the
   engine. Undo: `PodCache` tells `cancel-requested` or `task-removed`. Or it is **rejected** (`rejected`):
   `model.unsupported` names the field that is in the way; once that has changed, the pod is seen again.
4. It is **decided on** (`carry_out`): by `scheduling.engine`; `driving.driver` has logged it before. It **waits**
   (`_waits`): `status_reporter` tells its owner why, and the engine thinks again when something may help. Or it is
   **placed** (`_assume`): the cache has it on its node before the API server knows. Undo: `_give_back`.
5. It is **bound** (`BindQueue`, `_bind`): `binding` sends it, and finds out what became of it if no answer comes.
   Undo: `_not_bound` gives the place back, and the engine looks for another.
6. Its owner is **told** (`_bound`): `model.event_messages` has the words, `client.event_recorder` writes them.

That a bound pod has started, ended or left is seen as any change of a pod, and told the engine by `state.pod_cache`.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from heapq import heappop, heappush
from time import monotonic
from typing import Final

from wattloom.kubernetes.client.event_recorder import EventRecorder
from wattloom.kubernetes.metrics import Counts
from wattloom.kubernetes.model import event_messages
from wattloom.kubernetes.model.unsupported import Unsupported
from wattloom.kubernetes.scheduler import binding
from wattloom.kubernetes.scheduler.binding import Binder
from wattloom.kubernetes.scheduler.pod_conditions import NOT_FOLLOWED, UNSCHEDULABLE, PodConditions
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.kubernetes.state.pod_cache import PodCache
from wattloom.kubernetes.state.pod_entry import PodEntry
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Evict, Place, Wait

LOG: Final = logging.getLogger(__name__)
AT_ONCE: Final = 32
"""Decisions between two looks at the network."""
REMEMBERED: Final = 10_000
RESULTS: Final = {
    binding.Bound: "bound",
    binding.AlreadyBound: "already-bound",
    binding.PodGone: "pod-gone",
    binding.NodeGone: "node-gone",
    binding.Refused: "refused",
    binding.Unsure: "unsure",
}
Turn = tuple[tuple[int, str, str, str], int, PodEntry]


class ScheduleOne:
    """Its methods are the steps, in order. `leads` says whether this replica decides."""

    def __init__(
        self,
        driver: Callable[[], TimedDriver],
        pods: Callable[[], PodCache],
        binder: Binder,
        recorder: EventRecorder,
        conditions: PodConditions,
        counts: Counts,
        *,
        leads: Callable[[], bool],
        per_second: float = 0.0,
    ) -> None:
        """`driver` and `pods` are asked for late: they are made with this one's steps."""
        self.last_placed: dict[str, tuple[float, Place]] = {}
        """The last placements by task, with their time."""
        self.binds: Final = BindQueue(self._bind, self._give_back, self._bind_done, in_flight=binder.in_flight)
        self.queue: Final = SchedulingQueue(
            self.submit,
            lambda: self.binds.under_way,
            most_under_way=2 * binder.in_flight,
            per_second=per_second,
        )
        self._driver, self._pods = driver, pods
        self._binder = binder
        self._recorder = recorder
        self._conditions = conditions
        self._counts = counts
        self._leads = leads

    # -- a pod is seen, and waits its turn ---------------------------------------------------------------------------

    def begin(self, waiting: Iterable[PodEntry]) -> None:
        """This replica decides from now on; these were seen before."""
        for entry in waiting:
            self.queue.put(entry)
        self.queue.open()

    def seen(self, entry: PodEntry) -> None:
        """It is ours, has no node, and nothing holds it back. Who does not lead finds it in the cache later."""
        if self._leads():
            self.queue.put(entry)

    # -- its turn: it is submitted, or rejected ----------------------------------------------------------------------

    def submit(self, entry: PodEntry) -> bool:
        """Whether the engine was told. It may have been decided on, and be on its way to a node, on return."""
        return self._pods().submit(entry)

    def rejected(self, entry: PodEntry, wrong: Unsupported) -> None:
        """It stays aside; its owner is told which field is in the way, once."""
        if entry.told != wrong.message:
            entry.told = wrong.message
            self._recorder.failed(entry.reference, wrong.message)
            self._conditions.waits(entry, wrong.message, UNSCHEDULABLE if wrong.passing else NOT_FOLLOWED)

    # -- it is decided on --------------------------------------------------------------------------------------------

    def carry_out(self, instruction: AnyInstruction) -> None:
        """What the engine wants. Returns at once: bindings follow."""
        if isinstance(instruction, Place):
            self._place(instruction)
        elif isinstance(instruction, Wait):
            self._waits(instruction)
        elif isinstance(instruction, Evict):  # nobody asks for that: pods are deleted by their owners
            self._will_not(instruction)

    def _waits(self, wait: Wait) -> None:
        entry = self._pods().by_task.get(wait.task)
        if entry is not None:
            entry.waits = wait.reason, wait.message

    def _will_not(self, evict: Evict) -> None:
        driver = self._driver()
        driver.tell(ev.InstructionFailed(driver.now, "evict", evict.task, evict.attempt, message="not done here"))

    def _place(self, place: Place) -> None:
        entry = self._pods().by_task[place.task]
        self._assume(entry, place)
        self._remember(place, self._driver().engine.time)
        self.binds.put(entry, place.node)

    def _assume(self, entry: PodEntry, place: Place) -> None:
        """It counts as on its node from now on, so that nobody waits for the API server."""
        self._pods().placed(entry, place.node, place.attempt)
        engine = self._driver().engine
        record, policy = engine.ledger.tasks.get(place.task), engine.policy
        entry.note = event_messages.scheduled(place, record, len(engine.ledger.nodes), policy.name, policy.measure)
        if entry.task is not None:
            entry.note += event_messages.without_effect(entry.task, policy)
        entry.waits = None

    def _give_back(self, entry: PodEntry, why: str) -> None:
        """Undoes `_assume`: the engine finds it another place, unless nobody wants one any more."""
        self._pods().not_bound(entry, why)

    def _remember(self, place: Place, time: float) -> None:
        self.last_placed[place.task] = time, place
        if len(self.last_placed) > REMEMBERED:
            del self.last_placed[next(iter(self.last_placed))]

    # -- it is bound, and its owner told -----------------------------------------------------------------------------

    async def _bind(self, entry: PodEntry, node: str) -> None:
        pod = entry.reference
        outcome = await self._binder.bind(pod.namespace, pod.name, pod.uid, node)
        self._counts.bound(RESULTS[type(outcome)])
        if isinstance(outcome, binding.Bound):
            self._bound(entry)
        elif isinstance(outcome, binding.AlreadyBound):  # the cache is told where it is as of any pod
            LOG.info("%s/%s: somebody else has bound it to %s", pod.namespace, pod.name, outcome.node)
        else:
            self._not_bound(entry, outcome)

    def _bound(self, entry: PodEntry) -> None:
        self._counts.creation_to_bind.observe(_age_s(entry.created))
        self._recorder.scheduled(entry.reference, entry.note)
        entry.note = ""

    def _not_bound(self, entry: PodEntry, outcome: binding.Outcome) -> None:
        if isinstance(outcome, binding.PodGone):
            entry.unwanted = True
            self._give_back(entry, "it was deleted")
        elif isinstance(outcome, binding.NodeGone):
            self._give_back(entry, f"node {outcome.node} is gone")
        elif isinstance(outcome, binding.Refused | binding.Unsure):
            LOG.warning("%s/%s: not bound: %s", entry.reference.namespace, entry.reference.name, outcome.message)
            self._give_back(entry, outcome.message)

    def _bind_done(self) -> None:
        """Whoever made way for bindings goes on: the next pod, and the writers of events."""
        self.queue.stir()
        self._recorder.go_on()


class SchedulingQueue:
    """Who goes next, and when: by priority, then by age, and no more ahead than bindings can follow.

    So a burst does not decide thousands of places on a cluster that changes meanwhile, and the event loop stays
    responsive. `run` until cancelled. Nothing goes on before `open`; `submit` says whether the engine was told."""

    def __init__(
        self,
        submit: Callable[[PodEntry], bool],
        under_way: Callable[[], int],
        *,
        most_under_way: int,
        per_second: float = 0.0,
    ) -> None:
        self.failed = 0
        """Pods that were left aside because of an error in this program: each is a defect, and is logged."""
        self._submit = submit
        self._under_way = under_way
        self._most = most_under_way
        self._pause_s = 1.0 / per_second if per_second else 0.0
        self._next = 0.0
        self._heap: list[Turn] = []
        self._there: set[PodEntry] = set()
        self._serial = 0
        self._open = False
        self._more: Final = asyncio.Event()

    def __len__(self) -> int:
        return len(self._there)

    def open(self) -> None:
        """Somebody decides from now on."""
        self._open = True
        self.stir()

    def close(self) -> None:
        self._open = False

    def put(self, entry: PodEntry) -> None:
        if entry not in self._there:
            self._there.add(entry)
            self._serial += 1
            heappush(self._heap, (entry.order, self._serial, entry))
            self.stir()

    def stir(self) -> None:
        """Something is different: a pod came, or a binding is done."""
        if self._open and self._heap:
            self._more.set()

    async def run(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            while self._open and self._heap and self._under_way() < self._most:
                self._some()
                await asyncio.sleep(max(0.0, self._next - monotonic()))

    def _some(self) -> None:
        turns = 1 if self._pause_s else AT_ONCE
        while turns and self._heap and self._under_way() < self._most:
            turns -= 1
            entry = heappop(self._heap)[2]
            self._there.discard(entry)
            if self._submitted(entry) and self._pause_s:
                self._next = monotonic() + self._pause_s

    def _submitted(self, entry: PodEntry) -> bool:
        """One pod that cannot be dealt with is no reason to leave all others waiting."""
        try:
            return self._submit(entry)
        except Exception:
            self.failed += 1
            pod = entry.reference
            LOG.exception("%s/%s is left aside: it could not be dealt with", pod.namespace, pod.name)
            return False


class BindQueue:
    """Bindings under way. `give_back` is told of one that failed in an unforeseen way; `done` is called after each."""

    def __init__(
        self,
        bind: Callable[[PodEntry, str], Awaitable[None]],
        give_back: Callable[[PodEntry, str], None],
        done: Callable[[], None],
        *,
        in_flight: int,
    ) -> None:
        self._bind, self._give_back, self._done = bind, give_back, done
        self._in_flight = in_flight
        self._queue: deque[tuple[PodEntry, str]] = deque()
        """Bindings that nobody has taken up yet, with their nodes."""
        self._busy = 0
        self._tasks: set[asyncio.Task[None]] = set()
        """Those who bind, one pod after the other for as long as there are any."""

    @property
    def under_way(self) -> int:
        return len(self._queue) + self._busy

    def put(self, entry: PodEntry, node: str) -> None:
        self._queue.append((entry, node))
        if len(self._tasks) < self._in_flight:
            self._tasks.add(asyncio.get_running_loop().create_task(self._bind_on()))

    async def end(self, patience_s: float) -> None:
        """Until the bindings under way are known, or patience ends."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience_s)
        for task in self._tasks:
            task.cancel()

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
            self._give_back(entry, f"unforeseen: {problem!r}")
        finally:
            self._busy -= 1
            self._done()


def _age_s(created: str) -> float:
    if not created:
        return 0.0
    return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(created)).total_seconds())
