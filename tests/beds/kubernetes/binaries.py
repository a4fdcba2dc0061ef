"""Finds the programs of the test bed: those of envtest, those on PATH, those built before; else has them built.

Owns the order of looking and where built ones are kept. How to build is `building`'s.
"""

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tests.beds.kubernetes.building import BuildFailed, build, go_problem
from tests.beds.kubernetes.versions import KUBERNETES, PROGRAMS

from wattloom.errors import InputError, WattloomError

ASSET_VARIABLES: Final = {
    "etcd": "TEST_ASSET_ETCD",
    "kube-apiserver": "TEST_ASSET_KUBE_APISERVER",
    "kubectl": "TEST_ASSET_KUBECTL",
}
"""envtest's variables: each names one program's file."""
ASSETS_FOLDER: Final = "KUBEBUILDER_ASSETS"

__all__ = ["BinariesMissing", "BuildFailed", "binaries", "cache_folder", "find"]


class BinariesMissing(WattloomError):
    """Programs are neither here nor can they be built. Says how to get Go."""


def cache_folder() -> Path:
    """Where built programs are kept, beside the module they are built from."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "wattloom" / f"kubernetes-{KUBERNETES}"


def find(name: str) -> Path | None:
    """The program, if it is on this machine. What envtest's variables name must exist."""
    return _of_envtest(name) or _on_path(name) or _built(name)


def binaries(names: Iterable[str], say: Callable[[str], None] | None = None) -> dict[str, Path]:
    """Every named program's file, built now if need be (the first time takes about ten minutes, and says so)."""
    wanted = list(dict.fromkeys(names))
    unknown = [name for name in wanted if name not in PROGRAMS]
    if unknown:
        raise InputError("program", f"{unknown[0]!r} is none of {', '.join(PROGRAMS)}")
    missing = [name for name in PROGRAMS if name in wanted and find(name) is None]
    if missing:
        if (problem := go_problem()) is not None:
            raise BinariesMissing(
                f"{', '.join(missing)}: neither in ${ASSETS_FOLDER}, nor on PATH, nor built: {problem}"
            )
        build([PROGRAMS[name] for name in missing], cache_folder(), say)
    return {name: found for name in wanted if (found := find(name)) is not None}


def _of_envtest(name: str) -> Path | None:
    variable = ASSET_VARIABLES.get(name, "")
    if named := os.environ.get(variable):
        if not os.access(named, os.X_OK):
            raise InputError(variable, f"{named} is no program that can be run; correct or unset the variable")
        return Path(named)
    folder = os.environ.get(ASSETS_FOLDER)
    return _program(Path(folder) / name) if folder else None


def _on_path(name: str) -> Path | None:
    found = shutil.which(name)
    return Path(found) if found else None


def _built(name: str) -> Path | None:
    return _program(cache_folder() / "bin" / name)


def _program(path: Path) -> Path | None:
    return path if path.is_file() and os.access(path, os.X_OK) else None
