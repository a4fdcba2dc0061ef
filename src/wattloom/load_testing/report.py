"""What came of driving a plan, beside what the plan said.

Owns the values that are told and their form as JSON. How they look is the command line's.
"""

from statistics import fmean
from typing import Any

import msgspec

from wattloom.history.observed_calls import Observed, quantile
from wattloom.load_testing.drift import Drift
from wattloom.planning.plan import Plan


class FunctionDriven(msgspec.Struct, frozen=True, kw_only=True):
    """One function: asked, reached, and as it was planned."""

    function: str
    servers: dict[str, int]
    """Where its calls were placed, and how many."""
    planned_servers: tuple[str, ...]
    cores: int
    planned_per_s: float
    asked_per_s: float
    reached_per_s: float
    """Calls that finished within the time, per second."""
    asked: int
    finished: int
    failed: int
    late: int
    """Submitted later than they were due."""
    refused: int
    """Because too many were open."""
    p50_s: float | None
    p99_s: float | None
    """Latency, from when a call was due to its end. None: none has ended."""
    per_core_s: float | None
    """E as it was seen."""
    planned_per_core_s: float
    joules: float | None
    """Of one call. None: not known."""
    planned_joules: float | None
    provenance: str
    """Of the joules."""


class Driven(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    plan: str
    """Digest of the plan that was to be driven."""
    backend: str
    """`local` or `simulation`."""
    seconds: float
    arrivals: str
    seed: int
    scale: float
    functions: tuple[FunctionDriven, ...]
    drift: tuple[Drift, ...] = ()
    """What was not as planned, when it was seen last."""
    plans: tuple[str, ...] = ()
    """Digests of the plans that were carried out, in order: the first at the scale of this machine, then those made
    anew."""
    moves: int = 0
    """Functions that were moved by plans made anew."""
    replanning: tuple[str, ...] = ()
    """What was said of each plan made anew."""
    journal: str = ""
    interrupted: bool = False
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        found["drift"] = [{**msgspec.to_builtins(each), "words": str(each)} for each in self.drift]
        return found


def driven_function(
    name: str,
    plan: Plan,
    seconds: float,
    counts: tuple[int, int, int],
    observed: Observed,
    within: int,
    joules: list[float],
    provenance: str,
) -> FunctionDriven:
    """`counts`: asked, late, refused. `within`: calls that finished before the time was over."""
    parts = [each for each in plan.assignments if each.function == name]
    rate = sum(each.rate for each in parts)
    known = [each.watts for each in parts if each.watts is not None]
    whole = len(known) == len(parts) and rate > 0.0
    return FunctionDriven(
        function=name,
        servers=dict(sorted(observed.nodes.items())),
        planned_servers=tuple(each.server for each in parts),
        cores=sum(each.cores for each in parts),
        planned_per_s=rate,
        asked_per_s=counts[0] / seconds,
        reached_per_s=within / seconds,
        asked=counts[0],
        finished=len(observed.latencies),
        failed=observed.ended_otherwise,
        late=counts[1],
        refused=counts[2],
        p50_s=quantile(observed.latencies, 0.50),
        p99_s=quantile(observed.latencies, 0.99),
        per_core_s=observed.per_core_s,
        planned_per_core_s=_mean_e(plan, name),
        joules=fmean(joules) if joules else None,
        planned_joules=sum(known) / rate if whole else None,
        provenance=provenance if joules else "",
    )


def _mean_e(plan: Plan, name: str) -> float:
    """Over its parts, by how much of its calls each was planned for."""
    parts = [each for each in plan.assignments if each.function == name]
    busy = sum(each.rate / each.per_core_s for each in parts)
    rate = sum(each.rate for each in parts)
    return rate / busy if busy > 0.0 else parts[0].per_core_s
