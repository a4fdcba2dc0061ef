"""The one place where state changes: what is taken by whom, and how it is given back.

Owns nodes, tasks, functions and shapes, and the pairs commit/undo and hold/unhold that change them. Every change here
has its exact inverse. Decides nothing.
"""

from typing import Final

from wattloom.cluster import fit
from wattloom.cluster.fit import Terms
from wattloom.cluster.index import Index
from wattloom.cluster.node import Node
from wattloom.cluster.node_class import (
    DeviceShare,
    DeviceUse,
    Mode,
    NodeClass,
    both,
    return_devices,
    shares_of,
    take_devices,
    use_after,
    use_of,
)
from wattloom.cluster.reasons import Reason
from wattloom.cluster.rules import Rules
from wattloom.cluster.site import MICRO, NodeState, Site
from wattloom.cluster.topology import EVERY
from wattloom.energy.used import Used
from wattloom.machines.machine import Machine
from wattloom.policies.view import View
from wattloom.prediction.guard import guarded
from wattloom.prediction.placement_estimate import PlacementEstimate, PlacementEstimates
from wattloom.prediction.protocol import Predictor
from wattloom.prediction.readings import Readings
from wattloom.prediction.table import Table
from wattloom.scheduling.allocation import Allocation
from wattloom.scheduling.instructions import Outcome
from wattloom.scheduling.state import TaskRecord
from wattloom.units import Seconds
from wattloom.workload.function import Function, Variant
from wattloom.workload.requirements import Requirements
from wattloom.workload.shape import Shape
from wattloom.workload.task import Task

REMEMBERED_ENDS: Final = 1_000_000
REMEMBERED_SHAPES: Final = 1_000
"""Shapes that are kept although no task has them now: most come back."""

NEW_COST_COUNTS: Final = 0.1
"""Weight of a new placement in what a shape usually costs."""

ShapeKey = tuple[str, Requirements, float, bool, int]


