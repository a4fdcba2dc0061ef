"""Our side of the simulation benchmark: the peers' workload files in Wattloom.

Owns the translation. `whole` runs them through the product as users do, engine and all, with a policy that only repeats
the given places; `physics` gives the places to the simulator's hosts directly, which is all that the peers do.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from wattloom.cluster.node import Node
from wattloom.cluster.site import Site
from wattloom.machines.machine import Machine
from wattloom.machines.profile import MachineProfile
from wattloom.policies.protocol import Ask, Policy, Proposal, View
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.simulation.loop import Simulation
from wattloom.simulation.physics import Physics, PlacedTask, energy_of
from wattloom.simulation.trial import Arrival, Trial
from wattloom.units import Joules
from wattloom.workload.function import Function, Variant
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task


@dataclass(frozen=True)
class Workload:
    """A peers' file read back."""

    hosts: list[tuple[str, MachineProfile]]
    tasks: list[tuple[float, int, float]]


@dataclass(frozen=True)
class Outcome:
    """What a simulator says of a workload."""

    makespan_s: float
    energy_j: float
    wall_s: float


def read(path: Path) -> Workload:
    words = iter(path.read_text().split())
    assert f"{next(words)} {next(words)}" == "wattloom-peers 1"
    assert next(words) == "hosts"
    hosts = [_host(*(next(words) for _ in range(5))) for _ in range(int(next(words)))]
    assert next(words) == "tasks"
    tasks = [(float(next(words)), int(next(words)), float(next(words))) for _ in range(int(next(words)))]
    return Workload(hosts, tasks)


def _host(name: str, cores: str, idle: str, epsilon: str, full: str) -> tuple[str, MachineProfile]:
    count, low, high = int(cores), float(epsilon), float(full)
    watts = {0.0: float(idle), 1.0: low + (high - low) / count, float(count): high}
    kind = f"{cores}:{idle}:{epsilon}:{full}"
    return name, MachineProfile(kind, "x86_64", count, count, 0, tuple(watts.items()))


class GivenPlaces(Policy):
    """Where the file says."""

    name = "given"
    summary = "the places of a workload file"

    def __init__(self, place: dict[str, str]) -> None:
        self._place = place

    def propose(self, ask: Ask, view: View) -> Proposal:
        return Proposal(self._place[ask.task.id], 0.0)

    def judge(self, ask: Ask, site: Site, estimate: PlacementEstimate, view: View) -> float:
        return 0.0


def whole(workload: Workload) -> Outcome:
    """Engine, policy and physics."""
    profiles = {profile.name: profile for _, profile in workload.hosts}
    seconds = dict.fromkeys(profiles, 1.0)
    names = [name for name, _ in workload.hosts]
    tasks = [(start, Task(str(n), "f"), work) for n, (start, _, work) in enumerate(workload.tasks)]
    trial = Trial(
        name="placed",
        machines=list(profiles.values()),
        functions=[Function("f", Requirements(cpu=1.0), (Variant(seconds=seconds),))],
        nodes=[Node(name, profile.name, cpu=100_000.0) for name, profile in workload.hosts],
        arrivals=[Arrival(start, task, work) for start, task, work in tasks],
        seconds={("f", "default", machine): 1.0 for machine in profiles},
    )
    policy = GivenPlaces({str(n): names[host] for n, (_, host, _) in enumerate(workload.tasks)})
    simulation = Simulation(trial, policy)
    begin = time.perf_counter()
    result = simulation.run()
    wall = time.perf_counter() - begin
    assert result.tasks.finished == len(workload.tasks)
    return Outcome(result.makespan_s, result.energy.total - result.energy.scheduler, wall)


def physics(workload: Workload) -> Outcome:
    """The hosts alone."""
    machines = {profile.name: Machine(profile) for _, profile in workload.hosts}
    names = [name for name, _ in workload.hosts]
    placed = [
        PlacedTask(start, names[host], str(n), 1000, work) for n, (start, host, work) in enumerate(workload.tasks)
    ]
    model = Physics()
    for name, profile in workload.hosts:
        model.join(name, machines[profile.name], False, 0.0)
    begin = time.perf_counter()
    makespan = model.run_placed(placed)
    energy = energy_of(model.settle(makespan), Joules(0.0)).total
    wall = time.perf_counter() - begin
    return Outcome(makespan, energy, wall)
