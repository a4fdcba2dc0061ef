"""What a CPU second costs the short calls of a function, known when the interval is over.

Owns the promise that a call gets at its end instead of a figure: it keeps its CPU time and the tariff, and the figure
can be worked out when the tariff is set. One of them serves thousands of calls.
"""

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.energy.measured import Energy
from wattloom.units import Joules


class Tariff:
    """Of one function on one worker in one interval, with the sums over the calls that will pay by it."""

    __slots__ = ("calls", "clock_j", "joules", "provenance", "seconds", "spread", "squares", "unknown")

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0
        """CPU seconds of these calls."""
        self.squares = 0.0
        """Of the CPU seconds of each."""
        self.provenance: Provenance | None = None
        """None: it is not set yet."""
        self.joules = 0.0
        """Of one CPU second."""
        self.spread = 0.0
        """Of one CPU second."""
        self.clock_j = 0.0
        """What each call's clock leaves open."""
        self.unknown = ""
        """Why it never will be."""

    def set(self, joules: float, spread: float, clock_j: float, provenance: Provenance) -> None:
        self.joules = joules
        self.spread = spread
        self.clock_j = clock_j
        self.provenance = provenance

    def energy(self, cpu_s: float) -> Energy | Unknown | None:
        """Of a call with so much CPU time; None: not known yet."""
        if self.unknown:
            return Unknown(self.unknown)
        if self.provenance is None:
            return None
        return Energy(Joules(cpu_s * self.joules), Joules(cpu_s * self.spread + self.clock_j), self.provenance)
