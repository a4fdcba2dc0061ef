"""Sources under a test's control, one for each meter that reads files: what the conformance kit asks for."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.metering.trees import RANGE_UJ, HwmonTree, ProcTree, RaplTree, SupplyTree, machine

from wattloom.metering.amd_energy import AmdEnergy
from wattloom.metering.battery import Battery
from wattloom.metering.estimate import Estimate
from wattloom.metering.powercap import Powercap
from wattloom.metering.protocol import Meter
from wattloom.metering.recording import Recording
from wattloom.metering.smpro import Smpro
from wattloom.testing.meter_conformance import Rig

NOBODY = 65534


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything: be somebody else for a while."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)


class File:
    """One file that a rig hides, forbids or spoils."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._aside = path.parents[1] / f"{path.name}.aside"
        self._spoilt = False

    def hide(self) -> None:
        self.path.rename(self._aside)

    def spoil(self, with_: str = "garbage\n") -> None:
        self.hide()
        self.path.write_text(with_)

    def forbid(self) -> None:
        """A folder in its place cannot be read by root either."""
        self.hide()
        self.path.mkdir()

    def mend(self) -> None:
        if self._aside.exists():
            if self.path.is_dir():
                self.path.rmdir()
            self._aside.replace(self.path)


class Faults:
    """What all rigs on files can do: they have `file`, which the source cannot do without."""

    file: File
    frozen = False

    def fail(self) -> None:
        self.file.hide()

    def garble(self) -> None:
        self.file.spoil()

    def forbid(self) -> None:
        self.file.forbid()

    def freeze(self) -> None:
        self.frozen = True

    def mend(self) -> None:
        self.frozen = False
        self.file.mend()

    def near_wrap(self) -> bool:
        return False


class PowercapRig(Faults):
    """Two packages and one memory at 30 W, 20 W and 5 W."""

    def __init__(self, folder: Path) -> None:
        self.tree = RaplTree(folder / "powercap")
        self.watts = {"intel-rapl:0": 30, "intel-rapl:0:1": 5, "intel-rapl:1": 20}
        for zone, name in zip(self.watts, ("package-0", "dram", "package-1"), strict=True):
            self.tree.zone(zone, name)
        self.file = File(self.tree.root / "intel-rapl:1" / "energy_uj")

    def meter(self) -> Meter:
        return Powercap(self.tree.root)

    def spend(self, seconds: float) -> float:
        if self.frozen:
            return 0.0
        for zone, watts in self.watts.items():
            risen = self.tree.get(zone) + round(watts * seconds * 1e6)
            self.tree.set(zone, risen if risen <= RANGE_UJ else risen - RANGE_UJ)
        return sum(self.watts.values()) * seconds

    def near_wrap(self) -> bool:
        self.tree.set("intel-rapl:0", RANGE_UJ - 1_000_000)
        return True

    def restart(self) -> None:
        for zone in self.watts:
            self.tree.set(zone, 0)

    def jump(self) -> None:
        self.tree.add("intel-rapl:0", 50_000_000_000)


class AmdRig(Faults):
    """Two sockets at 90 W and 60 W, and cores inside them."""

    def __init__(self, folder: Path) -> None:
        self.tree = HwmonTree(folder / "hwmon", "amd_energy")
        self.tree.input("energy1", "Ecore000", 5_000_000)
        self.watts = {"energy2": 90, "energy3": 60}
        self.tree.input("energy2", "Esocket0", 77_000_000)
        self.file = File(self.tree.input("energy3", "Esocket1", 55_000_000))

    def meter(self) -> Meter:
        return AmdEnergy(self.tree.root)

    def spend(self, seconds: float) -> float:
        if self.frozen:
            return 0.0
        for file, watts in (*self.watts.items(), ("energy1", 20)):
            self.tree.set(file, self.tree.get(file) + round(watts * seconds * 1e6))
        return 150.0 * seconds

    def restart(self) -> None:
        for file in self.watts:
            self.tree.set(file, 0)

    def jump(self) -> None:
        self.tree.set("energy2", self.tree.get("energy2") + 50_000_000_000)


