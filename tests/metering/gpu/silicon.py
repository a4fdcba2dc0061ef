"""GPUs whose silicon is a text file: the driver's library is compiled from C, and the real binding loads it.

What dlopen has loaded under a library's own name it finds again by that name, so loading our stand-in first is enough
for the binding, which asks for `libnvidia-ml.so.1` or `libamd_smi.so`, to get it. In another process the folder of the
libraries in LD_LIBRARY_PATH does the same.
"""

import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
VARIABLE = "GPU_SILICON"
NOT_SUPPORTED = 3
AMD_NOT_SUPPORTED = 2
LOST = 15
NO_PERMISSION = 4
VOLTA, AMPERE, HOPPER = 5, 7, 9
NOT_KNOWN = 2**32 - 1
AMD_UNIT_UJ = 15.25


@dataclass
class Gpu:
    uuid: str = "GPU-00000000-aaaa-bbbb-cccc-000000000000"
    name: str = "Tesla V100-SXM2-32GB"
    energy: int = 5_000_000
    """Steps of its counter: mJ, or AMD's unit."""
    watts: float = 100.0
    limit_w: float = 300.0
    memory_used: int = 1 << 30
    memory_total: int = 32 << 30
    busy: int = 40
    degrees: int = 51
    architecture: int = VOLTA
    """AMD: the number of compute units."""
    instances: int = 0
    hip: int = 0
    since: float = 0.0
    """Seconds since 1970 from which on it counts by itself. 0: it does not."""
    handle_rc: int = 0
    energy_rc: int = 0
    power_rc: int = 0
    state_rc: int = 0
    users_rc: int = 0
    busy_rc: int = 0

    def line(self) -> str:
        codes = (self.handle_rc, self.energy_rc, self.power_rc, self.state_rc, self.users_rc, self.busy_rc)
        figures = (self.energy, int(self.watts * 1e3), int(self.limit_w * 1e3), self.memory_used, self.memory_total)
        rest = (self.busy, self.degrees, self.architecture, self.instances, self.hip, self.since)
        return " ".join(map(str, ("device", self.uuid, self.name.replace(" ", "_"), *codes, *figures, *rest)))


@dataclass
class User:
    pid: int
    device: int = 0
    busy: int = 0
    memory: int = 1 << 30
    stamp: int = 0
    """When the driver sampled `busy`, in microseconds."""
    instance: int = 0
    held: int = NOT_KNOWN
    """AMD: compute units it fills."""
    ran_ns: int = 0
    """AMD: how long its graphics work has run."""

    def line(self) -> str:
        parts = (self.device, self.instance, self.pid, self.busy, self.held, self.memory, self.stamp, self.ran_ns)
        return " ".join(map(str, ("process", *parts)))


@dataclass
class Silicon:
    path: Path
    gpus: list[Gpu] = field(default_factory=lambda: [Gpu()])
    users: list[User] = field(default_factory=list)
    driver_rc: int = 0
    major: int = 26
    """AMD: of the library."""
    hang_s: float = 0.0
    """How long the driver keeps every question."""
    maker: str = "nvidia"

    def write(self) -> None:
        lines = [f"driver {self.maker} {self.driver_rc} {self.major} {AMD_UNIT_UJ} {self.hang_s}"]
        lines += [gpu.line() for gpu in self.gpus] + [user.line() for user in self.users]
        new = self.path.with_suffix(".new")
        new.write_text("\n".join(lines) + "\n")
        new.replace(self.path)


def nvml_library(folder: Path) -> Path:
    return _compiled(folder, "libnvidia-ml.so.1", [HERE / "nvml_standin.c"])


def amdsmi_library(folder: Path) -> Path:
    """With every symbol that the binding looks up: those that we have no use for are "not supported"."""
    own = HERE / "amdsmi_standin.c"
    source = folder / "amdsmi_rest.c"
    folder.mkdir(parents=True, exist_ok=True)
    missing = _symbols_of_the_binding() - set(re.findall(r"^\w+ \*?(amdsmi_\w+)\(", own.read_text(), re.MULTILINE))
    source.write_text("".join(f"int {name}(void) {{ return 2; }}\n" for name in sorted(missing)))
    return _compiled(folder, "libamd_smi.so", [own, source])


def cuda_library(folder: Path) -> Path:
    return _compiled(folder, "libcuda.so.1", [HERE / "cuda_standin.c"])


def preload(library: Path) -> None:
    """So that the real binding finds it in this process."""
    _preloaded(str(library))


@cache
def _preloaded(library: str) -> ctypes.CDLL:
    return ctypes.CDLL(library, mode=os.RTLD_NOW)


def _symbols_of_the_binding() -> set[str]:
    found = importlib.util.find_spec("amdsmi")
    if found is None or found.origin is None:
        pytest.skip("AMD's binding is not installed, so the amdsmi meter is NOT TESTED: pip install -e '.[dev]'")
    text = (Path(found.origin).parent / "amdsmi_wrapper.py").read_text()
    return set(re.findall(r"_libraries\['libamd_smi\.so'\]\.(\w+)", text))


def _compiled(folder: Path, name: str, sources: list[Path]) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("There is no C compiler, so the GPU meters are NOT TESTED: sudo apt-get install gcc libc6-dev")
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / name
    options = ["-shared", "-fPIC", "-O1", f"-Wl,-soname,{name}", f"-I{HERE}", "-o", str(library)]
    subprocess.run([compiler, *options, *map(str, sources)], check=True, capture_output=True, text=True)
    return library
