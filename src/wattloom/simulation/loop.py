"""The simulation's loop: virtual time, events to the engine's driver, instructions to the hosts.

Owns the order of things in virtual time: (time, kind, sequence), so ties are stable and the same trial with the same
policy gives the same run, bit for bit.
"""

import gc
from collections import Counter
from collections.abc import Callable
from heapq import heappop
from typing import Final, assert_never

from wattloom.cluster.fit import tdp_doubts
from wattloom.cluster.node import Node
from wattloom.cluster.reasons import Reason
from wattloom.driving.driver import Driver
from wattloom.errors import PolicyError
from wattloom.history.digest import Digest
from wattloom.history.log import LogWriter
from wattloom.history.waiting import reason_now
from wattloom.machines.machine import Machine
from wattloom.policies.protocol import Policy
from wattloom.prediction.guard import problems_of
from wattloom.prediction.protocol import Predictor
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import (
    ALL_MOVES,
    AnyInstruction,
    Conclude,
    Evict,
    Migrate,
    Place,
    Prepare,
    Release,
    Resize,
    SetFrequency,
    Sleep,
    Wait,
    Wake,
)
from wattloom.scheduling.state import TaskRecord
from wattloom.simulation.host import AWAKE, Host, Running
from wattloom.simulation.physics import (
    ARRIVES,
    ENDS,
    EVICTED,
    HAPPENS,
    MEASURED,
    MIGRATED,
    PREPARED,
    WAKES,
    Due,
    Physics,
    energy_of,
    threads_of,
)
from wattloom.simulation.result import (
    Deadlines,
    Quantiles,
    Result,
    TaskCounts,
    devices_of,
    left_waiting,
    uncounted,
    unknown_power,
)
from wattloom.simulation.trial import Arrival, ColdStart, Happening, Trial
from wattloom.units import Joules

PROGRESS_EVERY: Final = 1024
MIGRATION_BYTES_PER_S: Final = 1.25e9
"""A task's memory goes from node to node over 10 Gbit/s, while it goes on where it is."""


