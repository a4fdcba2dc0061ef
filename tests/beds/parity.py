"""Parity: the same calls on the same virtual nodes, once in the simulator and once for real.

Owns the three steps. `calibrate` measures how long each function takes on each node. `predict` gives these figures, and
nothing else of a real run, to the simulator. `run` makes the calls with the executor and reads what happened from the
journal. Both give an `Outcome`: who went where in which order, the makespan, and the joules of all nodes.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import wait
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import Any, Final

import msgspec

from wattloom.energy.used import Used
from wattloom.errors import InputError
from wattloom.history.log import VERSION, Header, Log, LogWriter
from wattloom.journal.journal import Journal
from wattloom.local.executor import Executor
from wattloom.local.functions import name_of
from wattloom.local.nodes import LocalNode, VirtualNode, virtual_nodes
from wattloom.machines.profile import MachineProfile
from wattloom.machines.this_machine import this_machine
from wattloom.policies.loading import load_policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Place
from wattloom.simulation.loop import Simulation
from wattloom.simulation.trial import Arrival, Trial
from wattloom.units import GIB
from wattloom.workload.function import Function, Variant
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task

WARM_UP_S: Final = 0.2
BEGIN_S: Final = 1.0
"""When the calls begin in the simulator: after those that warm the workers up."""
KNOWN_CALLS: Final = 10
PAUSE_S: Final = 0.3
"""After these, for real: nothing of theirs is left in the meters."""

Timed = tuple[float, float]
"""Wall-clock and CPU seconds of a call, without what a slow node adds."""
Work = Mapping[str, Callable[[], Timed]]
"""Functions by a short name."""
Seconds = dict[tuple[str, str], float]
"""By (short name of the function, machine)."""


class Planned(msgspec.Struct, frozen=True):
    """A call of a plan."""

    at: float
    """Seconds after the first."""
    function: str


class Outcome(msgspec.Struct, frozen=True):
    """What came of a plan under a policy."""

    policy: str
    placements: list[tuple[int, str]]
    """Number of the call in the plan, and its node, in the order of the decisions."""
    makespan_s: float
    """From the first submission to the last end."""
    joules: float
    """Of all nodes, over the makespan."""
    answer_s: float
    """Mean time from a call's submission to its end."""
    lengths: list[float]
    """Seconds of each call."""
    lost: list[float] = []
    """Of these, seconds for which others had its core."""

    @property
    def disturbance(self) -> float:
        """How much longer the calls took because of others."""
        return sum(self.lost) / (sum(self.lengths) - sum(self.lost))


def two_nodes() -> list[VirtualNode]:
    """This machine's cores in two halves: one quick and hungry, one slow and frugal."""
    cores = len(os.sched_getaffinity(0)) // 2
    if not cores:
        raise InputError("nodes", "two virtual nodes need two cores, and this machine has one to give out")
    frugal = MachineProfile(
        "frugal", "aarch64", cores, cores, GIB, ((0.0, 4.0), (cores, 4.0 + 8.0 * cores)), speed=0.65
    )
    quick = MachineProfile("quick", "x86_64", cores, cores, GIB, ((0.0, 20.0), (cores, 20.0 + 40.0 * cores)))
    return [VirtualNode("a-frugal", frugal), VirtualNode("b-quick", quick)]


def timed(function: Callable[[], object]) -> Timed:
    """Call a function, and say what it took."""
    began, cpu = time.perf_counter(), time.thread_time()
    function()
    return time.perf_counter() - began, time.thread_time() - cpu


def warm_up(work: Sequence[Callable[[], Timed]]) -> None:
    """Wait until every worker is there, and has imported what the work needs."""
    time.sleep(WARM_UP_S)


# -- for real ----------------------------------------------------------------------------------------------------------


MOST_CALIBRATIONS = 5
"""Where others have a core for long, one node may not get a call of every function the first time."""


