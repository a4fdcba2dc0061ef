"""How true function profiles are: on the rig, where E and W of every function are known.

Bags of 22 functions run on the rig's machine in virtual time, 20 bags of 8 for 10 s each, as `wattloom profile
functions` has it: two cores, each function with its own run time, power (0.6 to 2 times the ordinary), and
sensitivity to neighbours; noisy (2%), late (20 ms), coarse counters that wrap; a background process. Wattloom reads
them with its ordinary meter and account. The truth is the mean over all neighbours, not over those that lots brought.
Then one condition at a time is changed, and at last the whole command runs in real time on the rig, with real workers.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from reporting import Goal, finish
from tests.beds.rig import bags as real
from tests.beds.rig.conditions import Conditions
from tests.beds.rig.virtual_bags import Truth, functions, taken, truths

from wattloom.affinity.bags import Lots
from wattloom.workload.function_profile import FunctionProfile

USUAL = Conditions(background=0.15)
CHANGED: dict[str, tuple[Conditions, int, Lots, float]] = {
    "no background process": (Conditions(), 22, Lots(), 10.0),
    "more background, 40% of a core": (Conditions(background=0.4), 22, Lots(), 10.0),
    "noise of 5%": (Conditions(background=0.15, noise=0.05), 22, Lots(), 10.0),
    "lag of 50 ms": (Conditions(background=0.15, lag_s=0.05), 22, Lots(), 10.0),
    "a straight curve": (Conditions(background=0.15, bend=0.0), 22, Lots(), 10.0),
    "bags of 4 s": (USUAL, 22, Lots(), 4.0),
    "8 functions, 10 bags of 4": (USUAL, 8, Lots(bags=10, size=4), 10.0),
}


class Found:
    """Errors and what intervals held, over some runs."""

    def __init__(self) -> None:
        self.e: list[float] = []
        self.w: list[float] = []
        self.e_held: list[bool] = []
        self.w_held: list[bool] = []
        self.width: list[float] = []

    def add(self, rows: Sequence[FunctionProfile], true: dict[str, Truth]) -> None:
        for row in rows:
            truth, joules = true[row.function], row.joules
            assert joules is not None
            self.e.append(row.per_core_s.value / truth.per_core_s - 1.0)
            self.w.append(joules.value / truth.joules - 1.0)
            self.e_held.append(row.per_core_s.low <= truth.per_core_s <= row.per_core_s.high)
            self.w_held.append(joules.low <= truth.joules <= joules.high)
            self.width.append(joules.high / joules.value - 1.0)

    def row(self, name: str, seeds: int) -> dict[str, Any]:
        shares = {
            "E median": median(map(abs, self.e)),
            "E held": fmean(self.e_held),
            "W median": median(map(abs, self.w)),
            "W bias": fmean(self.w),
            "W held": fmean(self.w_held),
            "W 90% +": median(self.width),
        }
        return {"run": name, "seeds": seeds, "n": len(self.e)} | {
            key: f"{100 * got:.1f}%" for key, got in shares.items()
        }


def main() -> None:
    arguments = parser().parse_args()
    rows, usual = [], Found()
    for seed in range(1, arguments.seeds + 1):
        judge(usual, USUAL, 22, Lots(seed=seed), 10.0)
    rows.append(usual.row("usual", arguments.seeds))
    print(rows[-1], file=sys.stderr, flush=True)
    for name, (how, count, lots, seconds) in {} if arguments.quick else CHANGED.items():
        found = Found()
        for seed in range(1, 6):
            judge(found, how, count, Lots(lots.bags, lots.size, lots.least, seed), seconds)
        rows.append(found.row(name, 5))
        print(rows[-1], file=sys.stderr, flush=True)
    if not arguments.quick:
        rows.append(in_real_time().row("in real time, 4 functions, 10 bags of 4 s", 1))
    finish("function-profiles", rows, goals(usual))


def judge(found: Found, how: Conditions, count: int, lots: Lots, seconds: float) -> None:
    known = functions(count, lots.seed)
    found.add(taken(known, how, lots, seconds)[1], truths(known, how))


def in_real_time() -> Found:
    found = Found()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        told, true = real.run(0.05, Lots(bags=10, size=4), 4.0, USUAL, Path(folder))
    found.add(told.profiles.rows, true)
    return found


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--quick", action="store_true", help="only the usual conditions, in virtual time")
    made.add_argument("--seeds", type=int, default=20, help="runs under the usual conditions")
    made.add_argument("--data", help="not used: the rig makes its own")
    return made


def goals(usual: Found) -> list[Goal]:
    e_held, w_held = fmean(usual.e_held), fmean(usual.w_held)
    return [
        Goal.at_most("median error of W", 0.05, median(map(abs, usual.w))),
        Goal.at_most("median error of E", 0.03, median(map(abs, usual.e))),
        Goal.at_least("90% intervals of W hold of all truths at least", 0.85, w_held),
        Goal.at_most("and at most", 0.95, w_held),
        Goal.at_least("90% intervals of E hold of all truths at least", 0.85, e_held),
        Goal.at_most("and at most", 0.95, e_held),
    ]


if __name__ == "__main__":
    main()
