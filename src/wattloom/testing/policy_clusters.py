"""Small clusters and seeded histories on which the conformance kit tries policies.

Owns them. A history is a backend in miniature: it makes things happen by its seed, carries out what the engine asks,
and keeps what was said so that it can be said again.
"""

from collections.abc import Callable, Iterable
from random import Random
from typing import Final

from wattloom.cluster.node import Node
from wattloom.cluster.node_class import Mode
from wattloom.machines.profile import MachineProfile
from wattloom.policies.protocol import Policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import AnyInstruction, Evict, Place, Wake
from wattloom.scheduling.state import TaskRecord
from wattloom.units import GIB
from wattloom.workload.function import Function, Variant
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task

THREADS: Final = MachineProfile(
    "threads", "x86_64", cores=4, threads=8, memory=16 * GIB, watts=((0, 40.0), (4, 90.0), (8, 110.0)), tdp_w=105.0,
    quantity="package", speed=1.0, sleep_w=4.0, wake_s=20.0, wake_j=900.0,
)  # fmt: skip
MANY_CORES: Final = MachineProfile(
    "many-cores", "aarch64", cores=16, threads=16, memory=32 * GIB, watts=((0, 30.0), (8, 60.0), (16, 80.0)), speed=0.7,
)  # fmt: skip
TINY: Final = MachineProfile(
    "tiny", "aarch64", cores=2, threads=2, memory=2 * GIB, watts=((0, 2.0), (2, 5.0)), tdp_w=5.0, speed=0.3,
    quantity="package", sleep_w=0.1, wake_s=5.0, wake_j=20.0,
)  # fmt: skip
UNMEASURED: Final = MachineProfile("unmeasured", "x86_64", cores=4, threads=8, memory=16 * GIB, tdp_w=90.0, speed=1.1)
FLAT: Final = MachineProfile("flat", "x86_64", cores=2, threads=2, memory=8 * GIB, watts=((0, 50.0),), speed=1.0)
"""A curve that does not rise: every cost is zero."""
MACHINES: Final = (THREADS, MANY_CORES, TINY, UNMEASURED, FLAT)

