"""How much a function draws against what the machine's curve says of a core: learned from meters.

Owns the factor by function and machine. 1 where nothing was measured. Vector code draws more than the curve of a mixed
load says, code that waits for memory less. As with run times, the published factor moves only when it matters.
"""

from collections.abc import Mapping

from wattloom.energy.used import Used
from wattloom.machines.machine import Machine
from wattloom.units import MILLI
from wattloom.workload.function import Function

ENOUGH_S = 0.5
"""Metered seconds before a factor is believed."""
REPUBLISH_AT = 0.05
MOST_FACTOR = 1e6
"""Beyond, the curve is wrong and not the function: nothing is learned from that."""
KEPT = 0.999
"""Weight of what was learned before, per metered second: the last quarter of an hour counts most."""


class Factor:
    """Measured joules over those of the curve."""

    __slots__ = ("modelled", "published", "seconds", "used")

    def __init__(self) -> None:
        self.used: float = 0.0
        self.modelled: float = 0.0
        self.seconds: float = 0.0
        self.published: float = 1.0

    def add(self, used: float, modelled: float, seconds: float) -> bool:
        """Take more in; True when the published factor changes."""
        keep = KEPT**seconds
        self.used = self.used * keep + used
        self.modelled = self.modelled * keep + modelled
        self.seconds += seconds
        if self.seconds < ENOUGH_S or self.modelled <= 0.0:
            return False
        factor = self.used / self.modelled
        if not factor <= MOST_FACTOR or abs(factor - self.published) <= REPUBLISH_AT * self.published:
            return False
        self.published = factor
        return True


class Intensities:
    """Factors by function and machine."""

    def __init__(self) -> None:
        self._factors: dict[tuple[str, str], Factor] = {}

    def of(self, function: str, machine: str) -> float:
        factor = self._factors.get((function, machine))
        return 1.0 if factor is None else factor.published

    def measured(self, machines: Mapping[str, Machine]) -> dict[tuple[str, str], tuple[float, float]]:
        """By function and machine: joules, and the core seconds that `learn` would have to be told them with."""
        found: dict[tuple[str, str], tuple[float, float]] = {}
        for (function, name), factor in self._factors.items():
            watts = machines[name].watts(MILLI) - machines[name].idle_w
            if watts > 0.0:
                found[function, name] = factor.used, factor.modelled / watts
        return found

    def learn(self, function: Function, machine: Machine, used: Used) -> bool:
        """Calls of a function ended on a machine; True when forecasts change."""
        if not used.metered or not used.core_s or not machine.knows_power:
            return False
        core_s = used.core_s * used.metered / used.calls
        watts = machine.watts(MILLI) - machine.idle_w
        factor = self._factors.setdefault((function.name, machine.name), Factor())
        return factor.add(used.joules, watts * core_s, core_s)
