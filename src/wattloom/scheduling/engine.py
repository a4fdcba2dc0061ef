"""The engine: one task's story from submission to its end.

`handle` takes an event and returns instructions. It knows no clock, no I/O and no randomness: what it knows is a fold
over the events it was given, so the same events give the same instructions. An event that cannot be true is refused
before anything changes. What follows from an event is the work of the engine's parts, which it wires and which know
nothing of events: the queue and the placement of what stands in it, reservations, leases, the graph of tasks, the sleep
of idle nodes and the timers, all on one ledger.
"""

from collections.abc import Callable, Iterable
from typing import Final

from wattloom.bounds import (
    LATEST_S,
    MOST_CLUSTER_WATTS,
    MOST_COUNT,
    MOST_JOULES,
    MOST_SUM,
    MOST_WATTS,
    out_of_bounds,
)
from wattloom.cluster.node_class import Mode, is_use_of
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import FULL, MICRO, NodeState
from wattloom.cluster.warm_instances import InstanceKey, add
from wattloom.energy.signal import Signal, forecast_problem
from wattloom.errors import EventRefused
from wattloom.machines.machine import Machine
from wattloom.policies.protocol import Policy
from wattloom.prediction.protocol import Predictor
from wattloom.scheduling import events as ev
from wattloom.scheduling.evictions import Evictions
from wattloom.scheduling.idle_sleep import IdleSleep
from wattloom.scheduling.instructions import AnyInstruction, Conclude, Evict, MoveKind, Outcome, Sleep
from wattloom.scheduling.lease_terms import LeaseTerms
from wattloom.scheduling.leases import Leases
from wattloom.scheduling.ledger import REMEMBERED_ENDS, Ledger
from wattloom.scheduling.moves import LEAST_FREQUENCY, Moves
from wattloom.scheduling.placement import BACK_OFF_MOST_S, Placement
from wattloom.scheduling.policy_guard import require_sound
from wattloom.scheduling.queue import Lane, Queue
from wattloom.scheduling.queueing_hints import QueueingHints
from wattloom.scheduling.reconsideration import Reconsideration
from wattloom.scheduling.reservations import Reservations
from wattloom.scheduling.state import NOBODY, Order, Stage, TaskRecord
from wattloom.scheduling.task_graph import TaskGraph
from wattloom.scheduling.timers import Timer, Timers
from wattloom.scheduling.turn import Turn
from wattloom.workload.shape import Shape
from wattloom.workload.task import Task
from wattloom.workload.task_problem import task_problem

LONGEST_DIGEST: Final = 128

