"""A predictor from outside, whose failures are not the engine's.

Owns what comes of them: nothing is known and nothing is learned where it fails, and the first failure is kept in words.
"""

from collections.abc import Callable, Mapping
from math import nan
from typing import Final, TypeVar

from wattloom.energy.forecast import RunTime, Unknown
from wattloom.energy.used import Used
from wattloom.machines.machine import Machine
from wattloom.prediction.protocol import Key, Predictor
from wattloom.prediction.readings import Readings
from wattloom.prediction.table import Table
from wattloom.units import Seconds
from wattloom.workload.function import Function, Variant

T = TypeVar("T")


class Guarded(Predictor):
    """Says what the one inside says, as long as it says something."""

    def __init__(self, inside: Predictor) -> None:
        self.inside: Final = inside
        self.problem: str = ""
        """What went wrong first; empty: nothing."""

    def expect(self, function: Function, variant: Variant, machine: Machine, size: int = 0) -> RunTime | Unknown:
        run = self._try(lambda: self.inside.expect(function, variant, machine, size), None)
        return run if isinstance(run, RunTime | Unknown) else Unknown("the predictor failed")

    def intensity(self, function: str, machine: str) -> float:
        return self._try(lambda: float(self.inside.intensity(function, machine)), nan)

    def sizes_matter(self, function: str) -> bool:
        return self._try(lambda: bool(self.inside.sizes_matter(function)), False)

    def know_machine(self, machine: Machine) -> None:
        self._try(lambda: self.inside.know_machine(machine), None)

    def forget(self, function: str) -> None:
        self._try(lambda: self.inside.forget(function), None)

    def learn(self, function: Function, variant: Variant, machine: Machine, seconds: Seconds, size: int) -> bool:
        return self._try(lambda: bool(self.inside.learn(function, variant, machine, seconds, size)), True)

    def learn_joules(self, function: Function, machine: Machine, used: Used) -> bool:
        return self._try(lambda: bool(self.inside.learn_joules(function, machine, used)), True)

    def recall(self, function: Function, variant: str, machine: Machine, used: Used) -> bool:
        return self._try(lambda: bool(self.inside.recall(function, variant, machine, used)), True)

    def measured(self) -> dict[Key, Used]:
        return self._try(self.inside.measured, {})

    def measured_joules(self, machines: Mapping[str, Machine]) -> dict[tuple[str, str], tuple[float, float]]:
        return self._try(lambda: self.inside.measured_joules(machines), {})

    def readings(self) -> Readings:
        found = self._try(self.inside.readings, None)
        return found if isinstance(found, Readings) else Readings()

    def _try(self, ask: Callable[[], T], otherwise: T) -> T:
        """A failure while learning may have changed anything: `otherwise` says so there."""
        try:
            return ask()
        except Exception as problem:
            self.problem = self.problem or f"{type(problem).__name__}: {problem}"
            return otherwise


def guarded(predictor: Predictor) -> Predictor:
    """Ours needs no guard."""
    return predictor if type(predictor) is Table or isinstance(predictor, Guarded) else Guarded(predictor)


def problems_of(predictor: Predictor) -> list[str]:
    """What to tell of a predictor that failed."""
    if not isinstance(predictor, Guarded) or not predictor.problem:
        return []
    return [f"the predictor failed, and what it does not say is unknown: {predictor.problem}"]
