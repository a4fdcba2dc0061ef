"""Placement: the queue's turn, from asking the policy to committing, and back.

Owns the one place where a proposal is checked and committed, its undo, and who follows on a lease (what that is stands
in `leases`). The events that set it in motion are the engine's.
"""

from collections.abc import Callable
from typing import Final

from wattloom.bounds import LATEST_S
from wattloom.cluster.node_class import Mode, use_of
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import NodeState
from wattloom.policies.answers import Proposal, Refusal
from wattloom.policies.protocol import Policy
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.scheduling.allocation import Allocation, Lease
from wattloom.scheduling.evictions import Evictions
from wattloom.scheduling.idle_sleep import IdleSleep
from wattloom.scheduling.instructions import Place, Wait, Wake
from wattloom.scheduling.leases import Leases
from wattloom.scheduling.ledger import Ledger
from wattloom.scheduling.policy_guard import LEAST_INTERVAL_S, answer_of, cost_of, plan_of
from wattloom.scheduling.queue import Lane, Queue
from wattloom.scheduling.queueing_hints import QueueingHints
from wattloom.scheduling.reservations import ROOM, Reservations
from wattloom.scheduling.state import Stage, TaskRecord, by_order
from wattloom.scheduling.timers import Timers
from wattloom.scheduling.turn import Turn

BACK_OFF_S: Final = 1.0
BACK_OFF_MOST_S: Final = 60.0

Assigned = tuple[TaskRecord, NodeState, float | None]
"""A task, the node that wakes up for it, and what the policy says that this costs."""


