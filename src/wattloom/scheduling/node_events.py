"""What follows from an event about a machine, a function, a node, or what is known of them.

Owns the handlers of these events. Each checks first and changes nothing if it refuses; what follows for tasks that wait
or run is the work of placement, moves and the ends of tasks.
"""

from collections.abc import Callable
from typing import Final

from wattloom.bounds import LATEST_S, MOST_CLUSTER_WATTS, MOST_JOULES, MOST_SUM, MOST_WATTS
from wattloom.cluster.node_class import Mode
from wattloom.cluster.site import FULL, MICRO
from wattloom.cluster.warm_instances import InstanceKey, add
from wattloom.energy.signal import Signal, forecast_problem
from wattloom.errors import EventRefused
from wattloom.machines.machine import Machine
from wattloom.scheduling import events as ev
from wattloom.scheduling.event_checks import (
    digest,
    node_named,
    refuse,
    require,
    require_prices,
)
from wattloom.scheduling.leases import Leases
from wattloom.scheduling.ledger import Ledger
from wattloom.scheduling.moves import LEAST_FREQUENCY, Moves
from wattloom.scheduling.placement import Placement
from wattloom.scheduling.queue import Queue
from wattloom.scheduling.queueing_hints import QueueingHints
from wattloom.scheduling.reservations import Reservations
from wattloom.scheduling.state import by_order
from wattloom.scheduling.task_ends import TaskEnds
from wattloom.scheduling.turn import Turn


