"""A recorded run as a trial: the same work on the same nodes, for another policy.

Owns the reconstruction of a trial from a run's trace, and the list of what had to be assumed for it. Which record of a
log says what is `history`'s.
"""

from collections.abc import Iterator

import msgspec

from wattloom.cluster.node import Node
from wattloom.history.run_trace import CameFromOutside, NodeAdded, NodeRemoved, NodeUpdated, RunTrace, TraceRow
from wattloom.machines.machine import Machine
from wattloom.machines.profile import MachineProfile
from wattloom.scheduling.events import NodeJoined, NodeLost
from wattloom.simulation.arrivals import SHORTEST_S
from wattloom.simulation.result import devices_of
from wattloom.simulation.trial import Arrival, Happening, SchedulerCost, Trial
from wattloom.units import Joules
from wattloom.workload.function import Variant

Key = tuple[str, str, str]


class Recorded:
    """What a run's trace says, gathered row by row."""

    def __init__(self, trace: RunTrace) -> None:
        self._trace: RunTrace = trace
        self.nodes: dict[str, Node] = {}
        """Those that were there before the first task, as they joined or were changed until then."""
        self.happenings: list[Happening] = []
        self._late: list[Node] = []
        """Those that join later."""
        self._present: set[str] = set()
        """Machines that ever were here."""
        self._lost: set[str] = set()
        self._early: int = 0
        self._changes: int = 0
        self._means: dict[Key, float] | None = None

    def take(self, row: TraceRow) -> None:
        """One more row of the trace."""
        if isinstance(row, NodeAdded):
            self._added(row.node, row.time)
        elif isinstance(row, NodeUpdated):
            self._updated(row.node)
        elif isinstance(row, NodeRemoved):
            self._lost.add(row.node)
            self.happenings.append(NodeLost(row.time, row.node))
        elif isinstance(row, CameFromOutside):
            self.happenings.append(row.event)

    def _added(self, node: Node, time: float) -> None:
        self._present.add(node.machine)
        if node.name not in self.nodes and (time == 0.0 or not self._trace.arrivals):
            self.nodes[node.name] = node
            self._early += time > 0.0
        else:
            self._late.append(node)
            self.happenings.append(NodeJoined(time, node))

    def _updated(self, node: Node) -> None:
        self._present.add(node.machine)
        known = self.nodes.get(node.name)
        if known is not None and not self._trace.arrivals and node.name not in self._lost:
            self.nodes[node.name] = msgspec.structs.replace(node, asleep=known.asleep)
        else:
            self._changes += 1

    def scheduler_joules(self, proposals: int) -> Joules:
        cost = SchedulerCost()
        seconds = proposals * cost.seconds_per_proposal + self._trace.readings * cost.seconds_per_reading
        return Joules(seconds * cost.watts)

    def slowdowns(self) -> list[float]:
        """Submission to end over the shortest possible run time, for tasks whose length is known."""
        arrivals, base = self._trace.arrivals, self._base()
        shortest: dict[str, float] = {}
        for (function, _, machine), seconds in base.items():
            if machine in self._present:
                shortest[function] = min(seconds, shortest.get(function, seconds))
        result: list[float] = []
        for task, end in self._trace.ends.items():
            best = shortest.get(arrivals[task].task.function, 0.0) * self._factor(task, base)
            if best >= SHORTEST_S:
                result.append((end - arrivals[task].time) / best)
        return result

    def trial(self, name: str) -> Trial:
        """The same work on the same nodes, ready for another policy."""
        trace, base = self._trace, self._base()
        arrivals = [Arrival(each.time, each.task, self._factor(id_, base)) for id_, each in trace.arrivals.items()]
        return Trial(
            name=name,
            machines=list(trace.machines.values()),
            functions=list(trace.functions.values()),
            nodes=list(self.nodes.values()),
            arrivals=arrivals,
            seconds=base,
            happenings=self.happenings,
            power_cap_w=trace.cap_w,
            assumptions=self._assumptions(),
        )

    def _factor(self, task: str, base: dict[Key, float]) -> float:
        seconds, key = self._trace.seconds.get(task), self._key_of(task)
        if seconds is None or key is None:
            return 1.0
        usual = base.get(key)
        return seconds / usual if usual else 1.0

    def _key_of(self, task: str) -> Key | None:
        """What it last ran as; None: it never had a place."""
        trace = self._trace
        ran = trace.ran_as.get(task)
        return None if ran is None else (trace.arrivals[task].task.function, ran.variant, ran.machine)

    def _pairs(self) -> Iterator[tuple[Key, Variant]]:
        """Every (function, variant, machine) that a task may come to run as."""
        trace = self._trace
        for function in trace.functions.values():
            asked = {function.requirements.arch, *trace.archs.get(function.name, ())}
            for variant in function.variants:
                for machine in trace.machines.values():
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
            for task, seconds in self._trace.seconds.items():
                key = self._key_of(task)
                if key is not None:
                    sums.setdefault(key, []).append(seconds)
            self._means = {key: sum(values) / len(values) for key, values in sums.items()}
        return self._means

    def _carried_over(self, key: Key, declared: dict[str, float], seen: dict[Key, float]) -> float:
        machines = self._trace.machines
        speed = machines[key[2]].speed
        there = [
            seconds * machines[machine].speed / speed
            for machine in sorted(machines)
            if (seconds := declared.get(machine, seen.get((key[0], key[1], machine), 0.0)))
        ]
        return sum(there) / len(there) if there else 1.0

    def _assumptions(self) -> list[str]:
        notes = [
            "a task is as long, against its function's usual length, on every machine as it was where it ran",
            "cold starts are not in the log: none were added",
        ]
        trace = self._trace
        unseen = sum(task not in trace.seconds for task in trace.arrivals)
        if unseen:
            notes.append(f"{_count(unseen, 'task')} without a recorded length: their function's usual one was taken")
        if trace.removed:
            notes.append(f"{_count(trace.removed, 'task')} taken away by others: here they run to their end")
        if trace.changed:
            notes.append(f"{_count(len(trace.changed), 'task')} with other needs later: those of before were kept")
        if self._early:
            notes.append(f"{_count(self._early, 'node')} that joined before the first task: there from the first event")
        if trace.found:
            notes.append(f"{_count(trace.found, 'task')} that others had placed: submitted when found")
        notes += self._not_repeated()
        seen = self._seen()
        carried = sum(key[2] not in variant.seconds and key not in seen for key, variant in self._pairs())
        if carried:
            notes.append(f"{_count(carried, 'run time')} carried over from other machines by their speeds")
        counting = self._that_count()
        unknown = [name for name, each in trace.machines.items() if name in counting and not Machine(each).knows_power]
        if unknown:
            notes.append(f"no power curve for {', '.join(unknown)}: their joules are missing")
        return notes

    def devices(self) -> dict[str, int]:
        """Of all nodes there were."""
        return devices_of({node.name: node for node in (*self.nodes.values(), *self._late)}.values())

    def _that_count(self) -> set[str]:
        """Machines that something ran on, and those of nodes that are here in the simulation, which draw when idle."""
        return self._trace.used_machines | {node.machine for node in (*self.nodes.values(), *self._late)}

    def _not_repeated(self) -> list[str]:
        """What befell the run that the simulation leaves out."""
        left_out = (
            (self._changes, "change of nodes", "changes of nodes"),
            *((count, one, many) for (one, many), count in self._trace.incidents.items()),
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
