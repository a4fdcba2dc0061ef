"""Decisions per second of the real engine with marginal-energy, beside a numpy scan over all nodes.

Both meet the same events: tasks of one core come, and for each a random one that runs ends. Two loads: the same number
of running tasks at every size (60% of the smallest cluster's cores), so that only the nodes differ; and 60% of each
cluster's cores, up to the number of decisions. A decision is one `engine.handle(TaskSubmitted)` with its `Place`, and
the time includes the end of another task, which must be handled too. Sizes are measured in turn, several times over,
and the best of each counts. The scan decides by the same rule (least additional watts, then the fullest node, then the
first by name); every choice it makes is compared with the engine's.
"""

import argparse
import gc
import random
import sys
import time
from typing import Any

import numpy as np
from reporting import Goal, finish

from wattloom.cluster.node import Node
from wattloom.machines.profile import MachineProfile
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.scheduling import engine as engine_module
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import Place
from wattloom.units import GIB, MIB
from wattloom.workload.function import Function, Variant
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task

CORES = (8, 16, 24, 32, 48, 64)
SIZES = (100, 1_000, 10_000, 50_000)
SEED = 11


def machines(seed: int) -> list[MachineProfile]:
    """Six machine types whose curves rise unevenly, as measured ones do."""
    draw = random.Random(seed)
    profiles = []
    for number, cores in enumerate(CORES):
        watts = [40.0 + 10.0 * number]
        for _ in range(cores):
            watts.append(round(watts[-1] + draw.uniform(1.0, 4.0), 3))
        curve = tuple((float(core), power) for core, power in enumerate(watts))
        profiles.append(MachineProfile(f"type-{number}", "x86_64", cores, cores, 256 * GIB, curve))
    return profiles


def cluster(nodes: int, profiles: list[MachineProfile]) -> Engine:
    engine = Engine(MarginalEnergy(tdp=False, guarantee=1.0))
    for profile in profiles:
        engine.handle(ev.MachineDefined(0.0, profile))
    seconds = {profile.name: 10.0 for profile in profiles}
    function = Function("f", Requirements(cpu=1.0, memory=64 * MIB), (Variant(seconds=seconds),))
    engine.handle(ev.FunctionDefined(0.0, function))
    for number in range(nodes):
        engine.handle(ev.NodeJoined(0.0, Node(f"node-{number:06d}", profiles[number % len(profiles)].name)))
    return engine


def capacity(nodes: int) -> int:
    return sum(CORES[number % len(CORES)] for number in range(nodes))


def sequence(nodes: int, decisions: int, seed: int, scaled: bool) -> tuple[list[ev.AnyEvent], list[ev.AnyEvent]]:
    """Events that fill the cluster, and events of the measured part: a task comes, another one ends."""
    draw = random.Random(seed)
    filling = min(int(0.6 * capacity(nodes if scaled else SIZES[0])), decisions)
    fill: list[ev.AnyEvent] = [ev.TaskSubmitted(0.0, Task(str(n), "f")) for n in range(filling)]
    running = [str(n) for n in range(filling)]
    measured: list[ev.AnyEvent] = []
    for n in range(filling, filling + decisions):
        moment = 1.0 + n * 1e-3
        measured.append(ev.TaskSubmitted(moment, Task(str(n), "f")))
        running.append(str(n))
        position = draw.randrange(len(running))
        running[position], running[-1] = running[-1], running[position]
        measured.append(ev.TaskFinished(moment, running.pop(), 1))
    return fill, measured


def run_engine(engine: Engine, fill: list[ev.AnyEvent], measured: list[ev.AnyEvent]) -> tuple[float, list[str]]:
    """Seconds for the measured part, and where each task went."""
    chosen: list[str] = []
    for event in fill:
        chosen += [i.node for i in engine.handle(event) if isinstance(i, Place)]
    gc.collect()
    gc.freeze()  # as a server does once it is up: what is there stays, and need not be looked through again
    handle = engine.handle
    begin = time.perf_counter()
    for event in measured:
        instructions = handle(event)
        if instructions:
            chosen.append(instructions[0].node)  # type: ignore[union-attr]
    seconds = time.perf_counter() - begin
    gc.unfreeze()
    return seconds, chosen


