"""Placing: the queue's turn, from asking the policy to committing, and back.

Owns the one place where a proposal is checked and committed, everybody's undo, who follows on a lease (what that is
stands in `leases`), who is asked again when something is freed, and the patience of those who were overtaken. The
events that set it in motion are the engine's, which is built on this.
"""

from collections.abc import Callable
from typing import Final

from wattloom.bounds import LATEST_S
from wattloom.cluster.node_class import Mode
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import NodeState
from wattloom.policies.answers import Refusal
from wattloom.policies.protocol import Policy
from wattloom.prediction.outlook import Outlook
from wattloom.scheduling.asking import LEAST_INTERVAL_S, answer_of, cost_of, require_sound
from wattloom.scheduling.instructions import AnyInstruction, Conclude, Outcome, Place, Sleep, Wait, Wake
from wattloom.scheduling.lease_terms import LeaseTerms
from wattloom.scheduling.leases import Leases
from wattloom.scheduling.ledger import Ledger
from wattloom.scheduling.queue import Lane, Queue
from wattloom.scheduling.rest import Rest
from wattloom.scheduling.state import Lease, Order, Stage, TaskRecord
from wattloom.scheduling.timers import Timer, Timers

BACK_OFF_S: Final = 1.0
BACK_OFF_MOST_S: Final = 60.0
PATIENCE_S: Final = 60.0
"""How long a task may be overtaken before a node is kept free for it."""
POWER: Final = (Reason.CLUSTER_WATTS, Reason.POWER_UNKNOWN)
ROOM: Final = (
    Reason.NO_ROOM, Reason.NEVER_FITS, Reason.NO_NODES, Reason.CPU, Reason.MEMORY, Reason.DEVICES,
    Reason.NODE_WATTS, Reason.TDP, Reason.HELD, Reason.TOO_SMALL,
)  # fmt: skip
"""Refusals that a node kept free can end."""


