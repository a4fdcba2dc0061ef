"""A rig as tests and benchmarks use it: started, read by the ordinary meter, stopped, and asked for the truth.

Owns the folder and the process that plays the hardware.
"""

import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final

import msgspec
from msgspec.structs import replace
from tests.beds import beds_environment
from tests.beds.rig.conditions import Conditions
from tests.beds.rig.truth import Truth

from wattloom.energy.forecast import Unknown
from wattloom.interpreter import own_module
from wattloom.metering.powercap import Powercap
from wattloom.metering.proc import USER_HZ
from wattloom.metering.protocol import Sample

MEMORY: Final = Path("/dev/shm")


class WithoutNeighbours(Powercap):
    """The ordinary meter, with the busy time of those who are on the machine that it counts."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "powercap")
        self._busy = folder / "busy"

    def read(self, now: float) -> Sample | Unknown:
        sample = super().read(now)
        if isinstance(sample, Unknown):
            return sample
        return replace(sample, busy_s=int(self._busy.read_bytes()) / USER_HZ)


class Rig:
    """`with Rig(conditions) as rig: ...`, then `rig.truth()`."""

    def __init__(self, conditions: Conditions) -> None:
        self.conditions: Final = conditions
        self._folder: Final = tempfile.TemporaryDirectory(prefix="rig-", dir=MEMORY if MEMORY.is_dir() else None)
        self.folder: Final = Path(self._folder.name)
        self._process: subprocess.Popen[str] | None = None

    @property
    def slots(self) -> str:
        """What `functions.join`, the initializer of the workers, must be told."""
        return str(self.folder / "slots")

    def meter(self) -> Powercap:
        """The ordinary meter, on the rig's counters."""
        return Powercap(self.folder / "powercap") if self.conditions.neighbours else WithoutNeighbours(self.folder)

    def __enter__(self) -> "Rig":
        (self.folder / "slots").mkdir()
        zone = self.folder / "powercap" / "intel-rapl:0"
        zone.mkdir(parents=True)
        (zone / "name").write_text("package-0\n")
        (zone / "max_energy_range_uj").write_text(f"{self.conditions.range_uj}\n")
        (zone / "energy_uj").write_text(f"{self.conditions.start_uj:020d}\n")
        (self.folder / "busy").write_bytes(b"0" * 20)
        (self.folder / "conditions.json").write_bytes(msgspec.json.encode(self.conditions))
        command = own_module("tests.beds.rig.silicon", str(self.folder), str(os.getpid()))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=beds_environment()
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise RuntimeError("the rig did not start; what it said is above")
        return self

    def stop(self) -> Truth:
        """End it, and read what it has written down."""
        if self._process is not None:
            self._process.communicate()
            self._process = None
        return Truth.read(self.folder, self.conditions)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.communicate()
        self._folder.cleanup()
