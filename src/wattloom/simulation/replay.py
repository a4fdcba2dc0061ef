"""A recorded log again: as it was, and as it would have been under another policy.

Owns the two results of a log. The first folds the recorded events into a fresh engine, compares what it decides with
what was decided, and takes the joules from the recorded times. The other turns the log into a trial and simulates it;
whatever the log does not say is assumed, and every assumption is named. A run that was not a simulation is simulated
under its own policy too: only simulations are compared. Times count from the log's first event.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from wattloom.cluster.node import Node
from wattloom.history.log import Digest, Log
from wattloom.history.replayer import Fold, Progress, predictor_of, tasks_in
from wattloom.machines.machine import Machine
from wattloom.policies.protocol import Policy
from wattloom.prediction.protocol import Predictor
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Conclude, Place, Sleep, Wake
from wattloom.simulation.host import ASLEEP, WAKING, Host
from wattloom.simulation.loop import Simulation
from wattloom.simulation.parallel_runs import blamed_on
from wattloom.simulation.physics import Physics, energy_of, threads_of
from wattloom.simulation.recorded import Recorded
from wattloom.simulation.result import Quantiles, Result, TaskCounts, uncounted
from wattloom.simulation.trial import Trial

SIMULATION: Final = "simulation"
"""The backend of a log that is on a simulation's terms already."""


