"""The simulation's loop: virtual time, events to the engine, instructions to the hosts.

Owns the order of things in virtual time: (time, kind, sequence), so ties are stable and the same trial with the same
policy gives the same run, bit for bit.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from wattloom.cluster.machine import Machine
from wattloom.cluster.node import Node
from wattloom.cluster.reasons import Reason
from wattloom.energy.split import EnergySplit
from wattloom.errors import PolicyError
from wattloom.policies.protocol import Policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import AnyInstruction, Conclude, Evict, Place, Sleep, Wait, Wake
from wattloom.scheduling.log import Digest, LogWriter
from wattloom.simulation.host import AWAKE, Host, Running
from wattloom.simulation.power_trace import PowerTrace
from wattloom.simulation.result import Quantiles, Result, TaskCounts
from wattloom.simulation.trial import Arrival, ColdStart, Happening, Trial
from wattloom.units import Joules

# Kinds of things due, in the order they happen at the same moment.
HAPPENS: Final = 0
ENDS: Final = 1
WAKES: Final = 2
EVICTED: Final = 3
ARRIVES: Final = 4
MEASURED: Final = 5

Due = tuple[float, int, int, str, int]
"""Time, kind, sequence, what, version."""

PROGRESS_EVERY: Final = 1024


class Simulation:
    """One trial under one policy."""

    def __init__(
        self,
        trial: Trial,
        policy: Policy,
        log: LogWriter | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.trial: Final = trial
        self.policy: Final = policy
        self.engine: Final = Engine(policy)
        self._log: Final = log
        self._progress: Final = progress
        self._machines: Final = {profile.name: Machine(profile) for profile in trial.machines}
        self._arrival_of: Final = {arrival.task.id: arrival for arrival in trial.arrivals}
        self._hosts: dict[str, Host] = {}
        self._gone: list[Host] = []
        self._due: list[Due] = []
        self._sequence: int = 0
        self._position: int = 0
        """How many tasks have been submitted."""
        self._watts: float = 0.0
        self._power: Final = PowerTrace()
        self._digest: Final = Digest()
        self._started: dict[str, float] = {}
        self._waits: list[float] = []
        self._slowdowns: list[float] = []
        self._last_end: float = 0.0
        self._finished: int = 0
        self._ended_otherwise: int = 0
        self._decisions: int = 0
        self._readings: int = 0
        self._fastest: dict[str, float] = {}

    def run(self) -> Result:
        """Until every task has ended or nothing can happen any more."""
        self._set_up()
        arrivals = self.trial.arrivals
        total = len(arrivals)
        due = self._due
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
                self._tell(ev.Tick(tick))
            elif arrival is not None and (next_due is None or _comes_first(arrival.time, next_due)):
                self._position = position + 1
                self._tell(ev.TaskSubmitted(arrival.time, arrival.task))
            else:
                heappop(due)
                assert next_due is not None
                self._happen(next_due)
            steps += 1
            if steps % PROGRESS_EVERY == 0 and self._progress is not None:
                self._progress(self._finished + self._ended_otherwise, total)
        return self._result()

    # -- time --------------------------------------------------------------------------------------------------------

    def _set_up(self) -> None:
        trial = self.trial
        for profile in trial.machines:
            self._tell(ev.MachineDefined(0.0, profile))
        for function in trial.functions:
            self._tell(ev.FunctionDefined(0.0, function))
        if trial.power_cap_w is not None:
            self._tell(ev.CapChanged(0.0, trial.power_cap_w))
        for node in trial.nodes:
            self._join(node, 0.0)
        for number, happening in enumerate(trial.happenings):
            self._at(happening.time, HAPPENS, "", number)
        if self.policy.reading_interval_s is not None:
            self._at(self.policy.reading_interval_s, MEASURED, "", 0)
        self._find_fastest()

    def _find_fastest(self) -> None:
        present = {node.machine for node in self.trial.nodes}
        for (function, _, machine), seconds in self.trial.seconds.items():
            if machine in present:
                self._fastest[function] = min(seconds, self._fastest.get(function, seconds))

    def _at(self, time: float, kind: int, what: str, version: int) -> None:
        self._sequence += 1
        heappush(self._due, (time, kind, self._sequence, what, version))

    def _more_to_come(self) -> bool:
        """Whether anything can still happen that brings a task forward."""
        if self._due or self._position < len(self.trial.arrivals):
            return True
        return bool(self.engine.ledger.tasks) and self.engine.timers.substantial > 0

    def _happen(self, due: Due) -> None:
        time, kind, _, what, version = due
        if kind == ENDS:
            host = self._hosts.get(what)
            if host is not None and host.version == version:
                self._end(host, time)
        elif kind == WAKES:
            host = self._hosts.get(what)
            if host is not None and host.version == version:
                self._change(host, time)
                host.awake()
                self._changed(host, time)
                self._tell(ev.NodeAwake(time, what))
        elif kind == EVICTED:
            self._evicted(what, version, time)
        elif kind == MEASURED:
            self._measure(time)
        else:
            self._befall(self.trial.happenings[version])

    def _befall(self, happening: Happening) -> None:
        if isinstance(happening, ev.NodeJoined):
            if happening.node.name not in self._hosts:
                self._join(happening.node, happening.time)
        elif isinstance(happening, ev.NodeLost):
            host = self._hosts.pop(happening.node, None)
            if host is None:
                return
            self._change(host, happening.time)
            host.vanish()
            self._changed(host, happening.time)
            self._gone.append(host)
            self._tell(happening)
        elif isinstance(happening, ev.CancelRequested):
            if happening.task in self.engine.ledger.tasks:
                self._tell(happening)
        else:
            self._tell(happening)

    def _join(self, node: Node, time: float) -> None:
        host = Host(node.name, self._machines[node.machine], node.asleep, time)
        for gone in self._gone:
            if gone.name == node.name:
                host.version = gone.version + 1  # what was announced for its former life must not happen in this one
        self._hosts[node.name] = host
        self._watts += host.watts
        self._power.change(time, self._watts)
        self._tell(ev.NodeJoined(time, node))

    # -- the engine --------------------------------------------------------------------------------------------------

    def _tell(self, event: ev.AnyEvent) -> None:
        instructions = self.engine.handle(event)
        if self._log is not None:
            self._log.write(event, instructions)
        for instruction in instructions:
            self._carry_out(instruction, event.time)

    def _carry_out(self, instruction: AnyInstruction, time: float) -> None:
        if isinstance(instruction, Place):
            self._start(instruction, time)
        elif isinstance(instruction, Wait):
            if instruction.reason == Reason.POLICY_FAILED:
                raise PolicyError(self.policy.name, f"failed on task {instruction.task}: {instruction.message}")
        elif isinstance(instruction, Conclude):
            self._ended_otherwise += 1
            self._last_end = time
        elif isinstance(instruction, Wake):
            self._wake(self._hosts[instruction.node], time)
        elif isinstance(instruction, Sleep):
            host = self._hosts[instruction.node]
            self._change(host, time)
            host.fall_asleep()
            self._changed(host, time)
        elif isinstance(instruction, Evict):
            self._at(time, EVICTED, instruction.task, instruction.attempt)

    def _wake(self, host: Host, time: float) -> None:
        self._change(host, time)
        seconds = host.begin_waking()
        self._changed(host, time)
        if seconds == 0.0:
            self._power.add(time, host.machine.profile.wake_j)
        host.version += 1
        self._at(time + seconds, WAKES, host.name, host.version)

    # -- tasks -------------------------------------------------------------------------------------------------------

    def _start(self, place: Place, time: float) -> None:
        host = self._hosts[place.node]
        task = place.task
        record = self.engine.ledger.tasks[task]
        arrival = self._arrival_of[task]
        self._decisions += 1
        self._digest.add(place)
        function = arrival.task.function
        work = self.trial.seconds[function, place.variant, host.machine.name] * arrival.factor
        extra = 0.0
        cold: ColdStart | None = self.trial.cold_starts.get(function)
        if cold is not None and not host.take_warm(function, time):
            extra = cold.seconds
        self._sequence += 1
        running = Running(task, place.attempt, function, record.shape.cpu, work, self._sequence)
        self._change(host, time)
        if host.start(running, extra):
            self._announce(host)
        self._changed(host, time)
        if task not in self._started:
            self._started[task] = time
            self._waits.append(time - arrival.time)
        self._tell(ev.TaskStarted(time, task, place.attempt))

    def _end(self, host: Host, time: float) -> None:
        self._change(host, time)
        running = host.first_to_end()
        self._take_off(host, running.task, time)
        self._finished += 1
        self._last_end = time
        arrival = self._arrival_of[running.task]
        shortest = self._fastest[running.function] * arrival.factor
        self._slowdowns.append((time - arrival.time) / shortest if shortest > 0.0 else 1.0)
        self._tell(ev.TaskFinished(time, running.task, running.attempt, running.work))

    def _evicted(self, task: str, attempt: int, time: float) -> None:
        for_task = self.engine.ledger.tasks.get(task)
        if for_task is None or for_task.attempt != attempt:
            return
        host = self._hosts[for_task.node]
        self._change(host, time)
        self._take_off(host, task, time)
        self._tell(ev.TaskFailed(time, task, attempt, "evicted"))

    def _take_off(self, host: Host, task: str, time: float) -> None:
        running = host.stop(task)
        cold = self.trial.cold_starts.get(running.function)
        if cold is not None and cold.keep_alive_s > 0.0:
            host.keep_warm(running.function, time + cold.keep_alive_s)
        self._announce(host)
        self._changed(host, time)

    def _announce(self, host: Host) -> None:
        """Say when the host's next task ends; what was said before is void."""
        host.version += 1
        end = host.next_end()
        if end >= 0.0:
            self._at(end, ENDS, host.name, host.version)

    # -- power -------------------------------------------------------------------------------------------------------

    def _change(self, host: Host, time: float) -> None:
        """Something will change on this host: settle what it has done and drawn so far."""
        host.advance(time)
        self._watts -= host.watts

    def _changed(self, host: Host, time: float) -> None:
        self._watts += host.watts
        self._power.change(time, self._watts)

    def _measure(self, time: float) -> None:
        """What a meter on every awake node would say."""
        for name in sorted(self._hosts):
            host = self._hosts[name]
            if host.mode != AWAKE:
                continue
            active = host.watts - host.machine.idle_w
            share = active / host.demand if host.demand else 0.0
            tasks = {running.task: running.cpu * share for running in host.running.values()}
            self._readings += 1
            self._tell(ev.ReadingArrived(time, name, host.watts, tasks))
        interval = self.policy.reading_interval_s
        assert interval is not None
        if self._more_to_come():  # else readings alone would keep a run with a task that never fits going for ever
            self._at(time + interval, MEASURED, "", 0)

    # -- the result --------------------------------------------------------------------------------------------------

    def _result(self) -> Result:
        end = self._last_end
        hosts = [*self._gone, *self._hosts.values()]
        counted = max(end, self._power.until)  # later than the end if nodes still changed while tasks waited in vain
        for host in hosts:
            host.advance(counted)
        engine = self.engine
        threads = sum({host.name: host.machine.profile.threads for host in hosts}.values())
        busy = sum(host.busy_core_s for host in hosts)
        waiting = len(engine.ledger.tasks)
        return Result(
            scenario=self.trial.name,
            policy=self.policy.name,
            seed=None,
            makespan_s=end,
            energy=self._energy(hosts),
            tasks=TaskCounts(len(self.trial.arrivals), self._finished, self._ended_otherwise, waiting),
            wait_s=Quantiles.of(self._waits),
            slowdown=Quantiles.of(self._slowdowns),
            utilisation=busy / (threads * end) if end > 0.0 else 0.0,
            decisions=self._decisions,
            proposals=engine.proposals,
            digest=self._digest.hex(),
            waits=self._waits,
            power=self._power.series(counted),
            assumptions=list(self.trial.assumptions),
        )

    def _energy(self, hosts: list[Host]) -> EnergySplit:
        cost = self.trial.scheduler
        deciding = self.engine.proposals * cost.seconds_per_proposal + self._readings * cost.seconds_per_reading
        return EnergySplit(
            active=Joules(sum(host.active_j for host in hosts)),
            idle=Joules(sum(host.idle_j for host in hosts)),
            sleep=Joules(sum(host.sleep_j for host in hosts)),
            wake=Joules(sum(host.wake_j for host in hosts)),
            scheduler=Joules(deciding * cost.watts),
        )


def _comes_first(time: float, due: Due) -> bool:
    return time < due[0] or (time == due[0] and due[1] > ARRIVES)