def calibrate(nodes: Sequence[VirtualNode], work: Work, journal: Path, rounds: int, seed: int = 0) -> Seconds:
    """Call every function so many times, in mixed order, with all cores busy: the median of what a call takes, less
    the time for which others had its core."""
    plan = [Planned(0.0, name) for name in work for _ in range(rounds)]
    chance = Random(seed)
    machine_of = {node.name: node.profile.name for node in _local(nodes)}
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for attempt in range(MOST_CALIBRATIONS):
        chance.shuffle(plan)
        outcome = run(nodes, work, plan, "fifo", journal.with_name(f"{attempt}-{journal.name}"))
        for call, node in outcome.placements:
            found[plan[call].function, machine_of[node]].append(outcome.lengths[call] - outcome.lost[call])
        if len(found) == len(work) * len(set(machine_of.values())):
            break
    return {key: median(values) for key, values in found.items()}


def run(
    nodes: Sequence[VirtualNode],
    work: Work,
    plan: Sequence[Planned],
    policy: str,
    journal: Path,
    known: Seconds | None = None,
) -> Outcome:
    """Make the calls of a plan on this machine. `known`: what the executor has learned before."""
    _teach(journal, work, known or {})
    with Executor(nodes=nodes, policy=policy, journal=journal) as executor:
        wait([executor.submit(warm_up, list(work.values())) for _ in range(_cores(nodes))])
        time.sleep(PAUSE_S)
        began = time.monotonic()
        futures = []
        for call in plan:
            time.sleep(max(0.0, began + call.at - time.monotonic()))
            futures.append(executor.submit(work[call.function]))
        times: list[Timed] = [future.result() for future in futures]
        number = {future.task_id: position for position, future in enumerate(futures)}
    return _Recorded(Log(journal), number).outcome(policy, times)


def _teach(path: Path, work: Work, known: Seconds) -> None:
    """As if earlier runs had shown it."""
    journal = Journal.open(path)
    for (function, machine), seconds in known.items():
        used = Used(KNOWN_CALLS, KNOWN_CALLS * seconds, KNOWN_CALLS * seconds * seconds)
        journal.learn(name_of(work[function]), machine, msgspec.to_builtins(used))
    journal.commit()
    journal.close()


class _Recorded:
    """What the journal says of the calls of a plan."""

    def __init__(self, log: Log, number: dict[str, int]) -> None:
        self._number: Final = number
        self._placements: list[tuple[int, str]] = []
        self._lengths: Final = [0.0] * len(number)
        self._usage: Final[list[ev.UsageArrived]] = []
        self._submitted: Final[dict[str, float]] = {}
        self._answers: Final[list[float]] = []
        self._end: float = 0.0
        for record in log.records():
            self._take(record)

    def _take(self, record: Any) -> None:
        if isinstance(record, ev.TaskSubmitted) and record.task.id in self._number:
            self._submitted[record.task.id] = record.time
        elif isinstance(record, ev.TaskFinished) and record.task in self._number:
            self._lengths[self._number[record.task]] = record.seconds or 0.0
            self._answers.append(record.time - self._submitted[record.task])
            self._end = record.time
        elif isinstance(record, Place) and record.task in self._number:
            self._placements.append((self._number[record.task], record.node))
        elif isinstance(record, ev.UsageArrived):
            self._usage.append(record)

    def outcome(self, policy: str, times: list[Timed]) -> Outcome:
        makespan_s = self._end - self._begin
        lost = [wall - cpu for wall, cpu in times]
        return Outcome(policy, self._placements, makespan_s, self._joules(), mean(self._answers), self._lengths, lost)

    @property
    def _begin(self) -> float:
        return min(self._submitted.values())

    def _joules(self) -> float:
        """The meters from the first submission to the last end. A reading covers some time before and behind: of its
        idle joules a share counts, of those above idle all, since nothing else ran."""
        total = 0.0
        for usage in self._usage:
            inside = min(usage.time, self._end) - max(usage.time - usage.seconds, self._begin)
            if inside > 0.0:
                total += usage.meter_j - usage.idle_j * (1.0 - inside / usage.seconds)
        return total


