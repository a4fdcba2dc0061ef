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
from wattloom.cluster.node_class import Mode, return_devices, take_devices
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import NodeState, Site
from wattloom.policies.view import View
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

ShapeKey = tuple[str, Requirements, float, bool]


class Ledger:
    """All that the engine knows, as numbers."""

    def __init__(self, terms: Terms) -> None:
        self.terms: Final = terms
        self.index: Final = Index()
        self.runtimes: Final = RunTimes()
        self.readings: Final = Readings()
        self.outlooks: Final = Outlooks(self.runtimes, terms)
        self.view: Final = View(self.index, self.outlooks, self.readings)
        self.machines: dict[str, Machine] = {}
        self.functions: dict[str, Function] = {}
        self.nodes: dict[str, Node] = {}
        self.tasks: dict[str, TaskRecord] = {}
        self.ended: dict[str, Outcome] = {}
        self.arrivals: int = 0
        self.shapes: list[Shape] = []
        self._shape_of: dict[ShapeKey, Shape] = {}

    # -- what things are ---------------------------------------------------------------------------------------------

    def define_machine(self, machine: Machine) -> None:
        self.machines[machine.name] = machine
        self.runtimes.know_machine(machine)

    def define_function(self, function: Function) -> None:
        """Tasks that are here already keep the function as it was."""
        self.functions[function.name] = function
        self._shape_of = {key: shape for key, shape in self._shape_of.items() if key[0] != function.name}

    def shape_of(self, task: Task) -> Shape:
        function = self.functions[task.function]
        requirements = task.requirements if task.requirements is not None else function.requirements
        waits = task.defer_s > 0.0 or task.deadline_s is not None
        key = (task.function, requirements, task.energy_weight, waits)
        shape = self._shape_of.get(key)
        if shape is None:
            shape = Shape(len(self.shapes), function, requirements, task.energy_weight, waits)
            self._shape_of[key] = shape
            self.shapes.append(shape)
        return shape

    def learn(self, record: TaskRecord, seconds: float) -> None:
        """A run took so long (alone): forecasts may change, and with them what was ranked."""
        outlook = record.outlook
        node = self.index.nodes.get(record.node)
        if outlook is None or node is None:
            return
        function = record.shape.function
        if self.runtimes.learn(function, outlook.variant, node.cls.machine, Seconds(seconds)):
            for shape in self.shapes:
                if shape.function.name == function.name:
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

    # -- commit and undo ---------------------------------------------------------------------------------------------

    def check(self, record: TaskRecord, node: NodeState) -> Outlook | Reason:
        """Whether the task may go to this node now."""
        site = node.site
        assert site is not None
        return self.view.outlook(record.shape, site)

    def commit(self, record: TaskRecord, node: NodeState, outlook: Outlook, cost: float) -> None:
        """Take what the task needs. `undo` is the inverse."""
        shape = record.shape
        record.node = node.name
        record.outlook = outlook
        record.cost = cost
        record.guaranteed = fit.guaranteed(shape, self.terms)
        wanted = shape.devices[outlook.variant.name]
        if wanted:
            grant = take_devices(node.cls, node.devices, wanted)
            assert grant is not None
            node.devices, record.devices = grant
        node.take(record.task.id, shape.cpu, record.guaranteed, shape.memory)
        self.index.place(node)

    def undo(self, record: TaskRecord) -> NodeState | None:
        """Give back what `commit` took; the node, if it is still there."""
        node = self.index.nodes.get(record.node)
        if node is not None:
            shape = record.shape
            if record.devices:
                node.devices = return_devices(node.devices, record.devices)
            node.give_back(record.task.id, shape.cpu, record.guaranteed, shape.memory)
            self.index.place(node)
        record.node = ""
        record.devices = ()
        record.guaranteed = 0
        record.outlook = None
        record.cost = 0.0
        return node

    def set_mode(self, node: NodeState, mode: Mode) -> None:
        node.mode = mode
        self.index.place(node)

    # -- starvation --------------------------------------------------------------------------------------------------

    def emptiest(self, shape: Shape) -> NodeState | None:
        """The awake node with the least taken that could hold this shape when empty."""
        best: Site | None = None
        for site in self.index.sites():
            if site.mode != Mode.AWAKE or self.outlooks.never(shape, site) is not None:
                continue
            if best is None or _emptier(site, best):
                best = site
        return None if best is None else self.index.nodes[best.first()]

    def room_when_released(self, shape: Shape, node: NodeState) -> bool:
        """Whether a node held for a task of this shape has room for it now."""
        site = node.site
        assert site is not None
        return any(
            fit.room(shape, variant, site, self.terms) is None for variant in fit.usable_variants(shape, site.cls)
        )

    def end(self, record: TaskRecord, outcome: Outcome) -> None:
        del self.tasks[record.task.id]
        self.ended[record.task.id] = outcome
        if len(self.ended) > REMEMBERED_ENDS:
            del self.ended[next(iter(self.ended))]


def _emptier(site: Site, other: Site) -> bool:
    one = (site.allocated, site.memory, site.first())
    return one < (other.allocated, other.memory, other.first())
