"""The simulator against this machine: the same calls on the same virtual nodes, predicted and made.

This machine's cores are split into two virtual nodes, a quick and hungry one and a slow and frugal one. Four CPU-bound
functions work for 0.06 to 0.28 s of CPU time each (a virtual machine's speed may change twofold within seconds, as its
neighbours work or not; where it does not, use --fixed-work). Calibration: a run of mixed calls measures the seconds of
each on each node. Prediction: from these figures alone the simulator says, for every policy, who goes where, the
makespan and the joules of a plan of calls. Then the executor makes them. The plan is drawn by lot among those whose
placements stay the same when calls are 3% shorter or up to 6% longer, so that they hang on decisions and not on noise.
A run in which others took the cores (calls took longer than their CPU time) is repeated, at most twice.

Then a journal of many short calls is replayed under another policy, and timed.
"""

import argparse
import hashlib
import json
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from reporting import Goal, finish
from tests.beds import parity
from tests.beds.parity import Outcome, Planned, Timed, timed

from wattloom import Executor, VirtualNode, replay
from wattloom.policies.listing import policies

WITHIN = 0.10
NOISE, NOISE_TRIES = 0.03, 5
DISTURBED = 0.03
MOST_TRIES = 3
QUIET_S, QUIET_SHARE, QUIET_WITHIN_S = 1.0, 0.9, 30.0
ROUNDS = 14
SPACED, AT_ONCE, MOST_GAP_S = 18, 12, 0.3
TARGETS_S = {"primes": 0.06, "hashes": 0.11, "archives": 0.18, "documents": 0.28}


# -- work --------------------------------------------------------------------------------------------------------------


def primes() -> int:
    """Trial division in pure Python."""
    return sum(all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(2, 1000))


def hashes() -> bytes:
    """SHA-256, over and over."""
    return hashlib.pbkdf2_hmac("sha256", b"watt", b"loom", 2000)


def archives() -> bytes:
    """Compression of text."""
    return zlib.compress(b" ".join(str(n * n).encode() for n in range(1000)), 9)


def documents() -> object:
    """JSON, written and read."""
    return json.loads(json.dumps({str(n): [n, n / 7, str(n)] for n in range(500)}))


UNITS: dict[str, Callable[[], object]] = {f.__name__: f for f in (primes, hashes, archives, documents)}


def of_primes(seconds: float, units: int) -> Timed:
    return timed(partial(repeat, primes, seconds, units))


def of_hashes(seconds: float, units: int) -> Timed:
    return timed(partial(repeat, hashes, seconds, units))


def of_archives(seconds: float, units: int) -> Timed:
    return timed(partial(repeat, archives, seconds, units))


def of_documents(seconds: float, units: int) -> Timed:
    return timed(partial(repeat, documents, seconds, units))


CALLS = {"primes": of_primes, "hashes": of_hashes, "archives": of_archives, "documents": of_documents}


def repeat(unit: Callable[[], object], seconds: float, units: int) -> None:
    """So many units of work, or, where these are 0, as many as fit into so much CPU time."""
    for _ in range(units):
        unit()
    end = time.thread_time() + seconds
    while not units and time.thread_time() < end:
        unit()


def sized(fixed: bool) -> dict[str, Callable[[], Timed]]:
    """Each function with its target of CPU seconds, or with the fixed amount of work that takes as long now."""
    units = dict.fromkeys(TARGETS_S, 0)
    if fixed:
        for name, unit in UNITS.items():
            units[name] = round(TARGETS_S[name] / min(timed(unit)[1] for _ in range(50)))
    return {name: partial(call, TARGETS_S[name], units[name]) for name, call in CALLS.items()}


def plan_of(seed: int) -> list[Planned]:
    """Some calls one after another, then many at once."""
    chance, at, plan = Random(seed), 0.0, []
    for _ in range(SPACED):
        plan.append(Planned(at, chance.choice(list(TARGETS_S))))
        at += chance.uniform(0.02, MOST_GAP_S)
    return plan + [Planned(at, chance.choice(list(TARGETS_S))) for _ in range(AT_ONCE)]