Assigned = tuple[TaskRecord, NodeState, float | None]
"""A task, the node that wakes up for it, and what the policy says that this costs."""


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
        self._readings: Final = policy.reading_interval_s is not None
        self._handlers: Final = {
            ev.MachineDefined: self._machine_defined,
            ev.FunctionDefined: self._function_defined,
            ev.NodeJoined: self._node_joined,
            ev.NodeChanged: self._node_changed,
            ev.NodeLost: self._node_lost,
            ev.NodeAwake: self._node_awake,
            ev.NodeAsleep: self._node_asleep,
            ev.CapChanged: self._cap_changed,
            ev.TaskSubmitted: self._task_submitted,
            ev.TaskOrphaned: self._task_orphaned,
            ev.TaskFound: self._task_found,
            ev.TaskLeaving: self._task_leaving,
            ev.TaskChanged: self._task_changed,
            ev.TaskRemoved: self._task_removed,
            ev.TaskStarted: self._task_started,
            ev.TaskProgressed: self._task_progressed,
            ev.TaskMigrated: self._task_migrated,
            ev.TaskResized: self._task_resized,
            ev.TaskFinished: self._task_finished,
            ev.TaskFailed: self._task_failed,
            ev.TaskReturned: self._task_returned,
            ev.CancelRequested: self._cancel_requested,
            ev.InstructionFailed: self._instruction_failed,
            ev.FrequencyChanged: self._frequency_changed,
            ev.InstanceReady: self._instance_ready,
            ev.InstanceGone: self._instance_gone,
            ev.SignalChanged: self._signal_changed,
            ev.PlanChanged: self._plan_changed,
            ev.ModelChanged: self._model_changed,
            ev.ReadingArrived: self._reading_arrived,
            ev.UsageArrived: self._usage_arrived,
            ev.FunctionLearned: self._function_learned,
            ev.FunctionsForgotten: self._functions_forgotten,
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
                self._unblock_power()
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

    def _unblock_power(self) -> None:
        """The cluster draws less, or what it draws is better known."""
        self._hints.power(self.reservations.first)

    # -- machines, functions, nodes ----------------------------------------------------------------------------------

    def _machine_defined(self, event: ev.MachineDefined) -> None:
        _refuse(event.machine.problem(), "machine")
        known = self.ledger.machines.get(event.machine.name)
        if known is not None and known.profile == event.machine:
            return
        if known is not None and any(node.machine == known.name for node in self.ledger.nodes.values()):
            raise EventRefused("machine.name", f"nodes of {known.name} are here: its profile cannot change")
        self.ledger.define_machine(Machine(event.machine))

    def _function_defined(self, event: ev.FunctionDefined) -> None:
        _refuse(event.function.problem(), "function")
        self.ledger.define_function(event.function)

    def _node_joined(self, event: ev.NodeJoined) -> None:
        node = event.node
        _refuse(node.problem(), "node")
        machine = self.ledger.machines.get(node.machine)
        if machine is None:
            raise EventRefused("node.machine", f"{node.machine} was not defined")
        if node.name in self.ledger.nodes:
            raise EventRefused("node.name", f"{node.name} is here already")
        if node.asleep and not machine.can_sleep:
            raise EventRefused("node.asleep", f"{node.machine} cannot sleep")
        state = self.ledger.index.add(node, machine)
        self.ledger.nodes[node.name] = node
        if node.own:
            self.ledger.mind_the_rules()
        self.placement.freed(state)

    def _node_changed(self, event: ev.NodeChanged) -> None:
        node, ledger = event.node, self.ledger
        _refuse(node.problem(), "node")
        state = self._node(node.name)
        machine = ledger.machines.get(node.machine)
        if machine is None:
            raise EventRefused("node.machine", f"{node.machine} was not defined")
        if state.mode in (Mode.WAKING, Mode.ASLEEP) and not machine.can_sleep:
            raise EventRefused("node.machine", f"{node.machine} cannot sleep, and {node.name} is not awake")
        if state.tasks and machine.profile.arch != state.cls.machine.profile.arch:
            raise EventRefused("node.machine", "its architecture cannot change while tasks are on the node")
        if node.own:
            ledger.mind_the_rules()
        assigned = self._unassign([state])
        ledger.change_node(state, node, machine)
        self._assign_again(assigned)
        self._unblock_power()
        self.placement.freed(state)

    def _unassign(self, nodes: list[NodeState]) -> list[Assigned]:
        """Tasks whose nodes are waking have not begun: take them off, in order, before what they were promised there
        changes."""
        waking = [node for node in nodes if node.mode == Mode.WAKING]
        records = sorted((self.ledger.tasks[task] for node in waking for task in node.tasks), key=_by_order)
        assigned = [(record, record.holding.node, record.holding.cost) for record in records]
        for record in records:
            self.placement.leave(record)
        return assigned

    def _assign_again(self, assigned: list[Assigned]) -> None:
        """Who still fits keeps his node; the others go back to the queue."""
        for record, node, cost in assigned:
            estimate = self.ledger.check(record, node)
            if isinstance(estimate, Reason):
                self.placement.enqueue(record)
            else:
                self.ledger.commit(record, node, estimate, cost)

    def _node_lost(self, event: ev.NodeLost) -> None:
        state = self._node(event.node)
        ledger = self.ledger
        there = sorted((ledger.tasks[task] for task in state.tasks), key=_by_order)
        records = [record for record in there if record.holding.node is state]
        self.reservations.lost(event.node)
        freed = [self.moves.stays(each) for each in there if each.holding.target is not None]
        for record in list(records):
            lease = record.holding.lease
            if lease is not None:
                records += self.leases.abandon(lease)
            self.placement.leave(record)
        ledger.index.remove(state)
        del ledger.nodes[event.node]
        ledger.readings.node_lost(event.node)
        self.moves.node_lost(event.node)
        for record in records:
            self._lost(record, f"node {event.node} was lost")
        for node in freed:
            if node is not state:
                self.placement.freed(node)
        self._unblock_power()

    def _node_awake(self, event: ev.NodeAwake) -> None:
        node = self._node(event.node)
        if node.mode.is_awake:
            raise EventRefused("node", f"{event.node} is awake already")
        self._woke(node)

    def _woke(self, node: NodeState) -> None:
        self.ledger.set_mode(node, Mode.AWAKE)
        for task in sorted((self.ledger.tasks[task] for task in node.tasks), key=_by_order):
            self.placement.place(task, task.holding)
        self.placement.freed(node)

    def _node_asleep(self, event: ev.NodeAsleep) -> None:
        node = self._node(event.node)
        if node.tasks:
            raise EventRefused("node", f"{event.node} has tasks: it cannot be asleep")
        if not node.cls.machine.can_sleep:
            raise EventRefused("node", f"{event.node} has no sleeping power: it cannot sleep")
        if node.mode == Mode.ASLEEP:
            raise EventRefused("node", f"{event.node} is asleep already")
        self.reservations.lost(event.node)
        self.moves.node_lost(event.node)
        self.ledger.set_mode(node, Mode.ASLEEP)
        self._unblock_power()

    def _cap_changed(self, event: ev.CapChanged) -> None:
        if event.watts is not None and not 0.0 < event.watts <= MOST_CLUSTER_WATTS:
            raise EventRefused("watts", f"must be positive, at most {MOST_CLUSTER_WATTS:g} W, not {event.watts}")
        assigned = self._unassign(list(self.ledger.index.nodes.values())) if event.watts is not None else []
        self.ledger.view.cap_microwatts = None if event.watts is None else max(1, round(event.watts * MICRO))
        self._assign_again(assigned)
        self._hints.everything()

    def _reading_arrived(self, event: ev.ReadingArrived) -> None:
        node = self._node(event.node)
        _require("watts", event.watts, MOST_WATTS)
        for task, watts in event.tasks.items():
            _require("tasks", watts, MOST_WATTS, task)
        self.ledger.read(event.node, event.watts, event.tasks)
        if self._readings and self.queue.blocked:
            self._hints.room_at(node)

    def _usage_arrived(self, event: ev.UsageArrived) -> None:
        node = self._node(event.node)
        _require("seconds", event.seconds, LATEST_S)
        for field in ("meter_j", "idle_j", "unattributed_j"):
            _require(field, getattr(event, field), MOST_JOULES)
        _require_prices(event)
        for function, used in event.functions.items():
            if function not in self.ledger.functions:
                raise EventRefused("functions", f"{function} was not defined")
            _refuse(used.problem(), f"functions.{function}")
        for function, used in event.functions.items():
            if self.ledger.used(function, node.cls.machine, used):
                self._hints.function(function)

    def _function_learned(self, event: ev.FunctionLearned) -> None:
        function = self.ledger.functions.get(event.function)
        machine = self.ledger.machines.get(event.machine)
        if function is None:
            raise EventRefused("function", f"{event.function} was not defined")
        if machine is None:
            raise EventRefused("machine", f"{event.machine} was not defined")
        if all(variant.name != event.variant for variant in function.variants):
            raise EventRefused("variant", f"{event.function} has no build {event.variant}")
        _refuse(event.used.problem(), "used")
        if self.ledger.recall(function, event.variant, machine, event.used):
            self._hints.function(event.function)

    def _functions_forgotten(self, event: ev.FunctionsForgotten) -> None:
        names = set(event.functions)
        unknown = names - self.ledger.functions.keys()
        if unknown:
            raise EventRefused("functions", f"{min(unknown)} was not defined")
        called = {shape.function.name for shape in self.ledger.shapes.values() if shape.live}
        if names & called:
            raise EventRefused("functions", f"tasks of {min(names & called)} are here")
        instances = self.ledger.view.instances
        warm = {key[1] for counts in (instances.ready, instances.coming, instances.going) for key in counts}
        if names & warm:
            raise EventRefused("functions", f"instances of {min(names & warm)} are here")
        self.ledger.forget_functions(names)

    def _frequency_changed(self, event: ev.FrequencyChanged) -> None:
        node = self._node(event.node)
        if not LEAST_FREQUENCY <= event.share <= 1.0:
            raise EventRefused("share", f"must be between {LEAST_FREQUENCY} and 1, not {event.share}")
        self.moves.frequencies.pop(event.node, None)
        self.ledger.set_frequency(node, round(event.share * FULL))
        if self.queue.blocked and node.mode == Mode.AWAKE:
            self._hints.room_at(node)
        self._unblock_power()

    def _instance_ready(self, event: ev.InstanceReady) -> None:
        key = self._instance(event)
        add(self.ledger.view.instances.ready, key, 1)
        add(self.ledger.view.instances.coming, key, -1)

    def _instance_gone(self, event: ev.InstanceGone) -> None:
        instances, key = self.ledger.view.instances, self._instance(event)
        if key not in instances.ready:
            raise EventRefused("function", f"{event.node} has no instance of {event.function} ({event.variant})")
        add(instances.ready, key, -1)
        add(instances.going, key, -1)

    def _instance(self, event: ev.InstanceReady | ev.InstanceGone) -> InstanceKey:
        node = self._node(event.node)
        function = self.ledger.functions.get(event.function)
        if function is None:
            raise EventRefused("function", f"{event.function} was not defined")
        if isinstance(event, ev.InstanceReady) and all(each.name != event.variant for each in function.variants):
            raise EventRefused("variant", f"{event.function} has no build {event.variant}")
        if not node.mode.is_awake:
            raise EventRefused("node", f"{event.node} is not awake")
        return node.name, event.function, event.variant

    def _signal_changed(self, event: ev.SignalChanged) -> None:
        if not event.name:
            raise EventRefused("name", "is empty")
        if not -MOST_SUM <= event.value <= MOST_SUM:
            raise EventRefused("value", f"must be a number, at most {MOST_SUM:g}, not {event.value}")
        wrong = forecast_problem(event.forecast)
        if wrong:
            raise EventRefused("forecast", wrong)
        self.ledger.view.signals[event.name] = Signal(event.value, self._turn.time, event.forecast)
        self._hints.everything()

    def _plan_changed(self, event: ev.PlanChanged) -> None:
        self.ledger.view.plan = _digest(event.digest)
        self._hints.everything()

    def _model_changed(self, event: ev.ModelChanged) -> None:
        self.ledger.view.model = _digest(event.digest)
        self._hints.everything()

    def _tick(self, event: ev.Tick) -> None:
        """Nothing but time has passed."""

    # -- one task's story --------------------------------------------------------------------------------------------

    def _task_submitted(self, event: ev.TaskSubmitted) -> None:
        record = self._accept(event.task, event.past)
        if record.task.after:
            self._hold_back(record)
        else:
            self.placement.newcomer(record)

    def _task_orphaned(self, event: ev.TaskOrphaned) -> None:
        """It had a place, so what it came after has finished; and it may have run to its end."""
        self._lost(self._accept(event.task, event.past), event.message)

    def _task_found(self, event: ev.TaskFound) -> None:
        """It is where it is: nobody is asked."""
        node = self._node(event.node)
        if not 0 <= event.attempt <= MOST_COUNT:
            raise EventRefused("attempt", f"must be a number of attempts, not {event.attempt}")
        self._check_build(event, node)
        if event.behind:
            self._found_behind(event, node)
            return
        record = self.ledger.tasks.get(event.task.id)
        if record is None:
            record = self._accept(event.task, event.past, found=True)
        elif record.stage in (Stage.BEHIND, Stage.RUNNING, Stage.EVICTING, Stage.CANCELLING):
            raise EventRefused("task", f"{record.name} is on {record.node} already")
        else:
            if event.past is not None:
                _refuse(event.past.problem(self._turn.time), "past")
            self._take_out(record)
        if not node.mode.is_awake:
            self._woke(node)
        record.attempt = event.attempt or record.attempt + 1
        record.reason = None
        allocation = self.ledger.found(record, node, event.variant, event.devices)
        allocation.started = event.started
        if event.past is not None:
            allocation.number = event.past.place
        record.enter(Stage.RUNNING if event.started else Stage.PLACED)
        if self._readings:
            self.ledger.will_draw(node, record, allocation.estimate)

    def _check_build(self, event: ev.TaskFound, node: NodeState) -> None:
        known = self.ledger.tasks.get(event.task.id)
        function = known.shape.function if known is not None else self.ledger.functions.get(event.task.function)
        if event.variant and function is not None and all(each.name != event.variant for each in function.variants):
            raise EventRefused("variant", f"{function.name} has no build {event.variant}")
        if event.devices and not is_use_of(node.cls, event.devices):
            raise EventRefused("devices", f"are not those of {event.node}, in thousandths: {event.devices}")

    def _found_behind(self, event: ev.TaskFound, node: NodeState) -> None:
        """It waits for a share that another has: from an earlier run, of which nothing is decided anew."""
        holder = self.ledger.tasks.get(event.behind)
        has = holder.allocation if holder is not None else None
        if holder is None or has is None or not has.taken or has.node is not node:
            raise EventRefused("behind", f"{event.behind} has no share of {event.node}")
        if has.target is not None or has.resizing is not None or has.memory >= 0:
            raise EventRefused("behind", f"{event.behind} moves, or has other room than its shape: nobody can follow")
        record = self._accept(event.task, event.past, found=True)
        record.attempt = event.attempt or record.attempt + 1
        allocation = self.leases.put_behind(record, has.lease or self.leases.resume(holder, has, self._turn.time))
        allocation.started = event.started
        if event.past is not None:
            allocation.number = event.past.place

    def _take_out(self, record: TaskRecord) -> None:
        """Out of the queue, off the node it was meant for, or whatever it waits for."""
        if record.stage in (Stage.ASSIGNED, Stage.PLACED):
            self.placement.release(record)
        elif record.stage == Stage.QUEUED:
            self.placement.dequeue(record)
        record.epoch += 1
        record.after = NOBODY
        if self.reservations.held or self.reservations.first is not None:
            self.reservations.release(record)

    def _task_leaving(self, event: ev.TaskLeaving) -> None:
        record = self.ledger.tasks.get(event.task)
        has = record.allocation if record is not None else None
        if record is None or has is None or not has.taken:
            raise EventRefused("task", f"{event.task} is not on a node")
        if has.leaving:
            raise EventRefused("task", f"{event.task} is leaving already")
        self.ledger.leaving(record, has)

    def _task_changed(self, event: ev.TaskChanged) -> None:
        task, ledger = event.task, self.ledger
        record = self._changeable(task)
        shape = self._shape_of(task)
        has = record.allocation
        if has is None:
            self._change_waiting(record, task, shape)
        elif record.stage == Stage.ASSIGNED:
            self.placement.leave(record)
            ledger.change_task(record, task, shape)
            self._assign_again([(record, has.node, has.cost)])
            self.placement.freed(has.node)
        else:
            if has.lease is not None:
                self.leases.close(has.lease)
            if self._readings:
                ledger.readings.gone(has.node.name, record.name)
            again = ledger.retake(record, task, shape)
            if self._readings:
                ledger.will_draw(again.node, record, again.estimate)
            self.placement.freed(again.node)
            if again.target is not None:
                self.placement.freed(again.target.node)
            self._unblock_power()

    def _changeable(self, task: Task) -> TaskRecord:
        """The record of a task that may come to be this one."""
        _refuse(task_problem(task), "task")
        record = self._known(task.id, "task.id")
        if task.function not in self.ledger.functions:
            raise EventRefused("task.function", f"{task.function} was not defined")
        if set(task.after) != set(record.task.after):
            raise EventRefused("task.after", f"what {task.id} comes after cannot change")
        has = record.allocation
        if has is not None and task.function != record.task.function:
            raise EventRefused("task.function", f"{task.id} is on {has.node.name}: its function cannot change there")
        if has is not None and (not has.taken or (has.lease is not None and has.lease.behind)):
            raise EventRefused("task.id", f"{task.id} shares its place on {has.node.name} with others")
        return record

    def _change_waiting(self, record: TaskRecord, task: Task, shape: Shape) -> None:
        """It waits with other needs, and has waited since it did."""
        if record.stage != Stage.QUEUED:
            self.ledger.change_task(record, task, shape)
            return
        since = record.waiting_since
        self._take_out(record)
        self.ledger.change_task(record, task, shape)
        self.placement.enqueue(record)
        record.waiting_since = since

    def _task_removed(self, event: ev.TaskRemoved) -> None:
        record = self._known(event.task, "task")
        if record.allocation is not None:
            self.placement.release(record)
        self._end(record, "cancelled", Reason.REMOVED, event.message)

    def _accept(self, task: Task, past: ev.Past | None, found: bool = False) -> TaskRecord:
        ledger = self.ledger
        _refuse(task_problem(task), "task")
        if past is not None:
            _refuse(past.problem(self._turn.time), "past")
        if task.function not in ledger.functions:
            raise EventRefused("task.function", f"{task.function} was not defined")
        name = task.id
        if name in ledger.tasks or name in ledger.ended:
            raise EventRefused("task.id", f"{name} was submitted before")
        if task.after and not found:
            for other in task.after:
                if other not in ledger.tasks and other not in ledger.ended:
                    raise EventRefused("task.after", f"{other} is not known")
        shape = self._shape_of(task)
        ledger.arrivals += 1
        record = TaskRecord(task, shape, self._turn.time, ledger.arrivals)
        if past is not None:
            record.attempt, record.failures, record.losses = past.attempts, past.failures, past.losses
            if past.submitted is not None:
                record.submitted = past.submitted
        record.shape.live += 1
        ledger.tasks[name] = record
        return record

    def _shape_of(self, task: Task) -> Shape:
        if self.ledger.too_many_shapes:
            for shape in self.ledger.forget_shapes():
                self.queue.forget(shape)
                self.leases.forget(shape)
                self.reservations.forget(shape.index)
        return self.ledger.shape_of(task)

    def _hold_back(self, record: TaskRecord) -> None:
        in_vain = self.graph.enter(record)
        if in_vain is not None:
            self._end(record, "rejected", Reason.DEPENDENCY_ENDED, f"{in_vain[0]} ended as {in_vain[1]}")
        elif record.after:
            record.enter(Stage.HELD_BACK)
            self.placement.tell_waiting(record, Reason.DEPENDENCIES, None, "")
        else:
            self.placement.enqueue(record)

    def _task_started(self, event: ev.TaskStarted) -> None:
        record = self._attempt(event.task, event.attempt)
        allocation = record.holding
        if allocation.started:
            raise EventRefused("task", f"{event.task} was started before")
        allocation.started = True
        record.refusals = 0
        if record.stage == Stage.PLACED:
            record.enter(Stage.RUNNING)

    def _task_progressed(self, event: ev.TaskProgressed) -> None:
        record = self._attempt(event.task, event.attempt)
        if not 0.0 <= event.share <= 1.0:
            raise EventRefused("share", f"must be between 0 and 1, not {event.share}")
        if not 0 <= event.checkpoint_bytes <= MOST_COUNT:
            raise EventRefused("checkpoint_bytes", f"must be a number of bytes, not {event.checkpoint_bytes}")
        record.holding.progress = event.share
        if event.checkpoint:
            record.checkpoint = (event.checkpoint, event.checkpoint_bytes)

    def _task_migrated(self, event: ev.TaskMigrated) -> None:
        record = self._attempt(event.task, event.attempt)
        target = record.holding.target
        if target is None:
            raise EventRefused("task", f"{event.task} was not asked to move")
        if target.node.name != event.node:
            raise EventRefused("node", f"{event.task} was to move to {target.node.name}, not to {event.node}")
        self.moves.migrated(record)
        self._unblock_power()

    def _task_resized(self, event: ev.TaskResized) -> None:
        self.moves.resized(self._resizing(event.task, event.attempt), done=True)

    def _resizing(self, task: str, attempt: int) -> TaskRecord:
        record = self._attempt(task, attempt)
        if record.holding.resizing is None:
            raise EventRefused("task", f"{task} was not asked to have other cores and bytes")
        return record

    def _task_finished(self, event: ev.TaskFinished) -> None:
        record = self._attempt(event.task, event.attempt)
        _require_times(event)
        if event.seconds is not None and self.ledger.learn(record, event.seconds):
            self._hints.function(record.task.function)
        self.placement.release(record)
        self._end(record, "finished", None, "")

    def _task_failed(self, event: ev.TaskFailed) -> None:
        record = self._attempt(event.task, event.attempt)
        if event.kind not in ("function", "infrastructure", "evicted"):
            raise EventRefused("kind", f"is not known: {event.kind}")
        _require_times(event)
        may_run_again = not record.holding.started or record.task.idempotent
        self.placement.release(record)
        if record.stage == Stage.CANCELLING:
            self._end(record, "cancelled", Reason.CANCELLED, event.message)
        elif record.stage == Stage.EVICTING and event.kind == "evicted" and may_run_again:
            self.placement.enqueue(record)
            self.placement.tell_waiting(record, Reason.EVICTED, None, event.message)
        elif event.kind == "function":
            record.failures += 1
            if record.failures > record.task.retries:
                reason = Reason.RETRIES_EXHAUSTED if record.task.retries else Reason.FUNCTION_FAILED
                self._end(record, "failed", reason, event.message)
            else:
                self.placement.enqueue(record)
        else:
            self._lost(record, event.message)

    def _task_returned(self, event: ev.TaskReturned) -> None:
        record = self._attempt(event.task, event.attempt)
        allocation = record.holding
        if allocation.started:
            raise EventRefused("task", f"{event.task} was reported as started")
        if allocation.lease is not None:
            allocation.lease.until = self._turn.time  # it keeps others waiting: nobody else is to stand behind it
        self.placement.release(record)
        if record.stage == Stage.CANCELLING:
            self._end(record, "cancelled", Reason.CANCELLED, "")
        else:
            self.placement.enqueue(record)

    def _lost(self, record: TaskRecord, message: str) -> None:
        """It is not running any more and nobody knows how far it came. It has left its node."""
        task = record.task
        if record.stage == Stage.CANCELLING:
            self._end(record, "cancelled", Reason.CANCELLED, message)
        elif record.stage == Stage.ASSIGNED:
            self.placement.enqueue(record)
        elif not task.idempotent:
            self._end(record, "unknown", Reason.OUTCOME_UNKNOWN, message)
        elif record.losses >= task.infrastructure_retries:
            self._end(record, "failed", Reason.RETRIES_EXHAUSTED, message)
        else:
            record.losses += 1
            self.placement.enqueue(record)
            self.placement.tell_waiting(record, Reason.NODE_LOST, None, message)

    def _cancel_requested(self, event: ev.CancelRequested) -> None:
        record = self._known(event.task, "task")
        if record.stage == Stage.CANCELLING:
            raise EventRefused("task", f"{event.task} is being cancelled already")
        if record.stage == Stage.EVICTING:
            record.enter(Stage.CANCELLING)  # the backend is stopping it already
            return
        if record.stage in (Stage.PLACED, Stage.BEHIND, Stage.RUNNING):
            record.enter(Stage.CANCELLING)
            self._turn.out.append(Evict(event.task, record.attempt, record.node, Reason.CANCELLED))
            return
        if record.stage == Stage.ASSIGNED:
            self.placement.release(record)
        self._end(record, "cancelled", Reason.CANCELLED, "")

    def _instruction_failed(self, event: ev.InstructionFailed) -> None:
        if event.instruction == "place":
            self._undo_place(event)
        elif event.instruction == "evict":
            self._undo_evict(event)
        elif event.instruction == "sleep":
            node = self._node(event.node)
            if node.mode != Mode.ASLEEP:
                raise EventRefused("node", f"{event.node} was not asked to sleep")
            self.ledger.set_mode(node, Mode.AWAKE)
            self.placement.freed(node)
            self.idle_sleep.watch(node, self._turn.time, BACK_OFF_MOST_S)
        elif event.instruction == "wake":
            self._undo_wake(event)
        elif event.instruction in ("migrate", "resize"):
            self._undo_move(event)
        elif event.instruction == "set-frequency":
            if self.moves.frequencies.pop(self._node(event.node).name, None) is None:
                raise EventRefused("node", f"{event.node} was not asked to run at another frequency")
        elif event.instruction in ("prepare", "release"):
            self._undo_instance(event)
        else:
            raise EventRefused("instruction", f"is not known: {event.instruction}")

    def _undo_place(self, event: ev.InstructionFailed) -> None:
        """It was not started: free what it had, and try again later."""
        record = self._attempt(event.task, event.attempt)
        if record.holding.started:
            raise EventRefused("task", f"{event.task} was reported as started")
        cancelled = record.stage == Stage.CANCELLING
        self.placement.release(record)
        if cancelled:
            self._end(record, "cancelled", Reason.CANCELLED, event.message)
        else:
            self.placement.back_off(record, Reason.START_REFUSED, event.message)

    def _undo_evict(self, event: ev.InstructionFailed) -> None:
        """It goes on: nobody is kept waiting for the room that it was to make."""
        record = self._attempt(event.task, event.attempt)
        if record.stage not in (Stage.CANCELLING, Stage.EVICTING):
            raise EventRefused("task", f"{event.task} is not being cancelled")
        allocation = record.holding
        kept_for = self.reservations.held.get(record.node) if record.stage == Stage.EVICTING else None
        if not allocation.taken:
            record.enter(Stage.BEHIND)
        else:
            record.enter(Stage.RUNNING if allocation.started else Stage.PLACED)
        if kept_for is not None:
            self.reservations.release(kept_for)

    def _undo_move(self, event: ev.InstructionFailed) -> None:
        """It is as it was: what was taken for more is given back."""
        if event.instruction == "migrate":
            record = self._attempt(event.task, event.attempt)
            if record.holding.target is None:
                raise EventRefused("task", f"{event.task} was not asked to move")
            self.placement.freed(self.moves.stays(record))
        else:
            self.moves.resized(self._resizing(event.task, event.attempt), done=False)

    def _undo_instance(self, event: ev.InstructionFailed) -> None:
        instances = self.ledger.view.instances
        asked = instances.coming if event.instruction == "prepare" else instances.going
        key = (self._node(event.node).name, event.function, event.variant)
        if key not in asked:
            raise EventRefused("function", f"{event.function} was not asked for on {event.node}")
        add(asked, key, -1)

    def _undo_wake(self, event: ev.InstructionFailed) -> None:
        node = self._node(event.node)
        if node.mode != Mode.WAKING:
            raise EventRefused("node", f"{event.node} was not asked to wake")
        records = sorted((self.ledger.tasks[task] for task in node.tasks), key=_by_order)
        self.ledger.set_mode(node, Mode.ASLEEP)
        for record in records:
            self.placement.leave(record)
            self.placement.back_off(record, Reason.START_REFUSED, event.message or f"node {event.node} did not wake")
        self.placement.freed(node)

    # -- the end -----------------------------------------------------------------------------------------------------

    def _end(self, record: TaskRecord, outcome: Outcome, reason: Reason | None, message: str) -> None:
        """The one end of a task, and of those that cannot run without it."""
        self._end_one(record, outcome, reason, message)
        if record.name not in self.graph.dependents:
            return
        ended: list[tuple[str, Outcome]] = [(record.name, outcome)]
        while ended:
            task, outcome = ended.pop()
            for dependent in self.graph.ended(task):
                if dependent.stage != Stage.HELD_BACK:
                    continue
                if outcome != "finished":
                    note = f"{task} ended as {outcome}"
                    self._end_one(dependent, "rejected", Reason.DEPENDENCY_ENDED, note)
                    ended.append((dependent.name, "rejected"))
                elif not dependent.after:
                    self.placement.enqueue(dependent)

    def _end_one(self, record: TaskRecord, outcome: Outcome, reason: Reason | None, message: str) -> None:
        if record.stage == Stage.QUEUED:
            self.placement.dequeue(record)
        record.enter(Stage.ENDED)
        if self.reservations.held or self.reservations.first is not None:
            self.reservations.release(record)
        self.ledger.end(record, outcome)
        if reason is not None:
            self._turn.out.append(Conclude(record.name, outcome, reason, message))

    # -- what an event may name --------------------------------------------------------------------------------------

    def _node(self, name: str) -> NodeState:
        node = self.ledger.index.nodes.get(name)
        if node is None:
            raise EventRefused("node", f"{name} is not here")
        return node

    def _known(self, task: str, field: str) -> TaskRecord:
        """The record of a task that is here."""
        record = self.ledger.tasks.get(task)
        if record is None:
            ended = task in self.ledger.ended
            raise EventRefused(field, f"{task} {'has ended' if ended else 'is not known'}")
        return record

    def _attempt(self, task: str, attempt: int) -> TaskRecord:
        """The record of a task that is on a node with this attempt."""
        record = self.ledger.tasks.get(task)
        if record is None:
            record = self._known(task, "task")
        if record.stage < Stage.PLACED:
            raise EventRefused("task", f"{task} is not on a node")
        if record.attempt != attempt:
            raise EventRefused("attempt", f"{task} is at attempt {record.attempt}, not {attempt}")
        return record


def _digest(said: str) -> str:
    """A name by which whoever has the bytes finds them; empty: there are none."""
    if len(said) > LONGEST_DIGEST or not all(each in "0123456789abcdef" for each in said):
        raise EventRefused(
            "digest", f"must be at most {LONGEST_DIGEST} hexadecimal digits, not {said[:LONGEST_DIGEST]!r}"
        )
    return said


def _refuse(problem: tuple[str, str] | None, prefix: str) -> None:
    if problem is not None:
        raise EventRefused(f"{prefix}.{problem[0]}", problem[1])


def _require(field: str, value: float, most: float, of: str = "") -> None:
    wrong = out_of_bounds(value, most)
    if wrong:
        raise EventRefused(field, f"of {of} {wrong}" if of else wrong)


def _require_times(event: ev.TaskFinished | ev.TaskFailed) -> None:
    if event.seconds is not None:
        _require("seconds", event.seconds, LATEST_S)
    if event.cpu_s is not None:
        _require("cpu_s", event.cpu_s, LATEST_S)


def _require_prices(event: ev.UsageArrived) -> None:
    """What the engine only keeps for those who read the log: they get numbers."""
    _require("running_j", abs(event.running_j), MOST_JOULES)
    for task, joules in event.tasks.items():
        for each in joules:
            _require("tasks", abs(each), MOST_JOULES, task)
    for each in event.cpu_second:
        _require("cpu_second", abs(each), MOST_JOULES)
    for function, price in event.cpu_second_of.items():
        for each in price:
            _require("cpu_second_of", abs(each), MOST_JOULES, function)


def _by_order(record: TaskRecord) -> Order:
    return record.order
