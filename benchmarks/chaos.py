"""A few hundred kills with -9 at random moments, and the proof that nothing was forgotten or silently doubled.

A program submits idempotent and other tasks from several threads; it, its workers, or all of them are killed and it is
started again on the same journal. What the journal, the futures and the visible effects of the tasks say is compared at
the end (tests/local/chaos). Same seed, same plan of kills; the moments still depend on the machine.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from reporting import Goal, finish

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.local.chaos.checker import Verdict, check
from tests.local.chaos.controller import KINDS, Controller, Killing

KILLS = 300
QUICK_KILLS = 20
RECOVERED_WITHIN_S = 1.0


def rows(done: Killing, found: Verdict, killing_s: float, checking_s: float) -> list[dict[str, object]]:
    figures: dict[str, object] = {f"kills: {kind}": done.kills[kind] for kind in KINDS}
    figures |= {
        "kills": done.kills.total(),
        "lives of the program": done.lives,
        "tasks": found.tasks,
        "tasks known as accepted": found.accepted,
        "taken over by a next life": found.recovered,
        "ended: finished": found.ends["finished"],
        "ended: unknown": found.ends["unknown"],
        "ended: unknown, and had no effect": found.unknown_undone,
        "ended: failed": found.ends["failed"],
        "idempotent tasks run again": found.reruns,
        "seconds until all is taken over, median": statistics.median(found.ready_s),
        "seconds until all is taken over, longest": max(found.ready_s),
        "seconds of killing": killing_s,
        "seconds of checking": checking_s,
    }
    return [{"figure": name, "value": value} for name, value in figures.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_KILLS} kills")
    parser.add_argument("--data", help="not used")
    given = parser.parse_args()
    kills = QUICK_KILLS if given.quick else given.kills
    with tempfile.TemporaryDirectory(prefix="wattloom-chaos-") as folder:
        began = time.perf_counter()
        done = Controller(Path(folder), given.seed).run(kills)
        killed = time.perf_counter()
        found = check(Path(folder))
        violations = done.violations + found.violations
        if violations:
            print((Path(folder) / "stderr").read_text()[-4000:], file=sys.stderr)
        for violation in violations:
            print(f"VIOLATION  {violation}")
        goals = [
            Goal.at_least("kills", kills, done.kills.total()),
            Goal.at_most("violations", 0, len(violations)),
            Goal.at_most(
                "seconds until all is taken over, median", RECOVERED_WITHIN_S, statistics.median(found.ready_s)
            ),
        ]
        finish("chaos", rows(done, found, killed - began, time.perf_counter() - killed), goals)
    sys.exit(bool(violations))


if __name__ == "__main__":
    main()