# -- quiet -------------------------------------------------------------------------------------------------------------


def wait_for_quiet() -> None:
    """Until the cores have been idle for a moment, so that others are less likely in the way; not for ever."""
    end = time.monotonic() + QUIET_WITHIN_S
    while time.monotonic() < end:
        before = _idle_s()
        time.sleep(QUIET_S)
        if _idle_s() - before > QUIET_SHARE * QUIET_S * (os.cpu_count() or 1):
            return


def _idle_s() -> float:
    """Idle seconds of all cores since the machine was started."""
    idle, waiting = Path("/proc/stat").read_text().split()[4:6]
    return (int(idle) + int(waiting)) / os.sysconf("SC_CLK_TCK")


# -- the three steps ---------------------------------------------------------------------------------------------------


class Bench:
    """Nodes, work and what was calibrated."""

    def __init__(self, nodes: Sequence[VirtualNode], work: dict[str, Callable[[], Timed]], folder: Path) -> None:
        self.nodes = nodes
        self.work = work
        self.folder = folder
        wait_for_quiet()
        self.seconds = parity.calibrate(nodes, work, folder / "calibration.journal", ROUNDS)
        for (function, machine), seconds in sorted(self.seconds.items()):
            print(f"calibrated: {function:10} on {machine:8} {seconds:.4f} s")

    def predict(self, plan: list[Planned], policy: str, lengths: Sequence[float] | None = None) -> Outcome:
        return parity.predict(self.nodes, self.work, plan, policy, self.seconds, lengths=lengths)

    def steady_plan(self, names: list[str], seeds: int) -> list[Planned]:
        """Among plans that do not hang on noise, the one on which the policies differ most."""
        plans = [plan_of(seed) for seed in range(seeds)]
        ways = [len({tuple(self.predict(plan, name).placements) for name in names}) for plan in plans]
        for seed in sorted(range(seeds), key=lambda seed: -ways[seed]):
            plan = plans[seed]
            if all(
                parity.is_steady(partial(self.predict, plan, name), len(plan), NOISE, NOISE_TRIES) for name in names
            ):
                print(
                    f"plan {seed} of {seeds}: the policies place its {len(plan)} calls in {ways[seed]} different ways"
                )
                return plan
        raise SystemExit(f"none of {seeds} plans is steady: try more --seeds")

    def compare(self, plan: list[Planned], policy: str) -> dict[str, Any]:
        predicted = self.predict(plan, policy)
        runs: list[Outcome] = []
        while len(runs) < MOST_TRIES and not any(run.disturbance <= DISTURBED for run in runs):
            wait_for_quiet()
            journal = self.folder / f"{policy}-{len(runs)}.journal"
            runs.append(parity.run(self.nodes, self.work, plan, policy, journal, self.seconds))
        real = min(runs, key=lambda run: run.disturbance)
        return {
            "policy": policy,
            "same placements": predicted.placements == real.placements,
            "makespan predicted s": predicted.makespan_s,
            "makespan real s": real.makespan_s,
            "makespan error": predicted.makespan_s / real.makespan_s - 1.0,
            "joules predicted": predicted.joules,
            "joules real": real.joules,
            "joules error": predicted.joules / real.joules - 1.0,
            "answer error": predicted.answer_s / real.answer_s - 1.0,
            "disturbed": real.disturbance,
            "tries": len(runs),
        }


# -- replay ------------------------------------------------------------------------------------------------------------


def nothing() -> None:
    """As short as a call can be."""


