"""What a function of the suite needs, and what of it is missing here.

Owns the search for modules, programs and what was installed, and the names of the packages that bring them.
"""

import shutil
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

from wattloom.suite.catalogue import FUNCTIONS, SuiteFunction, described
from wattloom.suite.ffmpeg import found_ffmpeg
from wattloom.suite.places import installed

MODULES: Final = {
    "jwt": "pyjwt>=2.8",
    "cryptography": "cryptography>=41",
    "PIL": "pillow>=10",
    "onnx": "onnx>=1.15",
    "onnxruntime": "onnxruntime>=1.17",
    "igraph": "igraph>=0.11",
    "jinja2": "jinja2>=3.1",
    "imageio_ffmpeg": "imageio-ffmpeg>=0.5",
    "wasmtime": "wasmtime>=25",
}
"""Modules of Python, and what pip installs for them: the package's extra `suite`."""
PROGRAMS: Final = {
    "node": "nodejs",
    "npm": "npm",
    "java": "openjdk-17-jre-headless",
    "javac": "openjdk-17-jdk-headless",
    "mvn": "maven",
    "go": "golang-go",
    "g++": "g++",
    "clang": "clang",
    "wasm-ld": "lld",
    "wasi-libc": "wasi-libc libclang-rt-dev-wasm32",
}
"""Programs, and the packages of Debian that bring them."""
WASI: Final = Path("/usr/include/wasm32-wasi")


class Need(msgspec.Struct, frozen=True):
    """Something a function needs and that is not here."""

    what: str
    brings: str
    """What to do about it."""
    by_install: bool
    """Whether `wattloom workload install` can bring it."""

    def __str__(self) -> str:
        return f"{self.what} ({self.brings})"


def missing(name: str) -> tuple[Need, ...]:
    """What a function needs to run and has not; empty: it can run here."""
    one = described(name)
    if not runtime_is_here(one):
        return (Need(f"the runtime {one.runtime}", "not in this installation of Wattloom", by_install=False),)
    found = [need for module in one.modules if (need := missing_module(module)) is not None]
    found += [need for program in one.programs if (need := missing_program(program)) is not None]
    if one.is_installed and not installed(name).is_dir():
        found.append(Need(_artefact(one), f"wattloom workload install {name}", by_install=True))
    return tuple(found)


def runtime_is_here(one: SuiteFunction) -> bool:
    """Whether Wattloom can run its language at all."""
    return one.runtime == "python" or bool(entry_points(group="wattloom.runtimes", name=one.runtime))


def ready() -> list[str]:
    """Those that can run here as it is."""
    return [name for name in FUNCTIONS if not missing(name)]


def to_build(name: str) -> tuple[Need, ...]:
    """What the installation of a function needs and that is missing; empty also if it is installed."""
    one = described(name)
    if not one.is_installed or installed(name).is_dir():
        return ()
    return tuple(need for builder in one.builders if (need := _missing_builder(builder)) is not None)


def _missing_builder(name: str) -> Need | None:
    return missing_module(name) if name in MODULES else missing_program(name)


def missing_module(module: str) -> Need | None:
    if find_spec(module) is not None:
        return None
    return Need(MODULES[module].partition(">")[0], f"pip install '{MODULES[module]}'", by_install=True)


def missing_program(program: str) -> Need | None:
    if program == "ffmpeg":
        here, by_install = bool(found_ffmpeg()), True
        brings = f"Debian: ffmpeg; or pip install '{MODULES['imageio_ffmpeg']}'"
    else:
        here, by_install = (WASI.is_dir() if program == "wasi-libc" else shutil.which(program) is not None), False
        brings = f"Debian: {PROGRAMS[program]}"
    return None if here else Need(program, brings, by_install)


def _artefact(one: SuiteFunction) -> str:
    if one.packages:
        return ", ".join(package.rpartition("/")[2] for package in one.packages)
    return "its network's file"
