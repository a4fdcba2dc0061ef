"""The one place where state changes: what is taken by whom, and how it is given back.

Owns nodes, tasks, functions and shapes, and the pairs commit/undo and hold/unhold that change them. Every change here
has its exact inverse. Decides nothing.
"""

from typing import Final

from wattloom.cluster import fit
from wattloom.cluster.fit import Terms
from wattloom.cluster.index import Index
from wattloom.cluster.machine import Machine
from wattloom.cluster.node import Node
from wattloom.cluster.node_class import DeviceUse, Mode, NodeClass, return_devices, take_devices, use_after
from wattloom.cluster.reasons import Reason
from wattloom.cluster.rules import Rules
from wattloom.cluster.site import MICRO, NodeState, Site
from wattloom.cluster.topology import EVERY
from wattloom.energy.used import Used
from wattloom.policies.view import View
from wattloom.prediction.intensity import Intensities
from wattloom.prediction.outlook import Outlook, Outlooks
from wattloom.prediction.readings import Readings
from wattloom.prediction.runtimes import RunTimes
from wattloom.scheduling.instructions import Outcome
from wattloom.scheduling.state import TaskRecord
from wattloom.units import Seconds
from wattloom.workload.function import Function
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

    def __init__(self, terms: Terms) -> None:
        self.terms: Final = terms
        self._in_full: Final = terms.guarantee == 1.0
        self.index: Final = Index()
        self.runtimes: Final = RunTimes()
        self.intensities: Final = Intensities()
        self.readings: Final = Readings()
        self.rules: Final = Rules(self.index)
        self.outlooks: Final = Outlooks(self.runtimes, terms, self.intensities)
        self.view: Final = View(self.index, self.outlooks, self.readings, self.rules)
        self.machines: dict[str, Machine] = {}
        self.functions: dict[str, Function] = {}
        self.nodes: dict[str, Node] = {}
        self.tasks: dict[str, TaskRecord] = {}
        self.ended: dict[str, Outcome] = {}
        self.most_ended: int = REMEMBERED_ENDS
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
        self.runtimes.know_machine(machine)
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
            self.runtimes.forget(function.name)
            self._forecasts_changed(function.name)
        self._drop_shapes({function.name})

    def forget_functions(self, names: set[str]) -> None:
        """As if they had never been defined. No task of theirs may be here."""
        for name in names:
            del self.functions[name]
            self.runtimes.forget(name)
        self._drop_shapes(names)

    def _drop_shapes(self, functions: set[str]) -> None:
        self._shape_of = {key: shape for key, shape in self._shape_of.items() if key[0] not in functions}
        self._usual_shape.clear()

    def shape_of(self, task: Task) -> Shape:
        waits = task.defer_s > 0.0 or task.deadline_s is not None
        size = task.size if task.size and task.function in self.runtimes.sized else 0
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
            if requirements.where is not None or requirements.tags:
                self.mind_the_rules()
        if task.requirements is None:
            self._usual_shape[usual] = shape
        return shape

    def mind_the_rules(self) -> None:
        """A task or a node has come for which it matters who is where."""
        if not self.rules.active:
            placed = [(record.shape, record.home, record.leaving) for record in self.tasks.values()]
            self.rules.activate([(shape, node, leaving) for shape, node, leaving in placed if node is not None])

    @property
    def too_many_shapes(self) -> bool:
        return len(self.shapes) > self._most_shapes

    def forget_shapes(self) -> list[Shape]:
        """Drop all shapes that no task has now, with what was worked out for them."""
        idle = [shape for shape in self.shapes.values() if not shape.live]
        for shape in idle:
            del self.shapes[shape.index]
            self.outlooks.drop(shape)
            self.view.usual_cost.pop(shape.index, None)
        self._shape_of = {key: shape for key, shape in self._shape_of.items() if shape.live}
        self.rules.forget(idle)
        self._usual_shape.clear()
        self._most_shapes = max(REMEMBERED_SHAPES, 2 * len(self.shapes))
        self.index.kinds_changed()
        return idle

    def learn(self, record: TaskRecord, seconds: float) -> bool:
        """A run took so long (alone): True if forecasts change, and with them what was ranked."""
        outlook = record.outlook
        node = record.home
        if outlook is None or node is None:
            return False
        function = record.shape.function
        changed = self.runtimes.learn(function, outlook.variant, node.cls.machine, Seconds(seconds), record.task.size)
        if changed:
            self._forecasts_changed(function.name)
        return changed

    def _forecasts_changed(self, function: str | None) -> None:
        """Of one function, or of all."""
        for shape in self.shapes.values():
            if function is None or shape.function.name == function:
                self.outlooks.forget(shape)
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

    def will_draw(self, node: NodeState, record: TaskRecord, outlook: Outlook) -> None:
        """It is about to run there, before a meter says so."""
        forecast = outlook.watts if outlook.knows_power else None
        share = record.shape.cpu / max(1, node.cls.cpu)
        self.readings.placed(node.name, record.name, record.task.function, forecast, share)

    def used(self, function: str, machine: Machine, used: Used) -> bool:
        """Joules of calls that ended on a machine: True if forecasts change."""
        changed = self.intensities.learn(self.functions[function], machine, used)
        if changed:
            self._forecasts_changed(function)
        return changed

    def recall(self, function: Function, variant: str, machine: Machine, used: Used) -> bool:
        """Figures of earlier runs: True if forecasts change."""
        changed = self.runtimes.recall(function.name, variant, machine, used)
        changed = self.intensities.learn(function, machine, used) or changed
        if changed:
            self._forecasts_changed(function.name)
        return changed

    # -- commit and undo ---------------------------------------------------------------------------------------------

    def check(self, record: TaskRecord, node: NodeState) -> Outlook | Reason:
        """Whether the task may go to this node now."""
        site = node.site
        assert site is not None
        outlook = self.view.outlook(record.shape, site)
        if self.rules.active and not isinstance(outlook, Reason):
            return self.view.refusal(record.shape, node) or outlook
        return outlook

    def commit(self, record: TaskRecord, node: NodeState, outlook: Outlook, cost: float | None) -> None:
        """Take what the task needs. `undo` is the inverse."""
        shape = record.shape
        record.node = node.name
        record.home = node
        record.outlook = outlook
        record.cost = cost
        record.guaranteed = shape.cpu if self._in_full else fit.guaranteed(shape, self.terms)
        if not shape.plain and (wanted := shape.devices[outlook.variant.name]):
            grant = take_devices(node.cls, node.devices, wanted)
            assert grant is not None or node.over
            if grant is not None:
                node.devices, record.devices = grant
            node.take(record.name, shape.cpu, record.guaranteed, shape.memory)
            self.index.take_counted(node, shape, 1)
            self.index.place(node)
        else:
            self.index.take(node, record.name, shape, record.guaranteed)
        if self.rules.active:
            self.rules.took(shape, node)

    def note_cost(self, shape: Shape, cost: float) -> None:
        """A task that might have waited was given a place at this cost."""
        usual = self.view.usual_cost.get(shape.index, cost)
        self.view.usual_cost[shape.index] = usual + NEW_COST_COUNTS * (cost - usual)

    def undo(self, record: TaskRecord) -> NodeState | None:
        """Give back what `commit` took; the node, if it is still there."""
        node = record.home
        if node is not None:
            shape = record.shape
            if record.devices:
                node.devices = return_devices(node.devices, record.devices)
                node.give_back(record.name, shape.cpu, record.guaranteed, shape.memory)
                self.index.take_counted(node, shape, -1)
                self.index.place(node)
            else:
                self.index.give_back(node, record.name, shape, record.guaranteed)
            if self.rules.active:
                self.rules.left(shape, node, record.leaving)
            if node.over and not node.tasks:
                node.over = False
        record.node = ""
        record.home = None
        record.leaving = False
        record.devices = ()
        record.guaranteed = 0
        record.outlook = None
        record.cost = None
        return node

    def found(self, record: TaskRecord, node: NodeState) -> None:
        """It is there, whether or not there was room. `undo` is the inverse of this too."""
        shape, site = record.shape, node.site
        assert site is not None
        node.over = True
        usable = fit.usable_variants(shape, node.cls) or shape.variants
        self.commit(record, node, self.outlooks.of_variant(shape, usable[0], site), None)

    def leaving(self, record: TaskRecord) -> None:
        """It is being removed: it counts less."""
        assert record.home is not None
        record.leaving = True
        if self.rules.active:
            self.rules.leaves(record.shape, record.home)

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
                if record.devices:
                    record.devices = _devices_there(record.devices, old, cls)
                    state.devices = return_devices(state.devices, _negative(record.devices))
        state.resources = (0,) * len(cls.resources)
        for record in records:
            state.resources = use_after(cls, state.resources, record.shape.resources, 1)
        self.index.place(state)

    def hand_over(self, record: TaskRecord, successor: TaskRecord) -> None:
        """The same share, in other hands: nothing is given back or taken."""
        node = record.home
        assert node is not None
        if record.leaving:
            record.leaving = False
            self.rules.left(record.shape, node, True)
            self.rules.took(record.shape, node)
        node.tasks.remove(record.name)
        node.tasks.add(successor.name)
        successor.home = node
        successor.guaranteed = record.guaranteed
        successor.devices = record.devices
        record.node = ""
        record.home = None
        record.devices = ()
        record.guaranteed = 0
        record.outlook = None
        record.cost = None

    def set_mode(self, node: NodeState, mode: Mode) -> None:
        node.mode = mode
        self.index.place(node)

    # -- starvation --------------------------------------------------------------------------------------------------

    def emptiest(self, shape: Shape) -> NodeState | None:
        """The awake node with the least taken that could hold this shape when empty."""
        allowed = self.view.allowed(shape)
        best: Site | None = None
        for site in self.index.sites():
            if site.mode != Mode.AWAKE or self.outlooks.never(shape, site) is not None:
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
        return self.outlooks.never(shape, site) is None and self.view.refusal(shape, node) is None

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
            if self.outlooks.never(shape, site) is None
        )

    def end(self, record: TaskRecord, outcome: Outcome) -> None:
        record.shape.live -= 1
        del self.tasks[record.name]
        self.ended[record.name] = outcome
        if len(self.ended) > self.most_ended:
            del self.ended[next(iter(self.ended))]


def _devices_there(taken: DeviceUse, old: NodeClass, new: NodeClass) -> DeviceUse:
    """What a task has of the devices of a node that has others now: those it had, as far as they are still there."""
    had = {kind: grant for (kind, _), grant in zip(old.devices, taken, strict=True)}
    return tuple((*had.get(kind, ())[:count], *(0,) * (count - len(had.get(kind, ())))) for kind, count in new.devices)


def _negative(use: DeviceUse) -> DeviceUse:
    return tuple(tuple(-share for share in grant) for grant in use)


def _idle_microwatts(site: Site) -> int:
    machine = site.cls.machine
    return round((machine.sleep_w if site.mode == Mode.ASLEEP else machine.idle_w) * MICRO)


def _emptier(site: Site, other: Site) -> bool:
    one = (site.allocated, site.memory, site.first())
    return one < (other.allocated, other.memory, other.first())