def time_replay(tasks: int, journal: Path) -> dict[str, Any]:
    """Make many calls for real, then say what they would have cost under another policy."""
    began = time.perf_counter()
    with Executor(journal=journal, policy="fifo") as executor:
        for _ in executor.map(nothing_of, range(tasks)):
            pass
    ran = time.perf_counter()
    again = replay(journal, policy="least-joules")
    done = time.perf_counter()
    assert again.counterfactual is not None
    return {
        "tasks": tasks,
        "ran in s": ran - began,
        "replayed in s": done - ran,
        "same decisions": again.same_decisions,
        "finished then": again.recorded.tasks.finished,
        "finished now": again.counterfactual.tasks.finished,
    }


def nothing_of(_: int) -> None:
    """The same, for `map`."""


# -- the figure --------------------------------------------------------------------------------------------------------


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Predicted and real, one line per policy, with the band of 10% around the prediction."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 1.4 + 0.34 * len(rows)), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, what, unit, label in ((left, "makespan", " s", "makespan, s"), (right, "joules", "", "energy, J")):
        for place, row in enumerate(rows):
            _point(axes, place, row[f"{what} predicted{unit}"], row[f"{what} real{unit}"], row["same placements"])
        worst = max(abs(row[f"{what} error"]) for row in rows)
        axes.set_title(f"{label.partition(',')[0]}: largest error {worst:.1%}", fontsize=10, loc="left")
        axes.set_xlabel(label)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", color="#E6EBF0")
        axes.set_axisbelow(True)
    left.set_yticks(range(len(rows)), [row["policy"] for row in rows])
    left.invert_yaxis()
    handles, labels = left.get_legend_handles_labels()
    known = dict(zip(labels, handles, strict=True))
    figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    figure.savefig(path, metadata={"Software": None})
    print(f"figure: {path}")


def _point(axes: Any, place: int, predicted: float, real: float, same: bool) -> None:
    band = [(1.0 - WITHIN) * predicted, (1.0 + WITHIN) * predicted]
    axes.plot(band, [place, place], color="#CFE3F0", linewidth=9, solid_capstyle="butt", label="10% around it")
    axes.plot(predicted, place, "|", color="#0072B2", markersize=13, markeredgewidth=2, label="simulator")
    word = "this machine, same placements" if same else "this machine, other placements"
    axes.plot(real, place, "o" if same else "X", color="#1B2530" if same else "#D55E00", markersize=6, label=word)


def main() -> None:
    """Calibrate, predict, run, compare; replay."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", default="", help="with commas in between; left out: all")
    parser.add_argument("--seeds", type=int, default=24, help="plans to choose from (default 24)")
    parser.add_argument("--fixed-work", action="store_true", help="calls of so much work, not of so much CPU time")
    parser.add_argument("--tasks", type=int, default=100_000, help="of the replay; 0: none (default 100,000)")
    parser.add_argument("--data", help="not needed here")
    parser.add_argument("--figure", type=Path, help="write a picture (needs matplotlib)")
    options = parser.parse_args()
    names = options.policies.split(",") if options.policies else [policy.name for policy in policies()]
    goals: list[Goal] = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(parity.two_nodes(), sized(options.fixed_work), Path(folder))
        plan = bench.steady_plan(names, options.seeds)
        rows = [bench.compare(plan, name) for name in names]
        goals.append(Goal.at_least("policies with the same placements", len(names), _same(rows)))
        for what in ("makespan", "joules"):
            worst = max(abs(row[f"{what} error"]) for row in rows)
            goals.append(Goal.at_most(f"largest error of the {what}", WITHIN, worst))
        if options.figure is not None:
            draw(rows, options.figure)
        replayed = time_replay(options.tasks, Path(folder) / "many.journal") if options.tasks else {}
    if replayed:
        print("replay:", ", ".join(f"{name} {value}" for name, value in replayed.items()))
        goals.append(Goal.at_most(f"seconds to replay {options.tasks:,} tasks", 10.0, replayed["replayed in s"]))
    finish("parity", rows, goals)


def _same(rows: list[dict[str, Any]]) -> int:
    return sum(row["same placements"] for row in rows)


if __name__ == "__main__":
    main()