class Placing:
    """The queue, the ledger and what is done with them; no events."""

    def __init__(self, policy: Policy, lease: LeaseTerms | None = None, placed: int = 0) -> None:
        require_sound(policy)
        self.policy: Final = policy
        self.placed: int = placed
        """Placements so far: each has a number."""
        self.leases: Final = Leases(lease)
        self._leasing: Final = lease is not None
        self.ledger: Final = Ledger(policy.terms)
        self._rules: Final = self.ledger.rules
        self.queue: Final = Queue()
        self.timers: Final = Timers()
        self.rest: Final = Rest(policy, self.ledger, self.timers)
        self.time: float = 0.0
        self.proposals: int = 0
        """How often the policy was asked: what deciding costs."""
        self._out: list[AnyInstruction] = []
        self._dependents: dict[str, list[TaskRecord]] = {}
        self._held: dict[str, TaskRecord] = {}
        """Nodes kept free for a task that was overtaken too long."""
        self._first: TaskRecord | None = None
        """Task that nobody may overtake any more."""
        self._youngest: Order = (-(2**62), -1)
        self._unwatched: dict[int, Lane] = {}
        """Blocked lanes whose patience is looked after from the next placement on: until then nobody overtakes."""
        self.watcher: Callable[[TaskRecord], None] | None = None
        """Called with each task just before the policy is asked: for explanations and tests."""
        self._readings: Final = policy.reading_interval_s is not None

    @property
    def next_tick(self) -> float | None:
        """When the engine wants a tick at the latest, if nothing else happens before."""
        return self.timers.next

    def _at(self, time: float) -> None:
        self.time = time
        self.ledger.view.time = time

    # -- the queue's turn ----------------------------------------------------------------------------------------------

    def _enqueue(self, record: TaskRecord) -> None:
        record.stage = Stage.QUEUED
        record.epoch += 1
        record.waiting_since = self.time
        record.reason = None
        record.by_choice = False
        record.ask_at = 0.0
        self.ledger.view.queued += 1
        self.queue.push(record)
        if record.shape.index in self.queue.blocked:
            self._ask_beside_the_first(record)

    def _newcomer(self, record: TaskRecord) -> None:
        """Between events every queued task is in a blocked lane: whose lane is not may go at once, past the heaps."""
        lane = self.queue.lanes.get(record.shape.index)
        if lane is None or lane.blocked_by is not None or record.shape.waits or self._first is not None:
            if not self._leasing or lane is None or not self._follows(record, lane):
                self._enqueue(record)
            return
        record.stage = Stage.QUEUED
        record.epoch += 1
        self.ledger.view.queued += 1
        refusal = self._try(record)
        if record.stage == Stage.QUEUED:
            assert refusal is not None
            lane.push(record)
            self._block(lane, refusal)
            if self._leasing:
                self._fill_up(lane)

    def _ask_beside_the_first(self, record: TaskRecord) -> None:
        """A blocked lane answers for a newcomer, but if he is its first, or its first chose to wait and he may not."""
        lane = self.queue.lanes[record.shape.index]
        head = lane.head()
        if head is record or (head is not None and head.by_choice and record.shape.waits):
            self.queue.unblock(lane)

    def _back_off(self, record: TaskRecord, reason: Reason, message: str) -> None:
        record.stage = Stage.BACKING_OFF
        record.refusals += 1
        until = self.time + _back_off_s(record.refusals)
        record.epoch += 1
        self._unhold(record)
        self.timers.set(until, "back-off", record.name, record.epoch)
        self._tell_waiting(record, reason, until, message)

    def _tell_waiting(self, record: TaskRecord, reason: Reason, until: float | None, message: str) -> None:
        if record.reason != reason or message:
            record.reason = reason
            self._out.append(Wait(record.name, reason, until, message))

    def _settle(self) -> None:
        """Place what can be placed, then let due timers have their say, until nothing moves."""
        while True:
            if self._rules.active and self._rules.has_moved:
                self._ask_the_ruled()
            if self.queue.ready:
                self._place_queued()
                if self._rules.active and self._rules.has_moved:
                    continue
            timer = self.timers.due(self.time)
            if timer is None:
                return
            self._fire(timer)

    def _place_queued(self) -> None:
        while True:
            found = self.queue.next()
            if found is None:
                return
            lane, record = found
            first = self._first
            if first is not None and record.order > first.order:
                self._tell_waiting(record, Reason.STARVED_AHEAD, None, "")
                self._block(lane, Reason.STARVED_AHEAD)
                continue
            refusal = self._try(record)
            if refusal is None:
                if self._rules.active and self._rules.has_moved:
                    self._ask_the_ruled()
                continue
            self._block(lane, refusal)
            if self._leasing:
                self._fill_up(lane)
            if record.by_choice and lane.unasked:
                self._ask_alone(lane, record)
            if first is record and not self._can_go_first(record, refusal):
                self._unhold(record)

    def _ask_alone(self, lane: Lane, head: TaskRecord) -> None:
        """The first task chose to wait: each behind it chooses for itself."""
        for record in lane.take_unasked():
            if record is head:
                continue
            held_up = self._first is not None and record.order > self._first.order
            if held_up or (self._try(record) is not None and not record.by_choice):
                lane.ask_alone(record)

    def _try(self, record: TaskRecord) -> Reason | None:
        """Ask the policy, check its proposal against what is true now, commit it; else say why not."""
        ledger = self.ledger
        self.proposals += 1
        if self.watcher is not None:
            self.watcher(record)
        record.by_choice = False
        answer = answer_of(self.policy, record, ledger.view)
        if isinstance(answer, str):
            ledger.view.queued -= 1
            self._back_off(record, Reason.POLICY_FAILED, answer)
            return None
        if isinstance(answer, Refusal):
            return self._refused(record, answer.reason, answer.until)
        node = ledger.index.nodes.get(answer.node)
        outlook: Outlook | Reason = Reason.BAD_PROPOSAL
        if node is not None:
            outlook = ledger.check(record, node)
        if node is None or isinstance(outlook, Reason):
            assert isinstance(outlook, Reason)
            self._tell_waiting(record, outlook, None, f"the policy proposed {answer.node}")
            record.refusals += 1
            self._ask_again(record, self.time + _back_off_s(record.refusals))
            return outlook
        self._commit(record, node, outlook, cost_of(answer))
        return None

    def _refused(self, record: TaskRecord, reason: Reason, until: float | None) -> Reason:
        """The policy has no place for it now, or wants to wait."""
        if until is None and reason in (Reason.WAITING_IS_CHEAPER, Reason.WAITING_IS_SOONER):
            until = self.time + BACK_OFF_MOST_S
        if until is not None:
            if not until > self.time:
                until = self.time + BACK_OFF_S
            until = min(max(until, self.time + LEAST_INTERVAL_S), LATEST_S)
            record.by_choice = True
            self._ask_again(record, until)
        self._tell_waiting(record, reason, until, "")
        return reason

    def _ask_again(self, record: TaskRecord, time: float) -> None:
        """Then at the latest. One timer is enough: if it comes early, the answer says when to ask next."""
        if record.ask_at <= self.time or time < record.ask_at:
            record.ask_at = time
            self.timers.set(time, "ask-again", record.name, record.epoch)

    def _commit(self, record: TaskRecord, node: NodeState, outlook: Outlook, cost: float | None) -> None:
        ledger = self.ledger
        if self._held or self._first is not None:
            self._unhold(record)
        view = ledger.view
        view.queued -= 1
        view.last_node = node.name
        ledger.commit(record, node, outlook, cost)
        if cost is not None and record.shape.waits:
            ledger.note_cost(record.shape, cost)
        record.attempt += 1
        record.started = False
        record.reason = None
        record.ask_at = 0.0
        if self._unwatched:
            self._watch_patience()
        if self.queue.blocked and record.order > self._youngest:
            self._youngest = record.order
        if node.mode == Mode.AWAKE:
            self._emit_place(record, node)
            if self._leasing:
                self.leases.open(record, node, outlook, self.time)
        else:
            record.stage = Stage.ASSIGNED
            if node.mode == Mode.ASLEEP:
                ledger.set_mode(node, Mode.WAKING)
                self._out.append(Wake(node.name))

    def _emit_place(self, record: TaskRecord, node: NodeState) -> None:
        record.stage = Stage.PLACED
        outlook = record.outlook
        assert outlook is not None
        if self._readings:
            self.ledger.will_draw(node, record, outlook)
        self.placed += 1
        self._out.append(
            Place(
                record.name,
                record.attempt,
                node.name,
                outlook.variant.name,
                record.cost,
                self.ledger.terms.guarantee,
                record.devices,
                outlook.forecast,
                "",
                self.placed,
            )
        )

    # -- following on a lease ------------------------------------------------------------------------------------------

    def _follows(self, record: TaskRecord, lane: Lane) -> bool:
        """Whether a newcomer, for whom there is no room, may stand behind a task of his shape at once."""
        if lane.blocked_by not in ROOM or lane.head() is not None or self._nobody_may_follow(record):
            return False
        lease = self.leases.roomiest(record.shape, self.time)
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
            lease = self.leases.roomiest(lane.shape, self.time)
            if lease is None:
                return
            self.ledger.view.queued -= 1
            self._place_behind(record, lease)
            record = lane.head()

    def _nobody_may_follow(self, record: TaskRecord) -> bool:
        """Somebody waits who goes before: he is not to be held up by a lease."""
        if self._held or self._first is not None:
            return True
        if len(self.queue.blocked) <= 1:
            return False
        heads = (lane.head() for lane in self.queue.blocked.values())
        return any(head is not None and head.order[0] < record.order[0] for head in heads)

    def _place_behind(self, record: TaskRecord, lease: Lease) -> None:
        self.leases.put_behind(record, lease)
        record.attempt += 1
        record.started = False
        record.reason = None
        record.ask_at = 0.0
        record.by_choice = False
        self.placed += 1
        self._out.append(
            Place(
                record.name,
                record.attempt,
                lease.node.name,
                lease.outlook.variant.name,
                None,
                self.ledger.terms.guarantee,
                lease.holder.devices,
                None,
                lease.holder.name,
                self.placed,
            )
        )

    def _passed_on(self, record: TaskRecord, lease: Lease) -> bool:
        """Whether nothing is given back: it only stood behind, or the next behind it has its share now."""
        leases = self.leases
        if lease.holder is not record:
            leases.step_out(record, lease)
            return True
        successor = leases.hand_on(record, lease)
        if successor is None:
            return False
        if self._readings:
            self.ledger.readings.handed_on(record.node, record.name, successor.name)
        self.ledger.hand_over(record, successor)
        if leases.takes_more(lease, self.time):
            lane = self.queue.lanes.get(lease.shape.index)
            if lane is not None:
                self._fill_up(lane)
        return True

    # -- who is asked again --------------------------------------------------------------------------------------------

    def _block(self, lane: Lane, reason: Reason) -> None:
        self.queue.block(lane, reason)
        if self._rules.active:
            self._rules.refused(lane.shape)
        if not lane.watched:
            self._unwatched[lane.shape.index] = lane

    def _freed(self, node: NodeState) -> None:
        """Something was given back here: whoever fits now is asked again."""
        if not node.tasks and node.mode == Mode.AWAKE:
            self.rest.watch(node, self.time)
        if node.mode == Mode.HELD:
            self._freed_while_held(node)
        elif self.queue.blocked:
            self._ask_who_fits(node)

    def _ask_who_fits(self, node: NodeState) -> None:
        site = node.site
        assert site is not None
        outlooks = self.ledger.outlooks
        for lane in list(self.queue.blocked.values()):
            if lane.blocked_by != Reason.CLUSTER_WATTS:
                if not isinstance(outlooks.at(lane.shape, site), Outlook):
                    continue
                if self._rules.active and self.ledger.view.refusal(lane.shape, node) is not None:
                    continue
            self.queue.unblock(lane)

    def _ask_the_ruled(self) -> None:
        """Tasks have come or gone that others' rules count: whoever may go to more nodes now is asked again."""
        for index in self._rules.given_more(self.queue.blocked):
            self.queue.unblock(self.queue.blocked[index])

    def _freed_while_held(self, node: NodeState) -> None:
        record = self._held[node.name]
        if not self.ledger.could_hold(record.shape, node):
            self._hold_lost(node.name)
            self.ledger.set_mode(node, Mode.AWAKE)
            self._freed(node)
        elif self.ledger.room_when_released(record.shape, node):
            self._unhold(record)
            self._try_now(record)
        self._unblock_power()

    def _try_now(self, record: TaskRecord) -> None:
        """Before anybody else is asked."""
        refusal = self._try(record)
        if refusal is not None:
            if refusal == Reason.CLUSTER_WATTS:
                self._let_go_first(record)
            self.queue.unblock(self.queue.lanes[record.shape.index])

    def _unblock_power(self) -> None:
        """The cluster draws less, or what it draws is better known."""
        for lane in list(self.queue.blocked.values()):
            if lane.blocked_by in POWER or (self._first is not None and self._first.shape is lane.shape):
                self.queue.unblock(lane)

    def _unblock_function(self, function: str) -> None:
        """What is expected of this function has changed."""
        for lane in list(self.queue.blocked.values()):
            if lane.shape.function.name == function:
                self.queue.unblock(lane)

    def _unblock_all(self) -> None:
        for lane in list(self.queue.blocked.values()):
            self.queue.unblock(lane)

    # -- ends ----------------------------------------------------------------------------------------------------------

    def _release(self, record: TaskRecord) -> None:
        """It left its node: give back what it had, and say so to those who wait."""
        if record.lease is not None and self._passed_on(record, record.lease):
            return
        node = self._leave(record)
        if node is not None:
            self._freed(node)

    def _leave(self, record: TaskRecord) -> NodeState | None:
        if self._readings:
            self.ledger.readings.gone(record.node, record.name)
        return self.ledger.undo(record)

    def _end(self, record: TaskRecord, outcome: Outcome, reason: Reason | None, message: str) -> None:
        """The one end of a task, and of those that cannot run without it."""
        self._end_one(record, outcome, reason, message)
        if record.name not in self._dependents:
            return
        ended: list[tuple[str, Outcome]] = [(record.name, outcome)]
        while ended:
            task, outcome = ended.pop()
            for dependent in self._dependents.pop(task, ()):
                dependent.after.discard(task)
                if self.ledger.tasks.get(dependent.name) is not dependent or dependent.stage != Stage.HELD_BACK:
                    continue
                if outcome != "finished":
                    note = f"{task} ended as {outcome}"
                    self._end_one(dependent, "rejected", Reason.DEPENDENCY_ENDED, note)
                    ended.append((dependent.name, "rejected"))
                elif not dependent.after:
                    self._enqueue(dependent)

    def _end_one(self, record: TaskRecord, outcome: Outcome, reason: Reason | None, message: str) -> None:
        if record.stage == Stage.QUEUED:
            self.ledger.view.queued -= 1
            self.queue.unblock(self.queue.lanes[record.shape.index])
        record.stage = Stage.HELD_BACK
        if self._held or self._first is not None:
            self._unhold(record)
        self.ledger.end(record, outcome)
        if reason is not None:
            self._out.append(Conclude(record.name, outcome, reason, message))

    # -- time ----------------------------------------------------------------------------------------------------------

    def _fire(self, timer: Timer) -> None:
        if timer.kind == "idle":
            if self.rest.falls_asleep(timer.name, timer.time, self.time):
                self._out.append(Sleep(timer.name))
                self._unblock_power()
        elif timer.kind == "patience":
            lane = self.queue.lanes.get(int(timer.mark))
            if lane is not None:
                self._keep_a_node_free(lane)
        else:
            record = self.ledger.tasks.get(timer.name)
            if record is None or record.epoch != timer.mark:
                return
            if record.stage == Stage.BACKING_OFF:
                self._enqueue(record)
            elif record.stage == Stage.QUEUED:
                self._its_time(self.queue.lanes[record.shape.index], record)

    def _its_time(self, lane: Lane, record: TaskRecord) -> None:
        """It chose to wait until now: it is asked with its lane, or alone if others are before it."""
        record.by_choice = False
        if lane.head() is not record:
            lane.ask_alone(record)
        self.queue.unblock(lane)

    # -- patience ------------------------------------------------------------------------------------------------------

    def _watch_patience(self) -> None:
        """Something is placed: from now on those who wait may be overtaken."""
        for lane in self._unwatched.values():
            head = lane.head()
            if head is not None and not lane.watched:
                lane.watched = True
                due = max(self.time, head.waiting_since + PATIENCE_S, lane.look_at)
                self.timers.set(due, "patience", "", lane.shape.index)
        self._unwatched.clear()

    def _keep_a_node_free(self, lane: Lane) -> None:
        """The first task of a blocked lane has waited long: if others overtook it, nobody may on one node any more."""
        lane.watched = False
        record = lane.head()
        if record is None or lane.blocked_by is None:
            return
        self._unwatched[lane.shape.index] = lane
        if self.time < record.waiting_since + PATIENCE_S:
            return
        lane.look_at = self.time + PATIENCE_S
        if self._youngest < record.order or record in self._held.values() or self._first is record:
            return
        if lane.blocked_by == Reason.CLUSTER_WATTS:
            self._let_go_first(record)
        elif lane.blocked_by in ROOM:
            node = self.ledger.emptiest(record.shape)
            if node is not None and not self.ledger.room_when_released(record.shape, node):
                self._held[node.name] = record
                self.ledger.set_mode(node, Mode.HELD)

    def _let_go_first(self, record: TaskRecord) -> None:
        """Nobody may overtake it any more, if that helps: the others' watts are what it waits for."""
        earlier = self._first is None or record.order < self._first.order
        if earlier and self.ledger.fits_under_the_cap(record.shape):
            self._first = record

    def _can_go_first(self, record: TaskRecord, refusal: Reason) -> bool:
        """Whether holding the others up still helps it."""
        helps = refusal == Reason.CLUSTER_WATTS or refusal in ROOM
        return helps and self.ledger.fits_under_the_cap(record.shape)

    def _hold_lost(self, node: str) -> None:
        """The node cannot be kept free any more: the task is asked again, and another may be kept."""
        record = self._held.pop(node, None)
        if record is not None:
            self.queue.unblock(self.queue.lanes[record.shape.index])

    def _unhold(self, record: TaskRecord) -> None:
        """Undo of `_keep_a_node_free`."""
        if self._first is record:
            self._first = None
            self._unblock_all()
        for name, held_for in list(self._held.items()):
            if held_for is record:
                del self._held[name]
                node = self.ledger.index.nodes[name]
                self.ledger.set_mode(node, Mode.AWAKE)
                self._freed(node)


def _back_off_s(refusals: int) -> float:
    return min(BACK_OFF_MOST_S, BACK_OFF_S * 2.0 ** min(refusals - 1, 10))