class Scan:
    """The peer: a vector over all nodes for every decision."""

    def __init__(self, nodes: int, profiles: list[MachineProfile]) -> None:
        most = max(CORES)
        self.cost = np.full((len(profiles), most + 1), np.inf)
        for number, profile in enumerate(profiles):
            watts = [power for _, power in profile.watts]
            for level in range(profile.cores):
                self.cost[number, level] = round(watts[level + 1] - watts[level], 6)
        self.kind = np.arange(nodes) % len(profiles)
        self.level = np.zeros(nodes, dtype=np.int64)

    def choose(self) -> int:
        costs = self.cost[self.kind, self.level]
        cheapest = np.flatnonzero(costs == costs.min())
        levels = self.level[cheapest]
        return int(cheapest[int(np.argmax(levels == levels.max()))])


def run_scan(
    scan: Scan, events: list[ev.AnyEvent], chosen: list[str], check_from: int, checks: int
) -> tuple[float, float]:
    """Follow the engine's choices; from one on, decide too. Seconds per choice, and the share of equal ones."""
    where: dict[str, int] = {}
    spent, made, equal, decision = 0.0, 0, 0, 0
    for event in events:
        if isinstance(event, ev.TaskSubmitted):
            node = int(chosen[decision].removeprefix("node-"))
            if decision >= check_from and made < checks:
                begin = time.perf_counter()
                found = scan.choose()
                spent += time.perf_counter() - begin
                made += 1
                equal += found == node
            where[event.task.id] = node
            scan.level[node] += 1
            decision += 1
        elif isinstance(event, ev.TaskFinished):
            scan.level[where.pop(event.task)] -= 1
    return spent / made, equal / made


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--decisions", type=int, default=50_000)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--checks", type=int, default=2_000, help="decisions at each size that the scan repeats")
    options.add_argument("--data", help="not needed here")
    chosen_options = options.parse_args()
    compiled = not engine_module.__file__.endswith(".py")
    cases = [(nodes, False) for nodes in SIZES] + [(nodes, True) for nodes in SIZES[1:]]
    best = dict.fromkeys(cases, float("inf"))
    for turn in range(chosen_options.repeats):
        for nodes, scaled in cases:
            best[nodes, scaled] = min(best[nodes, scaled], engine_seconds(nodes, scaled, chosen_options.decisions)[0])
        print(f"turn {turn + 1} of {chosen_options.repeats} done", file=sys.stderr)
    rows = [row(nodes, scaled, seconds, chosen_options, compiled) for (nodes, scaled), seconds in best.items()]
    rates = [row["decisions_per_s"] for row in rows]
    same_load = rates[: len(SIZES)]
    goals = [
        Goal.at_least("decisions/s at the same load, slowest size", 100_000, min(same_load)),
        Goal.at_least("decisions/s at 60% load, slowest size", 100_000, min(rates)),
        Goal.at_most("spread from 100 to 50,000 nodes at the same load (max/min - 1)", 0.20, _spread(same_load)),
        Goal.at_most("spread from 1,000 to 50,000 nodes at 60% load (max/min - 1)", 0.20, _spread(rates[len(SIZES) :])),
        Goal.at_least("share of choices equal to the scan's", 1.0, min(row["equal"] for row in rows)),
        Goal.at_least("ratio to the numpy scan at 50,000 nodes", 1.0, rows[len(SIZES) - 1]["ratio"]),
    ]
    finish("decisions", rows, goals)


def _spread(rates: list[float]) -> float:
    return max(rates) / min(rates) - 1.0


def engine_seconds(nodes: int, scaled: bool, decisions: int) -> tuple[float, list[str]]:
    fill, measured = sequence(nodes, decisions, SEED, scaled)
    return run_engine(cluster(nodes, machines(SEED)), fill, measured)


def row(nodes: int, scaled: bool, best: float, options: argparse.Namespace, compiled: bool) -> dict[str, Any]:
    decisions, checks = options.decisions, options.checks
    fill, measured = sequence(nodes, decisions, SEED, scaled)
    chosen = engine_seconds(nodes, scaled, decisions)[1]
    scan_s, equal = run_scan(Scan(nodes, machines(SEED)), [*fill, *measured], chosen, len(fill), checks)
    return {
        "nodes": nodes,
        "engine": "compiled" if compiled else "pure Python",
        "running": len(fill),
        "decisions": decisions,
        "decisions_per_s": decisions / best,
        "events_per_s": len(measured) / best,
        "scan_per_s": 1.0 / scan_s,
        "ratio": decisions / best * scan_s,
        "compared": checks,
        "equal": equal,
    }


if __name__ == "__main__":
    main()
