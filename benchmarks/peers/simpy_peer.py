"""Owns the peer that runs a placed workload in SimPy and prints one JSON line.

SimPy has no processor sharing of its own, so a host here is written as a careful SimPy user would write
it for speed: one virtual clock (the work done so far by any task that has run since the start), on which
a task's end never moves, and one live timeout. It must not know Wattloom: a peer is only worth something
if it is independent.
"""

from __future__ import annotations

import argparse
import heapq
import json
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import simpy

SLACK_CORE_S = 1e-8
"""Work this close to done is done: rounding must not leave a wait shorter than the clock can show."""


@dataclass(frozen=True, slots=True)
class Task:
    start_s: float
    host: int
    work_core_s: float


class Host:
    """A host whose running tasks share its cores fairly, none above one core."""

    def __init__(self, env: simpy.Environment, cores: int, idle_w: float, epsilon_w: float, all_w: float) -> None:
        self._env = env
        self._cores = cores
        self._watts = [idle_w] + [epsilon_w + (all_w - epsilon_w) * n / cores for n in range(1, cores + 1)]
        self._ends: list[tuple[float, int, simpy.Event]] = []
        self._started = 0
        self._done_core_s = 0.0
        self._since_s = 0.0
        self._wake: simpy.Timeout | None = None
        self._wake_s = float("inf")
        self.energy_j = 0.0

    def run(self, work_core_s: float) -> simpy.Event:
        """Start a task now; the event fires when it has ended."""
        self.advance()
        done = self._env.event()
        self._started += 1
        heapq.heappush(self._ends, (self._done_core_s + work_core_s, self._started, done))
        self._arm()
        return done

    def advance(self) -> None:
        """Bring energy and the virtual clock up to now; the load has not changed since the last call."""
        now = self._env.now
        elapsed = now - self._since_s
        running = len(self._ends)
        if running <= self._cores:
            self.energy_j += self._watts[running] * elapsed
            if running:
                self._done_core_s += elapsed
        else:
            self.energy_j += self._watts[-1] * elapsed
            self._done_core_s += elapsed * self._cores / running
        self._since_s = now

    def _arm(self) -> None:
        # SimPy cannot cancel a timeout cheaply, so one that comes early is kept: waking, it arms the rest.
        running = len(self._ends)
        left = self._ends[0][0] - self._done_core_s
        if running > self._cores:
            left *= running / self._cores
        if left < 0.0:
            left = 0.0
        if self._env.now + left < self._wake_s:
            self._wake = self._env.timeout(left)
            self._wake_s = self._env.now + left
            self._wake.callbacks.append(self._on_wake)

    def _on_wake(self, wake: simpy.Event) -> None:
        if wake is not self._wake:
            return  # overtaken by an earlier one
        self._wake_s = float("inf")
        self.advance()
        ends = self._ends
        due = self._done_core_s + SLACK_CORE_S
        while ends and ends[0][0] <= due:
            heapq.heappop(ends)[2].succeed()
        if ends:
            self._arm()


def read_workload(path: Path, env: simpy.Environment) -> tuple[list[Host], list[Task]]:
    """The format of README.md."""
    lines = iter(path.read_text(encoding="ascii").splitlines())
    if next(lines) != "wattloom-peers 1":
        raise SystemExit(f"{path} is not a 'wattloom-peers 1' file")
    hosts = []
    for _ in range(_count(lines, "hosts")):
        _name, cores, idle_w, epsilon_w, all_w = next(lines).split()
        hosts.append(Host(env, int(cores), float(idle_w), float(epsilon_w), float(all_w)))
    tasks = []
    for _ in range(_count(lines, "tasks")):
        start_s, host, work = next(lines).split()
        tasks.append(Task(float(start_s), int(host), float(work)))
    return hosts, tasks


def _count(lines: Iterator[str], section: str) -> int:
    word, count = next(lines).split()
    if word != section:
        raise SystemExit(f"expected '{section} COUNT', found '{word}'")
    return int(count)


Arrive = Callable[[simpy.Environment, Host, float], object]


def as_process(env: simpy.Environment, host: Host, work_core_s: float) -> object:
    """The idiomatic way: every task is a process."""
    return env.process(_task(host, work_core_s))


def _task(host: Host, work_core_s: float) -> Generator[simpy.Event, Any, None]:
    yield host.run(work_core_s)


def as_event(env: simpy.Environment, host: Host, work_core_s: float) -> object:
    """The lean way: a task is only the event of its end. Fewer events, for those who need no task logic."""
    del env
    return host.run(work_core_s)


def source(
    env: simpy.Environment, hosts: list[Host], tasks: list[Task], arrive: Arrive
) -> Generator[simpy.Event, Any, None]:
    for task in tasks:
        if task.start_s > env.now:
            yield env.timeout(task.start_s - env.now)
        arrive(env, hosts[task.host], task.work_core_s)


def simulate(path: Path, arrive: Arrive) -> tuple[dict[str, Any], list[Host]]:
    env = simpy.Environment()
    hosts, tasks = read_workload(path, env)
    start = time.perf_counter()
    env.process(source(env, hosts, tasks, arrive))
    # The queue runs dry at the makespan, not after it: an overtaken timeout was armed for the end of some
    # task, and until that task ends the load is never below what it was then, so it ends no earlier.
    env.run()
    for host in hosts:
        host.advance()
    wall_s = time.perf_counter() - start
    result = {
        "peer": "simpy",
        "makespan_s": env.now,
        "energy_j": sum(host.energy_j for host in hosts),
        "tasks": len(tasks),
        "wall_s": wall_s,
    }
    return result, hosts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", type=Path)
    parser.add_argument("--per-host", action="store_true", help="add the energy of each host")
    parser.add_argument("--tasks-as", choices=("process", "event"), default="process")
    args = parser.parse_args()
    result, hosts = simulate(args.workload, as_process if args.tasks_as == "process" else as_event)
    if args.per_host:
        result["energy_j_per_host"] = [host.energy_j for host in hosts]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
