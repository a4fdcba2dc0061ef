"""One task's story: what follows from each event about it, from submission to its end.

Owns the handlers of these events. Each checks first and changes nothing if it refuses; places are `placement`'s, and
what becomes of a task that ends or was lost is `task_ends`'s.
"""

from typing import Final

from wattloom.bounds import MOST_COUNT
from wattloom.cluster.node_class import is_use_of
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import NodeState
from wattloom.errors import EventRefused
from wattloom.scheduling import events as ev
from wattloom.scheduling.event_checks import (
    attempt_named,
    node_named,
    refuse,
    require_times,
    resizing_named,
    task_named,
)
from wattloom.scheduling.instructions import Evict
from wattloom.scheduling.leases import Leases
from wattloom.scheduling.ledger import Ledger
from wattloom.scheduling.moves import Moves
from wattloom.scheduling.placement import Placement
from wattloom.scheduling.queue import Queue
from wattloom.scheduling.queueing_hints import QueueingHints
from wattloom.scheduling.reservations import Reservations
from wattloom.scheduling.state import NOBODY, Stage, TaskRecord
from wattloom.scheduling.task_ends import TaskEnds
from wattloom.scheduling.task_graph import TaskGraph
from wattloom.scheduling.turn import Turn
from wattloom.workload.shape import Shape
from wattloom.workload.task import Task
from wattloom.workload.task_problem import task_problem


