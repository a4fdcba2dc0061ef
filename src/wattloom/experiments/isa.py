"""The ISA study: 22 functions, five workloads and five policies on an x86 and an ARM server, by draws.

Owns what was published, and what of it holds in each draw. The study prints no W, no E and no load level, so nothing is
said of one cell: only in what share of draws a fact holds, and where the savings lie.
"""

from typing import ClassVar, Final

import msgspec

from wattloom.energy.forecast import Provenance
from wattloom.experiments.isa_draws import PRIORS, WORKLOADS, Draw, draws, ground
from wattloom.experiments.isa_runs import FULL, POLICIES, Run, Runs, runs_of
from wattloom.experiments.outcome import Bars, HeldFact, HeldFigure, Outcome, Spread, Table, spread_of
from wattloom.experiments.protocol import Asked, Experiment

EQUAL: Final = 0.02
"""Whole-server energies that differ by less are equal: a metered PDU is good for about 1% of each of two readings."""
SAVED: Final = (5.3, 15.2)
"""Percent of energy-aware against round-robin: the least and the most of five workloads."""
BETTER: Final = ("general", "crypto", "media")
ALIKE: Final = ("scientific", "web")
KIND: Final[Provenance] = "modelled"
RESULTS: Final = "WoSC 2024, slides 'Scheduling: results'"
AFFINITY: Final = "WoSC 2024, slides 'Performance and energy (normalized to ARM results)'"
RULES: Final = (
    f"Energies that differ by less than {EQUAL:.0%} of the whole are equal.",
    f"ARM is full where {FULL:.0%} of its cores are given out: functions come whole.",
    "Of plans with equally few cores core-aware has the one with the least energy: the study does not say which.",
    "Facts about energy are counted in draws in which all five policies reach every rate in all five workloads.",
    "Energy is that of one hour, which is the mean power; how long the study's runs were does not matter to any fact.",
)
READERS: Final = ("round-robin", "energy-aware")


class DrawFacts(msgspec.Struct, frozen=True):
    """What holds in a draw in which every rate is reached."""

    number: int
    facts: dict[str, bool]
    savings: dict[str, float]
    """Percent of energy-aware against round-robin, by workload."""
    runs: dict[tuple[str, str], Run]

    @property
    def all_hold(self) -> bool:
        return all(self.facts.values())


class Isa(Experiment):
    """Arys, Carlier and Riviere, WoSC 2024."""

    name = "isa"
    title = "Energy-aware scheduling of 22 functions on an x86 and an ARM server"
    summary = "five workloads under five policies, in draws from stated priors: facts and savings of the ISA study"
    cite = (
        "S. Arys, R. Carlier, E. Riviere: Energy-Aware Scheduling of a Serverless Workload in an ISA-Heterogeneous "
        "Cluster. 10th International Workshop on Serverless Computing (WoSC), Hong Kong, December 2024.",
    )
    seeds = 1000
    quick_seeds = 50
    options: ClassVar[dict[str, str]] = {
        "threads": "count the x86 server's 96 threads as cores, not its 48 cores",
        "alike": "on a machine all functions draw alike, and differ in speed only, as in the simulator",
    }

    def __init__(self, threads: bool = False, alike: bool = False) -> None:
        self._servers = ground(threads, alike)

    def run(self, asked: Asked) -> Outcome:
        found: list[DrawFacts] = []
        for done, draw in enumerate(draws(asked.seeds, self._servers), start=1):
            facts = facts_of(draw, runs_of(draw))
            found += [] if facts is None else [facts]
            asked.tell(done)
        return Outcome(
            experiment=self.name,
            title=self.title,
            seeds=asked.seeds,
            quick=asked.quick,
            held=(*_held_facts(found, asked.seeds), *_held_savings(found)),
            tables=(_energies(found, "whole"), _energies(found, "active"), _savings(found)),
            pictures=(_energy_picture(found), _savings_picture(found)),
            assumptions=(*PRIORS, *RULES),
            cite=self.cite,
        )


# -- one draw ----------------------------------------------------------------------------------------------------------


def facts_of(draw: Draw, runs: Runs) -> DrawFacts | None:
    """None: a rate was not reached."""
    known = {key: run for key, run in runs.items() if run is not None}
    if len(known) < len(runs):
        return None
    facts = {_worst(workload): _is_worst(known, workload) for workload in WORKLOADS}
    for workload in BETTER:
        facts[f"energy-aware better than core-aware: {workload}"] = _gain(known, workload) >= EQUAL
    for workload in ALIKE:
        facts[f"energy-aware equal to core-aware: {workload}"] = abs(_gain(known, workload)) < EQUAL
        facts[f"ARM is full under core-aware: {workload}"] = known[workload, "core-aware"].arm_is_full
    savings = {workload: 100.0 * _less(known, workload, *READERS) for workload in WORKLOADS}
    return DrawFacts(draw.number, facts, savings, known)


def _worst(workload: str) -> str:
    policy = "arm-first" if workload == "crypto" else "round-robin"
    return f"{policy} needs the most energy of the five: {workload}"


