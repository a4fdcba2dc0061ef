"""What came out of a simulation: energy and its parts, makespan, waits, and a fingerprint of the decisions.

Owns the figures and how they are defined. Everything in it is modelled; it says so itself.
"""

from collections import Counter
from collections.abc import Iterable
from math import ceil
from typing import Any

import msgspec

from wattloom.cluster.node import Node
from wattloom.energy.split import EnergySplit


class Quantiles(msgspec.Struct, frozen=True):
    """Of a distribution over tasks; 0 where there was none."""

    p50: float
    p95: float
    p99: float

    @staticmethod
    def of(values: list[float]) -> "Quantiles":
        """Nearest rank: a value that occurred."""
        ordered = sorted(values)
        return Quantiles(*(_quantile(ordered, q) for q in (0.50, 0.95, 0.99)))


def _quantile(ordered: list[float], q: float) -> float:
    return ordered[max(0, ceil(q * len(ordered)) - 1)] if ordered else 0.0


class TaskCounts(msgspec.Struct, frozen=True):
    """What became of the tasks."""

    submitted: int
    finished: int
    failed: int
    """Ended otherwise: failed, cancelled, rejected or of unknown outcome."""
    waiting: int
    """Still without a place when nothing could happen any more."""


class Deadlines(msgspec.Struct, frozen=True):
    """Of the tasks that had one and finished."""

    met: int = 0
    missed: int = 0


class Result(msgspec.Struct, frozen=True):
    """One simulated run."""

    scenario: str
    policy: str
    seed: int | None
    makespan_s: float
    """From time 0 to the end of the last task."""
    energy: EnergySplit
    """From time 0 to the makespan, or later if nodes still changed while tasks waited in vain."""
    tasks: TaskCounts
    wait_s: Quantiles
    """Submission to first start."""
    slowdown: Quantiles
    """Submission to end, over the task's shortest possible run time on this cluster."""
    utilisation: float
    """Busy hardware threads over all of them, from 0 to the makespan (later if work was lost in vain after it)."""
    decisions: int
    proposals: int
    digest: str
    waits: list[float] = []
    power: list[tuple[float, float]] = []
    """(time, watts of the whole cluster)."""
    deadlines: Deadlines = Deadlines()
    warnings: list[str] = []
    """What makes the figures say less than they seem to: joules that are unknown, work that never ran."""
    knows_energy: bool = True
    """False: some nodes have no power curve, and their joules are missing."""
    assumptions: list[str] = []
    provenance: str = "modelled"
    devices: dict[str, int] = {}
    """Of the cluster, by kind. There is no model of what they draw: their joules are unknown, and in no total."""
    peak_w: float = 0.0
    """The most that the whole cluster drew at any time."""

    @property
    def energy_delay_js(self) -> float:
        """Joules times seconds of makespan: less of one is not bought with more of the other."""
        return self.energy.total * self.makespan_s

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "scenario": self.scenario,
            "policy": self.policy,
            "seed": self.seed,
            "makespan_s": self.makespan_s,
            "energy_wh": with_devices(self.energy.watt_hours(), self.devices),
            "peak_w": self.peak_w,
            "energy_delay_js": self.energy_delay_js,
            "tasks": msgspec.to_builtins(self.tasks),
            "wait_s": msgspec.to_builtins(self.wait_s),
            "slowdown": msgspec.to_builtins(self.slowdown),
            "deadlines": msgspec.to_builtins(self.deadlines),
            "utilisation": self.utilisation,
            "decisions": self.decisions,
            "proposals": self.proposals,
            "digest": self.digest,
            "provenance": self.provenance,
            "warnings": self.warnings,
            "assumptions": self.assumptions,
        }


def unknown_power(machines: dict[str, int]) -> list[str]:
    """A warning, if nodes have no curve: machine and number of nodes."""
    if not machines:
        return []
    named = ", ".join(f"{name} ({count} nodes)" if count > 1 else name for name, count in sorted(machines.items()))
    return [f"no power curve for {named}: their joules are unknown and missing in every total"]


def devices_of(nodes: Iterable[Node]) -> dict[str, int]:
    """How many of each kind."""
    found: Counter[str] = Counter()
    for node in nodes:
        found.update(node.devices)
    return dict(sorted(found.items()))


def uncounted(devices: dict[str, int]) -> list[str]:
    """A warning, if there are devices."""
    if not devices:
        return []
    named = ", ".join(f"{count:,} {kind}" for kind, count in devices.items())
    return [f"what devices draw is not counted ({named}): their joules are unknown and missing in every total"]


def with_devices(parts: dict[str, float], devices: dict[str, int]) -> dict[str, float | None]:
    """Watt-hours by parts, those of devices as unknown where there are any."""
    return {**parts, **({"devices": None} if devices else {})}


def left_waiting(reasons: dict[str, int]) -> list[str]:
    """A warning for each reason why tasks never found a place."""
    found = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return [f"{count} {'task' if count == 1 else 'tasks'} never found a place: {reason}" for reason, count in found]
