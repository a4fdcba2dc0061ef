"""The predictor `table`: a mean for each function, build and machine, declared, learned or carried over.

Owns the two tables, of run times and of intensities, as one predictor.
"""

from collections.abc import Mapping
from typing import Final

from wattloom.energy.forecast import RunTime, Unknown
from wattloom.energy.used import Used
from wattloom.machines.machine import Machine
from wattloom.prediction.intensity import Intensities
from wattloom.prediction.protocol import Key, Predictor
from wattloom.prediction.runtimes import RunTimes
from wattloom.units import Seconds
from wattloom.workload.function import Function, Variant


class Table(Predictor):
    """What was seen, in tables."""

    name = "table"
    summary = "means by function, build and machine: learned, else declared, else carried over from other machines"

    def __init__(self) -> None:
        self.runtimes: Final = RunTimes()
        self.intensities: Final = Intensities()

    def expect(self, function: Function, variant: Variant, machine: Machine, size: int = 0) -> RunTime | Unknown:
        return self.runtimes.expect(function, variant, machine, size)

    def intensity(self, function: str, machine: str) -> float:
        return self.intensities.of(function, machine)

    def sizes_matter(self, function: str) -> bool:
        return function in self.runtimes.sized

    def know_machine(self, machine: Machine) -> None:
        self.runtimes.know_machine(machine)

    def forget(self, function: str) -> None:
        self.runtimes.forget(function)

    def learn(self, function: Function, variant: Variant, machine: Machine, seconds: Seconds, size: int) -> bool:
        return self.runtimes.learn(function, variant, machine, seconds, size)

    def learn_joules(self, function: Function, machine: Machine, used: Used) -> bool:
        return self.intensities.learn(function, machine, used)

    def recall(self, function: Function, variant: str, machine: Machine, used: Used) -> bool:
        changed = self.runtimes.recall(function.name, variant, machine, used)
        return self.intensities.learn(function, machine, used) or changed

    def measured(self) -> dict[Key, Used]:
        return self.runtimes.measured()

    def measured_joules(self, machines: Mapping[str, Machine]) -> dict[tuple[str, str], tuple[float, float]]:
        return self.intensities.measured(machines)