# -- in the simulator --------------------------------------------------------------------------------------------------


def predict(
    nodes: Sequence[VirtualNode],
    work: Work,
    plan: Sequence[Planned],
    policy: str,
    seconds: Seconds,
    *,
    run: int = 1,
    lengths: Sequence[float] | None = None,
) -> Outcome:
    """The same calls in virtual time, from calibrated seconds. `run` is the number of the real run in its journal:
    tasks get the names they have there, since a policy may draw lots by them. `lengths` (how many times its function's
    usual length each call is) asks what would be if they were not all alike."""
    local = _local(nodes)
    first = _cores(nodes)
    names = {name: name_of(function) for name, function in work.items()} | {"": name_of(warm_up)}
    warm = [Arrival(0.0, Task(f"{run}-{n + 1}", names[""])) for n in range(first)]
    calls = [
        Arrival(BEGIN_S + call.at, Task(f"{run}-{first + n + 1}", names[call.function]), lengths[n] if lengths else 1.0)
        for n, call in enumerate(plan)
    ]
    known = seconds | {("", node.profile.name): WARM_UP_S for node in local}
    trial = Trial(
        name="parity",
        machines=list({node.profile.name: node.profile for node in local}.values()),
        functions=[_function(short, name, known) for short, name in names.items()],
        nodes=[node.node for node in local],
        arrivals=[*warm, *calls],
        seconds={(names[short], "default", machine): value for (short, machine), value in known.items()},
    )
    decided = _Decisions()
    result = Simulation(trial, load_policy(policy), decided).run()
    power = [*result.power, (result.makespan_s, 0.0)]
    joules = sum(watts * (end - begin) for (begin, watts), (end, _) in pairwise(power) if begin >= BEGIN_S)
    number = {arrival.task.id: position for position, arrival in enumerate(calls)}
    placements = [(number[task], node) for task, node in decided.places if task in number]
    return Outcome(
        policy,
        placements,
        result.makespan_s - BEGIN_S,
        joules,
        mean(decided.ends[arrival.task.id] - arrival.time for arrival in calls),
        [decided.seconds[arrival.task.id] for arrival in calls],
    )


class _Decisions(LogWriter):
    """A log of which only places and lengths are kept."""

    def __init__(self) -> None:
        super().__init__(BytesIO(), Header(VERSION, "", "simulation"))
        self.places: Final[list[tuple[str, str]]] = []
        self.seconds: Final[dict[str, float]] = {}
        self.ends: Final[dict[str, float]] = {}

    def write(self, event: ev.AnyEvent, instructions: Iterable[AnyInstruction]) -> None:
        if isinstance(event, ev.TaskFinished):
            self.seconds[event.task] = event.seconds or 0.0
            self.ends[event.task] = event.time
        self.places.extend((each.task, each.node) for each in instructions if isinstance(each, Place))


def _function(short: str, name: str, seconds: Seconds) -> Function:
    return Function(name, Requirements(), (Variant(seconds={m: s for (of, m), s in seconds.items() if of == short}),))


def _local(nodes: Sequence[VirtualNode]) -> list[LocalNode]:
    return virtual_nodes(nodes, this_machine())


def _cores(nodes: Sequence[VirtualNode]) -> int:
    return sum(int(node.node.cpu or 1) for node in _local(nodes))


# -- a plan that does not hang on noise --------------------------------------------------------------------------------


def is_steady(predict_with: Callable[[Sequence[float] | None], Outcome], calls: int, noise: float, tries: int) -> bool:
    """Whether the placements stay the same when every call is a little longer or shorter than calibrated."""
    usual = predict_with(None).placements
    for seed in range(tries):
        chance = Random(seed)
        lengths = [1.0 + chance.uniform(-noise, 2.0 * noise) for _ in range(calls)]
        if predict_with(lengths).placements != usual:
            return False
    return True
