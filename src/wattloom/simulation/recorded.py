"""The facts in a log: who ran what where for how long, and the trial they make.

Owns the reconstruction of a trial from recorded events, and the list of what had to be assumed for it.
"""

from wattloom.cluster.machine import Machine
from wattloom.cluster.node import Node
from wattloom.cluster.profile import MachineProfile
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Place
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
        self.nodes: list[Node] = []
        self.happenings: list[Happening] = []
        self.tasks: dict[str, tuple[float, Task]] = {}
        self.cap: float | None = None
        self._machine_of: dict[str, str] = {}
        self._ran: dict[str, tuple[str, str]] = {}
        """Build and machine of each task's last placement."""
        self._seconds: dict[str, float] = {}
        self._started: dict[str, float] = {}
        self._own_failures = 0
        self._readings = 0

    def event(self, event: ev.AnyEvent) -> None:
        if isinstance(event, ev.MachineDefined):
            self.machines[event.machine.name] = event.machine
        elif isinstance(event, ev.FunctionDefined):
            self.functions[event.function.name] = event.function
        elif isinstance(event, ev.NodeJoined):
            self._machine_of[event.node.name] = event.node.machine
            if event.time == 0.0:
                self.nodes.append(event.node)
            else:
                self.happenings.append(event)
        elif isinstance(event, ev.NodeLost | ev.CancelRequested):
            self.happenings.append(event)
        elif isinstance(event, ev.CapChanged):
            if event.time == 0.0:
                self.cap = event.watts
            else:
                self.happenings.append(event)
        elif isinstance(event, ev.TaskSubmitted):
            self.tasks[event.task.id] = (event.time, event.task)
        elif isinstance(event, ev.TaskFinished):
            if event.seconds is not None:
                self._seconds[event.task] = event.seconds
        elif isinstance(event, ev.TaskFailed):
            self._own_failures += event.kind == "function"
        elif isinstance(event, ev.ReadingArrived):
            self._readings += 1

    def instruction(self, instruction: AnyInstruction) -> None:
        if isinstance(instruction, Place):
            self._ran[instruction.task] = (instruction.variant, self._machine_of[instruction.node])

    def cpu_of(self, task: str) -> int:
        """Millicores the task keeps busy."""
        _, submitted = self.tasks[task]
        requirements = submitted.requirements or self.functions[submitted.function].requirements
        return millicores(requirements.cpu)

    def scheduler_joules(self, proposals: int) -> Joules:
        cost = SchedulerCost()
        seconds = proposals * cost.seconds_per_proposal + self._readings * cost.seconds_per_reading
        return Joules(seconds * cost.watts)

    def slowdowns(self, submitted: dict[str, float], finished: dict[str, float]) -> list[float]:
        """Submission to end over the shortest possible run time, for tasks whose length is known."""
        base = self._base()
        shortest: dict[str, float] = {}
        present = set(self._machine_of.values())
        for (function, _, machine), seconds in base.items():
            if machine in present:
                shortest[function] = min(seconds, shortest.get(function, seconds))
        result: list[float] = []
        for task, end in finished.items():
            best = shortest.get(self.tasks[task][1].function, 0.0) * self._factor(task, base)
            if best > 0.0:
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
            nodes=self.nodes,
            arrivals=arrivals,
            seconds=base,
            happenings=self.happenings,
            power_cap_w=self.cap,
            assumptions=self._assumptions(base),
        )

    def _factor(self, task: str, base: dict[Key, float]) -> float:
        seconds = self._seconds.get(task)
        if seconds is None or task not in self._ran:
            return 1.0
        usual = base.get((self.tasks[task][1].function, *self._ran[task]))
        return seconds / usual if usual else 1.0

    def _base(self) -> dict[Key, float]:
        """Usual seconds by (function, variant, machine): declared, else seen, else carried over by speed."""
        seen = self._seen()
        base: dict[Key, float] = {}
        for function in self.functions.values():
            for variant in function.variants:
                for machine in self.machines.values():
                    if not _runs_on(function, variant, machine):
                        continue
                    key = (function.name, variant.name, machine.name)
                    known = variant.seconds.get(machine.name, seen.get(key))
                    base[key] = known if known is not None else self._carried_over(key, variant.seconds, seen)
        return base

    def _seen(self) -> dict[Key, float]:
        sums: dict[Key, list[float]] = {}
        for task, seconds in self._seconds.items():
            if task in self._ran:
                sums.setdefault((self.tasks[task][1].function, *self._ran[task]), []).append(seconds)
        return {key: sum(values) / len(values) for key, values in sums.items()}

    def _carried_over(self, key: Key, declared: dict[str, float], seen: dict[Key, float]) -> float:
        speed = self.machines[key[2]].speed
        there = [
            seconds * self.machines[machine].speed / speed
            for machine in sorted(self.machines)
            if (seconds := declared.get(machine, seen.get((key[0], key[1], machine), 0.0)))
        ]
        return sum(there) / len(there) if there else 1.0

    def _assumptions(self, base: dict[Key, float]) -> list[str]:
        notes = [
            "a task is as long, against its function's usual length, on every machine as it was where it ran",
            "cold starts are not in the log: none were added",
        ]
        unseen = sum(task not in self._seconds for task in self.tasks)
        if unseen:
            notes.append(f"{unseen} tasks have no recorded length: their function's usual length was taken")
        if self._own_failures:
            notes.append(f"{self._own_failures} failures of functions' own were not repeated")
        seen = self._seen()
        carried = sum(
            1
            for function in self.functions.values()
            for variant in function.variants
            for machine in self.machines.values()
            if _runs_on(function, variant, machine)
            and machine.name not in variant.seconds
            and (function.name, variant.name, machine.name) not in seen
        )
        if carried:
            notes.append(f"{carried} run times were carried over from other machines by their speeds")
        unknown = [profile.name for profile in self.machines.values() if not Machine(profile).knows_power]
        if unknown:
            notes.append(f"no power curve for {', '.join(unknown)}: their joules are missing")
        return notes


def _runs_on(function: Function, variant: Variant, machine: MachineProfile) -> bool:
    """Whether this build can run on this machine's architecture."""
    asked = function.requirements.arch
    return (not asked or machine.arch in asked) and (not variant.arch or machine.arch in variant.arch)
