"""Run times by function, build and machine: declared, learned, or carried over from another machine.

Owns the table and its online learning. A published figure changes only when the learned mean has moved enough to
matter, so that what was ranked by it can be kept in between.
"""

from math import sqrt

from wattloom.energy.forecast import Provenance, RunTime, Unknown
from wattloom.energy.used import Used
from wattloom.machines.machine import Machine
from wattloom.prediction.sizes import BySize
from wattloom.units import Seconds
from wattloom.workload.function import Function, Variant

ENOUGH_SAMPLES = 3
DECLARED_COUNTS_AS = 10
"""A declared run time weighs as much as so many runs."""
REPUBLISH_AT = 0.05
"""Relative change of the learned mean that is published."""


class Learned:
    """Mean and spread of what was seen, updated one by one (Welford)."""

    __slots__ = ("count", "mean", "measured", "published", "squares")

    def __init__(self, declared: float | None) -> None:
        self.count: int = 0 if declared is None else DECLARED_COUNTS_AS
        self.mean: float = declared or 0.0
        self.squares: float = 0.0
        self.published: float = self.mean
        self.measured: bool = False
        """Whether the published figure comes from runs, not from the declaration."""

    def add(self, seconds: float) -> bool:
        """Take one more in; True when the published figure changes."""
        self.count += 1
        delta = seconds - self.mean
        self.mean += delta / self.count
        self.squares += delta * (seconds - self.mean)
        if self.count < ENOUGH_SAMPLES or abs(self.mean - self.published) <= REPUBLISH_AT * self.published:
            return False
        self.published = self.mean
        self.measured = True
        return True

    @property
    def spread(self) -> float:
        return sqrt(self.squares / (self.count - 1)) if self.count > 1 else 0.0


Key = tuple[str, str, str]


class RunTimes:
    """How long each build of each function takes alone on each machine."""

    def __init__(self) -> None:
        self._learned: dict[Key, Learned] = {}
        self._by_size: dict[Key, BySize] = {}
        self.sized: set[str] = set()
        """Functions whose arguments' size says how long they take."""
        self._machines: dict[str, Machine] = {}

    def know_machine(self, machine: Machine) -> None:
        self._machines[machine.name] = machine

    def forget(self, function: str) -> None:
        """Its builds are different now."""
        self._learned = {key: learned for key, learned in self._learned.items() if key[0] != function}
        self._by_size = {key: learned for key, learned in self._by_size.items() if key[0] != function}
        self.sized.discard(function)

    def learn(self, function: Function, variant: Variant, machine: Machine, seconds: Seconds, size: int = 0) -> bool:
        """Record one run (seconds it would have taken alone); True when forecasts change."""
        key = (function.name, variant.name, machine.name)
        learned = self._learned.get(key)
        if learned is None:
            learned = Learned(variant.seconds.get(machine.name))
            self._learned[key] = learned
        changed = learned.add(seconds)
        return self._learn_size(key, size, seconds) or changed if size else changed

    def _learn_size(self, key: Key, size: int, seconds: float) -> bool:
        by_size = self._by_size.get(key)
        if by_size is None:
            by_size = BySize()
            self._by_size[key] = by_size
        if not by_size.add(size, seconds):
            return False
        if by_size.explains:
            self.sized.add(key[0])
        elif not any(other.explains for where, other in self._by_size.items() if where[0] == key[0]):
            self.sized.discard(key[0])
        return True

    def recall(self, function: str, variant: str, machine: Machine, used: Used) -> bool:
        """Earlier runs' figures, where this run has none yet: worth as much as a declaration, and known as measured."""
        key = (function, variant, machine.name)
        if key in self._learned or not used.calls or not used.mean_s > 0.0:
            return False
        count = min(used.calls, DECLARED_COUNTS_AS)
        learned = Learned(None)
        learned.count = count
        learned.mean = learned.published = used.mean_s
        learned.squares = used.spread_s**2 * max(0, count - 1)
        learned.measured = True
        self._learned[key] = learned
        return True

    def measured(self) -> dict[Key, Used]:
        """What was learned from runs, by function, build and machine, in the form that `recall` takes."""
        found: dict[Key, Used] = {}
        for key, learned in self._learned.items():
            if learned.measured:
                count, mean = learned.count, learned.mean
                found[key] = Used(count, count * mean, learned.squares + count * mean * mean)
        return found

    def expect(self, function: Function, variant: Variant, machine: Machine, size: int = 0) -> RunTime | Unknown:
        """Learned (for this size of arguments, if given), else declared, else carried over from another machine by
        their speeds."""
        if size:
            by_size = self._by_size.get((function.name, variant.name, machine.name))
            seconds = by_size.seconds(size) if by_size is not None and by_size.explains else None
            if seconds is not None:
                return RunTime(Seconds(seconds), Seconds(0.0), "measured")
        learned = self._learned.get((function.name, variant.name, machine.name))
        if learned is not None and learned.measured and learned.published > 0.0:
            return RunTime(Seconds(learned.published), Seconds(learned.spread), "measured")
        declared = variant.seconds.get(machine.name)
        if declared is not None:
            return RunTime(Seconds(declared), provenance="modelled")
        return self._carried_over(function, variant, machine)

    def _carried_over(self, function: Function, variant: Variant, machine: Machine) -> RunTime | Unknown:
        seconds: list[float] = []
        for name, other in sorted(self._machines.items()):
            learned = self._learned.get((function.name, variant.name, name))
            there = learned.published if learned is not None and learned.published else variant.seconds.get(name)
            if there:
                seconds.append(there * other.profile.speed / machine.profile.speed)
        if not seconds:
            return Unknown(f"{function.name} has not run on any machine, and no run time is declared")
        provenance: Provenance = "estimated"
        return RunTime(Seconds(sum(seconds) / len(seconds)), provenance=provenance)
