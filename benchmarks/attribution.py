"""How true the joules of single calls are: on the rig, where the truth is known.

Real calls of four functions run in real workers, in mixes that change every second or so. One more process plays the
hardware: each function draws another power (0.6, 1, 1.4 and 2 times the ordinary) on a machine with a concave curve,
and its energy counters are noisy (2%), late (20 ms), coarse (61 µJ, every 1 ms) and wrap. Wattloom reads them with its
ordinary meter. For every call its figure is held against the truth, beside what Scaphandre's rule, Kepler's rule and
FaasMeter's regression would have said from the same counters. The first third of each run, in which functions are still
being learned, is scored apart. Then one condition at a time is changed.
"""

import argparse
import os
import sys
from typing import Any

from reporting import Goal, finish
from tests.beds.rig.conditions import Conditions
from tests.beds.rig.scores import Scores, scores
from tests.beds.rig.trial import Plan, run

SIZES_S = (0.002, 0.02, 0.2, 2.0)
WORKERS = (1, 2, 8)
USUAL = Conditions(background=0.15)
CHANGED: dict[str, tuple[dict[str, Any], bool]] = {
    "no background process": ({"background": 0.0}, True),
    "more background, 40% of a core": ({"background": 0.4}, True),
    "no lag": ({"lag_s": 0.0}, True),
    "lag of 50 ms": ({"lag_s": 0.05}, True),
    "no noise": ({"noise": 0.0}, True),
    "noise of 5%": ({"noise": 0.05}, True),
    "a straight curve": ({"bend": 0.0}, True),
    "the same mix all the time": ({}, False),
}


def main() -> None:
    arguments = parser().parse_args()
    rows, told = [], {}
    for cpu_s in (0.002, 0.2) if arguments.quick else SIZES_S:
        for workers in (2,) if arguments.quick else WORKERS:
            found = measured(plan(cpu_s, workers, arguments), USUAL)
            told[cpu_s, workers] = found
            rows.append({"calls of": text(cpu_s), "workers": workers} | row(found))
            print(f"{rows[-1]}", file=sys.stderr, flush=True)
    for name, (changed, mixes) in {} if arguments.quick or arguments.usual else CHANGED.items():
        conditions = Conditions(**({"background": USUAL.background} | changed))
        for cpu_s in (0.002, 0.2):
            found = measured(plan(cpu_s, 2, arguments, mixes), conditions)
            rows.append({"calls of": f"{text(cpu_s)}, {name}", "workers": 2} | row(found))
            print(f"{rows[-1]}", file=sys.stderr, flush=True)
    finish("attribution", rows, goals(told))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--quick", action="store_true", help="two runs instead of 28, in about a minute")
    made.add_argument("--usual", action="store_true", help="only the usual conditions: 12 runs, in about 7 minutes")
    made.add_argument(
        "--seconds", type=float, default=12.0, help="CPU time on each core in a run; 5 times that for calls of 2 s"
    )
    made.add_argument("--seed", type=int, default=1, help="of the mixes of calls")
    made.add_argument("--data", help="not used: the rig makes its own")
    return made


def plan(cpu_s: float, workers: int, arguments: argparse.Namespace, mixes: bool = True) -> Plan:
    seconds = arguments.seconds * (5.0 if cpu_s > 1.0 else 1.0)
    return Plan(cpu_s, workers, seconds, os.cpu_count() or 1, mixes, seed=arguments.seed)


def measured(wanted: Plan, conditions: Conditions) -> Scores:
    trial = run(wanted, conditions)
    totals = trial.totals
    if totals.meter_j != totals.tasks_j + totals.held_j + totals.idle_j + totals.unattributed_j:
        raise SystemExit("tasks + idle + unattributed is not the meter")
    return scores(trial)


def text(cpu_s: float) -> str:
    return f"{cpu_s * 1e3:g} ms" if cpu_s < 1.0 else f"{cpu_s:g} s"


def row(found: Scores) -> dict[str, Any]:
    def percent(share: float) -> str:
        return f"{100.0 * share:.1f}%"

    return {
        "n": found.calls,
        "median": percent(found.ours.median),
        "p95": percent(found.ours.p95),
        "sum of 100": percent(found.sums.median) if found.sums else "-",
        "held": percent(found.held),
        "at first": percent(found.first.median),
        "Scaphandre": f"{percent(found.scaphandre.median)} / {percent(found.scaphandre.p95)}",
        "Kepler": f"{percent(found.kepler.median)} / {percent(found.kepler.p95)}",
        "FaasMeter": f"{percent(found.faasmeter.median)} / {percent(found.faasmeter.p95)}",
    }


def goals(told: dict[tuple[float, int], Scores]) -> list[Goal]:
    long = [
        Goal.at_most(f"median error, {text(s)} x {w}", 0.05, f.ours.median) for (s, w), f in told.items() if s >= 0.2
    ]
    sums = [
        Goal.at_most(f"error of the sum of 100 calls, {text(s)} x {w}", 0.15, f.sums.median)
        for (s, w), f in told.items()
        if f.sums is not None and s < 0.01
    ]
    calls = sum(found.calls for found in told.values())
    held = sum(found.held * found.calls for found in told.values()) / calls
    print(f"mean of the runs' shares held: {sum(found.held for found in told.values()) / len(told):.3f}")
    return [
        *long,
        *sums,
        Goal.at_least("90% intervals hold of all truths at least", 0.85, held),
        Goal.at_most("and at most", 0.95, held),
    ]


if __name__ == "__main__":
    main()