class Simulation:
    """One trial under one policy."""

    def __init__(
        self,
        trial: Trial,
        policy: Policy,
        log: LogWriter | None = None,
        progress: Callable[[int, int], None] | None = None,
        predictor: Predictor | None = None,
    ) -> None:
        self.trial: Final = trial
        self.policy: Final = policy
        self.engine: Final = Engine(policy, predictor=predictor, moves=ALL_MOVES)
        self.driver: Final = Driver(self.engine, self._carry_out, log)
        self._progress: Final = progress
        self._machines: Final = {profile.name: Machine(profile) for profile in trial.machines}
        self._seconds: Final = trial.seconds
        self._cold_starts: Final = trial.cold_starts
        self._arrival_of: Final = {arrival.task.id: arrival for arrival in trial.arrivals}
        self.physics: Final = Physics()
        self._position: int = 0
        """How many tasks have been submitted."""
        self._digest: Final = Digest()
        self._started: dict[str, float] = {}
        self._waits: list[float] = []
        self._slowdowns: list[float] = []
        self._last_end: float = 0.0
        self._finished: int = 0
        self._ended_otherwise: int = 0
        self._in_time: int = 0
        self._late: int = 0
        self._decisions: int = 0
        self._readings: int = 0
        self._fastest: dict[str, float] = {}

    def run(self) -> Result:
        """Until every task has ended or nothing can happen any more."""
        collecting = gc.isenabled()
        gc.disable()  # nothing here makes reference cycles, and looking for them takes a fifth of the time
        try:
            self._set_up()
            self._run()
        finally:
            if collecting:
                gc.enable()
        return self._result()

    def _run(self) -> None:
        arrivals = self.trial.arrivals
        total = len(arrivals)
        due = self.physics.due
        steps = 0
        while True:
            position = self._position
            if not due and not self._more_to_come():
                break
            if position == total and not self.engine.ledger.tasks:
                break
            next_due = due[0] if due else None
            tick = self.engine.next_tick
            arrival: Arrival | None = arrivals[position] if position < total else None
            time = next_due[0] if next_due is not None else float("inf")
            if tick is not None and tick < time and (arrival is None or tick < arrival.time):
                self.driver.tell(ev.Tick(tick))
            elif arrival is not None and (next_due is None or _comes_first(arrival.time, next_due)):
                self._position = position + 1
                self.driver.tell(ev.TaskSubmitted(arrival.time, arrival.task))
            else:
                heappop(due)
                assert next_due is not None
                self._happen(next_due)
            steps += 1
            if steps % PROGRESS_EVERY == 0 and self._progress is not None:
                self._progress(self._finished + self._ended_otherwise, total)

    # -- time --------------------------------------------------------------------------------------------------------

    def _set_up(self) -> None:
        trial = self.trial
        for profile in trial.machines:
            self.driver.tell(ev.MachineDefined(0.0, profile))
        for function in trial.functions:
            self.driver.tell(ev.FunctionDefined(0.0, function))
        if trial.power_cap_w is not None:
            self.driver.tell(ev.CapChanged(0.0, trial.power_cap_w))
        for node in trial.nodes:
            self._join(node, 0.0)
        for number, happening in enumerate(trial.happenings):
            if isinstance(happening, ev.PlanChanged) and happening.time == 0.0:
                self.driver.tell(happening)  # before the first task
                continue
            self.physics.at(happening.time, HAPPENS, "", number)
        if self.policy.reading_interval_s is not None:
            self.physics.at(self.policy.reading_interval_s, MEASURED, "", 0)
        self._find_fastest()

    def _find_fastest(self) -> None:
        joining = [happening.node for happening in self.trial.happenings if isinstance(happening, ev.NodeJoined)]
        present = {node.machine for node in [*self.trial.nodes, *joining]}
        for (function, _, machine), seconds in self.trial.seconds.items():
            if machine in present:
                self._fastest[function] = min(seconds, self._fastest.get(function, seconds))

    def _more_to_come(self) -> bool:
        """Whether anything can still happen that brings a task forward."""
        if self.physics.due or self._position < len(self.trial.arrivals):
            return True
        if not self.engine.ledger.tasks:
            return False
        pending = self.engine.timers.pending
        capped = self.engine.ledger.view.cap_microwatts is not None
        kinds = ("back-off", "ask-again", "idle") if capped else ("back-off", "ask-again")
        return any(pending.get(kind) for kind in kinds)  # under a cap, a node that falls asleep leaves watts to others

    def _happen(self, due: Due) -> None:
        time, kind, _, what, version = due
        if kind == ENDS:
            host = self.physics.still(what, version)
            if host is not None:
                self._end(host, time)
        elif kind == WAKES:
            host = self.physics.still(what, version)
            if host is not None:
                self.physics.awake(host, time)
                self.driver.tell(ev.NodeAwake(time, what))
        elif kind == EVICTED:
            self._evicted(what, version, time)
        elif kind == MEASURED:
            self._measure(time)
        elif kind == MIGRATED:
            self._migrated(what, version, time)
        elif kind == PREPARED:
            self._prepared(what, time)
        else:
            self._befall(self.trial.happenings[version])

    def _befall(self, happening: Happening) -> None:
        if isinstance(happening, ev.NodeJoined):
            if happening.node.name not in self.physics.hosts:
                self._join(happening.node, happening.time)
        elif isinstance(happening, ev.NodeLost):
            if self.physics.lose(happening.node, happening.time):
                self.driver.tell(happening)
        elif isinstance(happening, ev.CancelRequested):
            if happening.task in self.engine.ledger.tasks:
                self.driver.tell(happening)
        else:
            self.driver.tell(happening)

    def _join(self, node: Node, time: float) -> None:
        self.physics.join(node.name, self._machines[node.machine], node.asleep, time)
        self.driver.tell(ev.NodeJoined(time, node))

    # -- the engine --------------------------------------------------------------------------------------------------

    def _carry_out(self, instructions: list[AnyInstruction], time: float) -> None:
        for instruction in instructions:
            if isinstance(instruction, Place):
                self._start(instruction, time)
            elif isinstance(instruction, Wait):
                if instruction.reason == Reason.POLICY_FAILED:
                    raise PolicyError(self.policy.name, f"failed on task {instruction.task}: {instruction.message}")
            elif isinstance(instruction, Conclude):
                self._ended_otherwise += 1
                self._last_end = time
            elif isinstance(instruction, Wake):
                self.physics.wake(self.physics.hosts[instruction.node], time)
            elif isinstance(instruction, Sleep):
                self.physics.sleep(self.physics.hosts[instruction.node], time)
            elif isinstance(instruction, Evict):
                self.physics.at(time, EVICTED, instruction.task, instruction.attempt)
            else:
                self._move(instruction, time)

    # -- what a policy changes of what runs --------------------------------------------------------------------------

    def _move(self, move: Migrate | Resize | SetFrequency | Prepare | Release, time: float) -> None:
        if isinstance(move, Migrate):
            memory = self.engine.ledger.tasks[move.task].shape.memory
            self.physics.at(time + memory / MIGRATION_BYTES_PER_S, MIGRATED, move.task, move.attempt)
        elif isinstance(move, Resize):  # what is kept for a task makes it no faster
            self.driver.tell(ev.TaskResized(time, move.task, move.attempt))
        elif isinstance(move, SetFrequency):
            self.physics.set_frequency(self.physics.hosts[move.node], round(move.share * 1000), time)
            self.driver.tell(ev.FrequencyChanged(time, move.node, move.share))
        elif isinstance(move, Prepare):
            cold = self._cold_starts.get(move.function)
            seconds = cold.seconds if cold is not None else 0.0
            self.physics.at(time + seconds, PREPARED, f"{move.node}\n{move.function}\n{move.variant}", 0)
        elif isinstance(move, Release):
            if self.physics.hosts[move.node].take_prepared(move.function, move.variant):
                self.driver.tell(ev.InstanceGone(time, move.node, move.function, move.variant))
        else:
            assert_never(move)

    def _migrated(self, task: str, attempt: int, time: float) -> None:
        record = self.engine.ledger.tasks.get(task)
        has = record.allocation if record is not None else None
        if record is None or has is None or has.target is None or has.attempt != attempt:
            return
        target = has.target
        hosts, arrival = self.physics.hosts, self._arrival_of[task]
        host, to = hosts[has.node.name], hosts[target.node.name]
        work = self._seconds[arrival.task.function, target.estimate.variant.name, to.machine.name] * arrival.factor
        self.physics.move(host, to, task, time, work)
        self.driver.tell(ev.TaskMigrated(time, task, attempt, to.name))

    def _prepared(self, what: str, time: float) -> None:
        node, function, variant = what.split("\n")
        if (node, function, variant) in self.engine.ledger.view.instances.coming:
            kept = self.physics.hosts[node].prepared
            kept[function, variant] = kept.get((function, variant), 0) + 1
            self.driver.tell(ev.InstanceReady(time, node, function, variant))

    # -- tasks -------------------------------------------------------------------------------------------------------

    def _start(self, place: Place, time: float) -> None:
        physics = self.physics
        host = physics.hosts[place.node]
        task = place.task
        record = self.engine.ledger.tasks[task]
        arrival = self._arrival_of[task]
        self._decisions += 1
        self._digest.add(place)
        function = arrival.task.function
        work = self._seconds[function, place.variant, host.machine.name] * arrival.factor
        extra = 0.0
        cold: ColdStart | None = self._cold_starts.get(function) if self._cold_starts else None
        if host.prepared and host.take_prepared(function, place.variant):
            self.driver.tell(ev.InstanceGone(time, place.node, function, place.variant))
        elif cold is not None and not host.take_warm(function, time):
            extra = cold.seconds
        physics.change(host, time)
        physics.start(host, task, place.attempt, function, record.shape.cpu, work, extra)
        physics.changed(host, time)
        if task not in self._started:
            self._started[task] = time
            self._waits.append(time - arrival.time)
        self.driver.tell(ev.TaskStarted(time, task, place.attempt))

    def _end(self, host: Host, time: float) -> None:
        running = self.physics.end_first(host, time)
        self._keep_warm(host, running, time)
        self._finished += 1
        self._last_end = time
        arrival = self._arrival_of[running.task]
        shortest = self._fastest[running.function] * arrival.factor
        deadline = arrival.task.deadline_s
        if deadline is not None:
            if time - arrival.time <= deadline:
                self._in_time += 1
            else:
                self._late += 1
        self._slowdowns.append((time - arrival.time) / shortest if shortest > 0.0 else 1.0)
        self.driver.tell(ev.TaskFinished(time, running.task, running.attempt, running.work))

    def _evicted(self, task: str, attempt: int, time: float) -> None:
        for_task = self.engine.ledger.tasks.get(task)
        if for_task is None or for_task.attempt != attempt or for_task.allocation is None:
            return  # it has ended, or its node was lost meanwhile
        host = self.physics.hosts[for_task.node]
        self._keep_warm(host, self.physics.stop(host, task, time), time)
        self.driver.tell(ev.TaskFailed(time, task, attempt, "evicted"))

    def _keep_warm(self, host: Host, running: Running, time: float) -> None:
        cold = self._cold_starts.get(running.function) if self._cold_starts else None
        if cold is not None and cold.keep_alive_s > 0.0:
            host.keep_warm(running.function, time + cold.keep_alive_s)

    # -- meters ------------------------------------------------------------------------------------------------------

    def _measure(self, time: float) -> None:
        """What a meter on every awake node would say."""
        for name in sorted(self.physics.hosts):
            host = self.physics.hosts[name]
            if host.mode != AWAKE:
                continue
            active = host.watts - host.machine.idle_w
            share = active / host.demand if host.demand else 0.0
            tasks = {running.task: running.cpu * share for running in host.running.values()}
            self._readings += 1
            self.driver.tell(ev.ReadingArrived(time, name, host.watts, tasks))
        interval = self.policy.reading_interval_s
        assert interval is not None
        if self._more_to_come():  # else readings alone would keep a run with a task that never fits going for ever
            self.physics.at(time + interval, MEASURED, "", 0)

    # -- the result --------------------------------------------------------------------------------------------------

    def _result(self) -> Result:
        end = self._last_end
        power = self.physics.power
        counted = max(end, power.until)  # later than the end if nodes still changed while tasks waited in vain
        hosts = self.physics.settle(counted)
        engine = self.engine
        threads = threads_of(hosts)
        busy = sum(host.busy_core_s for host in hosts)
        waiting = len(engine.ledger.tasks)
        unmetered = Counter(host.machine.name for host in hosts if not host.machine.knows_power)
        joining = [happening.node for happening in self.trial.happenings if isinstance(happening, ev.NodeJoined)]
        devices = devices_of({node.name: node for node in (*self.trial.nodes, *joining)}.values())
        reasons = Counter(self._why_waiting(record) for record in engine.ledger.tasks.values())
        return Result(
            scenario=self.trial.name,
            policy=self.policy.name,
            seed=None,
            makespan_s=end,
            energy=energy_of(hosts, self._deciding()),
            tasks=TaskCounts(len(self.trial.arrivals), self._finished, self._ended_otherwise, waiting),
            wait_s=Quantiles.of(self._waits),
            slowdown=Quantiles.of(self._slowdowns),
            utilisation=busy / (threads * counted) if threads and counted > 0.0 else 0.0,
            decisions=self._decisions,
            proposals=engine.proposals,
            digest=self._digest.hex(),
            waits=self._waits,
            power=power.series(counted),
            deadlines=Deadlines(self._in_time, self._late),
            warnings=[*unknown_power(unmetered), *uncounted(devices), *self._doubts(), *left_waiting(reasons)],
            knows_energy=not unmetered,
            devices=devices,
            peak_w=power.peak,
            assumptions=list(self.trial.assumptions),
        )

    def _doubts(self) -> list[str]:
        """Where the policy cannot do what it says, or leaves cores empty by an estimate; a predictor that failed."""
        failed = problems_of(self.engine.ledger.predictor)
        if not self.policy.terms.tdp:
            return failed
        machines = (self._machines[name] for name in sorted({node.machine for node in self.trial.nodes}))
        return [*failed, *tdp_doubts(machines)]

    def _why_waiting(self, record: TaskRecord) -> str:
        return str(reason_now(self.engine, record, record.reason) or Reason.NO_ROOM)

    def _deciding(self) -> Joules:
        """The scheduler's own energy."""
        cost = self.trial.scheduler
        seconds = self.engine.proposals * cost.seconds_per_proposal + self._readings * cost.seconds_per_reading
        return Joules(seconds * cost.watts)


def _comes_first(time: float, due: Due) -> bool:
    return time < due[0] or (time == due[0] and due[1] > ARRIVES)