class TaskEvents:
    """Handlers of events that are about one task."""

    def __init__(
        self,
        turn: Turn,
        ledger: Ledger,
        queue: Queue,
        hints: QueueingHints,
        reservations: Reservations,
        leases: Leases,
        graph: TaskGraph,
        placement: Placement,
        moves: Moves,
        ends: TaskEnds,
        readings: bool,
    ) -> None:
        self._turn: Final = turn
        self._ledger: Final = ledger
        self._queue: Final = queue
        self._hints: Final = hints
        self._reservations: Final = reservations
        self._leases: Final = leases
        self._graph: Final = graph
        self._placement: Final = placement
        self._moves: Final = moves
        self._ends: Final = ends
        self._readings: Final = readings

    def task_submitted(self, event: ev.TaskSubmitted) -> None:
        record = self._accept(event.task, event.past)
        if record.task.after:
            self._hold_back(record)
        else:
            self._placement.newcomer(record)

    def task_orphaned(self, event: ev.TaskOrphaned) -> None:
        """It had a place, so what it came after has finished; and it may have run to its end."""
        self._ends.lost(self._accept(event.task, event.past), event.message)

    def task_found(self, event: ev.TaskFound) -> None:
        """It is where it is: nobody is asked."""
        node = node_named(self._ledger, event.node)
        if not 0 <= event.attempt <= MOST_COUNT:
            raise EventRefused("attempt", f"must be a number of attempts, not {event.attempt}")
        self._check_build(event, node)
        if event.behind:
            self._found_behind(event, node)
            return
        record = self._ledger.tasks.get(event.task.id)
        if record is None:
            record = self._accept(event.task, event.past, found=True)
        elif record.stage in (Stage.BEHIND, Stage.RUNNING, Stage.EVICTING, Stage.CANCELLING):
            raise EventRefused("task", f"{record.name} is on {record.node} already")
        else:
            if event.past is not None:
                refuse(event.past.problem(self._turn.time), "past")
            self._take_out(record)
        if not node.mode.is_awake:
            self._placement.woke(node)
        record.attempt = event.attempt or record.attempt + 1
        record.reason = None
        allocation = self._ledger.found(record, node, event.variant, event.devices)
        allocation.started = event.started
        if event.past is not None:
            allocation.number = event.past.place
        record.enter(Stage.RUNNING if event.started else Stage.PLACED)
        if self._readings:
            self._ledger.will_draw(node, record, allocation.estimate)

    def _check_build(self, event: ev.TaskFound, node: NodeState) -> None:
        known = self._ledger.tasks.get(event.task.id)
        function = known.shape.function if known is not None else self._ledger.functions.get(event.task.function)
        if event.variant and function is not None and all(each.name != event.variant for each in function.variants):
            raise EventRefused("variant", f"{function.name} has no build {event.variant}")
        if event.devices and not is_use_of(node.cls, event.devices):
            raise EventRefused("devices", f"are not those of {event.node}, in thousandths: {event.devices}")

    def _found_behind(self, event: ev.TaskFound, node: NodeState) -> None:
        """It waits for a share that another has: from an earlier run, of which nothing is decided anew."""
        holder = self._ledger.tasks.get(event.behind)
        has = holder.allocation if holder is not None else None
        if holder is None or has is None or not has.taken or has.node is not node:
            raise EventRefused("behind", f"{event.behind} has no share of {event.node}")
        if has.target is not None or has.resizing is not None or has.memory >= 0:
            raise EventRefused("behind", f"{event.behind} moves, or has other room than its shape: nobody can follow")
        record = self._accept(event.task, event.past, found=True)
        record.attempt = event.attempt or record.attempt + 1
        allocation = self._leases.put_behind(record, has.lease or self._leases.resume(holder, has, self._turn.time))
        allocation.started = event.started
        if event.past is not None:
            allocation.number = event.past.place

    def _take_out(self, record: TaskRecord) -> None:
        """Out of the queue, off the node it was meant for, or whatever it waits for."""
        if record.stage in (Stage.ASSIGNED, Stage.PLACED):
            self._placement.release(record)
        elif record.stage == Stage.QUEUED:
            self._placement.dequeue(record)
        record.epoch += 1
        record.after = NOBODY
        if self._reservations.held or self._reservations.first is not None:
            self._reservations.release(record)

    def task_leaving(self, event: ev.TaskLeaving) -> None:
        record = self._ledger.tasks.get(event.task)
        has = record.allocation if record is not None else None
        if record is None or has is None or not has.taken:
            raise EventRefused("task", f"{event.task} is not on a node")
        if has.leaving:
            raise EventRefused("task", f"{event.task} is leaving already")
        self._ledger.leaving(record, has)

    def task_changed(self, event: ev.TaskChanged) -> None:
        task, ledger = event.task, self._ledger
        record = self._changeable(task)
        shape = self._shape_of(task)
        has = record.allocation
        if has is None:
            self._change_waiting(record, task, shape)
        elif record.stage == Stage.ASSIGNED:
            self._placement.leave(record)
            ledger.change_task(record, task, shape)
            self._placement.assign_again([(record, has.node, has.cost)])
            self._placement.freed(has.node)
        else:
            if has.lease is not None:
                self._leases.close(has.lease)
            if self._readings:
                ledger.readings.gone(has.node.name, record.name)
            again = ledger.retake(record, task, shape)
            if self._readings:
                ledger.will_draw(again.node, record, again.estimate)
            self._placement.freed(again.node)
            if again.target is not None:
                self._placement.freed(again.target.node)
            self._reservations.power_freed()

    def _changeable(self, task: Task) -> TaskRecord:
        """The record of a task that may come to be this one."""
        refuse(task_problem(task), "task")
        record = task_named(self._ledger, task.id, "task.id")
        if task.function not in self._ledger.functions:
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
            self._ledger.change_task(record, task, shape)
            return
        since = record.waiting_since
        self._take_out(record)
        self._ledger.change_task(record, task, shape)
        self._placement.enqueue(record)
        record.waiting_since = since

    def task_removed(self, event: ev.TaskRemoved) -> None:
        record = task_named(self._ledger, event.task, "task")
        if record.allocation is not None:
            self._placement.release(record)
        self._ends.end(record, "cancelled", Reason.REMOVED, event.message)

    def _accept(self, task: Task, past: ev.Past | None, found: bool = False) -> TaskRecord:
        ledger = self._ledger
        refuse(task_problem(task), "task")
        if past is not None:
            refuse(past.problem(self._turn.time), "past")
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
        if self._ledger.too_many_shapes:
            for shape in self._ledger.drop_shapes():
                self._queue.drop(shape)
                self._leases.drop(shape)
                self._reservations.drop(shape.index)
        return self._ledger.shape_of(task)

    def _hold_back(self, record: TaskRecord) -> None:
        in_vain = self._graph.enter(record)
        if in_vain is not None:
            self._ends.end(record, "rejected", Reason.DEPENDENCY_ENDED, f"{in_vain[0]} ended as {in_vain[1]}")
        elif record.after:
            record.enter(Stage.HELD_BACK)
            self._placement.tell_waiting(record, Reason.DEPENDENCIES, None, "")
        else:
            self._placement.enqueue(record)

    def task_started(self, event: ev.TaskStarted) -> None:
        record = attempt_named(self._ledger, event.task, event.attempt)
        allocation = record.holding
        if allocation.started:
            raise EventRefused("task", f"{event.task} was started before")
        allocation.started = True
        record.refusals = 0
        if record.stage == Stage.PLACED:
            record.enter(Stage.RUNNING)

    def task_progressed(self, event: ev.TaskProgressed) -> None:
        record = attempt_named(self._ledger, event.task, event.attempt)
        if not 0.0 <= event.share <= 1.0:
            raise EventRefused("share", f"must be between 0 and 1, not {event.share}")
        if not 0 <= event.checkpoint_bytes <= MOST_COUNT:
            raise EventRefused("checkpoint_bytes", f"must be a number of bytes, not {event.checkpoint_bytes}")
        record.holding.progress = event.share
        if event.checkpoint:
            record.checkpoint = (event.checkpoint, event.checkpoint_bytes)

    def task_migrated(self, event: ev.TaskMigrated) -> None:
        record = attempt_named(self._ledger, event.task, event.attempt)
        target = record.holding.target
        if target is None:
            raise EventRefused("task", f"{event.task} was not asked to move")
        if target.node.name != event.node:
            raise EventRefused("node", f"{event.task} was to move to {target.node.name}, not to {event.node}")
        self._moves.migrated(record)
        self._reservations.power_freed()

    def task_resized(self, event: ev.TaskResized) -> None:
        self._moves.resized(resizing_named(self._ledger, event.task, event.attempt), done=True)

    def task_finished(self, event: ev.TaskFinished) -> None:
        record = attempt_named(self._ledger, event.task, event.attempt)
        require_times(event)
        if event.seconds is not None and self._ledger.learn(record, event.seconds):
            self._hints.function(record.task.function)
        self._placement.release(record)
        self._ends.end(record, "finished", None, "")

    def task_failed(self, event: ev.TaskFailed) -> None:
        record = attempt_named(self._ledger, event.task, event.attempt)
        if event.kind not in ("function", "infrastructure", "evicted"):
            raise EventRefused("kind", f"is not known: {event.kind}")
        require_times(event)
        may_run_again = not record.holding.started or record.task.idempotent
        self._placement.release(record)
        if record.stage == Stage.CANCELLING:
            self._ends.end(record, "cancelled", Reason.CANCELLED, event.message)
        elif record.stage == Stage.EVICTING and event.kind == "evicted" and may_run_again:
            self._placement.enqueue(record)
            self._placement.tell_waiting(record, Reason.EVICTED, None, event.message)
        elif event.kind == "function":
            record.failures += 1
            if record.failures > record.task.retries:
                reason = Reason.RETRIES_EXHAUSTED if record.task.retries else Reason.FUNCTION_FAILED
                self._ends.end(record, "failed", reason, event.message)
            else:
                self._placement.enqueue(record)
        else:
            self._ends.lost(record, event.message)

    def task_returned(self, event: ev.TaskReturned) -> None:
        record = attempt_named(self._ledger, event.task, event.attempt)
        allocation = record.holding
        if allocation.started:
            raise EventRefused("task", f"{event.task} was reported as started")
        if allocation.lease is not None:
            allocation.lease.until = self._turn.time  # it keeps others waiting: nobody else is to stand behind it
        self._placement.release(record)
        if record.stage == Stage.CANCELLING:
            self._ends.end(record, "cancelled", Reason.CANCELLED, "")
        else:
            self._placement.enqueue(record)

    def cancel_requested(self, event: ev.CancelRequested) -> None:
        record = task_named(self._ledger, event.task, "task")
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
            self._placement.release(record)
        self._ends.end(record, "cancelled", Reason.CANCELLED, "")