class Placement:
    """Gives waiting tasks their places, and takes the places back."""

    def __init__(
        self,
        policy: Policy,
        turn: Turn,
        ledger: Ledger,
        queue: Queue,
        timers: Timers,
        hints: QueueingHints,
        reservations: Reservations,
        leases: Leases,
        idle_sleep: IdleSleep,
        evictions: Evictions,
        placed: int,
    ) -> None:
        self._policy: Final = policy
        self._turn: Final = turn
        self._ledger: Final = ledger
        self._rules: Final = ledger.rules
        self._queue: Final = queue
        self._timers: Final = timers
        self._hints: Final = hints
        self._reservations: Final = reservations
        self._leases: Final = leases
        self._leasing: Final = leases.terms is not None
        self._idle_sleep: Final = idle_sleep
        self._evictions: Final = evictions
        self._readings: Final = policy.reading_interval_s is not None
        self.placed: int = placed
        """Placements so far: each has a number."""
        self.proposals: int = 0
        """How often the policy was asked: what deciding costs."""
        self._together: Final = policy.most_at_once
        self.planned: Proposal | None = None
        """The proposal at hand, if it was made for several tasks together."""
        self.watcher: Callable[[TaskRecord], None] | None = None
        """Called with each task just before the policy is asked: for explanations and tests."""

    # -- the queue's turn ----------------------------------------------------------------------------------------------

    def enqueue(self, record: TaskRecord) -> None:
        record.enter(Stage.QUEUED)
        record.epoch += 1
        record.waiting_since = self._turn.time
        record.reason = None
        record.by_choice = False
        record.ask_at = 0.0
        self._ledger.view.queued += 1
        self._queue.push(record)
        if record.shape.index in self._queue.blocked:
            self._ask_beside_the_first(record)

    def newcomer(self, record: TaskRecord) -> None:
        """Between events every queued task is in a blocked lane: whose lane is not may go at once, past the heaps."""
        lane = self._queue.lanes.get(record.shape.index)
        alone = self._together <= 1 and self._reservations.first is None
        if lane is None or lane.blocked_by is not None or record.shape.waits or not alone:
            if not self._leasing or lane is None or not self._follows(record, lane):
                self.enqueue(record)
            return
        record.enter(Stage.QUEUED)
        record.epoch += 1
        self._ledger.view.queued += 1
        refusal = self._try(record)
        if record.stage == Stage.QUEUED:
            assert refusal is not None
            lane.push(record)
            self._block(lane, refusal)
            if self._leasing:
                self._fill_up(lane)

    def _ask_beside_the_first(self, record: TaskRecord) -> None:
        """A blocked lane answers for a newcomer, but if he is its first, or its first chose to wait and he may not."""
        lane = self._queue.lanes[record.shape.index]
        head = lane.head()
        if head is record or (head is not None and head.by_choice and record.shape.waits):
            self._queue.unblock(lane)

    def back_off(self, record: TaskRecord, reason: Reason, message: str) -> None:
        record.enter(Stage.BACKING_OFF)
        record.refusals += 1
        until = self._turn.time + _back_off_s(record.refusals)
        record.epoch += 1
        self._reservations.release(record)
        self._timers.set(until, "back-off", record.name, record.epoch)
        self.tell_waiting(record, reason, until, message)

    def tell_waiting(self, record: TaskRecord, reason: Reason, until: float | None, message: str) -> None:
        if record.reason != reason or message:
            record.reason = reason
            self._turn.out.append(Wait(record.name, reason, until, message))

    def place_queued(self) -> None:
        if self._together > 1:
            self._place_together()
        while True:
            found = self._queue.next()
            if found is None:
                return
            lane, record = found
            first = self._reservations.first
            if first is not None and record.order > first.order:
                self.tell_waiting(record, Reason.STARVED_AHEAD, None, "")
                self._block(lane, Reason.STARVED_AHEAD)
                continue
            refusal = self._try(record)
            if refusal is None:
                if self._rules.active and self._rules.has_moved:
                    self._hints.rules_moved()
                continue
            self._block(lane, refusal)
            if self._leasing:
                self._fill_up(lane)
            if record.by_choice and lane.unasked:
                self._ask_alone(lane, record)
            if first is record and not self._reservations.still_helps(record, refusal):
                self._reservations.release(record)

    def _place_together(self) -> None:
        """A policy that wants to see several tasks at once sees them first. What it leaves, or what does not hold any
        more when its turn comes, is asked alone."""
        first = self._reservations.first
        records = [each for each in self._queue.standing(self._together) if first is None or each.order <= first.order]
        if len(records) < 2:
            return
        self.proposals += len(records)
        for record, proposal in zip(records, plan_of(self._policy, records, self._ledger.view), strict=True):
            if proposal is not None:
                self._commit_planned(record, proposal)

    def _commit_planned(self, record: TaskRecord, proposal: Proposal) -> None:
        node = self._ledger.index.nodes.get(proposal.node)
        estimate = self._ledger.check(record, node, proposal.variant) if node is not None else Reason.BAD_PROPOSAL
        if node is None or isinstance(estimate, Reason) or proposal.evicts:  # who is to make room is looked at alone
            return
        if self.watcher is not None:
            self.planned = proposal
            self.watcher(record)
            self.planned = None
        record.by_choice = False
        self._commit(record, node, estimate, cost_of(proposal))
        if self._rules.active and self._rules.has_moved:
            self._hints.rules_moved()

    def _ask_alone(self, lane: Lane, head: TaskRecord) -> None:
        """The first task chose to wait: each behind it chooses for itself."""
        for record in lane.take_unasked():
            if record is head:
                continue
            first = self._reservations.first
            held_up = first is not None and record.order > first.order
            if held_up or (self._try(record) is not None and not record.by_choice):
                lane.ask_alone(record)

    def _try(self, record: TaskRecord) -> Reason | None:
        """Ask the policy, check its proposal against what is true now, commit it; else say why not."""
        ledger = self._ledger
        self.proposals += 1
        if self.watcher is not None:
            self.watcher(record)
        record.by_choice = False
        answer = answer_of(self._policy, record, ledger.view)
        if isinstance(answer, str):
            ledger.view.queued -= 1
            self.back_off(record, Reason.POLICY_FAILED, answer)
            return None
        if isinstance(answer, Refusal):
            return self._refused(record, answer.reason, answer.until)
        if answer.evicts:
            return self._make_room(record, answer)
        node = ledger.index.nodes.get(answer.node)
        estimate: PlacementEstimate | Reason = Reason.BAD_PROPOSAL
        if node is not None:
            estimate = ledger.check(record, node, answer.variant)
        if node is None or isinstance(estimate, Reason):
            assert isinstance(estimate, Reason)
            self.tell_waiting(record, estimate, None, f"the policy proposed {answer.node}")
            record.refusals += 1
            self._ask_again(record, self._turn.time + _back_off_s(record.refusals))
            return estimate
        self._commit(record, node, estimate, cost_of(answer))
        return None

    def _make_room(self, record: TaskRecord, proposal: Proposal) -> Reason:
        """Others are to leave for it: all that was named is checked, then the node is kept free and they are asked to.
        It waits until they have left, and the policy is asked again."""
        problem = self._room_problem(record, proposal)
        if problem:
            self.tell_waiting(record, Reason.BAD_PROPOSAL, None, f"the policy proposed {proposal.node}: {problem}")
            record.refusals += 1
            self._ask_again(record, self._turn.time + _back_off_s(record.refusals))
            return Reason.BAD_PROPOSAL
        self._reservations.keep(self._ledger.index.nodes[proposal.node], record)
        for name in dict.fromkeys(proposal.evicts):
            self._evictions.evict(self._ledger.tasks[name])
        self.tell_waiting(record, Reason.NO_ROOM, None, f"others make room for it on {proposal.node}")
        return Reason.NO_ROOM

    def _room_problem(self, record: TaskRecord, proposal: Proposal) -> str:
        ledger = self._ledger
        node = ledger.index.nodes.get(proposal.node)
        if node is None or node.mode != Mode.AWAKE or record in self._reservations.held.values():
            return "it is not awake, is kept free, or another is kept free for the task"
        others: list[TaskRecord] = []
        for name in dict.fromkeys(proposal.evicts):
            other = ledger.tasks.get(name)
            if other is None or other.allocation is None or other.allocation.node is not node:
                return f"{name} is not there"
            if other.order < record.order:
                return f"{name} goes before it"
            problem = self._evictions.problem(other)
            if problem:
                return problem
            others.append(other)
        return "" if ledger.fits_without(record, node, others) else "there would be no room without them"

    def _refused(self, record: TaskRecord, reason: Reason, until: float | None) -> Reason:
        """The policy has no place for it now, or wants to wait."""
        if until is None and reason in (Reason.WAITING_IS_CHEAPER, Reason.WAITING_IS_SOONER):
            until = self._turn.time + BACK_OFF_MOST_S
        if until is not None:
            if not until > self._turn.time:
                until = self._turn.time + BACK_OFF_S
            until = min(max(until, self._turn.time + LEAST_INTERVAL_S), LATEST_S)
            record.by_choice = True
            self._ask_again(record, until)
        self.tell_waiting(record, reason, until, "")
        return reason

    def _ask_again(self, record: TaskRecord, time: float) -> None:
        """Then at the latest. One timer is enough: if it comes early, the answer says when to ask next."""
        if record.ask_at <= self._turn.time or time < record.ask_at:
            record.ask_at = time
            self._timers.set(time, "ask-again", record.name, record.epoch)

    def _commit(self, record: TaskRecord, node: NodeState, estimate: PlacementEstimate, cost: float | None) -> None:
        ledger, reservations = self._ledger, self._reservations
        if reservations.held or reservations.first is not None:
            reservations.release(record)
        view = ledger.view
        view.queued -= 1
        view.last_node = node.name
        record.attempt += 1
        record.reason = None
        record.ask_at = 0.0
        allocation = ledger.commit(record, node, estimate, cost)
        if cost is not None and record.shape.waits:
            ledger.note_cost(record.shape, cost)
        if self._queue.blocked or reservations.unwatched:
            reservations.placed(record)
        if node.mode == Mode.AWAKE:
            self.place(record, allocation)
            if self._leasing:
                self._leases.open(record, allocation, self._turn.time)
        else:
            record.enter(Stage.ASSIGNED)
            if node.mode == Mode.ASLEEP:
                ledger.set_mode(node, Mode.WAKING)
                self._turn.out.append(Wake(node.name))

    def place(self, record: TaskRecord, allocation: Allocation) -> None:
        """Its node is awake: the backend is told to run it there."""
        record.enter(Stage.PLACED)
        node, estimate = allocation.node, allocation.estimate
        if self._readings:
            self._ledger.will_draw(node, record, estimate)
        self.placed += 1
        allocation.number = self.placed
        self._turn.out.append(
            Place(
                record.name,
                allocation.attempt,
                node.name,
                estimate.variant.name,
                allocation.cost,
                self._ledger.terms.guarantee,
                use_of(node.cls, allocation.devices) if allocation.devices else (),
                estimate.forecast,
                "",
                self.placed,
            )
        )

    # -- nodes that wake -----------------------------------------------------------------------------------------------

    def woke(self, node: NodeState) -> None:
        self._ledger.set_mode(node, Mode.AWAKE)
        for task in sorted((self._ledger.tasks[task] for task in node.tasks), key=by_order):
            self.place(task, task.holding)
        self.freed(node)

    def unassign(self, nodes: list[NodeState]) -> list[Assigned]:
        """Tasks whose nodes are waking have not begun: take them off, in order, before what they were promised there
        changes."""
        waking = [node for node in nodes if node.mode == Mode.WAKING]
        records = sorted((self._ledger.tasks[task] for node in waking for task in node.tasks), key=by_order)
        assigned = [(record, record.holding.node, record.holding.cost) for record in records]
        for record in records:
            self.leave(record)
        return assigned

    def assign_again(self, assigned: list[Assigned]) -> None:
        """Who still fits keeps his node; the others go back to the queue."""
        for record, node, cost in assigned:
            estimate = self._ledger.check(record, node)
            if isinstance(estimate, Reason):
                self.enqueue(record)
            else:
                self._ledger.commit(record, node, estimate, cost)

    # -- lanes that wait -----------------------------------------------------------------------------------------------

    def _block(self, lane: Lane, reason: Reason) -> None:
        self._queue.block(lane, reason)
        if self._rules.active:
            self._rules.refused(lane.shape)
        self._reservations.blocked(lane)

    # -- following on a lease ------------------------------------------------------------------------------------------

    def _follows(self, record: TaskRecord, lane: Lane) -> bool:
        """Whether a newcomer, for whom there is no room, may stand behind a task of his shape at once."""
        if lane.blocked_by not in ROOM or lane.head() is not None or self._nobody_may_follow(record):
            return False
        lease = self._leases.roomiest(record.shape, self._turn.time)
        if lease is None:
            return False
        record.epoch += 1
        self._place_behind(record, lease)
        return True

    def _fill_up(self, lane: Lane) -> None:
        """There is no room for the lane's tasks: let them stand behind those of their shape."""
        record = lane.head()
        if record is None or lane.blocked_by not in ROOM or self._nobody_may_follow(record):
            return
        while record is not None:
            lease = self._leases.roomiest(lane.shape, self._turn.time)
            if lease is None:
                return
            self._ledger.view.queued -= 1
            self._place_behind(record, lease)
            record = lane.head()

    def _nobody_may_follow(self, record: TaskRecord) -> bool:
        """Somebody waits who goes before: he is not to be held up by a lease."""
        if self._reservations.held or self._reservations.first is not None:
            return True
        if len(self._queue.blocked) <= 1:
            return False
        heads = (lane.head() for lane in self._queue.blocked.values())
        return any(head is not None and head.order[0] < record.order[0] for head in heads)

    def _place_behind(self, record: TaskRecord, lease: Lease) -> None:
        record.attempt += 1
        record.reason = None
        record.ask_at = 0.0
        record.by_choice = False
        self.placed += 1
        allocation = self._leases.put_behind(record, lease)
        allocation.number = self.placed
        self._turn.out.append(
            Place(
                record.name,
                allocation.attempt,
                lease.node.name,
                lease.estimate.variant.name,
                None,
                self._ledger.terms.guarantee,
                use_of(lease.node.cls, lease.holder.holding.devices),
                None,
                lease.holder.name,
                self.placed,
            )
        )

    def _passed_on(self, record: TaskRecord, lease: Lease) -> bool:
        """Whether nothing is given back: it only stood behind, or the next behind it has its share now."""
        leases = self._leases
        if lease.holder is not record:
            leases.step_out(record, lease)
            return True
        successor = leases.hand_on(record, lease)
        if successor is None:
            return False
        if self._readings:
            self._ledger.readings.handed_on(record.node, record.name, successor.name)
        self._ledger.hand_over(record, successor)
        if leases.takes_more(lease, self._turn.time):
            lane = self._queue.lanes.get(lease.shape.index)
            if lane is not None:
                self._fill_up(lane)
        return True

    # -- and back ------------------------------------------------------------------------------------------------------

    def freed(self, node: NodeState) -> None:
        """Something was given back here: whoever fits now is asked again."""
        if not node.tasks and node.mode == Mode.AWAKE:
            self._idle_sleep.watch(node, self._turn.time)
        if node.mode == Mode.HELD:
            self._freed_while_held(node)
        elif self._queue.blocked:
            self._hints.room_at(node)

    def _freed_while_held(self, node: NodeState) -> None:
        record = self._reservations.given_back(node)
        if record is not None:
            self._try_now(record)
        self._hints.power(self._reservations.first)

    def _try_now(self, record: TaskRecord) -> None:
        """Before anybody else is asked."""
        refusal = self._try(record)
        if refusal is not None:
            if refusal == Reason.CLUSTER_WATTS:
                self._reservations.go_first(record)
            self._queue.unblock(self._queue.lanes[record.shape.index])

    def release(self, record: TaskRecord) -> None:
        """It left its node: give back what it had, and say so to those who wait."""
        allocation = record.allocation
        if allocation is not None and allocation.lease is not None and self._passed_on(record, allocation.lease):
            return
        moving_to = None
        if allocation is not None and allocation.target is not None:
            moving_to = self._ledger.drop_target(record)
        node = self.leave(record)
        if node is not None:
            self.freed(node)
        if moving_to is not None:
            self.freed(moving_to)

    def leave(self, record: TaskRecord) -> NodeState | None:
        """Give back what it had, and say nothing yet."""
        if self._readings:
            self._ledger.readings.gone(record.node, record.name)
        return self._ledger.undo(record)

    def dequeue(self, record: TaskRecord) -> None:
        """A queued task goes otherwise than by a place: those behind it are asked without it."""
        self._ledger.view.queued -= 1
        record.epoch += 1
        self._queue.unblock(self._queue.lanes[record.shape.index])


def _back_off_s(refusals: int) -> float:
    return min(BACK_OFF_MOST_S, BACK_OFF_S * 2.0 ** min(refusals - 1, 10))
