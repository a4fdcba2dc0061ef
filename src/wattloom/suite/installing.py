"""What functions of the suite need, fetched and built: packages of pip, npm and Maven, blst, AlexNet's file.

Owns the steps and their order. Each function's folder is built beside its place and renamed into it, so that it is
there whole or not at all, whenever we are stopped; what is there is not made again. How a folder is filled is
`building`'s.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import invalidate_caches
from pathlib import Path
from typing import Final

import msgspec

from wattloom.errors import WattloomError
from wattloom.suite import building
from wattloom.suite.catalogue import SuiteFunction
from wattloom.suite.needs import MODULES, missing_module, missing_program, runtime_is_here, to_build
from wattloom.suite.places import installed, suite_folder

BUILDING: Final = ".building-"
"""What a folder is called that is not ready; behind it whose it is, as a process."""


class InstallError(WattloomError):
    """Something could not be fetched or built. What was there before is as it was."""


class Step(msgspec.Struct, frozen=True):
    """One thing to fetch or to build."""

    name: str
    """`pip`, or the function's."""
    what: str
    """What is fetched, in words."""
    packages: tuple[str, ...]
    function: SuiteFunction | None = None


class Done(msgspec.Struct, frozen=True):
    """What became of a step."""

    name: str
    what: str
    problem: str = ""
    """Empty: it is installed."""


def planned(functions: list[SuiteFunction]) -> list[Step]:
    """What is to be done for these functions; empty: nothing is missing that we could bring."""
    modules = {need: None for one in functions for need in _modules(one)}
    requirements = tuple(MODULES[module] for module in modules)
    first = [Step("pip", f"{', '.join(requirements)} by pip", requirements)]
    steps = [Step(one.name, _fetched(one), one.packages, one) for one in functions if _is_to_build(one)]
    return [*(first if requirements else []), *steps]


def _modules(one: SuiteFunction) -> list[str]:
    wanted = [*one.modules, *(builder for builder in one.builders if builder in MODULES and _is_to_build(one))]
    lacks = [module for module in wanted if missing_module(module) is not None]
    if "ffmpeg" in one.programs and missing_program("ffmpeg") is not None:
        lacks.append("imageio_ffmpeg")
    return lacks


def _is_to_build(one: SuiteFunction) -> bool:
    return one.is_installed and runtime_is_here(one) and not installed(one.name).is_dir()


def _fetched(one: SuiteFunction) -> str:
    by = {"node": "npm", "java": "Maven", "native": "Go, then compiled", "wasm": "Go, then compiled"}
    return f"{', '.join(one.packages)} by {by[one.runtime]}" if one.packages else "AlexNet's file, 244 MB, made here"


def install(steps: list[Step]) -> Iterator[Done]:
    """Carry the steps out, one after the other. One that fails does not keep the others."""
    clear_leftovers()
    for step in steps:
        try:
            _pip(step) if step.function is None else _build(step.function)
        except (InstallError, building.BuildFailed) as problem:
            yield Done(step.name, step.what, str(problem))
        except OSError as problem:
            place = problem.filename or suite_folder()
            yield Done(step.name, step.what, f"{place}: {problem.strerror or problem}")
        else:
            yield Done(step.name, step.what)


def _pip(step: Step) -> None:
    command = [sys.executable, "-P", "-m", "pip", "install", "--disable-pip-version-check", *step.packages]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise InstallError(f"pip could not install {', '.join(step.packages)}: {building.end_of(done)}")
    invalidate_caches()


def _build(one: SuiteFunction) -> None:
    lacks = to_build(one.name)
    if lacks:
        raise InstallError(f"{one.name} cannot be built without {', '.join(map(str, lacks))}")
    place = installed(one.name)
    place.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{BUILDING}{os.getpid()}-", dir=place.parent))
    try:
        building.fill(one, folder)
        folder.chmod(0o755)
        _put(folder, place)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _remove_older(one.name, place)


def _put(folder: Path, place: Path) -> None:
    """Whoever comes second finds it there, which is as good."""
    try:
        folder.rename(place)
    except OSError:
        if not place.is_dir():
            raise


def _remove_older(name: str, place: Path) -> None:
    """Of earlier versions of the same function."""
    digits = len(place.name) - len(name) - 1
    for folder in place.parent.glob(f"{name}-{'?' * digits}"):
        if folder != place:
            shutil.rmtree(folder, ignore_errors=True)


def clear_leftovers() -> None:
    """Folders of installations that were cut off: those of processes that are no more."""
    for folder in suite_folder().glob(f"{BUILDING}*"):
        owner = folder.name.removeprefix(BUILDING).partition("-")[0]
        if not Path(f"/proc/{owner}").is_dir():
            shutil.rmtree(folder, ignore_errors=True)
