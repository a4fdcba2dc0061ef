"""Write down what must stay equal, or say what is different now: `python -m tests.golden record|check [PART...]`."""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from tests.golden import journals, outside, readings, scenarios

PARTS: Final = ("scenarios", "readings", "recovery", "outside")
JOURNALS: Final = "journals"
"""Recorded only if it is named: the journals themselves, made by the code of today in the place of the old."""
RECORDERS: Final = {
    "scenarios": scenarios.record,
    "readings": readings.record,
    "recovery": journals.record,
    "outside": outside.record,
    JOURNALS: journals.make,
}


def main() -> int:
    asked = _asked()
    if asked.what == "check":
        return _check(asked.parts or PARTS, asked.quick)
    for part in asked.parts or PARTS:
        RECORDERS[part](_tell)
    return 0


def _check(parts: Sequence[str], quick: bool) -> int:
    found: list[str] = []
    if "scenarios" in parts:
        found += scenarios.different(scenarios.quick_cases() if quick else scenarios.cases(), _tell)
    if "readings" in parts:
        found += readings.different(_tell)
    if "recovery" in parts:
        found += [each for boot in journals.BOOTS for each in journals.different(boot)]
    if "outside" in parts:
        found += outside.different()
    print("\n".join(found) or "all as recorded")
    return 1 if found else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("what", choices=("record", "check"))
    parser.add_argument("parts", nargs="*", choices=(*PARTS, JOURNALS, []), help="all but journals, if none is named")
    parser.add_argument("--quick", action="store_true", help="of the scenarios, only what the tests check without slow")
    return parser.parse_args()


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
