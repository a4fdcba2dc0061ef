"""A command measured several times: each run, their mean, and how much they differ.

Owns the sums over runs, and what of them goes out as JSON.
"""

from collections.abc import Callable, Sequence
from statistics import fmean, stdev
from typing import IO, Any

import msgspec

from wattloom.energy.measured import Energy
from wattloom.metering.protocol import Meter
from wattloom.monitoring.measurement import Measured
from wattloom.monitoring.measuring import MeasuredCommand, measure_command


class Repeated(msgspec.Struct, frozen=True):
    """All runs. It was not repeated once it failed."""

    command: tuple[str, ...]
    runs: tuple[MeasuredCommand, ...]
    wanted: int = 1
    """How many there were to be."""

    @property
    def exit_code(self) -> int:
        return self.runs[-1].exit_code

    @property
    def many(self) -> bool:
        return self.wanted > 1

    @property
    def whole(self) -> list[MeasuredCommand]:
        """Those that did not fail: of one that was cut short nothing follows for the others."""
        return [run for run in self.runs if not run.exit_code]

    @property
    def _known(self) -> list[float]:
        found = (run.measured.energy for run in self.whole)
        return [energy.joules for energy in found if isinstance(energy, Energy)]

    @property
    def mean_j(self) -> float | None:
        return fmean(self._known) if self._known else None

    @property
    def deviation_j(self) -> float | None:
        """From run to run. It does not hold what all runs have in common, such as the error of a curve."""
        return stdev(self._known) if len(self._known) > 1 else None

    @property
    def mean_s(self) -> float | None:
        return fmean(run.measured.seconds for run in self.whole) if self.whole else None

    def to_json(self) -> dict[str, Any]:
        """Of one run its figures; where several were wanted these, and the mean of those that did not fail."""
        runs = [_figures(run.measured) | {"exit_code": run.exit_code} for run in self.runs]
        if not self.many:
            return {"command": self.command} | runs[0]
        sums = {"mean_j": self.mean_j, "deviation_j": self.deviation_j, "mean_s": self.mean_s}
        return {"command": self.command, "exit_code": self.exit_code} | sums | {"runs": runs}


def measure_repeatedly(
    command: Sequence[str],
    repeat: int = 1,
    *,
    meter: "str | Meter" = "auto",
    stdout: int | IO[Any] | None = None,
    after: Callable[[MeasuredCommand], None] | None = None,
) -> Repeated:
    """Run it so many times, one by one, and stop when it fails. `after` hears of each run."""
    runs: list[MeasuredCommand] = []
    while len(runs) < repeat and not (runs and runs[-1].exit_code):
        runs.append(measure_command(command, meter=meter, stdout=stdout))
        if after is not None:
            after(runs[-1])
    return Repeated(tuple(command), tuple(runs), repeat)


def _figures(measured: Measured) -> dict[str, Any]:
    energy = measured.energy
    if isinstance(energy, Energy):
        known: dict[str, Any] = {
            "joules": energy.joules,
            "spread": energy.spread,
            "provenance": energy.provenance,
            "problem": "",
        }
    else:
        known = {"joules": None, "spread": None, "provenance": None, "problem": energy.reason}
    rest = msgspec.to_builtins(measured)
    del rest["energy"]
    return {**known, "too_short": measured.too_short, "watts": measured.watts, **rest}
