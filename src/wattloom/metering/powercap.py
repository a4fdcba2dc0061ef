"""Linux powercap (RAPL): the energy counters of Intel's processors, and of AMD's on kernels after 5.11.

Owns what is done when zones come, go or contradict each other. Which zones there are is `rapl_zones`'s, how counters
are followed `counters`'s. Knows nothing of tasks.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.machines.curves import FUNCTIONS_DIFFER
from wattloom.machines.profile import MachineProfile
from wattloom.metering.count import Limits, seconds_asleep
from wattloom.metering.counters import Counters, Raw
from wattloom.metering.kernel_files import Unreadable, entries, number, optional
from wattloom.metering.protocol import Quantity, Sample, Zone
from wattloom.metering.rapl_zones import (
    CPUINFO,
    ROOT,
    RaplZone,
    all_zones,
    hidden,
    host_zones,
    of_host,
    shows_whole_package,
)
from wattloom.metering.setup_hints import files_for_group, missing, module

__all__ = ["Powercap", "for_machine", "host_zones"]

MOST_W_PER_ZONE: Final = 1000.0
"""More than any package or its memory can draw: a faster rise is a mistake."""
MOST_W: Final = 10_000.0
"""More than all of them together, or psys."""
STILL_S: Final = 0.4
"""A package draws at least tenths of a watt and counts every millisecond: without a rise for so long it is not read."""
LEAST_RANGE_UJ: Final = 65_712_000_000
"""Of the shortest counter there is (32 bits of 15.3 uJ): without its range a counter may have wrapped after so much."""
STEP_UJ: Final = 61
"""The usual step of the counter."""
PSYS_LEAST: Final = 0.8
"""The platform holds its packages. Where psys counts less than this of them, the board's maker did not calibrate it."""
PSYS_TRIED_J: Final = 20.0
"""Joules of the packages from which that can be told."""


class Powercap:
    """Package and memory joules as the processor counts them: psys if there is one, else packages and drams."""

    name = "powercap"
    summary = "the processor's own energy counters (RAPL)"
    quantity: Quantity = "package"
    provenance: Provenance = "measured"
    model_error = FUNCTIONS_DIFFER

    def __init__(
        self,
        root: Path = ROOT,
        most_w_per_zone: float = MOST_W_PER_ZONE,
        *,
        cpuinfo: Path = CPUINFO,
        asleep: Callable[[], float] = seconds_asleep,
    ) -> None:
        self._root = root
        self._most_w = most_w_per_zone
        self._one_die = shows_whole_package(cpuinfo)
        self._psys = True
        limits = Limits(MOST_W, still_s=STILL_S)
        self._host: Counters[RaplZone] = Counters(limits, asleep=asleep)
        self._parts: Counters[RaplZone] = Counters(Limits(MOST_W), asleep=asleep)
        self._seen: list[str] = []
        self._zones: list[RaplZone] = []
        self._counted: list[RaplZone] = []
        self._ranges: dict[RaplZone, int | None] = {}

    def available(self) -> str | None:
        if hidden(self._root):
            return missing(
                f"the energy counters under {self._root} are hidden from this container",
                "with Docker: docker run --security-opt systempaths=unconfined; with Kubernetes: a hostPath volume of "
                "/sys/devices/virtual/powercap",
            )
        zones = of_host(all_zones(self._root), psys=self._psys, one_die=self._one_die)
        if not zones:
            return missing(
                f"there are no energy counters under {self._root}: this is a virtual machine, or a module is missing",
                *module("intel_rapl_msr"),
                "in a virtual machine: let the host share its figures (settings group host_share)",
            )
        try:
            for zone in zones:
                number(zone.folder / "energy_uj")
        except Unreadable as problem:
            return missing(str(problem), *(self._how_to_allow() if problem.forbidden else ()))
        return None

    def _how_to_allow(self) -> tuple[str, ...]:
        files = f"{self._root}/intel-rapl:*/energy_uj"
        return files_for_group("powercap", 'KERNEL=="intel-rapl:*"', "energy_uj", files)

    def read(self, now: float) -> Sample | Unknown:
        refusal = self._host.refusal(now)
        if refusal is not None:
            return refusal
        self._look_again()
        if not self._counted:
            return Unknown((self.available() or "there are no energy counters").partition("\n")[0])
        try:
            shown = {zone: self._shown(zone) for zone in self._counted}
        except Unreadable as problem:
            return Unknown(str(problem))
        sample = self._host.read(now, shown, STEP_UJ)
        self._read_parts(now)
        if isinstance(sample, Sample) and self._psys_lies():
            return self._without_psys(now)
        return sample

    def zones(self) -> list[Zone]:
        """Every zone and its joules so far; those that are not counted lie inside others, or beside psys."""
        return [Zone(zone.label, self._joules(zone), zone.inside, zone in self._counted) for zone in self._zones]

    def _joules(self, zone: RaplZone) -> float:
        """Packages beside psys are counted only once it has proved wrong: what they had before that is theirs too."""
        return self._host.joules_of(zone) + self._parts.joules_of(zone)

    def _look_again(self) -> None:
        """Packages can be switched off and on, and modules reloaded, while we run."""
        seen = entries(self._root)
        if seen == self._seen and self._counted:
            return
        found = all_zones(self._root)
        counted = of_host(found, psys=self._psys, one_die=self._one_die)
        self._seen = seen
        if counted:  # while there are none at all the old ones are kept: they may come back, and have counted on
            self._zones, self._counted = found, counted
            self._ranges = {zone: optional(zone.folder / "max_energy_range_uj") for zone in found}

    def _shown(self, zone: RaplZone) -> Raw:
        inner = zone.name != "psys" and not zone.name.startswith("package")
        most_w = MOST_W if zone.name == "psys" else self._most_w
        value, most = number(zone.folder / "energy_uj"), self._ranges.get(zone)
        return Raw(value, most, most_w, LEAST_RANGE_UJ, still=inner)

    def _read_parts(self, now: float) -> None:
        """What is not counted is shown all the same, as far as it can be read."""
        shown: dict[RaplZone, Raw] = {}
        for zone in self._zones:
            value = None if zone in self._counted else optional(zone.folder / "energy_uj")
            if value is not None:
                shown[zone] = Raw(value, self._ranges.get(zone), self._most_w, still=True)
        if shown:
            self._parts.read(now, shown, STEP_UJ)

    def _psys_lies(self) -> bool:
        if self._counted[0].name != "psys":
            return False
        packages = [zone for zone in self._zones if zone.name.startswith("package")]
        parts_j = sum(self._parts.joules_of(zone) for zone in packages[: 1 if self._one_die else None])
        return parts_j > PSYS_TRIED_J and self._host.joules_of(self._counted[0]) < PSYS_LEAST * parts_j

    def _without_psys(self, now: float) -> Unknown:
        self._psys = False
        self._seen = []
        return self._host.break_off(
            now,
            "psys counts less than the packages inside it, so it is wrong on this board: packages are counted instead",
        )


def for_machine(profile: MachineProfile) -> Powercap:
    """The entry point: the counters of the machine we run on, whatever its profile says."""
    return Powercap()
