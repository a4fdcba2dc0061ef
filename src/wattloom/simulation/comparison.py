"""Several policies on the very same work, side by side.

Owns what a comparison is made of: means and spreads over the seeds, which policy is best, and savings as true
reductions, (a - b) / a. Runs themselves come from elsewhere.
"""

import hashlib
from statistics import fmean, stdev
from typing import Any, Final

import msgspec

from wattloom.energy.split import EnergySplit
from wattloom.machines.profile import MachineProfile
from wattloom.simulation.published import HeldAgainst, Published, held_against
from wattloom.simulation.result import Quantiles, Result, TaskCounts, with_devices
from wattloom.units import JOULES_PER_WATT_HOUR, Joules

USUAL_REFERENCE: Final = "spread"
"""What most clusters run today: kube-scheduler's default scoring."""

WORTH_A_WORD_S: Final = 1.0
"""A longer wait than this is not passed over in silence."""


class MachineUse(msgspec.Struct, frozen=True):
    """A machine type and how many nodes are of it."""

    profile: MachineProfile
    nodes: int


class Row(msgspec.Struct, frozen=True):
    """One policy: its runs, and their means."""

    policy: str
    """As the user wrote it."""
    runs: list[Result]
    """One for each seed."""

    @property
    def energy(self) -> EnergySplit:
        return _mean_split([run.energy for run in self.runs])

    @property
    def makespan_s(self) -> float:
        return fmean(run.makespan_s for run in self.runs)

    @property
    def peak_w(self) -> float:
        return fmean(run.peak_w for run in self.runs)

    @property
    def energy_delay_js(self) -> float:
        return fmean(run.energy_delay_js for run in self.runs)

    @property
    def energy_wh_spread(self) -> float:
        """One standard deviation over the seeds; 0 with one seed."""
        return _spread([run.energy.total / JOULES_PER_WATT_HOUR for run in self.runs])

    @property
    def makespan_s_spread(self) -> float:
        return _spread([run.makespan_s for run in self.runs])

    @property
    def energy_delay_js_spread(self) -> float:
        return _spread([run.energy_delay_js for run in self.runs])

    @property
    def finished(self) -> int:
        """Tasks finished in all runs together."""
        return sum(run.tasks.finished for run in self.runs)

    @property
    def submitted(self) -> int:
        return sum(run.tasks.submitted for run in self.runs)

    @property
    def wait_s(self) -> Quantiles:
        return _mean_quantiles([run.wait_s for run in self.runs])

    @property
    def slowdown(self) -> Quantiles:
        return _mean_quantiles([run.slowdown for run in self.runs])

    @property
    def utilisation(self) -> float:
        return fmean(run.utilisation for run in self.runs)

    @property
    def digest(self) -> str:
        """Of the decisions: the run's own, or a digest of the runs' digests."""
        if len(self.runs) == 1:
            return self.runs[0].digest
        return hashlib.sha256("\n".join(run.digest for run in self.runs).encode()).hexdigest()[:32]

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it: means over the seeds, then the runs."""
        return {
            "policy": self.policy,
            "makespan_s": self.makespan_s,
            "energy_wh": with_devices(self.energy.watt_hours(), self.runs[0].devices),
            "peak_w": self.peak_w,
            "energy_delay_js": self.energy_delay_js,
            "tasks": {name: _mean_count(self.runs, name) for name in TaskCounts.__struct_fields__},
            "wait_s": msgspec.to_builtins(self.wait_s),
            "slowdown": msgspec.to_builtins(self.slowdown),
            "utilisation": self.utilisation,
            "decisions": _whole(fmean(run.decisions for run in self.runs)),
            "proposals": _whole(fmean(run.proposals for run in self.runs)),
            "digest": self.digest,
            "spread": {"energy_wh": self.energy_wh_spread, "makespan_s": self.makespan_s_spread},
            "runs": [_without_assumptions(run) for run in self.runs],
        }


class Comparison(msgspec.Struct, frozen=True):
    """Policies that met the same tasks on the same cluster."""

    scenario: str
    title: str
    seeds: list[int]
    rows: list[Row]
    """In the order they were asked for."""
    reference: str
    """The policy the others are held against."""
    machines: list[MachineUse] = []
    assumptions: list[str] = []
    sources: list[str] = []
    provenance: str = "modelled"
    published: list[Published] = []
    """What the scenario's sources say of it."""

    @property
    def held_against(self) -> list[HeldAgainst]:
        """Each published figure beside ours: of these runs where all its policies ran, with as many seeds as were
        recorded and known power; else as it was recorded."""
        known = {row.policy: row.energy.watt_hours()["total"] for row in self.rows if row.runs[0].knows_energy}
        return held_against(self.published, known, {row.policy: row.makespan_s for row in self.rows}, len(self.seeds))

    @property
    def results(self) -> list[Row]:
        """`rows` under the name that they had in JSON; for one release."""
        return self.rows

    def row(self, policy: str) -> Row:
        return next(row for row in self.rows if row.policy == policy)

    @property
    def warnings(self) -> list[str]:
        """What any of the runs warns of, once."""
        return list(dict.fromkeys(warning for row in self.rows for run in row.runs for warning in run.warnings))

    @property
    def has_a_winner(self) -> bool:
        """Whether the best policy can be called that: energies are known and work was done."""
        return self.best.finished > 0 and all(run.knows_energy for row in self.rows for run in row.runs)

    @property
    def by_energy(self) -> list[Row]:
        """Best first: those that finished the most tasks, by their joules. Work left undone is not a saving."""
        return sorted(self.rows, key=lambda row: (-row.finished, row.energy.total))

    @property
    def best(self) -> Row:
        return self.by_energy[0]

    @property
    def others(self) -> list[Row]:
        return [row for row in self.rows if row is not self.best]

    def comparable(self, row: Row) -> bool:
        """Whether this policy finished as many tasks as the best."""
        return row.finished == self.best.finished

    def saving(self, row: Row, against: Row) -> float:
        """What share of the other's joules this one does without; negative if it needs more."""
        return _reduction(against.energy.total, row.energy.total)

    def saving_of(self, row: Row) -> float | None:
        """Its saving against the reference; None for the reference itself, and where none can be given."""
        against = self.row(self.reference)
        given = self.has_a_winner and row is not against and row.finished == against.finished
        return self.saving(row, against) if given else None

    def savings_by_seed(self, row: Row, against: Row) -> list[float]:
        pairs = zip(row.runs, against.runs, strict=True)
        return [_reduction(there.energy.total, here.energy.total) for here, there in pairs]

    @property
    def sentence(self) -> str:
        """The saving in one sentence."""
        best = self.best
        if not all(run.knows_energy for row in self.rows for run in row.runs):
            return f"No saving is given: {self.warnings[0]}."
        if not best.finished:
            return "No task finished under any policy: there is nothing to compare."
        if not self.others:
            return f"{best.policy} needs {_wh(best)} on {self.scenario}; there is nothing to compare it with."
        against = self._held_against()
        if not self.comparable(against):
            return f"{best.policy} needs {_wh(best)} and finishes more tasks than {against.policy}: no saving is given."
        return (
            f"{best.policy} saves {self.saving(best, against):.1%} of the energy against {against.policy} "
            f"({_wh(best)} instead of {_wh(against)}{self._range(against)}) "
            f"with {_longer(best.makespan_s, against.makespan_s)}{_later(best.wait_s.p95, against.wait_s.p95)}"
            f"{'; what devices draw is not counted' if best.runs[0].devices else ''}."
        )

    def _held_against(self) -> Row:
        """The reference, or the second best if the reference is the best itself."""
        reference = self.row(self.reference)
        return self.by_energy[1] if reference is self.best else reference

    def _range(self, against: Row) -> str:
        if len(self.seeds) == 1:
            return ", with one seed, so its spread is not known"
        savings = self.savings_by_seed(self.best, against)
        least, most = f"{min(savings):.1%}", f"{max(savings):.1%}"
        over = f"over {len(savings)} seeds, ± {_spread(savings):.1%} (one standard deviation)"
        return f", {least if least == most else f'{least} to {most}'} {over}"

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        best = self.best
        rows = [row.to_json() for row in self.rows]
        return {
            "scenario": self.scenario,
            "seeds": self.seeds,
            "rows": rows,
            "results": rows,  # its former name, for one release
            "saving": {
                "best": best.policy if self.has_a_winner else None,
                "reference": self.reference,
                "against": {
                    row.policy: self.saving(best, row) if self.has_a_winner and self.comparable(row) else None
                    for row in self.others
                },
                "sentence": self.sentence,
            },
            "published": [msgspec.to_builtins(held) | {"sentence": held.sentence} for held in self.held_against],
            "warnings": self.warnings,
            "provenance": self.provenance,
            "assumptions": self.assumptions,
        }