FUNCTIONS: Final = (
    Function("declared", Requirements(cpu=1.0, memory=GIB), (Variant(seconds={"threads": 10.0, "many-cores": 14.0}),)),
    Function("carried-over", Requirements(cpu=2.0, memory=2 * GIB), (Variant(seconds={"threads": 30.0}),)),
    Function("unheard-of", Requirements(cpu=0.5, memory=GIB // 2)),
    Function("no-cpu", Requirements(cpu=0.0, memory=GIB), (Variant(seconds={"tiny": 60.0}),)),
    Function("nothing-at-all", Requirements(cpu=0.0, memory=0)),
    Function("wide", Requirements(cpu=8.0, memory=GIB), (Variant(seconds={"many-cores": 20.0}),)),
    Function("gpu-share", Requirements(cpu=1.0, devices=(("gpu", 0.3),)), (Variant(seconds={"threads": 5.0}),)),
    Function("labelled", Requirements(cpu=1.0, labels=(("zone", "b"),)), (Variant(seconds={"threads": 8.0}),)),
    Function(
        "two-builds",
        Requirements(cpu=1.0, memory=GIB),
        (
            Variant("native", arch=("x86_64",), seconds={"threads": 6.0}),
            Variant("portable", arch=("aarch64",)),
            Variant("on-gpu", devices=(("gpu", 1.0),), seconds={"threads": 2.0}),
        ),
    ),
    Function("impossible", Requirements(cpu=1.0, memory=1000 * GIB)),
)


def random_node(name: str, random: Random) -> Node:
    """A node of any machine, with or without devices, labels, a cap or its eyes open."""
    machine = random.choice(MACHINES)
    asleep = machine.sleep_w is not None and random.random() < 0.4
    cap_w = (
        random.choice((None, None, None, machine.watts[-1][1] * random.uniform(0.6, 1.1))) if machine.watts else None
    )
    return Node(
        name,
        machine.name,
        cpu=random.choice((None, None, float(machine.cores))),
        labels=random.choice(({}, {"zone": "a"}, {"zone": "b"})),
        devices=random.choice(({}, {}, {"gpu": 2}, {"gpu": 1, "fpga": 1})),
        cap_w=cap_w,
        asleep=asleep,
    )


def random_task(name: str, random: Random) -> Task:
    """A call of any function, patient or not."""
    return Task(
        name,
        random.choice(FUNCTIONS).name,
        priority=random.choice((0, 0, 0, 1)),
        energy_weight=random.choice((0.0, 0.5, 1.0)),
        defer_s=random.choice((0.0, 0.0, 0.0, 20.0)),
        deadline_s=random.choice((None, None, None, 120.0)),
        idempotent=random.random() < 0.5,
        retries=random.choice((0, 1)),
    )


class History:
    """An engine with one policy, and all that happens to it."""

    def __init__(self, policy: Policy, seed: int = 0) -> None:
        self.engine: Final = Engine(policy)
        self.records: list[tuple[ev.AnyEvent, list[AnyInstruction]]] = []
        self.running: dict[str, tuple[int, str]] = {}
        """Attempt and node of what was placed, by task."""
        self._random: Final = Random(seed)
        self._pending: list[ev.AnyEvent] = []
        self._names: int = 0

    def send(self, event: ev.AnyEvent) -> list[AnyInstruction]:
        """Tell the engine, keep what it says, and do it."""
        instructions = self.engine.handle(event)
        self.records.append((event, instructions))
        for instruction in instructions:
            self._carry_out(instruction)
        return instructions

    def set_up(
        self,
        nodes: Iterable[Node],
        machines: Iterable[MachineProfile] = MACHINES,
        functions: Iterable[Function] = FUNCTIONS,
    ) -> "History":
        for machine in machines:
            self.send(ev.MachineDefined(self.engine.time, machine))
        for function in functions:
            self.send(ev.FunctionDefined(self.engine.time, function))
        for node in nodes:
            self.send(ev.NodeJoined(self.engine.time, node))
        return self

    def place(self, task: Task) -> str:
        """Submit the task: the node it was given, or nothing if it has to wait."""
        self.send(ev.TaskSubmitted(self.engine.time, task))
        record = self.engine.ledger.tasks.get(task.id)
        return record.node if record is not None else ""

    def run(self, watcher: Callable[[TaskRecord], None] | None = None, steps: int = 120) -> "History":
        """A seeded history from an empty cluster on; `watcher` sees each task before the policy is asked."""
        self.engine.watcher = watcher
        self.set_up(())
        for _ in range(self._random.choice((0, 3, 8))):
            self._join()
        for _ in range(steps):
            self._step(self._random.random())
        return self

    def drain(self, most: int = 2_000) -> None:
        """No more trouble: everything runs to its end, until only tasks are left that fit nowhere."""
        self.send(ev.CapChanged(self.engine.time, None))
        for _ in range(most):
            self._deliver()
            for task in list(self.running):
                self._finish(task, None)
            if not self.left_waiting() and not self._pending:
                return
            self._tick(1.0)

    def left_waiting(self) -> list[str]:
        """Tasks without an end that some node could take if it were empty."""
        ledger = self.engine.ledger
        return [
            name
            for name, record in ledger.tasks.items()
            if any(ledger.estimates.never(record.shape, site) is None for site in ledger.index.sites())
        ]

    def pass_time(self, until: float) -> None:
        """Ticks as the engine wants them, and sleeping nodes that wake as asked."""
        while self.engine.time < until:
            self._deliver()
            due = self.engine.next_tick
            self.send(ev.Tick(until if due is None else max(self.engine.time, min(due, until))))
            if due is not None and due <= self.engine.time and self.engine.next_tick == due:
                raise AssertionError(f"a timer at {due} never goes off")
        self._deliver()

    # -- what happens --------------------------------------------------------------------------------------------------

    def _step(self, chance: float) -> None:
        self._later(self._random.expovariate(0.5))
        if self._random.random() < 0.5:
            self._deliver()
        if chance < 0.40:
            self._names += 1
            self.send(ev.TaskSubmitted(self._now, random_task(f"task-{self._names}", self._random)))
        elif chance < 0.65:
            self._finish(self._any_running(), self._random.choice((None, self._random.uniform(1.0, 40.0))))
        elif chance < 0.70:
            self._fail(self._any_running())
        elif chance < 0.82:
            self._read()
        elif chance < 0.87:
            self._cap()
        elif chance < 0.91:
            self._join()
        elif chance < 0.93:
            self._lose()
        else:
            self._tick(self._random.choice((1.0, 10.0, 70.0)))

    @property
    def _now(self) -> float:
        return self.engine.time

    def _later(self, seconds: float) -> None:
        """Time passes, with a tick at every time the engine asked for."""
        until = self._now + seconds
        due = self.engine.next_tick
        while due is not None and due <= until:
            self.send(ev.Tick(max(due, self._now)))
            next_due = self.engine.next_tick
            due = next_due if next_due != due else None
        self.send(ev.Tick(until))

    def _tick(self, seconds: float) -> None:
        due = self.engine.next_tick
        self.send(ev.Tick(max(self._now, due) if due is not None else self._now + seconds))

    def _any_running(self) -> str | None:
        return self._random.choice(sorted(self.running)) if self.running else None

    def _finish(self, task: str | None, seconds: float | None) -> None:
        if task is not None:
            attempt, _ = self.running.pop(task)
            self.send(ev.TaskFinished(self._now, task, attempt, seconds))

    def _fail(self, task: str | None) -> None:
        if task is not None:
            attempt, _ = self.running.pop(task)
            kind = self._random.choice(("function", "infrastructure"))
            self.send(ev.TaskFailed(self._now, task, attempt, "function" if kind == "function" else "infrastructure"))

    def _read(self) -> None:
        names = self.engine.ledger.index.names
        if names:
            name = self._random.choice(names)
            tasks = {task: self._random.uniform(0.0, 20.0) for task, (_, node) in self.running.items() if node == name}
            self.send(ev.ReadingArrived(self._now, name, 10.0 + sum(tasks.values()), tasks))

    def _cap(self) -> None:
        draw = self.engine.ledger.index.microwatts / 1e6
        watts = self._random.choice((None, draw * self._random.uniform(0.9, 1.5)))
        self.send(ev.CapChanged(self._now, watts or None))

    def _join(self) -> None:
        self._names += 1
        self.send(
            ev.NodeJoined(self._now, random_node(f"node-{self._random.randrange(100)}-{self._names}", self._random))
        )

    def _lose(self) -> None:
        names = self.engine.ledger.index.names
        if names:
            name = self._random.choice(names)
            self.running = {task: place for task, place in self.running.items() if place[1] != name}
            self.send(ev.NodeLost(self._now, name))

    # -- what the engine asks ------------------------------------------------------------------------------------------

    def _carry_out(self, instruction: AnyInstruction) -> None:
        if isinstance(instruction, Place):
            self.running[instruction.task] = (instruction.attempt, instruction.node)
            self._pending.append(ev.TaskStarted(self._now, instruction.task, instruction.attempt))
        elif isinstance(instruction, Evict):
            self.running.pop(instruction.task, None)
            self._pending.append(ev.TaskFailed(self._now, instruction.task, instruction.attempt, "evicted"))
        elif isinstance(instruction, Wake):
            self._pending.append(ev.NodeAwake(self._now, instruction.node))

    def _deliver(self) -> None:
        """Reports that are under way arrive, if they still mean something."""
        pending, self._pending = self._pending, []
        for event in pending:
            if isinstance(event, ev.TaskStarted) and self.running.get(event.task, (0, ""))[0] == event.attempt:
                self.send(ev.TaskStarted(self._now, event.task, event.attempt))
            elif isinstance(event, ev.TaskFailed):
                self.send(ev.TaskFailed(self._now, event.task, event.attempt, event.kind))
            elif isinstance(event, ev.NodeAwake) and self._is_waking(event.node):
                self.send(ev.NodeAwake(self._now, event.node))

    def _is_waking(self, node: str) -> bool:
        state = self.engine.ledger.index.nodes.get(node)
        return state is not None and state.mode == Mode.WAKING
