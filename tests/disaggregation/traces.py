"""Made runs as files, for the tests of this room."""

from pathlib import Path

import numpy as np
from tests.beds.power_machines import Machine
from tests.beds.power_traces import Calls, MeterFaults, PowerTrace, record

WEIGHTS = np.array([6.0, 2.0, 10.0, 4.0])


def linear(idle_w: float = 60.0, weights: np.ndarray = WEIGHTS) -> Machine:
    return Machine(len(weights), idle_w, idle_w + 150.0, lambda calls: calls @ weights)


def bent(idle_w: float = 60.0, weights: np.ndarray = WEIGHTS) -> Machine:
    """Half of its slope is gone at 100 W."""
    return Machine(len(weights), idle_w, idle_w + 150.0, lambda calls: 144.0 * -np.expm1(-(calls @ weights) / 144.0))


def some_work(seed: int = 1, seconds: float = 600.0, functions: int = 4, each: float = 1.8) -> Calls:
    """Calls by chance, half a second to eight seconds long."""
    rng = np.random.default_rng(seed)
    starts, ends, owners = [], [], []
    for at, length in enumerate(np.geomspace(0.5, 8.0, functions)):
        begin = np.sort(rng.uniform(0.0, seconds - 10.0, int(each * seconds / length)))
        starts.append(begin)
        ends.append(begin + rng.uniform(0.5, 1.5, len(begin)) * length)
        owners.append(np.full(len(begin), at))
    return Calls(np.concatenate(starts), np.concatenate(ends), np.concatenate(owners))


def recorded(machine: Machine, work: Calls, faults: MeterFaults, seconds: float = 600.0, seed: int = 3) -> PowerTrace:
    return record("made", machine, work, faults, seconds, np.random.default_rng(seed))


def files(trace: PowerTrace, folder: Path) -> tuple[Path, Path]:
    """P.csv and R.csv."""
    power, runs = folder / "P.csv", folder / "R.csv"
    power.write_text(
        "time_s,watts\n" + "".join(f"{t:.3f},{w:.2f}\n" for t, w in zip(trace.time, trace.watts, strict=True))
    )
    lines = [
        f"{start:.4f},{end:.4f},{trace.names[function]}\n"
        for start, end, function in zip(trace.calls.start, trace.calls.end, trace.calls.function, strict=True)
    ]
    runs.write_text("start_s,end_s,function\n" + "".join(lines))
    return power, runs