class Replay(msgspec.Struct, frozen=True):
    """What a log cost, and what it would have cost."""

    recorded: Result
    """As it ran, by the recorded times and the power curves."""
    counterfactual: Result | None
    """Under the other policy, simulated."""
    same_decisions: bool | None
    """Whether the recorded events lead to the recorded decisions again. None: the policy was not asked."""
    assumptions: list[str]
    """What the log does not say and was assumed."""
    reference: Result | None = None
    """What the saving is against: the recorded run if it was a simulation, else the same work simulated under the
    recorded policy. None: there is no other policy, or the recorded one was not asked."""

    @property
    def is_of_a_simulation(self) -> bool:
        """Whether the recorded run itself is what the other policy is compared with."""
        return self.reference is self.recorded

    @property
    def saving(self) -> float | None:
        """Share of the energy saved, only where the same number of tasks was finished and something was drawn."""
        if self.counterfactual is None or self.reference is None:
            return None
        before, after = self.reference.energy.total, self.counterfactual.energy.total
        finished = {each.tasks.finished for each in (self.recorded, self.reference, self.counterfactual)}
        return (before - after) / before if len(finished) == 1 and before > 0.0 else None

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it: the reference where it is not the recorded run itself."""
        apart = self.counterfactual is not None and not self.is_of_a_simulation
        reference = None if self.reference is None else self.reference.to_json()
        return {
            "recorded": self.recorded.to_json(),
            "counterfactual": None if self.counterfactual is None else self.counterfactual.to_json(),
            "same_decisions": self.same_decisions,
            "saving": self.saving,
            "assumptions": self.assumptions,
        } | ({"reference": reference} if apart else {})


def replay(
    path: Path,
    recorded_policy: Policy | None,
    policy: Policy | None = None,
    progress: Progress | None = None,
    *,
    anew: Policy | None = None,
    trusted: bool = False,
) -> Replay:
    """Fold a log and, if another policy is given, simulate the same work under it. Without the recorded one nobody
    looks whether it would decide the same again. `anew` is the recorded one once more, which has not been asked yet:
    what really ran is simulated under it, for comparison. `trusted`: a predictor that the log names may be a file."""
    log = Log(path)
    simulated = log.header.backend == SIMULATION
    passes = 1 + (policy is not None) + (policy is not None and not simulated and anew is not None)
    both = None if progress is None else _Both(progress, tasks_in(log), passes)
    as_run = _AsRun(log, recorded_policy, both, trusted)
    with no_garbage_collection():
        as_run.fold()
    recorded = as_run.result()
    if policy is None:
        return Replay(recorded, None, as_run.same, as_run.assumptions)
    trial = as_run.facts.trial(log.header.scenario or path.name)
    predictor = partial(predictor_of, log, trusted)
    counterfactual = _simulated(trial, policy, predictor(), both)
    reference: Result | None = recorded
    notes = [*as_run.assumptions, *trial.assumptions]
    if not simulated:
        reference = None if anew is None else _simulated_anew(trial, anew, predictor(), recorded, both)
        notes.append(
            "as it ran, times are real, with start-up and waiting; what is compared was simulated without them"
        )
    return Replay(recorded, counterfactual, as_run.same, notes, reference)


def _simulated(trial: Trial, policy: Policy, predictor: Predictor, passes: "_Both | None") -> Result:
    if passes is not None:
        passes.next_pass()
    return Simulation(trial, policy, progress=passes, predictor=predictor).run()


def _simulated_anew(
    trial: Trial, policy: Policy, predictor: Predictor, recorded: Result, passes: "_Both | None"
) -> Result:
    """Under the recorded policy, which has the name that the log gives it."""
    with blamed_on(policy, recorded.policy):
        result = _simulated(trial, policy, predictor, passes)
    return msgspec.structs.replace(result, policy=recorded.policy, seed=recorded.seed)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Nothing here makes reference cycles, and looking for them in a long log takes a quarter of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class _Both:
    """One measure of progress for all passes over the same tasks."""

    def __init__(self, progress: Progress, tasks: int, passes: int) -> None:
        self._progress: Final = progress
        self._tasks: Final = tasks
        self._total: Final = tasks * passes
        self._before: int = 0

    def __call__(self, done: int, total: int) -> None:
        self._progress(self._before + done, self._total)

    def next_pass(self) -> None:
        self._before += self._tasks


class Shares:
    """Who stands behind whom on a share of a node, as recorded."""

    def __init__(self) -> None:
        self._behind: dict[str, dict[str, None]] = {}
        """By who has the share: those behind, in order."""
        self._waits: dict[str, dict[str, None]] = {}
        """By who stands behind: the line he stands in."""

    def stand_behind(self, task: str, holder: str) -> None:
        line = self._behind.setdefault(holder, {})
        line[task] = None
        self._waits[task] = line

    def leave(self, task: str) -> str | None:
        """It has gone. Who has its share now, if it had one and somebody stood behind it."""
        line = self._waits.pop(task, None)
        if line is not None:
            line.pop(task, None)
        line = self._behind.pop(task, None)
        if not line:
            return None
        successor = next(iter(line))
        del line[successor]
        del self._waits[successor]
        self._behind[successor] = line
        return successor


class _AsRun:
    """The fold of a log, with a meter on every node."""

    def __init__(self, log: Log, policy: Policy | None, progress: Progress | None, trusted: bool) -> None:
        self.log: Final = log
        self._asked: Final = policy is not None
        self.facts: Final = Recorded()
        self._fold: Final = Fold(log, policy, progress, trusted=trusted)
        self._physics: Final = Physics()
        self._machines: dict[str, Machine] = {}
        self._on: dict[str, tuple[str, int]] = {}
        """Where each task is, and the millicores it keeps busy there."""
        self._shares: Final = Shares()
        self._metered_j: float = 0.0
        self._metered_as: set[str] = set()
        self._digest: Final = Digest()
        self._decisions: int = 0
        self._submitted: dict[str, float] = {}
        self._waits: dict[str, float] = {}
        self._finished: dict[str, float] = {}
        self._ended_otherwise: int = 0
        self._last_end: float = 0.0

    @property
    def same(self) -> bool | None:
        return self._fold.same if self._asked else None

    @property
    def assumptions(self) -> list[str]:
        notes = [
            "the joules as recorded are modelled: recorded times on the machines' power curves",
            "the scheduler's own energy is counted at the default cost per proposal",
        ]
        if self._metered_as:
            how = " and ".join(sorted(self._metered_as))
            notes.append(f"the meter counted {self._metered_j:,.1f} J while tasks ran ({how})")
        if self.log.header.lease is not None:
            notes.append("short tasks followed each other without a decision of their own; simulated, each is decided")
        if not self._asked:
            notes.append(f"what {self.log.header.policy} would decide was not asked: its proposals are not counted")
        elif self._fold.given_up_at is not None:
            notes.append(
                f"the policy decides otherwise than recorded: its proposals are counted up to line "
                f"{self._fold.given_up_at} only"
            )
        return notes

    def fold(self) -> None:
        """Take every record in."""
        for record in self._fold.records():
            time = self._fold.passed
            if isinstance(record, ev.Event):
                self.facts.event(record, time)
                self._event(record, time)
            else:
                self.facts.instruction(record)
                self._instruction(record, time)

    # -- what happened -----------------------------------------------------------------------------------------------

    def _event(self, event: ev.AnyEvent, time: float) -> None:
        if isinstance(event, ev.TaskSubmitted | ev.TaskOrphaned):
            self._submitted[event.task.id] = time
        elif isinstance(event, ev.TaskFound):
            self._found(event, time)
        elif isinstance(event, ev.TaskStarted):
            self._waits.setdefault(event.task, time - self._submitted[event.task])
        elif isinstance(event, ev.TaskFinished):
            self._off(event.task, time)
            self._finished[event.task] = time
            self._last_end = time
            if event.seconds is not None:  # of a short task, whose start was not reported
                self._waits.setdefault(event.task, max(0.0, time - event.seconds - self._submitted[event.task]))
        elif isinstance(event, ev.TaskFailed | ev.TaskReturned | ev.TaskRemoved):
            self._off(event.task, time)
        elif isinstance(event, ev.TaskMigrated):
            cpu = self.facts.cpu_of(event.task)
            self._off(event.task, time)
            self._add(self._host(event.node), cpu, time)
            self._on[event.task] = (event.node, cpu)
        elif isinstance(event, ev.TaskChanged):
            self._resized(event.task.id, time)
        elif isinstance(event, ev.UsageArrived):
            self._metered_j += event.meter_j
            self._metered_as.add(event.provenance)
        elif isinstance(event, ev.InstructionFailed):
            self._failed(event, time)
        else:
            self._cluster_event(event, time)

    def _cluster_event(self, event: ev.AnyEvent, time: float) -> None:
        physics = self._physics
        if isinstance(event, ev.MachineDefined):
            self._machines[event.machine.name] = Machine(event.machine)
        elif isinstance(event, ev.NodeJoined):
            physics.join(event.node.name, self._machines[event.node.machine], event.node.asleep, time)
        elif isinstance(event, ev.NodeChanged):
            self._changed(event.node, time)
        elif isinstance(event, ev.NodeLost):
            physics.lose(event.node, time)
            self._on = {task: place for task, place in self._on.items() if place[0] != event.node}
        elif isinstance(event, ev.NodeAwake):
            physics.awake(self._host(event.node), time)
        elif isinstance(event, ev.NodeAsleep):
            physics.sleep(self._host(event.node), time)
        elif isinstance(event, ev.FrequencyChanged):
            physics.set_frequency(self._host(event.node), round(event.share * 1000), time)

    def _found(self, event: ev.TaskFound, time: float) -> None:
        """It is on that node, wherever it was meant to be, and the node is awake."""
        task, host = event.task.id, self._host(event.node)
        self._submitted.setdefault(task, time)
        self._waits.setdefault(task, time - self._submitted[task])
        self._off(task, time)
        if event.behind:
            self._shares.stand_behind(task, event.behind)
            return
        if host.mode in (ASLEEP, WAKING):
            self._physics.awake(host, time)
        cpu = self.facts.cpu_of(task)
        self._add(host, cpu, time)
        self._on[task] = (event.node, cpu)

    def _resized(self, task: str, time: float) -> None:
        place = self._on.get(task)
        if place is not None:
            cpu = self.facts.cpu_of(task)
            self._add(self._host(place[0]), cpu - place[1], time)
            self._on[task] = (place[0], cpu)

    def _failed(self, event: ev.InstructionFailed, time: float) -> None:
        """What was asked for did not happen: as before."""
        if event.instruction == "place":
            self._off(event.task, time)
        elif event.instruction == "wake":
            self._physics.sleep(self._host(event.node), time)
        elif event.instruction == "sleep":
            self._physics.awake(self._host(event.node), time)

    def _changed(self, node: Node, time: float) -> None:
        """Only another machine draws otherwise; then the meter of the old one stops, and the new one's begins."""
        physics, machine, old = self._physics, self._machines[node.machine], self._host(node.name)
        if machine.profile == old.machine.profile:
            return
        mode, demand = old.mode, old.demand
        physics.lose(node.name, time)
        physics.join(node.name, machine, mode in (ASLEEP, WAKING), time)
        host = physics.hosts[node.name]
        physics.change(host, time)
        if mode == WAKING:
            host.mode = WAKING
            if machine.profile.wake_s > 0.0:
                host.watts = machine.profile.wake_j / machine.profile.wake_s
        elif demand:
            host.set_demand(demand)
        physics.changed(host, time)

    # -- what was decided --------------------------------------------------------------------------------------------

    def _instruction(self, instruction: AnyInstruction, time: float) -> None:
        if isinstance(instruction, Place):
            self._decisions += 1
            self._digest.add(instruction)
            self._off(instruction.task, time)
            cpu = self.facts.cpu_of(instruction.task)
            if instruction.behind:
                self._shares.stand_behind(instruction.task, instruction.behind)
            else:
                self._add(self._host(instruction.node), cpu, time)
                self._on[instruction.task] = (instruction.node, cpu)
        elif isinstance(instruction, Conclude):
            self._ended_otherwise += 1
            self._last_end = time
        elif isinstance(instruction, Sleep):
            self._physics.sleep(self._host(instruction.node), time)
        elif isinstance(instruction, Wake):
            self._physics.wake(self._host(instruction.node), time)

    def _host(self, name: str) -> Host:
        host = self._physics.hosts.get(name)
        if host is None:
            raise self._fold.wrong(f"names node {name}, which is not here")
        return host

    def _off(self, task: str, time: float) -> None:
        place = self._on.pop(task, None)
        successor = self._shares.leave(task)
        if place is not None and successor is not None:
            self._on[successor] = place
        elif place is not None:
            self._add(self._host(place[0]), -place[1], time)

    def _add(self, host: Host, cpu: int, time: float) -> None:
        self._physics.change(host, time)
        host.set_demand(host.demand + cpu)
        self._physics.changed(host, time)

    # -- the result --------------------------------------------------------------------------------------------------

    def result(self) -> Result:
        end = self._last_end
        power = self._physics.power
        counted = max(end, power.until)  # as in the simulator's loop
        hosts = self._physics.settle(counted)
        capacity = threads_of(hosts) * counted
        proposals = self._fold.engine.proposals
        waiting = len(self._submitted) - len(self._finished) - self._ended_otherwise
        waits = list(self._waits.values())
        devices = self.facts.devices()
        return Result(
            scenario=self.log.header.scenario or self.log.path.name,
            policy=self.log.header.policy,
            seed=self.log.header.seed,
            makespan_s=end,
            energy=energy_of(hosts, self.facts.scheduler_joules(proposals)),
            tasks=TaskCounts(len(self._submitted), len(self._finished), self._ended_otherwise, waiting),
            wait_s=Quantiles.of(waits),
            slowdown=Quantiles.of(self.facts.slowdowns(self._submitted, self._finished)),
            utilisation=sum(host.busy_core_s for host in hosts) / capacity if capacity > 0.0 else 0.0,
            decisions=self._decisions,
            proposals=proposals,
            digest=self._digest.hex(),
            waits=waits,
            power=power.series(counted),
            warnings=uncounted(devices),
            devices=devices,
            peak_w=power.peak,
            assumptions=self.assumptions,
        )
