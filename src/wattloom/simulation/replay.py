"""A recorded log again: as it was, explained, and as it would have been under another policy.

Owns the three ways to read a log back. The first folds the recorded events into a fresh engine, compares what it
decides with what was decided, and takes the joules from the recorded times. The last turns the log into a trial and
simulates it; whatever the log does not say is assumed, and every assumption is named.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from wattloom.cluster.machine import Machine
from wattloom.errors import EventRefused, InputError, LogError
from wattloom.policies.protocol import Policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.explanation import Explanation, explain
from wattloom.scheduling.instructions import AnyInstruction, Conclude, Place, Sleep, Wake
from wattloom.scheduling.log import Digest, Log
from wattloom.scheduling.state import TaskRecord
from wattloom.simulation.host import Host
from wattloom.simulation.loop import Simulation
from wattloom.simulation.physics import energy_of, threads_of
from wattloom.simulation.power_trace import PowerTrace
from wattloom.simulation.recorded import Recorded
from wattloom.simulation.result import Quantiles, Result, TaskCounts


class Replay(msgspec.Struct, frozen=True):
    """What a log cost, and what it would have cost."""

    recorded: Result
    """As it ran, by the recorded times and the power curves."""
    counterfactual: Result | None
    """Under the other policy, simulated."""
    same_decisions: bool
    """Whether the recorded events lead to the recorded decisions again."""
    assumptions: list[str]
    """What the log does not say and was assumed."""


def replay(
    path: Path,
    recorded_policy: Policy,
    policy: Policy | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Replay:
    """Fold a log and, if another policy is given, simulate the same work under it."""
    log = Log(path)
    as_run = _AsRun(log, recorded_policy)
    as_run.fold()
    recorded = as_run.result()
    if policy is None:
        return Replay(recorded, None, as_run.same, as_run.assumptions)
    trial = as_run.facts.trial(log.header.scenario or path.name)
    counterfactual = Simulation(trial, policy, progress=progress).run()
    return Replay(recorded, counterfactual, as_run.same, [*as_run.assumptions, *trial.assumptions])


def why(path: Path, task: str, recorded_policy: Policy) -> list[Explanation]:
    """Every decision on a task: each placement, and each time it had to wait for another reason than before."""
    engine = Engine(recorded_policy)
    found: list[Explanation] = []

    def watch(record: TaskRecord) -> None:
        if record.task.id == task:
            explanation = explain(record, engine.ledger.view, recorded_policy)
            if not found or explanation.node is not None or found[-1].reason != explanation.reason:
                found.append(explanation)

    engine.watcher = watch
    known = False
    for event in Log(path).events():
        known = known or (isinstance(event, ev.TaskSubmitted) and event.task.id == task)
        _handle(engine, event, path)
    if not known:
        raise InputError("task", f"{task} is not in {path}")
    return found


def _handle(engine: Engine, event: ev.AnyEvent, path: Path) -> list[AnyInstruction]:
    try:
        return engine.handle(event)
    except EventRefused as problem:
        raise LogError(str(path), f"cannot be replayed: at {event.time} s, {problem}") from problem


class _AsRun:
    """The fold of a log, with a meter on every node."""

    def __init__(self, log: Log, policy: Policy) -> None:
        self.log = log
        self.engine = Engine(policy)
        self.facts = Recorded()
        self.same = True
        self._hosts: dict[str, Host] = {}
        self._gone: list[Host] = []
        self._machines: dict[str, Machine] = {}
        self._on: dict[str, tuple[str, int]] = {}
        self._power = PowerTrace()
        self._digest = Digest()
        self._decisions = 0
        self._submitted: dict[str, float] = {}
        self._waits: dict[str, float] = {}
        self._finished: dict[str, float] = {}
        self._ended_otherwise = 0
        self._last_end = 0.0

    @property
    def assumptions(self) -> list[str]:
        return ["the joules as recorded are modelled: recorded times on the machines' power curves"]

    def fold(self) -> None:
        """Replay every event, and compare the instructions with the recorded ones."""
        expected: list[AnyInstruction] = []
        for record in self.log.records():
            if isinstance(record, ev.AnyEvent):
                self.same = self.same and not expected
                expected = _handle(self.engine, record, self.log.path)
                self.facts.event(record)
                self._event(record)
            else:
                self.same = self.same and bool(expected) and expected.pop(0) == record
                self.facts.instruction(record)
                self._instruction(record, self.engine.time)
        self.same = self.same and not expected

    def _event(self, event: ev.AnyEvent) -> None:
        if isinstance(event, ev.MachineDefined):
            self._machines[event.machine.name] = Machine(event.machine)
        elif isinstance(event, ev.NodeJoined):
            host = Host(event.node.name, self._machines[event.node.machine], event.node.asleep, event.time)
            self._hosts[host.name] = host
        elif isinstance(event, ev.NodeLost):
            host = self._hosts.pop(event.node)
            host.advance(event.time)
            host.vanish()
            self._gone.append(host)
            self._on = {task: place for task, place in self._on.items() if place[0] != event.node}
        elif isinstance(event, ev.NodeAwake):
            self._mode(self._hosts[event.node], event.time, "awake")
        elif isinstance(event, ev.NodeAsleep):
            self._mode(self._hosts[event.node], event.time, "asleep")
        elif isinstance(event, ev.TaskSubmitted):
            self._submitted[event.task.id] = event.time
        elif isinstance(event, ev.TaskStarted):
            self._waits.setdefault(event.task, event.time - self._submitted[event.task])
        elif isinstance(event, ev.TaskFinished):
            self._off(event.task, event.time)
            self._finished[event.task] = event.time
            self._last_end = event.time
        elif isinstance(event, ev.TaskFailed) or (
            isinstance(event, ev.InstructionFailed) and event.instruction == "place"
        ):
            self._off(event.task, event.time)
        self._power.change(event.time, sum(host.watts for host in self._hosts.values()))

    def _instruction(self, instruction: AnyInstruction, time: float) -> None:
        if isinstance(instruction, Place):
            self._decisions += 1
            self._digest.add(instruction)
            host = self._hosts[instruction.node]
            cpu = self.facts.cpu_of(instruction.task)
            host.advance(time)
            host.set_demand(host.demand + cpu)
            self._on[instruction.task] = (instruction.node, cpu)
        elif isinstance(instruction, Conclude):
            self._ended_otherwise += 1
            self._last_end = time
        elif isinstance(instruction, Sleep):
            self._mode(self._hosts[instruction.node], time, "asleep")
        elif isinstance(instruction, Wake):
            self._mode(self._hosts[instruction.node], time, "waking")

    def _mode(self, host: Host, time: float, mode: str) -> None:
        host.advance(time)
        if mode == "awake":
            host.awake()
        elif mode == "asleep":
            host.fall_asleep()
        elif host.begin_waking() == 0.0:
            self._power.add(time, host.machine.profile.wake_j)

    def _off(self, task: str, time: float) -> None:
        place = self._on.pop(task, None)
        if place is not None and place[0] in self._hosts:
            host = self._hosts[place[0]]
            host.advance(time)
            host.set_demand(host.demand - place[1])

    def result(self) -> Result:
        end = self._last_end
        hosts = [*self._gone, *self._hosts.values()]
        for host in hosts:
            host.advance(end)
        threads = threads_of(hosts)
        return Result(
            scenario=self.log.header.scenario or self.log.path.name,
            policy=self.log.header.policy,
            seed=self.log.header.seed,
            makespan_s=end,
            energy=energy_of(hosts, self.facts.scheduler_joules(self.engine.proposals)),
            tasks=TaskCounts(
                len(self._submitted), len(self._finished), self._ended_otherwise, len(self.engine.ledger.tasks)
            ),
            wait_s=Quantiles.of(list(self._waits.values())),
            slowdown=Quantiles.of(self.facts.slowdowns(self._submitted, self._finished)),
            utilisation=sum(host.busy_core_s for host in hosts) / (threads * end) if end > 0.0 else 0.0,
            decisions=self._decisions,
            proposals=self.engine.proposals,
            digest=self._digest.hex(),
            waits=list(self._waits.values()),
            power=self._power.series(end),
            assumptions=self.assumptions,
        )
