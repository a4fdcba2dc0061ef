"""What the built-in scenarios come to: decisions, joules and makespan of every policy, recorded once and never to move.

Owns which runs are recorded, their file, and the table of what is different now. Figures are kept as `repr` writes
them, so that equal means equal to the last bit.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import wattloom

FILE: Final = Path(__file__).with_name("scenarios.json")
SCENARIOS: Final = ("hsc-cpu", "heats-bursts", "isa-mixed-former", "mixed-1000", "isa-mixed")
FORMER: Final = {"isa-mixed-former": str(Path(__file__).with_name("isa-mixed-former.toml"))}
"""Scenarios that were built in until another took their name: their files are here."""
POLICIES: Final = (
    "fifo", "round-robin", "random", "spread", "pack", "arch-first", "marginal-energy", "exec", "weighted",
    "least-joules", "least-joules:sleep=false",
)  # fmt: skip
SEEDS: Final = (0, 1, 2)
QUICK: Final = ("hsc-cpu", "heats-bursts", "isa-mixed-former", "isa-mixed")
"""Scenarios that every run of the tests computes anew, at seed 0."""


class Case(NamedTuple):
    """One simulated run."""

    scenario: str
    policy: str
    seed: int

    def __str__(self) -> str:
        return f"{self.scenario} {self.policy} {self.seed}"


class Figures(NamedTuple):
    """What it came to."""

    digest: str
    energy_j: str
    makespan_s: str


Tell = Callable[[str], None]


def cases() -> Iterator[Case]:
    return (Case(name, policy, seed) for name in SCENARIOS for policy in POLICIES for seed in SEEDS)


def quick_cases() -> list[Case]:
    return [case for case in cases() if case.scenario in QUICK and case.seed == 0]


def computed(case: Case) -> Figures:
    result = wattloom.simulate(FORMER.get(case.scenario, case.scenario), case.policy, case.seed)
    return Figures(result.digest, repr(float(result.energy.total)), repr(result.makespan_s))


def recorded() -> dict[Case, Figures]:
    rows = json.loads(FILE.read_text())
    return {
        Case(row["scenario"], row["policy"], row["seed"]): Figures(*(row[key] for key in Figures._fields))
        for row in rows
    }


def record(tell: Tell) -> None:
    rows = [json.dumps(case._asdict() | figures._asdict()) for case, figures in _each(cases(), tell)]
    FILE.write_text("[\n" + ",\n".join(rows) + "\n]\n")


def different(which: Iterable[Case], tell: Tell) -> list[str]:
    """A table of before and after, one line for each run that is not what it was."""
    known = recorded()
    return [row(case, known[case], now) for case, now in _each(which, tell) if now != known[case]]


def row(case: Case, before: Figures, after: Figures) -> str:
    changed = [
        f"{name} {old} -> {new}" for name, old, new in zip(Figures._fields, before, after, strict=True) if old != new
    ]
    return f"{case}: " + ", ".join(changed)


def _each(which: Iterable[Case], tell: Tell) -> Iterator[tuple[Case, Figures]]:
    wanted = list(which)
    for number, case in enumerate(wanted, start=1):
        begin = time.perf_counter()
        figures = computed(case)
        tell(f"scenarios {number} of {len(wanted)}: {case}, {time.perf_counter() - begin:.1f} s")
        yield case, figures
