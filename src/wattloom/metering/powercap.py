"""Linux powercap (RAPL): the energy counters of Intel's processors, and of AMD's on kernels after 5.11.

Owns which zones are summed and how their counters are followed. Knows nothing of tasks.
"""

import re
from pathlib import Path
from typing import Final

from wattloom.cluster.profile import MachineProfile
from wattloom.energy.forecast import Provenance, Unknown
from wattloom.metering.counter import Counter
from wattloom.metering.curves import FUNCTIONS_DIFFER
from wattloom.metering.protocol import Quantity, Sample

ROOT: Final = Path("/sys/class/powercap")
MOST_W_PER_ZONE: Final = 1000.0
"""More than any package, its memory or a laptop as a whole can draw: a faster rise is a mistake."""
UPDATE_S: Final = 0.001
"""The processor brings its counters up to date about every millisecond."""
LATE_S: Final = 0.1
"""How long after `now` a busy machine may come to read the counters."""
STEP_J: Final = 61e-6
"""The usual step of the counter."""
_ZONE: Final = re.compile(r"intel-rapl:\d+(:\d+)?")
"""Not intel-rapl-mmio, which shows the same counters again."""


class Powercap:
    """Package and memory joules as the processor counts them: psys if there is one, else packages and drams."""

    name = "powercap"
    summary = "the processor's own energy counters (RAPL)"
    quantity: Quantity = "package"
    provenance: Provenance = "measured"
    model_error = FUNCTIONS_DIFFER

    def __init__(self, root: Path = ROOT, most_w_per_zone: float = MOST_W_PER_ZONE) -> None:
        self._root = root
        self._most_w = most_w_per_zone
        self._counters: dict[Path, Counter] | None = None
        self._last: Sample | None = None
        self._epoch = 0

    def available(self) -> str | None:
        zones = host_zones(self._root)
        if not zones:
            return (
                f"there are no energy counters under {self._root}: this is a virtual machine, or the kernel's module "
                "is missing (sudo modprobe intel_rapl_msr)"
            )
        for zone in zones:
            try:
                _number(zone / "energy_uj")
            except PermissionError:
                return (
                    f"{zone / 'energy_uj'} may be read by root only. To allow it until the next boot: "
                    f"sudo chmod a+r {self._root}/intel-rapl:*/energy_uj (fine power readings can leak secrets to "
                    "others who use this machine; see CVE-2020-8694)"
                )
            except (OSError, ValueError) as problem:
                return f"{zone / 'energy_uj'} cannot be read: {problem}"
        return None

    def read(self, now: float) -> Sample | Unknown:
        last = self._last
        if last is not None and now < last.time:
            return Unknown(f"asked for {now} after {last.time}: time went backwards")
        if self._counters is None:
            self._counters = {zone: Counter(_range(zone)) for zone in host_zones(self._root)}
        try:
            raw = {zone: _number(zone / "energy_uj") for zone in self._counters}
        except (OSError, ValueError) as problem:
            return Unknown(f"the energy counters cannot be read: {problem}")
        if not raw:
            self._counters = None
            return Unknown(self.available() or "there are no energy counters")
        return self._follow(now, raw, self._counters)

    def _follow(self, now: float, raw: dict[Path, int], counters: dict[Path, Counter]) -> Sample | Unknown:
        last = self._last
        seconds = now - last.time if last is not None else 0.0
        most_uj = (seconds + LATE_S) * self._most_w * 1e6
        problems = [problem for zone, value in raw.items() if (problem := counters[zone].problem(value, most_uj))]
        microjoules = 0
        for zone, value in raw.items():
            microjoules += counters[zone].take(value, sound=not problems)
        if problems:
            self._epoch += 1
            self._last = Sample(now, last.joules if last else 0.0, STEP_J, epoch=self._epoch)
            return Unknown(problems[0])
        joules = microjoules * 1e-6
        watts = joules / seconds if seconds > 0.0 else 0.0
        before = last.joules if last is not None else 0.0
        resolution = max(STEP_J * len(raw) ** 0.5, watts * UPDATE_S)
        self._last = Sample(now, before + joules, resolution, epoch=self._epoch)
        return self._last


def for_machine(profile: MachineProfile) -> Powercap:
    """The entry point: the counters of the machine we run on, whatever its profile says."""
    return Powercap()


def host_zones(root: Path) -> list[Path]:
    """The zones that make up the host, none inside another."""
    named = {zone: name for zone in _zones(root) if (name := _name(zone))}
    psys = [zone for zone, name in named.items() if name == "psys"]
    if psys:
        return psys[:1]
    packages = [zone for zone, name in named.items() if name.startswith("package")]
    # A package's counter holds its cores and the parts around them, but never its memory.
    return packages + [zone for zone, name in named.items() if name == "dram"]


def _zones(root: Path) -> list[Path]:
    try:
        found = [entry for entry in root.iterdir() if _ZONE.fullmatch(entry.name)]
        # Some trees show the inner zones only inside the outer ones.
        inner = [entry for zone in found for entry in zone.iterdir() if _ZONE.fullmatch(entry.name)]
    except OSError:
        return []
    return [zone for _, zone in sorted({zone.name: zone for zone in (*inner, *found)}.items())]


def _name(zone: Path) -> str:
    try:
        return (zone / "name").read_text().strip()
    except OSError:
        return ""


def _range(zone: Path) -> int | None:
    try:
        return _number(zone / "max_energy_range_uj")
    except (OSError, ValueError):
        return None


def _number(path: Path) -> int:
    return int(path.read_bytes())
