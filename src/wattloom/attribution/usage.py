"""What an interval cost, and what all of them cost so far.

Owns the two records the account hands out and the sums they promise. Of a `Usage` with a known meter:
`meter_j + held_before_j == tasks_j + held_j + idle_j + unattributed_j`, to the last bit. Of `Totals` at any time:
`meter_j == tasks_j + held_j + idle_j + unattributed_j`; and nothing is held once no call runs.
"""

import msgspec
from msgspec.structs import replace

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.energy.measured import Energy
from wattloom.units import Joules


class Usage(msgspec.Struct, frozen=True):
    """One interval between two good readings of the meter."""

    seconds: float
    provenance: Provenance
    meter_j: float | None
    """None: not known, and `problem` says why. It may yet be known: see `unknown`."""
    tasks_j: float = 0.0
    """All of `tasks`."""
    idle_j: float = 0.0
    """The machine's own: it would have drawn this with nothing to do."""
    unattributed_j: float = 0.0
    """Everybody else's, and our own overhead."""
    overhead_j: float = 0.0
    """The part of `unattributed_j` that is ours: this process, and workers between calls."""
    held_j: float = 0.0
    """Held at the end of the interval for calls that still run: their joules so far, and what they may yet claim."""
    held_before_j: float = 0.0
    """The same at its beginning."""
    tasks: dict[str, tuple[float, float]] = {}
    """Joules and spread of the calls that ended, over the whole of their time."""
    functions: dict[str, tuple[int, float, float]] = {}
    """Calls that ended, their joules, and the sum of the squares of their joules."""
    cpu_second: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Joules of a CPU second and their spread, and what a call's clock leaves open: what short calls pay, which are in
    `functions` and not in `tasks`."""
    cpu_second_of: dict[str, tuple[float, float, float]] = {}
    """The same by function, where short calls of it ended and it is known to differ."""
    problem: str = ""
    unknown: tuple[str, ...] = ()
    """Tasks that ended and whose joules nobody will ever know, because of `problem`."""

    def balanced(self, tasks_j: float, overhead_j: float) -> "Usage":
        """With what is left as unattributed. All are whole grains, so the parts add up to the last bit."""
        left = (self.meter_j or 0.0) + self.held_before_j - self.idle_j - self.held_j - tasks_j
        if left < 0.0:  # sums of many small figures may be a grain too high
            tasks_j, left = tasks_j + left, 0.0
        return replace(self, tasks_j=tasks_j, unattributed_j=left, overhead_j=min(overhead_j, left))

    def energy(self, task: str) -> Energy | Unknown | None:
        """What a task cost that ended in this interval. None: it did not, or the next good reading will tell."""
        if task in self.unknown:
            return Unknown(self.problem)
        if task not in self.tasks:
            return None
        joules, spread = self.tasks[task]
        return Energy(Joules(joules), Joules(spread), self.provenance)


class Totals(msgspec.Struct, frozen=True):
    """All known intervals together."""

    seconds: float = 0.0
    meter_j: float = 0.0
    tasks_j: float = 0.0
    idle_j: float = 0.0
    unattributed_j: float = 0.0
    overhead_j: float = 0.0
    held_j: float = 0.0
    calls: int = 0
    """Ended calls whose joules are known."""
    unknown_s: float = 0.0
    """Time whose joules nobody will ever know."""
    unknown_calls: int = 0

    def plus(self, usage: Usage) -> "Totals":
        """With one more interval whose joules are known."""
        return Totals(
            self.seconds + usage.seconds,
            self.meter_j + (usage.meter_j or 0.0),
            self.tasks_j + usage.tasks_j,
            self.idle_j + usage.idle_j,
            self.unattributed_j + usage.unattributed_j,
            self.overhead_j + usage.overhead_j,
            usage.held_j,
            self.calls + sum(calls for calls, _, _ in usage.functions.values()),
            self.unknown_s,
            self.unknown_calls + len(usage.unknown),
        )