class NodeEvents:
    """Handlers of events that are about no single task."""

    def __init__(
        self,
        turn: Turn,
        ledger: Ledger,
        queue: Queue,
        hints: QueueingHints,
        reservations: Reservations,
        leases: Leases,
        placement: Placement,
        moves: Moves,
        ends: TaskEnds,
        readings: bool,
        plan_problem: Callable[[str], str],
    ) -> None:
        self._turn: Final = turn
        self._ledger: Final = ledger
        self._queue: Final = queue
        self._hints: Final = hints
        self._reservations: Final = reservations
        self._leases: Final = leases
        self._placement: Final = placement
        self._moves: Final = moves
        self._ends: Final = ends
        self._readings: Final = readings
        self._plan_problem: Final = plan_problem
        """Why the policy cannot go by a plan."""

    def machine_defined(self, event: ev.MachineDefined) -> None:
        refuse(event.machine.problem(), "machine")
        known = self._ledger.machines.get(event.machine.name)
        if known is not None and known.profile == event.machine:
            return
        if known is not None and any(node.machine == known.name for node in self._ledger.nodes.values()):
            raise EventRefused("machine.name", f"nodes of {known.name} are here: its profile cannot change")
        self._ledger.define_machine(Machine(event.machine))

    def function_defined(self, event: ev.FunctionDefined) -> None:
        refuse(event.function.problem(), "function")
        self._ledger.define_function(event.function)

    def node_joined(self, event: ev.NodeJoined) -> None:
        node = event.node
        refuse(node.problem(), "node")
        machine = self._ledger.machines.get(node.machine)
        if machine is None:
            raise EventRefused("node.machine", f"{node.machine} was not defined")
        if node.name in self._ledger.nodes:
            raise EventRefused("node.name", f"{node.name} is here already")
        if node.asleep and not machine.can_sleep:
            raise EventRefused("node.asleep", f"{node.machine} cannot sleep")
        state = self._ledger.index.add(node, machine)
        self._ledger.nodes[node.name] = node
        if node.own:
            self._ledger.mind_the_rules()
        self._placement.freed(state)

    def node_changed(self, event: ev.NodeChanged) -> None:
        node, ledger = event.node, self._ledger
        refuse(node.problem(), "node")
        state = node_named(self._ledger, node.name)
        machine = ledger.machines.get(node.machine)
        if machine is None:
            raise EventRefused("node.machine", f"{node.machine} was not defined")
        if state.mode in (Mode.WAKING, Mode.ASLEEP) and not machine.can_sleep:
            raise EventRefused("node.machine", f"{node.machine} cannot sleep, and {node.name} is not awake")
        if state.tasks and machine.profile.arch != state.cls.machine.profile.arch:
            raise EventRefused("node.machine", "its architecture cannot change while tasks are on the node")
        if node.own:
            ledger.mind_the_rules()
        assigned = self._placement.unassign([state])
        ledger.change_node(state, node, machine)
        self._placement.assign_again(assigned)
        self._reservations.power_freed()
        self._placement.freed(state)

    def node_lost(self, event: ev.NodeLost) -> None:
        state = node_named(self._ledger, event.node)
        ledger = self._ledger
        there = sorted((ledger.tasks[task] for task in state.tasks), key=by_order)
        records = [record for record in there if record.holding.node is state]
        self._reservations.lost(event.node)
        freed = [self._moves.stays(each) for each in there if each.holding.target is not None]
        for record in list(records):
            lease = record.holding.lease
            if lease is not None:
                records += self._leases.abandon(lease)
            self._placement.leave(record)
        ledger.index.remove(state)
        del ledger.nodes[event.node]
        ledger.readings.node_lost(event.node)
        self._moves.node_lost(event.node)
        for record in records:
            self._ends.lost(record, f"node {event.node} was lost")
        for node in freed:
            if node is not state:
                self._placement.freed(node)
        self._reservations.power_freed()

    def node_awake(self, event: ev.NodeAwake) -> None:
        node = node_named(self._ledger, event.node)
        if node.mode.is_awake:
            raise EventRefused("node", f"{event.node} is awake already")
        self._placement.woke(node)

    def node_asleep(self, event: ev.NodeAsleep) -> None:
        node = node_named(self._ledger, event.node)
        if node.tasks:
            raise EventRefused("node", f"{event.node} has tasks: it cannot be asleep")
        if not node.cls.machine.can_sleep:
            raise EventRefused("node", f"{event.node} has no sleeping power: it cannot sleep")
        if node.mode == Mode.ASLEEP:
            raise EventRefused("node", f"{event.node} is asleep already")
        self._reservations.lost(event.node)
        self._moves.node_lost(event.node)
        self._ledger.set_mode(node, Mode.ASLEEP)
        self._reservations.power_freed()

    def cap_changed(self, event: ev.CapChanged) -> None:
        if event.watts is not None and not 0.0 < event.watts <= MOST_CLUSTER_WATTS:
            raise EventRefused("watts", f"must be positive, at most {MOST_CLUSTER_WATTS:g} W, not {event.watts}")
        assigned = self._placement.unassign(list(self._ledger.index.nodes.values())) if event.watts is not None else []
        self._ledger.view.cap_microwatts = None if event.watts is None else max(1, round(event.watts * MICRO))
        self._placement.assign_again(assigned)
        self._hints.everything()

    def frequency_changed(self, event: ev.FrequencyChanged) -> None:
        node = node_named(self._ledger, event.node)
        if not LEAST_FREQUENCY <= event.share <= 1.0:
            raise EventRefused("share", f"must be between {LEAST_FREQUENCY} and 1, not {event.share}")
        self._moves.frequencies.pop(event.node, None)
        self._ledger.set_frequency(node, round(event.share * FULL))
        if self._queue.blocked and node.mode == Mode.AWAKE:
            self._hints.room_at(node)
        self._reservations.power_freed()

    def instance_ready(self, event: ev.InstanceReady) -> None:
        key = self._instance(event)
        add(self._ledger.view.instances.ready, key, 1)
        add(self._ledger.view.instances.coming, key, -1)

    def instance_gone(self, event: ev.InstanceGone) -> None:
        instances, key = self._ledger.view.instances, self._instance(event)
        if key not in instances.ready:
            raise EventRefused("function", f"{event.node} has no instance of {event.function} ({event.variant})")
        add(instances.ready, key, -1)
        add(instances.going, key, -1)

    def _instance(self, event: ev.InstanceReady | ev.InstanceGone) -> InstanceKey:
        node = node_named(self._ledger, event.node)
        function = self._ledger.functions.get(event.function)
        if function is None:
            raise EventRefused("function", f"{event.function} was not defined")
        if isinstance(event, ev.InstanceReady) and all(each.name != event.variant for each in function.variants):
            raise EventRefused("variant", f"{event.function} has no build {event.variant}")
        if not node.mode.is_awake:
            raise EventRefused("node", f"{event.node} is not awake")
        return node.name, event.function, event.variant

    # -- what is known of them -----------------------------------------------------------------------------------------

    def reading_arrived(self, event: ev.ReadingArrived) -> None:
        node = node_named(self._ledger, event.node)
        require("watts", event.watts, MOST_WATTS)
        for task, watts in event.tasks.items():
            require("tasks", watts, MOST_WATTS, task)
        self._ledger.read(event.node, event.watts, event.tasks)
        if self._readings and self._queue.blocked:
            self._hints.room_at(node)

    def usage_arrived(self, event: ev.UsageArrived) -> None:
        node = node_named(self._ledger, event.node)
        require("seconds", event.seconds, LATEST_S)
        for field in ("meter_j", "idle_j", "unattributed_j"):
            require(field, getattr(event, field), MOST_JOULES)
        require_prices(event)
        for function, used in event.functions.items():
            if function not in self._ledger.functions:
                raise EventRefused("functions", f"{function} was not defined")
            refuse(used.problem(), f"functions.{function}")
        for function, used in event.functions.items():
            if self._ledger.used(function, node.cls.machine, used):
                self._hints.function(function)

    def function_learned(self, event: ev.FunctionLearned) -> None:
        function = self._ledger.functions.get(event.function)
        machine = self._ledger.machines.get(event.machine)
        if function is None:
            raise EventRefused("function", f"{event.function} was not defined")
        if machine is None:
            raise EventRefused("machine", f"{event.machine} was not defined")
        if all(variant.name != event.variant for variant in function.variants):
            raise EventRefused("variant", f"{event.function} has no build {event.variant}")
        refuse(event.used.problem(), "used")
        if self._ledger.recall(function, event.variant, machine, event.used):
            self._hints.function(event.function)

    def functions_forgotten(self, event: ev.FunctionsForgotten) -> None:
        names = set(event.functions)
        unknown = names - self._ledger.functions.keys()
        if unknown:
            raise EventRefused("functions", f"{min(unknown)} was not defined")
        called = {shape.function.name for shape in self._ledger.shapes.values() if shape.live}
        if names & called:
            raise EventRefused("functions", f"tasks of {min(names & called)} are here")
        instances = self._ledger.view.instances
        warm = {key[1] for counts in (instances.ready, instances.coming, instances.going) for key in counts}
        if names & warm:
            raise EventRefused("functions", f"instances of {min(names & warm)} are here")
        self._ledger.forget_functions(names)

    def signal_changed(self, event: ev.SignalChanged) -> None:
        if not event.name:
            raise EventRefused("name", "is empty")
        if not -MOST_SUM <= event.value <= MOST_SUM:
            raise EventRefused("value", f"must be a number, at most {MOST_SUM:g}, not {event.value}")
        wrong = forecast_problem(event.forecast)
        if wrong:
            raise EventRefused("forecast", wrong)
        self._ledger.view.signals[event.name] = Signal(event.value, self._turn.time, event.forecast)
        self._hints.everything()

    def plan_changed(self, event: ev.PlanChanged) -> None:
        said = digest(event.digest)
        if said and (problem := self._plan_problem(said)):
            raise EventRefused("digest", problem)
        self._ledger.view.plan = said
        self._hints.everything()

    def model_changed(self, event: ev.ModelChanged) -> None:
        self._ledger.view.model = digest(event.digest)
        self._hints.everything()