class SmproRig(Faults):
    """Five rails, 100 W together, with a little noise as sensors have it."""

    RAILS = ("CORE VRD", "SoC", "DIMM VRD1", "DIMM VRD2", "RCA VRD")
    WATTS = (60, 20, 8, 7, 5)

    def __init__(self, folder: Path) -> None:
        self.tree = HwmonTree(folder / "hwmon", "smpro_hwmon")
        self.looks = 0
        for number, (rail, watts) in enumerate(zip(self.RAILS, self.WATTS, strict=True), 1):
            self.tree.input(f"power{number}", f"power{number} {rail}", watts * 1_000_000)
        self.file = File(self.tree.folder / "power3_input")

    def meter(self) -> Meter:
        return Smpro(self.tree.root)

    def spend(self, seconds: float) -> float:
        if not self.frozen:
            self.looks += 1
            self.tree.set("power1", 60_000_000 + self.looks % 2 * 1000)
        return 100.0 * seconds

    def restart(self) -> bool:
        return False

    def jump(self) -> None:
        self.tree.set("power1", 60_000_000_000)


class BatteryRig(Faults):
    """A laptop that draws 12 W from its battery."""

    def __init__(self, folder: Path) -> None:
        self.tree = SupplyTree(folder / "power_supply")
        self.tree.charger(0)
        self.looks = 0
        self.file = File(self.tree.battery(power_now=12_000_000, energy_now=40_000_000) / "power_now")

    def meter(self) -> Meter:
        return Battery(self.tree.root)

    def spend(self, seconds: float) -> float:
        if not self.frozen:
            self.looks += 1
            self.tree.set("BAT0", power_now=12_000_000 + self.looks % 2 * 1000)
        return 12.0 * seconds

    def fail(self) -> None:
        self.tree.charger(1)

    def mend(self) -> None:
        super().mend()
        self.tree.charger(0)

    def restart(self) -> bool:
        return False

    def jump(self) -> None:
        self.tree.set("BAT0", power_now=12_000_000_000)


class ChargeRig(BatteryRig):
    """A battery that shows nothing but what is left in it: 36 J to a step."""

    def __init__(self, folder: Path) -> None:
        self.tree = SupplyTree(folder / "power_supply")
        self.tree.charger(0)
        self.left = 40_000_000.0
        self.file = File(self.tree.battery(energy_now=40_000_000) / "energy_now")

    def spend(self, seconds: float) -> float:
        if not self.frozen:
            self.left -= 12.0 * seconds / 3.6e-3
            self.tree.set("BAT0", energy_now=round(self.left / 10_000) * 10_000)
        return 12.0 * seconds

    def freeze(self) -> None:
        self.frozen = True

    def jump(self) -> None:
        self.left -= 30_000_000.0
        self.tree.set("BAT0", energy_now=round(self.left))


class RecordingRig(Faults):
    """40 W for a long time, a row a second."""

    remembers = True

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "in").mkdir()
        self.path = folder / "in" / "power.csv"
        self.time = 0.0
        self.write({})
        self.file = File(self.path)

    def write(self, odd: dict[int, float]) -> None:
        rows = [f"{second},{odd.get(second, 40.0)}" for second in range(8000)]
        self.path.write_text("\n".join(["time_s,watts", *rows, ""]))

    def meter(self) -> Meter:
        return Recording(self.path)

    def spend(self, seconds: float) -> float:
        self.time += seconds
        return 40.0 * seconds

    def restart(self) -> bool:
        return False

    def jump(self) -> None:
        self.write({int(self.time) + 1: 1e9})

    freeze = None  # type: ignore[assignment]


class EstimateRig:
    """One of two cores busy."""

    def __init__(self, folder: Path) -> None:
        self.tree = ProcTree(folder / "proc")

    def meter(self) -> Meter:
        return Estimate(machine(), proc=self.tree.root)

    def spend(self, seconds: float) -> float:
        self.tree.work(seconds)
        return 30.0 * seconds

    def fail(self) -> None:
        (self.tree.root / "stat").rename(self.tree.root / "hidden")

    def mend(self) -> None:
        (self.tree.root / "hidden").rename(self.tree.root / "stat")

    def near_wrap(self) -> bool:
        return False

    def restart(self) -> None:
        self.tree.work(1.0 - self.tree.busy_s)

    def jump(self) -> None:
        self.tree.work(5000.0)


RIGS: dict[str, Callable[[Path], Rig]] = {
    "powercap": PowercapRig,
    "amd_energy": AmdRig,
    "smpro": SmproRig,
    "battery": BatteryRig,
    "battery-charge": ChargeRig,
    "recording": RecordingRig,
    "estimate": EstimateRig,
}
