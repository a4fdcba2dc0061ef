"""Peers of planning: MiniZinc with Gecode, OR-tools' CP-SAT and HiGHS on the whole model, each in a process of its own.

An instance goes to them as an .npz file with whole costs, the same for all. `ortools` and HiGHS do not bear each other
in one process, and memory of a whole model is limited: hence the processes. A peer that is missing says so.
"""

import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

MEMORY = 8 << 30

SOURCE_MODEL = """
int: n; int: m;
array[1..m] of int: C;
array[1..m, 1..n] of int: cores;
array[1..m, 1..n] of int: cost;
array[1..m, 1..n] of var bool: D;
array[1..n] of var 0..max(C): A;
constraint forall(j in 1..n)(sum(i in 1..m)(bool2int(D[i, j])) = 1);
constraint forall(j in 1..n)(A[j] = sum(i in 1..m)(bool2int(D[i, j]) * cores[i, j]));
constraint forall(i in 1..m)(C[i] >= sum(j in 1..n)(bool2int(D[i, j]) * A[j]));
solve minimize sum(i in 1..m, j in 1..n)(bool2int(D[i, j]) * cost[i, j]);
"""
"""The ISA study's: a matrix of booleans, a vector of cores, and their product in the capacities."""

TUNED_MODEL = """
int: n; int: m;
array[1..m] of int: C;
array[1..m, 1..n] of int: cores;
array[1..m, 1..n] of int: cost;
array[1..n] of var 0..1: x;
array[1..n] of int: more = [cost[2, j] - cost[1, j] | j in 1..n];
constraint sum(j in 1..n)((1 - x[j]) * cores[1, j]) <= C[1];
constraint sum(j in 1..n)(x[j] * cores[2, j]) <= C[2];
array[1..n] of int: order = arg_sort([-abs(more[j]) | j in 1..n]);
solve :: seq_search([int_search([x[order[j]]], input_order, if more[order[j]] < 0 then indomain_max
  else indomain_min endif) | j in 1..n])
  minimize sum(j in 1..n)(cost[1, j] + x[j] * more[j]);
"""
"""Ours for two servers: a 0/1 variable for each function, the largest differences first, each to its better side."""


def minizinc(model: str, cost: Any, cores: Any, room: Any, seconds: float) -> dict[str, Any] | None:
    """Objective, solve time and whether it was proven. None: MiniZinc or Gecode is not installed."""
    if shutil.which("minizinc") is None or shutil.which("fzn-gecode") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "model.mzn").write_text(model)
        data = {"n": len(cost), "m": len(room), "C": room.tolist()}
        data |= {"cores": cores.T.tolist(), "cost": cost.T.tolist()}
        (path / "data.json").write_text(json.dumps(data))
        limit = ["--time-limit", str(int(1000 * seconds))]
        command = ["minizinc", "--solver", "gecode", "--statistics", *limit, "model.mzn", "data.json"]
        command += ["--output-objective", "--output-mode", "json"]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=3 * seconds + 30, check=False
        )
    times = re.findall(r"solveTime=([\d.eE+-]+)", done.stdout)
    values = re.findall(r'"_objective" : (-?\d+)', done.stdout)
    if not times:
        return {"value": None, "seconds": None, "proven": False, "error": done.stderr.strip()[-200:]}
    value = int(values[-1]) if values else None
    return {"value": value, "seconds": float(times[-1]), "proven": "==========" in done.stdout}


def in_a_process(peer: str, cost: Any, cores: Any, room: Any, seconds: float) -> dict[str, Any]:
    """`cp_sat` or `highs`, killed if it does not end."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "instance.npz"
        np.savez(file, cost=cost, cores=cores, room=room)
        command = [sys.executable, __file__, peer, str(file), str(seconds)]
        begun = time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=1.5 * seconds + 30, check=False)
        except subprocess.TimeoutExpired:
            return {"value": None, "proven": False, "seconds": time.monotonic() - begun, "error": "did not end"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        return {"value": None, "proven": False, "seconds": time.monotonic() - begun, "error": last[:200]}
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def cp_sat(cost: Any, cores: Any, room: Any, seconds: float) -> dict[str, Any]:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    n, m = cost.shape
    x = [[model.new_bool_var("") if cores[i, t] <= room[t] else 0 for t in range(m)] for i in range(n)]
    for i in range(n):
        model.add_exactly_one([v for v in x[i] if not isinstance(v, int)])
    for t in range(m):
        model.add(sum(int(cores[i, t]) * x[i][t] for i in range(n)) <= int(room[t]))
    model.minimize(sum(int(cost[i, t]) * x[i][t] for i in range(n) for t in range(m) if cores[i, t] <= room[t]))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    begun = time.monotonic()
    status = solver.solve(model)
    took = time.monotonic() - begun
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return {
        "value": int(solver.objective_value) if found else None,
        "bound": solver.best_objective_bound,
        "proven": status == cp_model.OPTIMAL,
        "seconds": took,
    }


def highs(cost: Any, cores: Any, room: Any, seconds: float) -> dict[str, Any]:
    """The whole model, as anybody would write it."""
    from scipy import optimize, sparse

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    n, m = cost.shape
    row, kind = np.nonzero(cores <= room)
    at = np.arange(len(row))
    once = sparse.csr_matrix((np.ones(len(row)), (row, at)), shape=(n, len(row)))
    used = sparse.csr_matrix((cores[row, kind].astype(float), (kind, at)), shape=(m, len(row)))
    begun = time.monotonic()
    found = optimize.milp(
        cost[row, kind].astype(float),
        integrality=np.ones(len(row)),
        bounds=optimize.Bounds(0, 1),
        constraints=[
            optimize.LinearConstraint(once, 1, 1),
            optimize.LinearConstraint(used, -np.inf, room.astype(float)),
        ],
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
    value = None if found.x is None else round(found.fun)
    return {"value": value, "proven": found.status == 0, "seconds": time.monotonic() - begun}


if __name__ == "__main__":
    given = np.load(sys.argv[2])
    peer = {"cp_sat": cp_sat, "highs": highs}[sys.argv[1]]
    print(json.dumps(peer(given["cost"], given["cores"], given["room"], float(sys.argv[3]))))
