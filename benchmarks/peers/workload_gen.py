"""Owns the workload files that the peers read: hosts, and tasks already placed on them.

It knows nothing of how a simulator runs them. The same arguments always write the same bytes, so a file
need not be kept: its command line is enough. The format is described in README.md.
"""

from __future__ import annotations

import argparse
import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

FORMAT = "wattloom-peers 1"
MEAN_WORK_S = 10.0


@dataclass(frozen=True, slots=True)
class Host:
    """A host and its power curve, in SimGrid's three numbers."""

    name: str
    cores: int
    idle_w: float
    epsilon_w: float
    all_cores_w: float


@dataclass(frozen=True, slots=True)
class Task:
    """A single-threaded task, placed: it starts at start_s on hosts[host]."""

    start_s: float
    host: int
    work_core_s: float


KINDS: tuple[tuple[str, float, float, float], ...] = (
    ("old", 95.0, 120.0, 310.0),
    ("mid", 70.0, 82.0, 265.0),
    # A host whose first watt of work costs nothing extra: epsilon equal to idle must work too.
    ("new", 48.0, 48.0, 220.0),
)


def make_hosts(count: int, cores: int) -> list[Host]:
    """Hosts of the kinds above, in turn."""
    hosts = []
    for index in range(count):
        kind, idle_w, epsilon_w, all_cores_w = KINDS[index % len(KINDS)]
        hosts.append(Host(f"{kind}-{index}", cores, idle_w, epsilon_w, all_cores_w))
    return hosts


class LeastLoaded:
    """Places on the host with the fewest tasks per core, as if no task were ever slowed by sharing.

    The guess of when a task ends is enough: a placement only has to be sensible and the same for all.
    """

    def __init__(self, hosts: list[Host]) -> None:
        self._cores = [host.cores for host in hosts]
        self._running = [0] * len(hosts)
        self._ranking = [(0.0, index) for index in range(len(hosts))]
        self._ends: list[tuple[float, int]] = []

    def place(self, start_s: float, work_core_s: float) -> int:
        while self._ends and self._ends[0][0] <= start_s:
            self._add(heapq.heappop(self._ends)[1], -1)
        host = self._least()
        self._add(host, +1)
        heapq.heappush(self._ends, (start_s + work_core_s, host))
        return host

    def _add(self, host: int, change: int) -> None:
        self._running[host] += change
        heapq.heappush(self._ranking, (self._running[host] / self._cores[host], host))

    def _least(self) -> int:
        # Entries whose load has changed since they were pushed are dropped here rather than searched for.
        while True:
            load, host = heapq.heappop(self._ranking)
            if load == self._running[host] / self._cores[host]:
                return host


class Random:
    """Places on any host, by a generator of its own so that arrivals do not depend on the placement."""

    def __init__(self, hosts: list[Host], seed: int) -> None:
        self._count = len(hosts)
        self._rng = random.Random(seed)

    def place(self, start_s: float, work_core_s: float) -> int:
        del start_s, work_core_s
        return self._rng.randrange(self._count)


def make_tasks(hosts: list[Host], count: int, utilisation: float, placement: str, seed: int) -> Iterator[Task]:
    """Poisson arrivals of exponential work, at the given share of all the cores there are."""
    rng = random.Random(seed)
    placer = LeastLoaded(hosts) if placement == "least-loaded" else Random(hosts, seed + 1)
    rate = utilisation * sum(host.cores for host in hosts) / MEAN_WORK_S
    start_s = 0.0
    for _ in range(count):
        start_s += rng.expovariate(rate)
        work = rng.expovariate(1.0 / MEAN_WORK_S)
        yield Task(start_s, placer.place(start_s, work), work)


def write(out: TextIO, hosts: list[Host], tasks: list[Task]) -> None:
    out.write(f"{FORMAT}\nhosts {len(hosts)}\n")
    for host in hosts:
        out.write(f"{host.name} {host.cores} {host.idle_w!r} {host.epsilon_w!r} {host.all_cores_w!r}\n")
    out.write(f"tasks {len(tasks)}\n")
    for task in tasks:
        out.write(f"{task.start_s!r} {task.host} {task.work_core_s!r}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--cores", type=int, default=16)
    parser.add_argument("--tasks", type=int, default=50_000)
    parser.add_argument("--utilisation", type=float, default=0.7)
    parser.add_argument("--placement", choices=("least-loaded", "random"), default="least-loaded")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    hosts = make_hosts(args.hosts, args.cores)
    tasks = list(make_tasks(hosts, args.tasks, args.utilisation, args.placement, args.seed))
    with args.output.open("w", encoding="ascii") as out:
        write(out, hosts, tasks)


if __name__ == "__main__":
    main()
