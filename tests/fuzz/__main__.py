"""Fuzz every command and every file that commands read: `python -m tests.fuzz --seconds 60`, or `make fuzz`.

A case is known by its seed and number; what goes wrong is printed as the smallest call that does, with its files kept.
"""

import argparse
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Final

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: a child of this process has this thread only

from tests.fuzz.calling import Outcome, call, prepare
from tests.fuzz.cases import Case, draw, tree
from tests.fuzz.judging import wrong
from tests.fuzz.seeds import make
from tests.fuzz.shrinking import smallest

USED: Final = (
    "wattloom.api", "wattloom.attribution.whole_machine", "wattloom.machines.curve_points", "wattloom.history.queries",
    "wattloom.kubernetes.client.kubeconfig", "wattloom.kubernetes.scheduler.scheduler",
    "wattloom.local.running", "wattloom.report",
    "wattloom.simulation.replay", "wattloom.simulation.parallel_runs", "wattloom.history.why", "rich.table", "yaml",
)  # fmt: skip


def main() -> int:
    asked = _asked()
    work = Path(tempfile.mkdtemp(prefix="wattloom-fuzz-"))
    seeds, folder = work / "seeds", work / "here"
    seeds.mkdir()
    make(seeds)
    _import_everything()
    fuzzer = Fuzzer(asked.seed, seeds, folder, Path(asked.keep))
    numbers = [asked.case] if asked.case is not None else range(asked.first, asked.first + asked.cases)
    began = time.monotonic()
    try:
        for number in numbers:
            if time.monotonic() - began > asked.seconds:
                break
            fuzzer.try_one(number)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return fuzzer.tell(time.monotonic() - began)


class Fuzzer:
    """Tries cases, and keeps count."""

    def __init__(self, seed: int, seeds: Path, folder: Path, keep: Path) -> None:
        self._seed, self._seeds, self._folder, self._keep = seed, seeds, folder, keep
        self.codes: Counter[int] = Counter()
        self.commands: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()

    def try_one(self, number: int) -> None:
        case = draw(self._seed, number)
        outcome = call(case, self._seeds, self._folder)
        self.codes[outcome.code] += 1
        self.commands[case.command] += 1
        problem = wrong(case, outcome)
        if problem:
            key = f"{case.command}: {problem}"
            self.wrong[key] += 1
            if self.wrong[key] == 1:
                self._report(number, case, problem, outcome)

    def _report(self, number: int, case: Case, problem: str, first: Outcome) -> None:
        seed = (self._seeds / case.file).read_bytes() if case.file else b""
        small = smallest(case, lambda each: self._is(each, problem, case.words), seed)
        outcome = call(small, self._seeds, self._folder)
        if wrong(small, outcome) != problem:  # it does not always
            small, outcome = case, first
        kept = self._keep / f"{self._seed}-{number}"
        prepare(small, self._seeds, kept)
        print(f"\n*** {problem}", f"    cd {kept} && {_written(small)}", sep="\n")
        print(f"    exit {outcome.code}, {outcome.seconds:.1f} s; again:", end=" ")
        print(f"python -m tests.fuzz --seed {self._seed} --case {number}")
        for line in (outcome.err or outcome.out).strip().splitlines()[-12:]:
            print(f"    | {line[:200]}")
        sys.stdout.flush()

    def _is(self, case: Case, problem: str, words: tuple[str, ...]) -> bool:
        """Whether it goes wrong in this way. What is not named must not be left out."""
        if problem.startswith("does not name") and case.words != words:
            return False
        return wrong(case, call(case, self._seeds, self._folder)) == problem

    def tell(self, seconds: float) -> int:
        calls = sum(self.codes.values())
        exits = ", ".join(f"exit {code}: {count:,}" for code, count in sorted(self.codes.items()))
        print(
            f"\n{calls:,} calls in {seconds:.0f} s, seed {self._seed}; "
            f"{len(self.commands)} of {len(tree())} commands; {exits}"
        )
        for key, count in self.wrong.most_common():
            print(f"  {count:5,}  {key}")
        print("nothing is wrong" if not self.wrong else f"{len(self.wrong)} kinds of defects")
        return 1 if self.wrong else 0


def _written(case: Case) -> str:
    """The call as a shell takes it."""
    case = replace(case, data=None) if case.file else case
    variables = {**dict(case.environment), **({"COLUMNS": case.columns} if case.columns else {})}
    if case.encoding != "utf-8":
        variables["PYTHONIOENCODING"] = case.encoding
    words = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    return " ".join([*words, "XDG_STATE_HOME=$PWD/state", "wattloom", *map(shlex.quote, case.words)])


def _import_everything() -> None:
    """So that a child need not."""
    from wattloom.cli.main import COMMANDS

    tree()
    for name in (*COMMANDS, "results", "printing", "figures", "tasks", "failing", "progress"):
        import_module(f"wattloom.cli.{name}")
    for name in USED:
        import_module(name)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other cases")
    parser.add_argument("--case", type=int, help="this one only")
    parser.add_argument("--first", type=int, default=0, help="begin with this case")
    parser.add_argument("--cases", type=int, default=10**9, help="so many at most")
    parser.add_argument(
        "--keep", default=os.path.join(tempfile.gettempdir(), "wattloom-fuzz-found"), help="files of what goes wrong"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
