"""Kernel files as tests write them: a powercap tree, and as much of /proc as is read."""

from pathlib import Path

from wattloom.energy.forecast import Provenance
from wattloom.machines.profile import MachineProfile

RANGE_UJ = 262_143_328_850


class RaplTree:
    """/sys/class/powercap of a machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def zone(self, folder: str, name: str, microjoules: int = 1_000_000, most: int | None = RANGE_UJ) -> Path:
        zone = self.root / folder
        zone.mkdir(parents=True, exist_ok=True)
        (zone / "name").write_text(f"{name}\n")
        if most is not None:
            (zone / "max_energy_range_uj").write_text(f"{most}\n")
        self.set(folder, microjoules)
        return zone

    def set(self, folder: str, microjoules: int) -> None:
        (self.root / folder / "energy_uj").write_text(f"{microjoules}\n")

    def get(self, folder: str) -> int:
        return int((self.root / folder / "energy_uj").read_text())

    def add(self, folder: str, microjoules: int) -> None:
        self.set(folder, self.get(folder) + microjoules)


class HwmonTree:
    """/sys/class/hwmon with one hardware monitor."""

    def __init__(self, root: Path, name: str, folder: str = "hwmon3") -> None:
        self.root = root
        self.folder = root / folder
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "name").write_text(f"{name}\n")

    def input(self, file: str, label: str, value: int) -> Path:
        """`file`: as `energy1` or `power1`."""
        (self.folder / f"{file}_label").write_text(f"{label}\n")
        return self.set(file, value)

    def set(self, file: str, value: int) -> Path:
        path = self.folder / f"{file}_input"
        path.write_text(f"{value}\n")
        return path

    def get(self, file: str) -> int:
        return int((self.folder / f"{file}_input").read_text())


class SupplyTree:
    """/sys/class/power_supply of a laptop."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def set(self, supply: str, **files: str | int) -> Path:
        folder = self.root / supply
        folder.mkdir(exist_ok=True)
        for name, value in files.items():
            (folder / name).write_text(f"{value}\n")
        return folder

    def battery(self, supply: str = "BAT0", **files: str | int) -> Path:
        self.set(supply, type="Battery", present=1, status="Discharging")
        return self.set(supply, **files)

    def charger(self, online: int, supply: str = "AC") -> Path:
        return self.set(supply, type="Mains", online=online)


class ProcTree:
    """/proc with two CPUs and some processes. Seconds are CPU seconds."""

    def __init__(self, root: Path, cpus: int = 2) -> None:
        self.root = root
        self.cpus = cpus
        root.mkdir(parents=True, exist_ok=True)
        self.busy_s = 100.0
        self.steal_s = 0.0
        self.work(0.0)
        self.process("self", 0.0)

    def work(self, seconds: float, steal: float = 0.0) -> None:
        """The machine is busy for so many CPU seconds more, on all CPUs alike."""
        self.busy_s += seconds
        self.steal_s += steal
        ticks, stolen = round(self.busy_s * 100 / self.cpus), round(self.steal_s * 100 / self.cpus)
        # user nice system idle iowait irq softirq steal guest guest_nice
        each = [ticks - 30, 5, 10, 99_999, 77, 5, 10, stolen, 3, 0]
        lines = [f"cpu{cpu} {' '.join(map(str, each))}" for cpu in range(self.cpus)]
        total = f"cpu  {' '.join(str(field * self.cpus) for field in each)}"
        (self.root / "stat").write_text("\n".join([total, *lines, "intr 5 0 0", "ctxt 7", ""]))

    def process(self, pid: int | str, own: float, waited_for: float = 0.0, threads: float = 0.0) -> None:
        """CPU seconds of the first thread, of children that were waited for, and of other threads."""
        folder = self.root / str(pid)
        folder.mkdir(exist_ok=True)
        ticks, reaped = int((own + threads) * 100 + 1e-6), round(waited_for * 100)
        front = f"{pid} (odd name) (x) R 1 1 1 0 -1 4194304 857 0 1 0"
        (folder / "stat").write_text(f"{front} {ticks} 0 {reaped} 0 20 0 1 0 1122830 12816384 2179\n")
        (folder / "schedstat").write_text(f"{round(own * 1e9)} 214089 6\n")

    def child(self, parent: int, pid: int) -> None:
        folder = self.root / str(parent) / "task" / str(parent)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "children").write_text(f"{pid} ")

    def end(self, pid: int) -> None:
        for name in ("stat", "schedstat"):
            (self.root / str(pid) / name).unlink()


def machine(
    quantity: str = "wall",
    watts: tuple[tuple[float, float], ...] = ((0, 10.0), (2, 50.0)),
    provenance: Provenance = "estimated",
) -> MachineProfile:
    """Two cores, 10 W idle, 20 W more for each."""
    return MachineProfile(
        "m",
        "x86_64",
        cores=2,
        threads=2,
        memory=1,
        watts=watts,
        provenance=provenance,
        quantity="wall" if quantity == "wall" else "package",
    )
