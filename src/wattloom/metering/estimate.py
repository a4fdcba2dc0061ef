"""The meter for machines without one: busy CPU time on a power curve.

Owns the integration between two readings. What it says is never measured: the curve is of another specimen or of many
machines, and its error is stated.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.machines.curves import curve_error
from wattloom.machines.machine import Machine
from wattloom.machines.profile import MachineProfile
from wattloom.machines.this_machine import allowed_cpus
from wattloom.metering.proc import TICK_S, busy_seconds
from wattloom.metering.protocol import Quantity, Sample
from wattloom.units import MILLI

PROC: Final = Path("/proc")
LATE_S: Final = 1.0
"""How long after `now` a busy machine may come to read the CPU time."""


class Estimate:
    """Cumulative joules from the machine's busy CPU time. `cpus`: those the profile is of; None: it is of all."""

    name = "estimate"
    summary = "an estimate from busy CPU time on a power curve"
    provenance: Provenance = "estimated"

    def __init__(
        self,
        profile: MachineProfile,
        *,
        proc: Path = PROC,
        cpus: Collection[int] | None = None,
        model_error: float | None = None,
    ) -> None:
        self.quantity: Quantity = profile.quantity
        self.model_error = curve_error(profile) if model_error is None else model_error
        self._machine = Machine(profile)
        self._threads = profile.threads
        self._proc = proc
        self._cpus = cpus
        self._most_cpus = profile.threads if cpus is None else len(cpus)
        # What the ticks of the clock may hide between two readings, and what that is worth in joules.
        self._hidden_s = 2.0 * TICK_S * profile.threads
        above_idle = self._machine.full_watts - self._machine.idle_w
        self._resolution_j = TICK_S * above_idle / profile.threads**0.5
        self._seen_s = 0.0
        self._last: Sample | None = None
        self._epoch = 0

    def available(self) -> str | None:
        if not self._machine.knows_power:
            return f"machine {self._machine.name} has no power curve: give its profile `watts`"
        if busy_seconds(self._proc, self._cpus) is None:
            return f"{self._proc / 'stat'} does not say how busy the CPUs are: a Linux kernel's /proc is needed"
        return None

    def read(self, now: float) -> Sample | Unknown:
        busy = busy_seconds(self._proc, self._cpus)
        if busy is None or not self._machine.knows_power:
            return Unknown(self.available() or f"{self._proc / 'stat'} could not be read")
        last = self._last
        if last is None or last.busy_s is None:
            return self._begin(now, busy, 0.0)
        seconds = now - last.time
        if seconds < 0.0:
            return Unknown(f"asked for {now} after {last.time}: time went backwards")
        rise = busy - self._seen_s
        if rise < -self._hidden_s:
            self._epoch += 1
            self._begin(now, busy, last.joules)
            return Unknown(f"busy CPU time went backwards by {-rise:.2f} s")
        if rise > (seconds + LATE_S) * self._most_cpus:
            self._epoch += 1
            self._begin(now, busy, last.joules)
            return Unknown(f"busy CPU time rose by {rise:.2f} s within {seconds:.2f} s, more than the CPUs have")
        return self._go_on(now, seconds, busy, last, last.busy_s)

    def _begin(self, now: float, busy: float, joules: float) -> Sample:
        self._seen_s = busy
        before = self._last.busy_s if self._last is not None else None
        self._last = Sample(now, joules, self._resolution_j, before or 0.0, self._epoch)
        return self._last

    def _go_on(self, now: float, seconds: float, busy: float, last: Sample, busy_before: float) -> Sample:
        # Ticks come late: what does not fit into this interval is left for the next, but no more than ticks can hide.
        used = min(max(busy - self._seen_s, 0.0), seconds * self._threads)
        self._seen_s = max(self._seen_s + used, busy - self._hidden_s)
        joules = last.joules
        if seconds > 0.0:
            joules += self._machine.watts(round(used / seconds * MILLI)) * seconds
        self._last = Sample(now, joules, self._resolution_j, busy_before + used, self._epoch)
        return self._last


def for_machine(profile: MachineProfile) -> Estimate:
    """The entry point: the CPUs this process may use, on the curve of the profile."""
    return Estimate(profile, cpus=allowed_cpus())
