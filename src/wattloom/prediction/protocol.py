"""The one protocol between the engine and a predictor.

A predictor says how long a build takes alone on a machine and how much more it draws than the machine's curve says, and
learns both from what ran. It is a fold over what it is told: no clock, no chance, no I/O, so that a log replays to the
same forecasts. What it says is kept until it says that forecasts have changed.

The engine makes estimates of it (`prediction.placement_estimate`): room, neighbours, watts and joules are no business
of its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from wattloom.energy.forecast import RunTime, Unknown
from wattloom.energy.used import Used
from wattloom.machines.machine import Machine
from wattloom.prediction.readings import Readings
from wattloom.units import Seconds
from wattloom.workload.function import Function, Variant

Key = tuple[str, str, str]
"""Function, build and machine, by name."""


class Predictor(ABC):
    """What every predictor is. All but `expect` may be left out: then nothing is learned."""

    name: ClassVar[str]
    """As users write it, and as a log's header names it."""
    summary: ClassVar[str]
    """One line for those who choose."""
    options: ClassVar[dict[str, str]] = {}
    """Option and what it does."""

    @abstractmethod
    def expect(self, function: Function, variant: Variant, machine: Machine, size: int = 0) -> RunTime | Unknown:
        """Seconds that the build takes alone on the machine. `size`: the class of its arguments' size, 0 if that is not
        known or says nothing (`sizes_matter`). What is not known is Unknown, never a guess without a ground."""

    def intensity(self, function: str, machine: str) -> float:
        """Watts of the function there over those that the machine's curve says of as many cores."""
        return 1.0

    def sizes_matter(self, function: str) -> bool:
        """Whether the size of the arguments says how long a call takes: then sizes tell shapes apart."""
        return False

    def know_machine(self, machine: Machine) -> None:
        """A machine was defined, or defined anew."""
        return None

    def forget(self, function: str) -> None:
        """Its builds are others now: what was learned of it is void."""
        return None

    def learn(self, function: Function, variant: Variant, machine: Machine, seconds: Seconds, size: int) -> bool:
        """A run took so long, as if alone. True if forecasts have changed: what was worked out by them is void then."""
        return False

    def learn_joules(self, function: Function, machine: Machine, used: Used) -> bool:
        """Calls ended that a meter has seen. True as above."""
        return False

    def recall(self, function: Function, variant: str, machine: Machine, used: Used) -> bool:
        """Figures of earlier runs, in the form of `measured`. True as above."""
        return False

    def measured(self) -> dict[Key, Used]:
        """What was learned from runs, for whoever starts anew from here and is told by `recall`."""
        return {}

    def measured_joules(self, machines: Mapping[str, Machine]) -> dict[tuple[str, str], tuple[float, float]]:
        """By function and machine: joules and core seconds that lead to the same intensity when they are recalled."""
        return {}

    def readings(self) -> Readings:
        """What meters say of nodes is kept in this. Asked for once."""
        return Readings()
