"""The facts in a log: who ran what where for how long, and the trial they make.

Owns the reconstruction of a trial from recorded events, and the list of what had to be assumed for it.
"""

from collections.abc import Iterator

import msgspec

from wattloom.cluster.node import Node
from wattloom.machines.machine import Machine
from wattloom.machines.profile import MachineProfile
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Place
from wattloom.simulation.arrivals import SHORTEST_S
from wattloom.simulation.result import devices_of
from wattloom.simulation.trial import Arrival, Happening, SchedulerCost, Trial
from wattloom.units import Joules, millicores
from wattloom.workload.function import Function, Variant
from wattloom.workload.task import Task

Key = tuple[str, str, str]


class Recorded:
    """What a log says, gathered event by event."""

    def __init__(self) -> None:
        self.machines: dict[str, MachineProfile] = {}
        self.functions: dict[str, Function] = {}
        self.nodes: dict[str, Node] = {}
        """Those that were there before the first task, as they joined or were changed until then."""
        self.happenings: list[Happening] = []
        self.tasks: dict[str, tuple[float, Task]] = {}
        self.cap: float | None = None
        self._cpu: dict[str, int] = {}
        self._archs: dict[str, set[tuple[str, ...]]] = {}
        """By function: the architectures its tasks asked for, where they are not the function's own."""
        self._machine_of: dict[str, str] = {}
        self._present: set[str] = set()
        """Machines that ever were here."""
        self._used: set[str] = set()
        """Machines on which tasks ran."""
        self._lost: set[str] = set()
        self._ran: dict[str, tuple[str, str]] = {}
        """Build and machine of each task's last placement."""
        self._seconds: dict[str, float] = {}
        self._means: dict[Key, float] | None = None
        self._readings: int = 0
        self._early: int = 0
        self._changes: int = 0
        self._own_failures: int = 0
        self._other_failures: int = 0
        self._fell_asleep: int = 0
        self._placed_by_others: int = 0
        self._removed: int = 0
        self._changed_tasks: set[str] = set()

    def event(self, event: ev.AnyEvent, time: float) -> None:
        """Take an event in that happened so many seconds after the first."""
        if isinstance(event, ev.TaskSubmitted | ev.TaskOrphaned):
            self._submitted(event.task, time)
        elif isinstance(event, ev.TaskFound):
            self._found(event, time)
        elif isinstance(event, ev.TaskFinished):
            if event.seconds is not None:
                self._seconds[event.task] = event.seconds
                self._means = None
        elif isinstance(event, ev.TaskFailed):
            self._own_failures += event.kind == "function"
            self._other_failures += event.kind == "infrastructure"
        elif isinstance(event, ev.InstructionFailed):
            self._other_failures += 1
        elif isinstance(event, ev.CancelRequested):
            self.happenings.append(ev.CancelRequested(time, event.task))
        elif isinstance(event, ev.TaskChanged):
            self._changed_task(event.task)
        elif isinstance(event, ev.TaskRemoved):
            self._removed += 1
        elif isinstance(event, ev.FunctionDefined):
            self.functions[event.function.name] = event.function
        elif isinstance(event, ev.CapChanged):
            if time == 0.0:
                self.cap = event.watts
            else:
                self.happenings.append(ev.CapChanged(time, event.watts))
        elif isinstance(event, ev.ReadingArrived):
            self._readings += 1
        else:
            self._cluster_event(event, time)

    def _cluster_event(self, event: ev.AnyEvent, time: float) -> None:
        if isinstance(event, ev.MachineDefined):
            self.machines[event.machine.name] = event.machine
        elif isinstance(event, ev.NodeJoined):
            self._joined(event.node, time)
        elif isinstance(event, ev.NodeChanged):
            self._changed(event.node)
        elif isinstance(event, ev.NodeLost):
            self._lost.add(event.node)
            self.happenings.append(ev.NodeLost(time, event.node))
        elif isinstance(event, ev.NodeAsleep):
            self._fell_asleep += 1
        elif isinstance(event, ev.TaskMigrated):
            self._runs(event.task, self._ran[event.task][0], event.node)
        elif isinstance(event, ev.SignalChanged):
            begin = event.time - time
            forecast = tuple((at - begin, value) for at, value in event.forecast)
            self.happenings.append(ev.SignalChanged(time, event.name, event.value, forecast))
        elif isinstance(event, ev.PlanChanged | ev.ModelChanged):
            self.happenings.append(msgspec.structs.replace(event, time=time))

    def _joined(self, node: Node, time: float) -> None:
        self._is_of(node)
        if node.name not in self.nodes and (time == 0.0 or not self.tasks):
            self.nodes[node.name] = node
            self._early += time > 0.0
        else:
            self.happenings.append(ev.NodeJoined(time, node))

    def _changed(self, node: Node) -> None:
        self._is_of(node)
        known = self.nodes.get(node.name)
        if known is not None and not self.tasks and node.name not in self._lost:
            self.nodes[node.name] = msgspec.structs.replace(node, asleep=known.asleep)
        else:
            self._changes += 1

    def _is_of(self, node: Node) -> None:
        self._machine_of[node.name] = node.machine
        self._present.add(node.machine)

    def _submitted(self, task: Task, time: float) -> None:
        self.tasks[task.id] = (time, task)
        function = self.functions[task.function].requirements
        requirements = task.requirements or function
        self._cpu[task.id] = millicores(requirements.cpu)
        if requirements.arch != function.arch:
            self._archs.setdefault(task.function, set()).add(requirements.arch)

    def _changed_task(self, task: Task) -> None:
        """What it draws from now on; another policy gets it as it was submitted."""
        self._changed_tasks.add(task.id)
        self._cpu[task.id] = millicores((task.requirements or self.functions[task.function].requirements).cpu)

    def _found(self, event: ev.TaskFound, time: float) -> None:
        """Somebody else had placed it; another policy has to place it itself."""
        self._placed_by_others += 1
        if event.task.id not in self.tasks:
            self._submitted(event.task, time)
        self._runs(event.task.id, self.functions[event.task.function].variants[0].name, event.node)

    def instruction(self, instruction: AnyInstruction) -> None:
        if isinstance(instruction, Place):
            self._runs(instruction.task, instruction.variant, instruction.node)

    def _runs(self, task: str, variant: str, node: str) -> None:
        machine = self._machine_of[node]
        self._ran[task] = (variant, machine)
        self._used.add(machine)
        self._means = None

    def cpu_of(self, task: str) -> int:
        """Millicores the task keeps busy."""
        return self._cpu[task]

    def scheduler_joules(self, proposals: int) -> Joules:
        cost = SchedulerCost()
        seconds = proposals * cost.seconds_per_proposal + self._readings * cost.seconds_per_reading
        return Joules(seconds * cost.watts)

    def slowdowns(self, submitted: dict[str, float], finished: dict[str, float]) -> list[float]:
        """Submission to end over the shortest possible run time, for tasks whose length is known."""
        base = self._base()
        shortest: dict[str, float] = {}
        for (function, _, machine), seconds in base.items():
            if machine in self._present:
                shortest[function] = min(seconds, shortest.get(function, seconds))
        result: list[float] = []
        for task, end in finished.items():
            best = shortest.get(self.tasks[task][1].function, 0.0) * self._factor(task, base)
            if best >= SHORTEST_S:
                result.append((end - submitted[task]) / best)
        return result

    def trial(self, name: str) -> Trial:
        """The same work on the same nodes, ready for another policy."""
        base = self._base()
        arrivals = [Arrival(time, task, self._factor(name, base)) for name, (time, task) in self.tasks.items()]
        return Trial(
            name=name,
            machines=list(self.machines.values()),
            functions=list(self.functions.values()),
            nodes=list(self.nodes.values()),
            arrivals=arrivals,
            seconds=base,
            happenings=self.happenings,
            power_cap_w=self.cap,
            assumptions=self._assumptions(),
        )

    def _factor(self, task: str, base: dict[Key, float]) -> float:
        seconds = self._seconds.get(task)
        if seconds is None or task not in self._ran:
            return 1.0
        usual = base.get((self.tasks[task][1].function, *self._ran[task]))
        return seconds / usual if usual else 1.0

    def _pairs(self) -> Iterator[tuple[Key, Variant]]:
        """Every (function, variant, machine) that a task may come to run as."""
        for function in self.functions.values():
            asked = {function.requirements.arch, *self._archs.get(function.name, ())}
            for variant in function.variants:
                for machine in self.machines.values():
                    if _allows(variant.arch, machine) and any(_allows(archs, machine) for archs in asked):
                        yield (function.name, variant.name, machine.name), variant

    def _base(self) -> dict[Key, float]:
        """Usual seconds by (function, variant, machine): declared, else seen, else carried over by speed."""
        seen = self._seen()
        base: dict[Key, float] = {}
        for key, variant in self._pairs():
            known = variant.seconds.get(key[2], seen.get(key))
            base[key] = known if known is not None else self._carried_over(key, variant.seconds, seen)
        return base

    def _seen(self) -> dict[Key, float]:
        """Mean seconds where tasks ran; worked out once, when all is taken in."""
        if self._means is None:
            sums: dict[Key, list[float]] = {}
            for task, seconds in self._seconds.items():
                if task in self._ran:
                    sums.setdefault((self.tasks[task][1].function, *self._ran[task]), []).append(seconds)
            self._means = {key: sum(values) / len(values) for key, values in sums.items()}
        return self._means

    def _carried_over(self, key: Key, declared: dict[str, float], seen: dict[Key, float]) -> float:
        speed = self.machines[key[2]].speed
        there = [
            seconds * self.machines[machine].speed / speed
            for machine in sorted(self.machines)
            if (seconds := declared.get(machine, seen.get((key[0], key[1], machine), 0.0)))
        ]
        return sum(there) / len(there) if there else 1.0

    def _assumptions(self) -> list[str]:
        notes = [
            "a task is as long, against its function's usual length, on every machine as it was where it ran",
            "cold starts are not in the log: none were added",
        ]
        unseen = sum(task not in self._seconds for task in self.tasks)
        if unseen:
            notes.append(f"{_count(unseen, 'task')} without a recorded length: their function's usual one was taken")
        if self._removed:
            notes.append(f"{_count(self._removed, 'task')} taken away by others: here they run to their end")
        if self._changed_tasks:
            notes.append(
                f"{_count(len(self._changed_tasks), 'task')} with other needs later: those of before were kept"
            )
        if self._early:
            notes.append(f"{_count(self._early, 'node')} that joined before the first task: there from the first event")
        if self._placed_by_others:
            notes.append(f"{_count(self._placed_by_others, 'task')} that others had placed: submitted when found")
        notes += self._not_repeated()
        seen = self._seen()
        carried = sum(key[2] not in variant.seconds and key not in seen for key, variant in self._pairs())
        if carried:
            notes.append(f"{_count(carried, 'run time')} carried over from other machines by their speeds")
        counting = self._that_count()
        unknown = [name for name, each in self.machines.items() if name in counting and not Machine(each).knows_power]
        if unknown:
            notes.append(f"no power curve for {', '.join(unknown)}: their joules are missing")
        return notes

    def devices(self) -> dict[str, int]:
        """Of all nodes there were."""
        joining = [happening.node for happening in self.happenings if isinstance(happening, ev.NodeJoined)]
        return devices_of({node.name: node for node in (*self.nodes.values(), *joining)}.values())

    def _that_count(self) -> set[str]:
        """Machines that something ran on, and those of nodes that are here in the simulation, which draw when idle."""
        joining = [happening.node for happening in self.happenings if isinstance(happening, ev.NodeJoined)]
        return self._used | {node.machine for node in (*self.nodes.values(), *joining)}

    def _not_repeated(self) -> list[str]:
        """What befell the run that the simulation leaves out."""
        left_out = (
            (self._changes, "change of nodes", "changes of nodes"),
            (self._fell_asleep, "node's falling asleep by itself", "times a node fell asleep by itself"),
            (self._own_failures, "failure of a function's own", "failures of functions' own"),
            (self._other_failures, "failure of the machinery's", "failures of the machinery's"),
        )
        return [
            f"{_count(count, one, many)} {'was' if count == 1 else 'were'} not repeated"
            for count, one, many in left_out
            if count
        ]


def _allows(archs: tuple[str, ...], machine: MachineProfile) -> bool:
    return not archs or machine.arch in archs


def _count(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
