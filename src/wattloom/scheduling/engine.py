"""The engine: events in, instructions out.

`handle` takes an event and returns instructions. It knows no clock, no I/O and no randomness: what it knows is a fold
over the events it was given, so the same events give the same instructions. An event that cannot be true is refused
before anything changes. What follows from an event is the work of the engine's parts, which it wires: the handlers
(`task_events`, `node_events`, `failed_instructions`), and what they share and which knows nothing of events: the queue
and the placement of what stands in it, reservations, leases, the graph of tasks, the sleep of idle nodes and timers,
all on one ledger.
"""

from collections.abc import Callable, Iterable
from typing import Final

from wattloom.bounds import LATEST_S
from wattloom.errors import EventRefused
from wattloom.policies.protocol import Policy
from wattloom.prediction.protocol import Predictor
from wattloom.scheduling import events as ev
from wattloom.scheduling.evictions import Evictions
from wattloom.scheduling.failed_instructions import FailedInstructions
from wattloom.scheduling.idle_sleep import IdleSleep
from wattloom.scheduling.instructions import AnyInstruction, MoveKind, Sleep
from wattloom.scheduling.lease_terms import LeaseTerms
from wattloom.scheduling.leases import Leases
from wattloom.scheduling.ledger import REMEMBERED_ENDS, Ledger
from wattloom.scheduling.moves import Moves
from wattloom.scheduling.node_events import NodeEvents
from wattloom.scheduling.placement import Placement
from wattloom.scheduling.policy_guard import plan_problem_of, require_sound
from wattloom.scheduling.queue import Lane, Queue
from wattloom.scheduling.queueing_hints import QueueingHints
from wattloom.scheduling.reconsideration import Reconsideration
from wattloom.scheduling.reservations import Reservations
from wattloom.scheduling.state import Stage, TaskRecord
from wattloom.scheduling.task_ends import TaskEnds
from wattloom.scheduling.task_events import TaskEvents
from wattloom.scheduling.task_graph import TaskGraph
from wattloom.scheduling.timers import Timer, Timers
from wattloom.scheduling.turn import Turn