def _is_worst(runs: dict[tuple[str, str], Run], workload: str) -> bool:
    worst = max(POLICIES, key=lambda policy: runs[workload, policy].whole_w)
    return worst == ("arm-first" if workload == "crypto" else "round-robin")


def _gain(runs: dict[tuple[str, str], Run], workload: str) -> float:
    return _less(runs, workload, "core-aware", "energy-aware")


def _less(runs: dict[tuple[str, str], Run], workload: str, before: str, after: str) -> float:
    """A true reduction of whole-server energy."""
    return (runs[workload, before].whole_w - runs[workload, after].whole_w) / runs[workload, before].whole_w


# -- all of them -------------------------------------------------------------------------------------------------------


def _held_facts(found: list[DrawFacts], seeds: int) -> list[HeldFact]:
    first = "21 of 22 functions better on ARM in speed or energy, one on x86 in both"
    reached = "a load exists, too large for one server, at which all policies reach every rate"
    rows = [
        HeldFact(what=first, place=AFFINITY, held=seeds, of=seeds, provenance=KIND, calibrated=True),
        HeldFact(what=reached, place=RESULTS, held=len(found), of=seeds, provenance=KIND),
    ]
    for fact in _fact_names():
        held = sum(each.facts[fact] for each in found)
        rows.append(HeldFact(what=fact, place=RESULTS, held=held, of=len(found), provenance=KIND))
    together = sum(each.all_hold for each in found)
    return [*rows, HeldFact(what="all of these at once", place=RESULTS, held=together, of=len(found), provenance=KIND)]


def _fact_names() -> list[str]:
    names = [_worst(workload) for workload in WORKLOADS]
    names += [f"energy-aware better than core-aware: {workload}" for workload in BETTER]
    names += [f"energy-aware equal to core-aware: {workload}" for workload in ALIKE]
    return names + [f"ARM is full under core-aware: {workload}" for workload in ALIKE]


def _held_savings(found: list[DrawFacts]) -> list[HeldFigure]:
    """The published ends are of five workloads: the least and the most of five of ours. The range: all of ours."""
    least, most = ([pick(each.savings.values()) for each in found] for pick in (min, max))
    every = [saving for each in found for saving in each.savings.values()]
    inside = sum(SAVED[0] <= saving <= SAVED[1] for saving in every) / len(every) if every else None
    what = "saving of energy-aware against round-robin"
    return [
        _saving(f"{what}, least of five workloads", SAVED[0], None, least, None),
        _saving(f"{what}, most of five workloads", SAVED[1], None, most, None),
        _saving(f"{what}, any workload", SAVED[0], SAVED[1], every, inside),
    ]


def _saving(what: str, low: float, high: float | None, ours: list[float], inside: float | None) -> HeldFigure:
    return HeldFigure(
        what=what, place=RESULTS, published=low, to=high, unit="%", ours=spread_of(ours), provenance=KIND, inside=inside
    )


def _cells(found: list[DrawFacts], part: str) -> tuple[tuple[Spread | None, ...], ...]:
    return tuple(
        tuple(spread_of([_watts(each.runs[workload, policy], part) for each in found]) for policy in POLICIES)
        for workload in WORKLOADS
    )


def _watts(run: Run, part: str) -> float:
    return run.whole_w if part == "whole" else run.active_w


def _energies(found: list[DrawFacts], part: str) -> Table:
    what = "Energy of both servers at the plug" if part == "whole" else "The objective: energy of executions above idle"
    return Table(
        name=f"energy-{part}", title=f"{what}, in one hour", unit="Wh", provenance=KIND, rows=WORKLOADS,
        columns=POLICIES, cells=_cells(found, part),
    )  # fmt: skip


def _savings(found: list[DrawFacts]) -> Table:
    return Table(
        name="savings", title="Saving of energy-aware against round-robin, whole servers", unit="%", provenance=KIND,
        rows=WORKLOADS, columns=("saving",), cells=_saving_cells(found),
    )  # fmt: skip


def _saving_cells(found: list[DrawFacts]) -> tuple[tuple[Spread | None, ...], ...]:
    return tuple((spread_of([each.savings[workload] for each in found]),) for workload in WORKLOADS)


def _energy_picture(found: list[DrawFacts]) -> Bars:
    return Bars(
        name="energy", title="Energy of both servers, by workload and policy",
        caption=f"Medians of {len(found):,} draws, whiskers 5 to 95%; modelled. Draws differ in idle power and load, "
        "so whiskers of two policies overlap where one is better in nearly every draw.",
        unit="Wh in one hour", groups=WORKLOADS, series=POLICIES, cells=_cells(found, "whole"),
    )  # fmt: skip


def _savings_picture(found: list[DrawFacts]) -> Bars:
    return Bars(
        name="savings", title="Saving of energy-aware against round-robin",
        caption="Medians of draws, whiskers 5 to 95%; modelled. The band is the published range over five workloads.",
        unit="% of whole-server energy", groups=WORKLOADS, series=("energy-aware",), cells=_saving_cells(found),
        band=SAVED, band_name="published range",
    )  # fmt: skip
