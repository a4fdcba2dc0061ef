"""Simulated tasks per second, and the same answers, beside SimPy and SimGrid with its energy plugin.

All simulate the same workload files: hosts, and tasks placed on them already (peers/README.md). Neither peer decides
anything, so the like-for-like row is `wattloom physics`; `wattloom whole` is the product with its engine asked, checked
and told three times for every task. Runs are interleaved, and the best of each is taken.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import placed
from reporting import Goal, finish

HERE = Path(__file__).parent
PEERS = HERE / "peers"
TOLERANCE = 1e-3


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tasks", type=int, default=50_000)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--without-simgrid", action="store_true")
    options.add_argument("--data", help="not needed here")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        simgrid = None if chosen.without_simgrid else build_simgrid(Path(folder))
        checks = cross_check(Path(folder), simgrid)
        speeds = speed(Path(folder), simgrid, chosen.tasks, chosen.repeats)
    finish("simulation", [*checks, *speeds], goals(checks, speeds, simgrid is not None))


def build_simgrid(folder: Path) -> Path:
    program = folder / "simgrid_peer"
    source = PEERS / "simgrid_peer.cpp"
    subprocess.run(["g++", "-O3", "-std=c++17", "-o", program, source, "-lsimgrid"], check=True)
    return program


def workload(folder: Path, hosts: int, tasks: int, utilisation: float) -> Path:
    path = folder / f"w-{hosts}-{tasks}-{utilisation}.txt"
    command = [sys.executable, PEERS / "workload_gen.py", path, "--hosts", str(hosts), "--tasks", str(tasks)]
    subprocess.run([*map(str, command), "--utilisation", str(utilisation)], check=True, stdout=subprocess.DEVNULL)
    return path


def peer(command: list[str]) -> placed.Outcome:
    said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    return placed.Outcome(said["makespan_s"], said["energy_j"], said["wall_s"])


def simpy(path: Path, style: str) -> placed.Outcome:
    return peer([sys.executable, str(PEERS / "simpy_peer.py"), str(path), "--tasks-as", style])


def cross_check(folder: Path, simgrid: Path | None) -> list[dict[str, Any]]:
    """Makespan and joules of ours against the peers', from light load to more tasks than cores."""
    rows = []
    for hosts in (10, 100):
        for utilisation in (0.1, 0.3, 0.7, 0.95, 1.3):
            path = workload(folder, hosts, hosts * 100, utilisation)
            load = placed.read(path)
            ours = placed.whole(load)
            others = {"SimPy": simpy(path, "process"), "physics alone": placed.physics(load)}
            if simgrid is not None:
                others["SimGrid"] = peer([str(simgrid), str(path)])
            rows += [compared(hosts, utilisation, name, ours, other) for name, other in others.items()]
        print(f"cross-check at {hosts} hosts done", file=sys.stderr)
    return rows


def compared(hosts: int, utilisation: float, name: str, ours: placed.Outcome, other: placed.Outcome) -> dict[str, Any]:
    return {
        "what": f"same answer as {name}",
        "hosts": hosts,
        "utilisation": utilisation,
        "makespan_off": abs(ours.makespan_s - other.makespan_s) / other.makespan_s,
        "energy_off": abs(ours.energy_j - other.energy_j) / other.energy_j,
        "tasks_per_s": None,
    }


def speed(folder: Path, simgrid: Path | None, tasks: int, repeats: int) -> list[dict[str, Any]]:
    rows = []
    for hosts in (100, 1_000):
        path = workload(folder, hosts, tasks, 0.7)
        load = placed.read(path)
        runs = {
            "wattloom physics": lambda load=load: placed.physics(load),
            "wattloom whole": lambda load=load: placed.whole(load),
            "SimPy, process per task": lambda path=path: simpy(path, "process"),
            "SimPy, events only": lambda path=path: simpy(path, "event"),
        }
        if simgrid is not None:
            runs["SimGrid"] = lambda path=path: peer([str(simgrid), str(path)])
        best = dict.fromkeys(runs, float("inf"))
        for _ in range(repeats):
            for name, run in runs.items():
                best[name] = min(best[name], run().wall_s)
        rows += [
            {"what": name, "hosts": hosts, "utilisation": 0.7, "makespan_off": None, "energy_off": None}
            | {"tasks_per_s": tasks / seconds}
            for name, seconds in best.items()
        ]
        print(f"speed at {hosts} hosts done", file=sys.stderr)
    return rows


def goals(checks: list[dict[str, Any]], speeds: list[dict[str, Any]], simgrid: bool) -> list[Goal]:
    rate = {(row["what"], row["hosts"]): row["tasks_per_s"] for row in speeds}

    def ratio(name: str, peer_name: str, hosts: int) -> float | None:
        other = rate.get((peer_name, hosts))
        return rate[name, hosts] / other if other else None

    worst = max(max(row["makespan_off"], row["energy_off"]) for row in checks)
    result = [Goal.at_most("worst difference from the peers", TOLERANCE, worst)]
    for ours in ("wattloom physics", "wattloom whole"):
        result.append(Goal.at_least(f"{ours} over SimPy, 100 hosts", 3.0, ratio(ours, "SimPy, process per task", 100)))
        if simgrid:
            result.append(Goal.at_least(f"{ours} over SimGrid, 100 hosts", 1.0, ratio(ours, "SimGrid", 100)))
            result.append(Goal.at_least(f"{ours} over SimGrid, 1,000 hosts", 10.0, ratio(ours, "SimGrid", 1_000)))
    moonshot = ratio("wattloom physics", "SimPy, process per task", 100)
    return [*result, Goal.at_least("moonshot: wattloom physics over SimPy, 100 hosts", 10.0, moonshot)]


if __name__ == "__main__":
    main()