class Engine:
    """Decisions without I/O."""

    def __init__(
        self,
        policy: Policy,
        lease: LeaseTerms | None = None,
        placed: int = 0,
        remembered_ends: int = REMEMBERED_ENDS,
        predictor: Predictor | None = None,
        moves: Iterable[MoveKind] = (),
    ) -> None:
        """`remembered_ends`: of how many ended tasks the names are kept, so that none is taken twice. Without a
        predictor: `table`. `moves`: what the backend can do with running work and with nodes, beside the usual."""
        require_sound(policy)
        self.policy: Final = policy
        self._turn: Final = Turn()
        self.ledger: Final = Ledger(policy.terms, remembered_ends, predictor)
        self._rules: Final = self.ledger.rules
        self.queue: Final = Queue()
        self.timers: Final = Timers()
        self.leases: Final = Leases(lease)
        self.graph: Final = TaskGraph(self.ledger)
        self.idle_sleep: Final = IdleSleep(policy, self.ledger, self.timers)
        self._hints: Final = QueueingHints(self.ledger, self.queue)
        self.reservations: Final = Reservations(
            self._turn, self.ledger, self.queue, self.timers, self._hints, lambda node: self.placement.freed(node)
        )
        can = frozenset(moves)
        evictions = Evictions(self._turn, self.leases, "evict" in can)
        self.placement: Final = Placement(
            policy, self._turn, self.ledger, self.queue, self.timers, self._hints, self.reservations, self.leases,
            self.idle_sleep, evictions, placed,
        )  # fmt: skip
        self.moves: Final = Moves(
            self._turn, self.ledger, self.leases, evictions, self.placement, can, policy.reading_interval_s is not None
        )
        self.reconsideration: Final = Reconsideration(policy, self._turn, self.ledger, self.timers, self.moves)
        ends = TaskEnds(self._turn, self.ledger, self.reservations, self.graph, self.placement)
        parts = (self._turn, self.ledger, self.queue, self._hints, self.reservations, self.leases)
        readings = policy.reading_interval_s is not None
        about_nodes = NodeEvents(
            *parts, self.placement, self.moves, ends, readings, lambda plan: plan_problem_of(policy, plan)
        )
        about_tasks = TaskEvents(*parts, self.graph, self.placement, self.moves, ends, readings)
        failed = FailedInstructions(
            self._turn, self.ledger, self.reservations, self.placement, self.moves, self.idle_sleep, ends
        )
        self._handlers: Final = {
            ev.MachineDefined: about_nodes.machine_defined,
            ev.FunctionDefined: about_nodes.function_defined,
            ev.NodeJoined: about_nodes.node_joined,
            ev.NodeChanged: about_nodes.node_changed,
            ev.NodeLost: about_nodes.node_lost,
            ev.NodeAwake: about_nodes.node_awake,
            ev.NodeAsleep: about_nodes.node_asleep,
            ev.CapChanged: about_nodes.cap_changed,
            ev.TaskSubmitted: about_tasks.task_submitted,
            ev.TaskOrphaned: about_tasks.task_orphaned,
            ev.TaskFound: about_tasks.task_found,
            ev.TaskLeaving: about_tasks.task_leaving,
            ev.TaskChanged: about_tasks.task_changed,
            ev.TaskRemoved: about_tasks.task_removed,
            ev.TaskStarted: about_tasks.task_started,
            ev.TaskProgressed: about_tasks.task_progressed,
            ev.TaskMigrated: about_tasks.task_migrated,
            ev.TaskResized: about_tasks.task_resized,
            ev.TaskFinished: about_tasks.task_finished,
            ev.TaskFailed: about_tasks.task_failed,
            ev.TaskReturned: about_tasks.task_returned,
            ev.CancelRequested: about_tasks.cancel_requested,
            ev.InstructionFailed: failed.instruction_failed,
            ev.FrequencyChanged: about_nodes.frequency_changed,
            ev.InstanceReady: about_nodes.instance_ready,
            ev.InstanceGone: about_nodes.instance_gone,
            ev.SignalChanged: about_nodes.signal_changed,
            ev.PlanChanged: about_nodes.plan_changed,
            ev.ModelChanged: about_nodes.model_changed,
            ev.ReadingArrived: about_nodes.reading_arrived,
            ev.UsageArrived: about_nodes.usage_arrived,
            ev.FunctionLearned: about_nodes.function_learned,
            ev.FunctionsForgotten: about_nodes.functions_forgotten,
            ev.Tick: self._tick,
        }

    @property
    def time(self) -> float:
        """Of the last event."""
        return self._turn.time

    @property
    def next_tick(self) -> float | None:
        """When the engine wants a tick at the latest, if nothing else happens before."""
        return self.timers.next

    @property
    def placed(self) -> int:
        """Placements so far: each has a number."""
        return self.placement.placed

    @property
    def proposals(self) -> int:
        """How often the policy was asked: what deciding costs."""
        return self.placement.proposals

    @property
    def watcher(self) -> Callable[[TaskRecord], None] | None:
        """Called with each task just before the policy is asked: for explanations and tests."""
        return self.placement.watcher

    @watcher.setter
    def watcher(self, watcher: Callable[[TaskRecord], None] | None) -> None:
        self.placement.watcher = watcher

    def handle(self, event: ev.AnyEvent) -> list[AnyInstruction]:
        """Take one event in. Raises EventRefused, and changes nothing, if it cannot be true."""
        turn = self._turn
        time, before = event.time, turn.time
        if not before <= time < LATEST_S:
            raise EventRefused("time", f"must be seconds, not before {before}, below {LATEST_S:g}, not {time}")
        handler = self._handlers.get(type(event))
        if handler is None:
            raise EventRefused("event", f"is of an unknown kind: {type(event).__name__}")
        out: list[AnyInstruction] = []
        turn.out = out
        turn.time = self.ledger.view.time = time
        try:
            handler(event)  # type: ignore[operator]
        except BaseException:
            turn.time = self.ledger.view.time = before
            raise
        self._settle()
        return out

    def _settle(self) -> None:
        """Place what can be placed, then let due timers have their say, until nothing moves."""
        rules = self._rules
        while True:
            if rules.active and rules.has_moved:
                self._hints.rules_moved()
            if self.queue.ready:
                self.placement.place_queued()
                if rules.active and rules.has_moved:
                    continue
            timer = self.timers.due(self._turn.time)
            if timer is None:
                if self.reconsideration.unwatched and self.ledger.tasks:
                    self.reconsideration.watch()
                return
            self._fire(timer)

    def _fire(self, timer: Timer) -> None:
        if timer.kind == "idle":
            if self.idle_sleep.falls_asleep(timer.name, timer.time, self._turn.time):
                self._turn.out.append(Sleep(timer.name))
                self.moves.node_lost(timer.name)
                self.reservations.power_freed()
        elif timer.kind == "patience":
            lane = self.queue.lanes.get(int(timer.mark))
            if lane is not None:
                self.reservations.patience_ends(lane)
        elif timer.kind == "reconsider":
            self.reconsideration.due()
        else:
            record = self.ledger.tasks.get(timer.name)
            if record is None or record.epoch != timer.mark:
                return
            if record.stage == Stage.BACKING_OFF:
                self.placement.enqueue(record)
            elif record.stage == Stage.QUEUED:
                self._its_time(self.queue.lanes[record.shape.index], record)

    def _its_time(self, lane: Lane, record: TaskRecord) -> None:
        """It chose to wait until now: it is asked with its lane, or alone if others are before it."""
        record.by_choice = False
        if lane.head() is not record:
            lane.ask_alone(record)
        self.queue.unblock(lane)

    def _tick(self, event: ev.Tick) -> None:
        """Nothing but time has passed."""