class Ledger:
    """All that the engine knows, as numbers."""

    def __init__(self, terms: Terms, most_ended: int = REMEMBERED_ENDS, predictor: Predictor | None = None) -> None:
        self.terms: Final = terms
        self._in_full: Final = terms.guarantee == 1.0
        self.index: Final = Index()
        self.predictor: Final[Predictor] = Table() if predictor is None else guarded(predictor)
        self.readings: Final[Readings] = self.predictor.readings()
        self.rules: Final = Rules(self.index)
        self.estimates: Final = PlacementEstimates(self.predictor, terms)
        self.view: Final = View(self.index, self.estimates, self.readings, self.rules)
        self.machines: dict[str, Machine] = {}
        self.functions: dict[str, Function] = {}
        self.nodes: dict[str, Node] = {}
        self.tasks: dict[str, TaskRecord] = {}
        self.view.shape_of = lambda task: self.tasks[task].shape
        self.ended: dict[str, Outcome] = {}
        self.most_ended: int = most_ended
        self.arrivals: int = 0
        self.shapes: dict[int, Shape] = {}
        self._shape_of: dict[ShapeKey, Shape] = {}
        self._usual_shape: dict[tuple[str, float, bool, int], Shape] = {}
        """Shapes of tasks that ask for what their function does, found faster."""
        self._shapes_made: int = 0
        self._most_shapes: int = REMEMBERED_SHAPES

    # -- what things are ---------------------------------------------------------------------------------------------

    def define_machine(self, machine: Machine) -> None:
        self.machines[machine.name] = machine
        self.predictor.know_machine(machine)
        self._forecasts_changed(None)

    def define_function(self, function: Function) -> None:
        """Tasks that are here already keep the function as it was; what was learned of other builds is void."""
        known = self.functions.get(function.name)
        if known == function:
            return
        self.functions[function.name] = function
        if known is None:
            return
        if known.variants != function.variants:
            self.predictor.forget(function.name)
            self._forecasts_changed(function.name)
        self._drop_shapes({function.name})

    def forget_functions(self, names: set[str]) -> None:
        """As if they had never been defined. No task of theirs may be here."""
        for name in names:
            del self.functions[name]
            self.predictor.forget(name)
        self._drop_shapes(names)

    def _drop_shapes(self, functions: set[str]) -> None:
        self._shape_of = {key: shape for key, shape in self._shape_of.items() if key[0] not in functions}
        self._usual_shape.clear()

    def shape_of(self, task: Task) -> Shape:
        waits = task.defer_s > 0.0 or task.deadline_s is not None
        size = task.size if task.size and self.predictor.sizes_matter(task.function) else 0
        usual = (task.function, task.energy_weight, waits, size)
        if task.requirements is None:
            known = self._usual_shape.get(usual)
            if known is not None:
                return known
        function = self.functions[task.function]
        requirements = task.requirements if task.requirements is not None else function.requirements
        key = (task.function, requirements, task.energy_weight, waits, size)
        shape = self._shape_of.get(key)
        if shape is None:
            shape = Shape(self._shapes_made, function, requirements, task.energy_weight, waits, size)
            self._shapes_made += 1
            self._shape_of[key] = shape
            self.shapes[shape.index] = shape
            if requirements.constraints is not None or requirements.task_labels:
                self.mind_the_rules()
        if task.requirements is None:
            self._usual_shape[usual] = shape
        return shape

    def mind_the_rules(self) -> None:
        """A task or a node has come for which it matters who is where."""
        if not self.rules.active:
            placed = [(record.shape, record.allocation) for record in self.tasks.values()]
            moving = [(shape, has.target) for shape, has in placed if has is not None]
            taken = [(shape, has) for shape, has in (*placed, *moving) if has is not None and has.taken]
            self.rules.activate([(shape, has.node, has.leaving) for shape, has in taken])

    @property
    def too_many_shapes(self) -> bool:
        return len(self.shapes) > self._most_shapes

    def drop_shapes(self) -> list[Shape]:
        """Drop all shapes that no task has now, with what was worked out for them."""
        idle = [shape for shape in self.shapes.values() if not shape.live]
        for shape in idle:
            del self.shapes[shape.index]
            self.estimates.drop(shape)
            self.view.usual_cost.pop(shape.index, None)
        self._shape_of = {key: shape for key, shape in self._shape_of.items() if shape.live}
        self.rules.drop(idle)
        self._usual_shape.clear()
        self._most_shapes = max(REMEMBERED_SHAPES, 2 * len(self.shapes))
        self.index.kinds_changed()
        return idle

    def learn(self, record: TaskRecord, seconds: float) -> bool:
        """A run took so long (alone): True if forecasts change, and with them what was ranked."""
        has = record.allocation
        if has is None or not has.taken:
            return False
        function, machine = record.shape.function, has.node.cls.machine
        changed = self.predictor.learn(function, has.estimate.variant, machine, Seconds(seconds), record.task.size)
        if changed:
            self._forecasts_changed(function.name)
        return changed

    def _forecasts_changed(self, function: str | None) -> None:
        """Of one function, or of all."""
        for shape in self.shapes.values():
            if function is None or shape.function.name == function:
                self.estimates.invalidate(shape)
        self.index.kinds_changed()

    def read(self, node: str, watts: float, tasks: dict[str, float]) -> None:
        """A meter's word on a node: per function, replicas combined."""
        self.readings.arrived(node, watts, tasks)
        by_function: dict[str, list[float]] = {}
        for task, draw in tasks.items():
            record = self.tasks.get(task)
            if record is not None:
                by_function.setdefault(record.task.function, []).append(draw)
        for function, draws in by_function.items():
            self.readings.averaged(function, sum(draws) / len(draws))

    def will_draw(self, node: NodeState, record: TaskRecord, estimate: PlacementEstimate) -> None:
        """It is about to run there, before a meter says so."""
        forecast = estimate.watts if estimate.knows_power else None
        share = record.shape.cpu / max(1, node.cls.cpu)
        self.readings.placed(node.name, record.name, record.task.function, forecast, share)

    def used(self, function: str, machine: Machine, used: Used) -> bool:
        """Joules of calls that ended on a machine: True if forecasts change."""
        changed = self.predictor.learn_joules(self.functions[function], machine, used)
        if changed:
            self._forecasts_changed(function)
        return changed

    def recall(self, function: Function, variant: str, machine: Machine, used: Used) -> bool:
        """Figures of earlier runs: True if forecasts change."""
        changed = self.predictor.recall(function, variant, machine, used)
        if changed:
            self._forecasts_changed(function.name)
        return changed

    # -- commit and undo ---------------------------------------------------------------------------------------------

    def check(self, record: TaskRecord, node: NodeState, variant: str = "") -> PlacementEstimate | Reason:
        """Whether the task may go to this node now, with the build of this name if one is named."""
        site = node.site
        assert site is not None
        view = self.view
        estimate = view.with_variant(record.shape, site, variant) if variant else view.estimate(record.shape, site)
        if self.rules.active and not isinstance(estimate, Reason):
            return self.view.refusal(record.shape, node) or estimate
        return estimate

    def commit(
        self,
        record: TaskRecord,
        node: NodeState,
        estimate: PlacementEstimate,
        cost: float | None,
        devices: DeviceUse = (),
    ) -> Allocation:
        """Take what the task needs; of devices just these, if it has them already. `undo` is the inverse."""
        shape = record.shape
        allocation = Allocation(node, estimate, cost, record.attempt)
        record.allocation = allocation
        allocation.taken = True
        guaranteed = shape.cpu if self._in_full else fit.guaranteed(shape, self.terms)
        allocation.guaranteed = guaranteed
        if not shape.plain and (wanted := shape.devices[estimate.variant.name]):
            grant = (both(node.devices, devices), devices) if devices else take_devices(node.cls, node.devices, wanted)
            assert grant is not None or node.over
            if grant is not None:
                node.devices = grant[0]
                allocation.devices = shares_of(node.cls, grant[1])
            node.take(record.name, shape.cpu, guaranteed, shape.memory)
            self.index.take_counted(node, shape, 1)
            self.index.place(node)
        else:
            self.index.take(node, record.name, shape, guaranteed)
        if self.rules.active:
            self.rules.took(shape, node)
        return allocation

    def note_cost(self, shape: Shape, cost: float) -> None:
        """A task that might have waited was given a place at this cost."""
        usual = self.view.usual_cost.get(shape.index, cost)
        self.view.usual_cost[shape.index] = usual + NEW_COST_COUNTS * (cost - usual)

    def undo(self, record: TaskRecord) -> NodeState | None:
        """Give back what `commit` took; the node, if something was."""
        has = record.allocation
        record.allocation = None
        if has is None or not has.taken:
            return None
        shape, node = record.shape, has.node
        if has.devices or has.memory >= 0:
            if has.devices:
                node.devices = return_devices(node.devices, use_of(node.cls, has.devices))
            node.give_back(record.name, shape.cpu, has.guaranteed, has.memory_of(shape))
            self.index.take_counted(node, shape, -1)
            self.index.place(node)
        else:
            self.index.give_back(node, record.name, shape, has.guaranteed)
        if self.rules.active:
            self.rules.left(shape, node, has.leaving)
        if node.over and not node.tasks:
            node.over = False
        return node

    def found(self, record: TaskRecord, node: NodeState, variant: str = "", devices: DeviceUse = ()) -> Allocation:
        """It is there, whether or not there was room. `undo` is the inverse of this too."""
        shape, site = record.shape, node.site
        assert site is not None
        node.over = True
        usable = fit.usable_variants(shape, node.cls) or shape.variants
        build = next((each for each in shape.variants if each.name == variant), usable[0])
        return self.commit(record, node, self.estimates.of_variant(shape, build, site), None, devices)

    def change_task(self, record: TaskRecord, task: Task, shape: Shape) -> None:
        """It has other needs. Only for a task that has nothing of a node."""
        record.shape.live -= 1
        shape.live += 1
        record.task, record.shape = task, shape
        record.order = (-task.priority, record.order[1])

    def retake(self, record: TaskRecord, task: Task, shape: Shape) -> Allocation:
        """A task that is on a node has other needs, whether or not there is room. `undo` gives back those."""
        had, before = record.holding, record.shape
        held = [had] if had.target is None else [had.target, had]
        for each in held:
            record.allocation = each
            self.undo(record)
        self.change_task(record, task, shape)
        again = [self._retaken(record, each, before) for each in held]
        if len(again) > 1:
            again[1].target = again[0]
        return again[-1]

    def _retaken(self, record: TaskRecord, had: Allocation, before: Shape) -> Allocation:
        node, shape = had.node, record.shape
        wanted = before.devices.get(had.estimate.variant.name)
        node.over = True
        site, build = node.site, _build(shape, had.estimate.variant.name)
        assert site is not None
        same = had.devices and wanted == shape.devices[build.name]
        devices = use_of(node.cls, had.devices) if same else ()
        has = self.commit(record, node, self.estimates.of_variant(shape, build, site), had.cost, devices)
        has.started, has.number, has.progress = had.started, had.number, had.progress
        if had.resizing is not None:  # it will still be reported, and changes nothing any more
            room = (has.guaranteed, shape.memory)
            has.resizing = (room, room)
        if had.leaving:
            self.leaving(record, has)
        return has

    # -- while it runs -----------------------------------------------------------------------------------------------

    def take_target(self, record: TaskRecord, node: NodeState, estimate: PlacementEstimate) -> Allocation:
        """Take what the task needs on the node it is to move to. `drop_target` is the inverse."""
        has = record.holding
        target = self.commit(record, node, estimate, None)
        record.allocation = has
        has.target = target
        return target

    def drop_target(self, record: TaskRecord) -> NodeState:
        """It does not move after all."""
        has = record.holding
        assert has.target is not None
        node = has.target.node
        record.allocation = has.target
        self.undo(record)
        record.allocation = has
        has.target = None
        return node

    def arrive(self, record: TaskRecord) -> Allocation:
        """It has moved: give back what it had before."""
        had = record.holding
        has = had.target
        assert has is not None
        self.undo(record)
        record.allocation = has
        has.started, has.progress = had.started, had.progress
        if had.leaving:
            self.leaving(record, has)
        return has

    def set_room(self, has: Allocation, shape: Shape, guaranteed: int, memory: int) -> None:
        """So many millicores and bytes are kept for it from now on."""
        node = has.node
        node.allocated += guaranteed - has.guaranteed
        node.memory += memory - has.memory_of(shape)
        as_wanted = (guaranteed, memory) == (fit.guaranteed(shape, self.terms), shape.memory)
        has.guaranteed, has.memory = guaranteed, -1 if as_wanted else memory
        self.index.place(node)

    def set_frequency(self, node: NodeState, frequency: int) -> None:
        node.frequency = frequency
        self.index.place(node)

    def fits_without(self, record: TaskRecord, node: NodeState, others: list[TaskRecord]) -> bool:
        """Whether it would have room on a node that these have left; rules and the cluster's watts as they are."""
        devices, resources = node.devices, node.resources
        for other in others:
            devices = (
                return_devices(devices, use_of(node.cls, other.holding.devices)) if other.holding.devices else devices
            )
            resources = use_after(node.cls, resources, other.shape.resources, -1)
        site = Site(
            -1,
            node.cls,
            node.demand - sum(each.shape.cpu for each in others),
            node.allocated - sum(each.holding.guaranteed for each in others),
            node.memory - sum(each.holding.memory_of(each.shape) for each in others),
            devices,
            node.mode,
            self.index.numbering,
            resources,
            node.frequency,
        )
        shape = record.shape
        if self.rules.active and self.view.refusal(shape, node) is not None:
            return False
        usable = fit.usable_variants(shape, node.cls)
        return any(fit.room(shape, variant, site, self.terms) is None for variant in usable)

    def leaving(self, record: TaskRecord, allocation: Allocation) -> None:
        """It is being removed: it counts less."""
        allocation.leaving = True
        if self.rules.active:
            self.rules.leaves(record.shape, allocation.node)

    def change_node(self, state: NodeState, node: Node, machine: Machine) -> None:
        """The node is another one now; what runs there stays, even if there is less than it takes."""
        old = state.cls
        self.index.reclassify(state, node, machine)
        self.nodes[node.name] = node
        cls = state.cls
        records = [self.tasks[task] for task in state.tasks]
        state.over = bool(records)
        if cls.devices != old.devices:
            state.devices = tuple((0,) * count for _, count in cls.devices)
            for record in records:
                has = record.at(state)
                has.devices = _still_there(has.devices, cls)
                if has.devices:
                    state.devices = return_devices(state.devices, _negative(use_of(cls, has.devices)))
        state.resources = (0,) * len(cls.resources)
        for record in records:
            state.resources = use_after(cls, state.resources, record.shape.resources, 1)
        self.index.place(state)

    def hand_over(self, record: TaskRecord, successor: TaskRecord) -> None:
        """The same share, in other hands: nothing is given back or taken."""
        had, has = record.holding, successor.holding
        node = had.node
        if had.leaving:
            self.rules.left(record.shape, node, True)
            self.rules.took(record.shape, node)
        node.tasks.remove(record.name)
        node.tasks.add(successor.name)
        has.taken = True
        has.guaranteed, has.memory = had.guaranteed, had.memory
        has.devices = had.devices
        record.allocation = None

    def set_mode(self, node: NodeState, mode: Mode) -> None:
        node.mode = mode
        self.index.place(node)

    # -- starvation --------------------------------------------------------------------------------------------------

    def emptiest(self, shape: Shape) -> NodeState | None:
        """The awake node with the least taken that could hold this shape when empty."""
        allowed = self.view.allowed(shape)
        best: Site | None = None
        for site in self.index.sites():
            if site.mode != Mode.AWAKE or self.estimates.never(shape, site) is not None:
                continue
            if (allowed == EVERY or site.whole() & allowed) and (best is None or _emptier(site, best)):
                best = site
        return None if best is None else self.index.nodes[self.view.first(shape, best)]

    def room_when_released(self, shape: Shape, node: NodeState) -> bool:
        """Whether a node held for a task of this shape has room for it now."""
        site = node.site
        assert site is not None
        return any(
            fit.room(shape, variant, site, self.terms) is None for variant in fit.usable_variants(shape, site.cls)
        )

    def could_hold(self, shape: Shape, node: NodeState) -> bool:
        """Whether the node could take the shape when empty, by the rules as they stand."""
        site = node.site
        assert site is not None
        return self.estimates.never(shape, site) is None and self.view.refusal(shape, node) is None

    def fits_under_the_cap(self, shape: Shape) -> bool:
        """Whether a task of this shape would have the watts it needs if it had the cluster for itself."""
        cap = self.view.cap_microwatts
        if cap is None or self.index.unknown_power:
            return False
        sites = self.index.sites()
        idle = sum(site.count * _idle_microwatts(site) for site in sites)
        return any(
            idle - _idle_microwatts(site) + round(site.cls.machine.watts(shape.cpu) * MICRO) <= cap
            for site in sites
            if self.estimates.never(shape, site) is None
        )

    def end(self, record: TaskRecord, outcome: Outcome) -> None:
        record.shape.live -= 1
        del self.tasks[record.name]
        self.ended[record.name] = outcome
        if len(self.ended) > self.most_ended:
            del self.ended[next(iter(self.ended))]


def _build(shape: Shape, name: str) -> Variant:
    """The build of that name; the first, if the function has it no more."""
    return next((each for each in shape.variants if each.name == name), shape.variants[0])


def _still_there(had: tuple[DeviceShare, ...], cls: NodeClass) -> tuple[DeviceShare, ...]:
    """What a task has of the devices of a node that has others now: those it had, as far as they are still there."""
    counts = dict(cls.devices)
    return tuple([each for each in had if each.position < counts.get(each.kind, 0)])


def _negative(use: DeviceUse) -> DeviceUse:
    return tuple(tuple(-share for share in grant) for grant in use)


def _idle_microwatts(site: Site) -> int:
    machine = site.cls.machine
    return round((machine.sleep_w if site.mode == Mode.ASLEEP else machine.idle_w) * MICRO)


def _emptier(site: Site, other: Site) -> bool:
    one = (site.allocated, site.memory, site.first())
    return one < (other.allocated, other.memory, other.first())
