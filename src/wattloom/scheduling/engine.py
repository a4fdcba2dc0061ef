"""The engine: one task's story from submission to its end.

`handle` takes an event and returns instructions. It knows no clock, no I/O and no randomness: what it knows is a fold
over the events it was given, so the same events give the same instructions. An event that cannot be true is refused
before anything changes. What follows from an event is `placing`'s work.
"""

from typing import Final

from wattloom.bounds import LATEST_S, MOST_CLUSTER_WATTS, MOST_COUNT, MOST_JOULES, MOST_WATTS, out_of_bounds
from wattloom.cluster.machine import Machine
from wattloom.cluster.node_class import Mode
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import MICRO, NodeState
from wattloom.errors import EventRefused
from wattloom.policies.protocol import Policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Evict
from wattloom.scheduling.lease_terms import LeaseTerms
from wattloom.scheduling.placing import BACK_OFF_MOST_S, Placing
from wattloom.scheduling.state import NOBODY, Order, Stage, TaskRecord
from wattloom.workload.task import Task
from wattloom.workload.task_problem import task_problem

Assigned = tuple[TaskRecord, NodeState, float | None]
"""A task, the node that wakes up for it, and what the policy says that this costs."""


class Engine(Placing):
    """Decisions without I/O."""

    def __init__(self, policy: Policy, lease: LeaseTerms | None = None, placed: int = 0) -> None:
        super().__init__(policy, lease, placed)
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
            ev.TaskStarted: self._task_started,
            ev.TaskFinished: self._task_finished,
            ev.TaskFailed: self._task_failed,
            ev.TaskReturned: self._task_returned,
            ev.CancelRequested: self._cancel_requested,
            ev.InstructionFailed: self._instruction_failed,
            ev.ReadingArrived: self._reading_arrived,
            ev.UsageArrived: self._usage_arrived,
            ev.FunctionLearned: self._function_learned,
            ev.Tick: self._tick,
        }

    def handle(self, event: ev.AnyEvent) -> list[AnyInstruction]:
        """Take one event in. Raises EventRefused, and changes nothing, if it cannot be true."""
        time = event.time
        if not self.time <= time < LATEST_S:
            raise EventRefused("time", f"must be seconds, not before {self.time}, below {LATEST_S:g}, not {time}")
        handler = self._handlers.get(type(event))
        if handler is None:
            raise EventRefused("event", f"is of an unknown kind: {type(event).__name__}")
        out: list[AnyInstruction] = []
        self._out = out
        before = self.time
        self._at(time)
        try:
            handler(event)  # type: ignore[operator]
        except BaseException:
            self._at(before)
            raise
        self._settle()
        return out

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
        self._freed(state)

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
        self._freed(state)

    def _unassign(self, nodes: list[NodeState]) -> list[Assigned]:
        """Tasks whose nodes are waking have not begun: take them off, in order, before what they were promised there
        changes."""
        waking = [node for node in nodes if node.mode == Mode.WAKING]
        records = sorted((self.ledger.tasks[task] for node in waking for task in node.tasks), key=_by_order)
        assigned = [(record, self._node(record.node), record.cost) for record in records]
        for record in records:
            self._leave(record)
        return assigned

    def _assign_again(self, assigned: list[Assigned]) -> None:
        """Who still fits keeps his node; the others go back to the queue."""
        for record, node, cost in assigned:
            outlook = self.ledger.check(record, node)
            if isinstance(outlook, Reason):
                self._enqueue(record)
            else:
                self.ledger.commit(record, node, outlook, cost)

    def _node_lost(self, event: ev.NodeLost) -> None:
        state = self._node(event.node)
        ledger = self.ledger
        records = sorted((ledger.tasks[task] for task in state.tasks), key=_by_order)
        self._hold_lost(event.node)
        for record in list(records):
            if record.lease is not None:
                records += self.leases.abandon(record.lease)
            self._leave(record)
        ledger.index.remove(state)
        del ledger.nodes[event.node]
        ledger.readings.node_lost(event.node)
        for record in records:
            self._lost(record, f"node {event.node} was lost")
        self._unblock_power()

    def _node_awake(self, event: ev.NodeAwake) -> None:
        node = self._node(event.node)
        if node.mode.is_awake:
            raise EventRefused("node", f"{event.node} is awake already")
        self._woke(node)

    def _woke(self, node: NodeState) -> None:
        self.ledger.set_mode(node, Mode.AWAKE)
        for task in sorted((self.ledger.tasks[task] for task in node.tasks), key=_by_order):
            self._emit_place(task, node)
        self._freed(node)

    def _node_asleep(self, event: ev.NodeAsleep) -> None:
        node = self._node(event.node)
        if node.tasks:
            raise EventRefused("node", f"{event.node} has tasks: it cannot be asleep")
        if not node.cls.machine.can_sleep:
            raise EventRefused("node", f"{event.node} has no sleeping power: it cannot sleep")
        if node.mode == Mode.ASLEEP:
            raise EventRefused("node", f"{event.node} is asleep already")
        self._hold_lost(event.node)
        self.ledger.set_mode(node, Mode.ASLEEP)
        self._unblock_power()

    def _cap_changed(self, event: ev.CapChanged) -> None:
        if event.watts is not None and not 0.0 < event.watts <= MOST_CLUSTER_WATTS:
            raise EventRefused("watts", f"must be positive, at most {MOST_CLUSTER_WATTS:g} W, not {event.watts}")
        assigned = self._unassign(list(self.ledger.index.nodes.values())) if event.watts is not None else []
        self.ledger.view.cap_microwatts = None if event.watts is None else round(event.watts * MICRO)
        self._assign_again(assigned)
        self._unblock_all()

    def _reading_arrived(self, event: ev.ReadingArrived) -> None:
        node = self._node(event.node)
        _require("watts", event.watts, MOST_WATTS)
        for task, watts in event.tasks.items():
            _require("tasks", watts, MOST_WATTS, task)
        self.ledger.read(event.node, event.watts, event.tasks)
        if self._readings and self.queue.blocked:
            self._ask_who_fits(node)

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
                self._unblock_function(function)

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
            self._unblock_function(event.function)

    def _tick(self, event: ev.Tick) -> None:
        """Nothing but time has passed."""

    # -- one task's story --------------------------------------------------------------------------------------------

    def _task_submitted(self, event: ev.TaskSubmitted) -> None:
        record = self._accept(event.task, event.past)
        if record.task.after:
            self._hold_back(record)
        else:
            self._newcomer(record)

    def _task_orphaned(self, event: ev.TaskOrphaned) -> None:
        """It had a place, so what it came after has finished; and it may have run to its end."""
        self._lost(self._accept(event.task, event.past), event.message)

    def _task_found(self, event: ev.TaskFound) -> None:
        """It is where it is: nobody is asked."""
        node = self._node(event.node)
        if not 0 <= event.attempt <= MOST_COUNT:
            raise EventRefused("attempt", f"must be a number of attempts, not {event.attempt}")
        if event.behind:
            self._found_behind(event, node)
            return
        record = self.ledger.tasks.get(event.task.id)
        if record is None:
            record = self._accept(event.task, event.past, found=True)
        elif record.started or record.stage in (Stage.BEHIND, Stage.CANCELLING):
            raise EventRefused("task", f"{record.name} is on {record.node} already")
        else:
            self._take_out(record)
        if not node.mode.is_awake:
            self._woke(node)
        self.ledger.found(record, node)
        record.attempt = event.attempt or record.attempt + 1
        record.started = event.started
        record.reason = None
        record.stage = Stage.RUNNING if event.started else Stage.PLACED
        if self._readings and record.outlook is not None:
            self.ledger.will_draw(node, record, record.outlook)

    def _found_behind(self, event: ev.TaskFound, node: NodeState) -> None:
        """It waits for a share that another has: from an earlier run, of which nothing is decided anew."""
        holder = self.ledger.tasks.get(event.behind)
        if holder is None or holder.home is not node:
            raise EventRefused("behind", f"{event.behind} has no share of {event.node}")
        record = self._accept(event.task, event.past, found=True)
        self.leases.put_behind(record, holder.lease or self.leases.resume(holder, self.time))
        record.attempt = event.attempt or record.attempt + 1
        record.started = event.started

    def _take_out(self, record: TaskRecord) -> None:
        """Out of the queue, off the node it was meant for, or whatever it waits for."""
        if record.stage in (Stage.ASSIGNED, Stage.PLACED):
            self._release(record)
        elif record.stage == Stage.QUEUED:
            self.ledger.view.queued -= 1
            record.stage = Stage.HELD_BACK
            self.queue.unblock(self.queue.lanes[record.shape.index])
        record.stage = Stage.HELD_BACK
        record.epoch += 1
        record.after = NOBODY
        if self._held or self._first is not None:
            self._unhold(record)

    def _task_leaving(self, event: ev.TaskLeaving) -> None:
        record = self.ledger.tasks.get(event.task)
        if record is None or record.home is None:
            raise EventRefused("task", f"{event.task} is not on a node")
        if record.leaving:
            raise EventRefused("task", f"{event.task} is leaving already")
        self.ledger.leaving(record)

    def _accept(self, task: Task, past: ev.Past | None, found: bool = False) -> TaskRecord:
        ledger = self.ledger
        _refuse(task_problem(task), "task")
        if past is not None:
            _refuse(past.problem(self.time), "past")
        if task.function not in ledger.functions:
            raise EventRefused("task.function", f"{task.function} was not defined")
        name = task.id
        if name in ledger.tasks or name in ledger.ended:
            raise EventRefused("task.id", f"{name} was submitted before")
        if task.after and not found:
            for other in task.after:
                if other not in ledger.tasks and other not in ledger.ended:
                    raise EventRefused("task.after", f"{other} is not known")
        if ledger.too_many_shapes:
            for shape in ledger.forget_shapes():
                self.queue.forget(shape)
                self.leases.forget(shape)
                self._unwatched.pop(shape.index, None)
        shape = ledger.shape_of(task)
        ledger.arrivals += 1
        record = TaskRecord(task, shape, self.time, ledger.arrivals)
        if past is not None:
            record.attempt, record.failures, record.losses = past.attempts, past.failures, past.losses
            if past.submitted is not None:
                record.submitted = past.submitted
        record.shape.live += 1
        ledger.tasks[name] = record
        return record

    def _hold_back(self, record: TaskRecord) -> None:
        record.after = set()
        for other in dict.fromkeys(record.task.after):
            outcome = self.ledger.ended.get(other)
            if outcome is None:
                record.after.add(other)
                self._dependents.setdefault(other, []).append(record)
            elif outcome != "finished":
                self._end(record, "rejected", Reason.DEPENDENCY_ENDED, f"{other} ended as {outcome}")
                return
        if record.after:
            record.stage = Stage.HELD_BACK
            self._tell_waiting(record, Reason.DEPENDENCIES, None, "")
        else:
            self._enqueue(record)

    def _task_started(self, event: ev.TaskStarted) -> None:
        record = self._attempt(event.task, event.attempt)
        if record.started:
            raise EventRefused("task", f"{event.task} was started before")
        record.started = True
        record.refusals = 0
        if record.stage == Stage.PLACED:
            record.stage = Stage.RUNNING

    def _task_finished(self, event: ev.TaskFinished) -> None:
        record = self._attempt(event.task, event.attempt)
        _require_times(event)
        if event.seconds is not None and self.ledger.learn(record, event.seconds):
            self._unblock_function(record.task.function)
        self._release(record)
        self._end(record, "finished", None, "")

    def _task_failed(self, event: ev.TaskFailed) -> None:
        record = self._attempt(event.task, event.attempt)
        if event.kind not in ("function", "infrastructure", "evicted"):
            raise EventRefused("kind", f"is not known: {event.kind}")
        _require_times(event)
        self._release(record)
        if record.stage == Stage.CANCELLING:
            self._end(record, "cancelled", Reason.CANCELLED, event.message)
        elif event.kind == "function":
            record.failures += 1
            if record.failures > record.task.retries:
                reason = Reason.RETRIES_EXHAUSTED if record.task.retries else Reason.FUNCTION_FAILED
                self._end(record, "failed", reason, event.message)
            else:
                self._enqueue(record)
        else:
            self._lost(record, event.message)

    def _task_returned(self, event: ev.TaskReturned) -> None:
        record = self._attempt(event.task, event.attempt)
        if record.started:
            raise EventRefused("task", f"{event.task} was reported as started")
        if record.lease is not None:
            record.lease.until = self.time  # it keeps others waiting: nobody else is to stand behind it
        self._release(record)
        if record.stage == Stage.CANCELLING:
            self._end(record, "cancelled", Reason.CANCELLED, "")
        else:
            self._enqueue(record)

    def _lost(self, record: TaskRecord, message: str) -> None:
        """It is not running any more and nobody knows how far it came. It has left its node."""
        task = record.task
        if record.stage == Stage.CANCELLING:
            self._end(record, "cancelled", Reason.CANCELLED, message)
        elif record.stage == Stage.ASSIGNED:
            self._enqueue(record)
        elif not task.idempotent:
            self._end(record, "unknown", Reason.OUTCOME_UNKNOWN, message)
        elif record.losses >= task.infrastructure_retries:
            self._end(record, "failed", Reason.RETRIES_EXHAUSTED, message)
        else:
            record.losses += 1
            self._enqueue(record)
            self._tell_waiting(record, Reason.NODE_LOST, None, message)

    def _cancel_requested(self, event: ev.CancelRequested) -> None:
        record = self.ledger.tasks.get(event.task)
        if record is None:
            known = event.task in self.ledger.ended
            raise EventRefused("task", f"{event.task} {'has ended' if known else 'is not known'}")
        if record.stage == Stage.CANCELLING:
            raise EventRefused("task", f"{event.task} is being cancelled already")
        if record.stage in (Stage.PLACED, Stage.BEHIND, Stage.RUNNING):
            record.stage = Stage.CANCELLING
            self._out.append(Evict(event.task, record.attempt, record.node, Reason.CANCELLED))
            return
        if record.stage == Stage.ASSIGNED:
            self._release(record)
        self._end(record, "cancelled", Reason.CANCELLED, "")

    def _instruction_failed(self, event: ev.InstructionFailed) -> None:
        if event.instruction == "place":
            self._undo_place(event)
        elif event.instruction == "evict":
            record = self._attempt(event.task, event.attempt)
            if record.stage != Stage.CANCELLING:
                raise EventRefused("task", f"{event.task} is not being cancelled")
            if record.lease is not None and record.lease.holder is not record:
                record.stage = Stage.BEHIND
            else:
                record.stage = Stage.RUNNING if record.started else Stage.PLACED
        elif event.instruction == "sleep":
            node = self._node(event.node)
            if node.mode != Mode.ASLEEP:
                raise EventRefused("node", f"{event.node} was not asked to sleep")
            self.ledger.set_mode(node, Mode.AWAKE)
            self._freed(node)
            self.rest.watch(node, self.time, BACK_OFF_MOST_S)
        elif event.instruction == "wake":
            self._undo_wake(event)
        else:
            raise EventRefused("instruction", f"is not known: {event.instruction}")

    def _undo_place(self, event: ev.InstructionFailed) -> None:
        """It was not started: free what it had, and try again later."""
        record = self._attempt(event.task, event.attempt)
        if record.started:
            raise EventRefused("task", f"{event.task} was reported as started")
        cancelled = record.stage == Stage.CANCELLING
        self._release(record)
        if cancelled:
            self._end(record, "cancelled", Reason.CANCELLED, event.message)
        else:
            self._back_off(record, Reason.START_REFUSED, event.message)

    def _undo_wake(self, event: ev.InstructionFailed) -> None:
        node = self._node(event.node)
        if node.mode != Mode.WAKING:
            raise EventRefused("node", f"{event.node} was not asked to wake")
        records = sorted((self.ledger.tasks[task] for task in node.tasks), key=_by_order)
        self.ledger.set_mode(node, Mode.ASLEEP)
        for record in records:
            self._leave(record)
            self._back_off(record, Reason.START_REFUSED, event.message or f"node {event.node} did not wake")
        self._freed(node)

    # -- what an event may name --------------------------------------------------------------------------------------

    def _node(self, name: str) -> NodeState:
        node = self.ledger.index.nodes.get(name)
        if node is None:
            raise EventRefused("node", f"{name} is not here")
        return node

    def _attempt(self, task: str, attempt: int) -> TaskRecord:
        """The record of a task that is on a node with this attempt."""
        record = self.ledger.tasks.get(task)
        if record is None:
            known = task in self.ledger.ended
            raise EventRefused("task", f"{task} {'has ended' if known else 'is not known'}")
        if record.stage < Stage.PLACED:
            raise EventRefused("task", f"{task} is not on a node")
        if record.attempt != attempt:
            raise EventRefused("attempt", f"{task} is at attempt {record.attempt}, not {attempt}")
        return record


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
