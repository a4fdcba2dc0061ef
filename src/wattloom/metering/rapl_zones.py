"""Which RAPL zones there are and which of them make up the host, none counted twice.

Owns how a powercap tree is searched. Reads names only, no counters.
"""

import os
import re
from pathlib import Path
from typing import Final

import msgspec

from wattloom.metering.kernel_files import entries, word

ROOT: Final = Path("/sys/class/powercap")
CPUINFO: Final = Path("/proc/cpuinfo")
_ZONE: Final = re.compile(r"intel-rapl:\d+(:\d+)?")
"""Not intel-rapl-mmio, which shows the same counters again. AMD's zones have Intel's name too."""
_DIE: Final = re.compile(r"(package-\d+)-die-\d+")
WHOLE_PACKAGE: Final = ("AuthenticAMD", "HygonGenuine")
"""Their counter is the whole package's. Some kernels show it once for every die of it."""


class RaplZone(msgspec.Struct, frozen=True):
    """One zone."""

    folder: Path
    name: str
    inside: str = ""
    """Name of the outer zone."""

    @property
    def label(self) -> str:
        """`package-0`, or `package-0/dram`."""
        return f"{self.inside}/{self.name}" if self.inside else self.name

    def __str__(self) -> str:
        return f"{self.label} ({self.folder.name})"


def all_zones(root: Path) -> list[RaplZone]:
    """Every zone that has a name, outer ones before those inside them."""
    names = [entry for entry in entries(root) if _ZONE.fullmatch(entry)]
    found = {entry: root / entry for entry in names}
    for entry in names:  # some trees show the inner zones only inside the outer ones
        inner = [inside for inside in entries(root / entry) if _ZONE.fullmatch(inside)]
        found |= {inside: root / entry / inside for inside in inner}
    called = {entry: word(folder / "name") for entry, folder in found.items()}
    return [
        RaplZone(found[entry], name, called.get(_outer(entry), ""))
        for entry, name in sorted(called.items(), key=lambda each: _numbers(each[0]))
        if name
    ]


def of_host(zones: list[RaplZone], *, psys: bool = True, one_die: bool = False) -> list[RaplZone]:
    """The zones whose sum is the host: psys, else packages with their memory. `psys`: whether it may be trusted.
    `one_die`: every die of a package shows the whole package."""
    platform = [zone for zone in zones if zone.name == "psys"]
    if psys and platform:
        return platform[:1]
    packages = [zone for zone in zones if zone.name.startswith("package")]
    if one_die:
        packages = list({_package(zone): zone for zone in reversed(packages)}.values())[::-1]
    # A package's counter holds its cores and the parts around them, but never its memory.
    memory = [zone for zone in zones if zone.name == "dram"]
    if one_die:
        memory = [zone for zone in memory if any(zone.inside == package.name for package in packages)]
    return packages + memory


def host_zones(root: Path, cpuinfo: Path = CPUINFO) -> list[Path]:
    """The folders of the zones that make up the host, none inside another."""
    return [zone.folder for zone in of_host(all_zones(root), one_die=shows_whole_package(cpuinfo))]


def shows_whole_package(cpuinfo: Path = CPUINFO) -> bool:
    """Whether a die's counter is that of its whole package here."""
    return any(vendor in word(cpuinfo)[:4000] for vendor in WHOLE_PACKAGE)


def hidden(root: Path) -> bool:
    """Whether zones are listed and cannot be entered: container runtimes hide what the links point to."""
    names = [entry for entry in entries(root) if entry.startswith("intel-rapl")]
    return bool(names) and not any(os.path.exists(root / entry) for entry in names)


def _outer(entry: str) -> str:
    return entry.rpartition(":")[0] if entry.count(":") > 1 else ""


def _package(zone: RaplZone) -> str:
    found = _DIE.fullmatch(zone.name)
    return found[1] if found else zone.name


def _numbers(entry: str) -> list[int]:
    return [int(part) for part in entry.split(":")[1:]]
