"""A recorded log again: as it was, and as it would have been under another policy.

Owns the two results of a log. The first has the recorded events told to a fresh engine, which is compared with what was
decided, and takes the joules from the run's trace. The other turns the trace into a trial and simulates it; whatever
the log does not say is assumed, and every assumption is named. A run that was not a simulation is simulated under its
own policy too: only simulations are compared. What each record says of a run is `history`'s. Times count from the log's
first event.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from wattloom.cluster.node import Node
from wattloom.cluster.node_class import Mode
from wattloom.history.log import Log
from wattloom.history.replayer import Fold, Progress, predictor_of, tasks_in
from wattloom.history.run_trace import (
    LoadChanged,
    NodeAdded,
    NodeFrequencySet,
    NodeModeSet,
    NodeRemoved,
    NodeUpdated,
    RunTrace,
    TraceRow,
)
from wattloom.machines.machine import Machine
from wattloom.policies.protocol import Policy
from wattloom.prediction.protocol import Predictor
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


class _AsRun:
    """The trace of a run, with a meter on every node."""

    def __init__(self, log: Log, policy: Policy | None, progress: Progress | None, trusted: bool) -> None:
        self.log: Final = log
        self._asked: Final = policy is not None
        self._fold: Final = Fold(log, policy, progress, trusted=trusted)
        self._trace: Final = RunTrace(self._fold)
        self.facts: Final = Recorded(self._trace)
        self._physics: Final = Physics()
        self._machines: dict[str, Machine] = {}

    @property
    def same(self) -> bool | None:
        return self._fold.same if self._asked else None

    @property
    def assumptions(self) -> list[str]:
        notes = [
            "the joules as recorded are modelled: recorded times on the machines' power curves",
            "the scheduler's own energy is counted at the default cost per proposal",
        ]
        if self._trace.metered_as:
            how = " and ".join(sorted(self._trace.metered_as))
            notes.append(f"the meter counted {self._trace.metered_j:,.1f} J while tasks ran ({how})")
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
        """Take every row in."""
        for row in self._trace.rows():
            self.facts.take(row)
            self._take(row)

    def _take(self, row: TraceRow) -> None:
        """What hosts draw from now on."""
        physics, time = self._physics, row.time
        if isinstance(row, LoadChanged):
            host = self._host(row.node)
            physics.change(host, time)
            host.set_demand(host.demand + row.millicores)
            physics.changed(host, time)
        elif isinstance(row, NodeAdded):
            physics.join(row.node.name, self._machine(row.node), row.node.asleep, time)
        elif isinstance(row, NodeUpdated):
            self._updated(row.node, time)
        elif isinstance(row, NodeRemoved):
            physics.lose(row.node, time)
        elif isinstance(row, NodeModeSet):
            turn = {Mode.AWAKE: physics.awake, Mode.ASLEEP: physics.sleep, Mode.WAKING: physics.wake}[row.mode]
            turn(self._host(row.node), time)
        elif isinstance(row, NodeFrequencySet):
            physics.set_frequency(self._host(row.node), round(row.share * 1000), time)

    def _updated(self, node: Node, time: float) -> None:
        """Only another machine draws otherwise; then the meter of the old one stops, and the new one's begins."""
        physics, machine, old = self._physics, self._machine(node), self._host(node.name)
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

    def _machine(self, node: Node) -> Machine:
        profile = self._trace.machines[node.machine]
        known = self._machines.get(node.machine)
        if known is None or known.profile is not profile:
            known = self._machines[node.machine] = Machine(profile)
        return known

    def _host(self, name: str) -> Host:
        host = self._physics.hosts.get(name)
        if host is None:
            raise self._fold.wrong(f"names node {name}, which is not here")
        return host

    # -- the result --------------------------------------------------------------------------------------------------

    def result(self) -> Result:
        trace, end = self._trace, self._trace.last_end
        power = self._physics.power
        counted = max(end, power.until)  # as in the simulator's loop
        hosts = self._physics.settle(counted)
        capacity = threads_of(hosts) * counted
        proposals = self._fold.engine.proposals
        arrived, finished = len(trace.arrivals), len(trace.ends)
        waits = list(trace.waits.values())
        devices = self.facts.devices()
        return Result(
            scenario=self.log.header.scenario or self.log.path.name,
            policy=self.log.header.policy,
            seed=self.log.header.seed,
            makespan_s=end,
            energy=energy_of(hosts, self.facts.scheduler_joules(proposals)),
            tasks=TaskCounts(arrived, finished, trace.ended_otherwise, arrived - finished - trace.ended_otherwise),
            wait_s=Quantiles.of(waits),
            slowdown=Quantiles.of(self.facts.slowdowns()),
            utilisation=sum(host.busy_core_s for host in hosts) / capacity if capacity > 0.0 else 0.0,
            decisions=trace.decisions,
            proposals=proposals,
            digest=trace.digest.hex(),
            waits=waits,
            power=power.series(counted),
            warnings=uncounted(devices),
            devices=devices,
            peak_w=power.peak,
            assumptions=self.assumptions,
        )
