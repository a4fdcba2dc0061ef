"""How warm the processor is, as the kernel tells it.

Owns which sensor is the processor's. What is not there is None.
"""

from pathlib import Path
from typing import Final

from wattloom.machines.own_profile import text

CLASSES: Final = Path("/sys/class")
CHIPS: Final = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "apm_xgene")
"""Drivers of the sensors inside processors."""
ZONES: Final = ("x86_pkg_temp", "cpu-thermal", "cpu_thermal", "soc-thermal")
COLDEST, HOTTEST = -40.0, 150.0
"""Sensors that are off say something beyond these."""


class Thermometer:
    """The hottest of the processor's sensors. Found once, read often."""

    def __init__(self, classes: Path = CLASSES) -> None:
        self._sensors = _chips(classes / "hwmon") or _zones(classes / "thermal")

    def celsius(self) -> float | None:
        found = [value for sensor in self._sensors if (value := _degrees(sensor)) is not None]
        return max(found, default=None)


def _chips(folder: Path) -> list[Path]:
    chips = [chip for chip in sorted(folder.glob("hwmon*")) if text(chip / "name") in CHIPS]
    return [sensor for chip in chips for sensor in sorted(chip.glob("temp*_input"))]


def _zones(folder: Path) -> list[Path]:
    zones = [zone for zone in sorted(folder.glob("thermal_zone*")) if text(zone / "type") in ZONES]
    return [zone / "temp" for zone in zones]


def _degrees(sensor: Path) -> float | None:
    try:
        value = int(text(sensor)) / 1000.0
    except ValueError:
        return None
    return value if COLDEST < value < HOTTEST else None