def reference_among(policies: list[str]) -> str:
    """The policy to hold the others against, if the user names none: kube-scheduler's default, or the first."""
    usual = [spec for spec in policies if spec.partition(":")[0] == USUAL_REFERENCE]
    return (usual or policies)[0]


def _reduction(before: float, after: float) -> float:
    return (before - after) / before if before > 0.0 else 0.0


def _longer(ours: float, theirs: float) -> str:
    """How two makespans compare, in words."""
    change = (ours - theirs) / theirs if theirs > 0.0 else 0.0
    if abs(change) < 0.0005:
        return "the same makespan"
    return f"a makespan {abs(change):.1%} {'longer' if change > 0 else 'shorter'}"


def _later(ours: float, theirs: float) -> str:
    """A saving bought with waiting says so."""
    if ours <= theirs + WORTH_A_WORD_S:
        return ""
    return f"; 95% of tasks start within {ours:,.0f} s instead of {theirs:,.0f} s"


def _wh(row: Row) -> str:
    value = row.energy.watt_hours()["total"]
    return f"{value:,.0f} Wh" if value >= 1000.0 else f"{value:.4g} Wh"


def _spread(values: list[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


def _mean_split(splits: list[EnergySplit]) -> EnergySplit:
    if len(splits) == 1:
        return splits[0]
    parts = EnergySplit.__struct_fields__
    return EnergySplit(*(Joules(fmean(getattr(split, part) for split in splits)) for part in parts))


def _mean_quantiles(found: list[Quantiles]) -> Quantiles:
    return Quantiles(*(fmean(getattr(one, name) for one in found) for name in Quantiles.__struct_fields__))


def _mean_count(runs: list[Result], name: str) -> int | float:
    return _whole(fmean(getattr(run.tasks, name) for run in runs))


def _whole(value: float) -> int | float:
    return int(value) if value == int(value) else value


def _without_assumptions(run: Result) -> dict[str, Any]:
    """They are the same for all runs and said once."""
    return {key: value for key, value in run.to_json().items() if key != "assumptions"}
