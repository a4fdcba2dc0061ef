"""A function of the suite as others use it: what to submit, with what, and whether the result is right.

Owns the way from a name to these three.
"""

from collections.abc import Callable
from functools import cached_property, lru_cache
from importlib import import_module
from typing import Any, Final

from wattloom.errors import InputError
from wattloom.local.functions import OWN_NAME
from wattloom.suite.catalogue import SuiteFunction, described
from wattloom.suite.needs import missing
from wattloom.suite.places import installed, source

BUILD: Final = "el-passo-"
"""How the name of a build begins; behind it its architecture."""
KEPT: Final = 8
"""Inputs that are kept, since most who ask ask again."""


class Work:
    """One function that can run here."""

    def __init__(self, described: SuiteFunction) -> None:
        self.described: Final = described
        self.name: Final = described.name

    @cached_property
    def function(self) -> Callable[[dict[str, Any]], Any]:
        """What to give to an executor, which calls it with `args(seed)`."""
        if self.described.runtime != "python":
            return loaded(self.described)
        found: Callable[[dict[str, Any]], Any] = _module("python", self.described.family).handler
        setattr(found, OWN_NAME, self.name)
        return found

    def args(self, seed: int) -> tuple[dict[str, Any]]:
        """What the function is called with, the same for the same seed."""
        return (_event(self.described.family, seed),)

    def check(self, result: Any, seed: int) -> None:
        """Raises WrongResult if that is not what the function must come to with that seed."""
        from wattloom.suite.families.chance import WrongResult

        try:
            _family(self.described.family).check(self.args(seed)[0], result)
        except WrongResult as problem:
            raise WrongResult(f"{self.name}: {problem}") from None
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
            raise WrongResult(f"{self.name}: its result cannot even be read: {problem!r}") from problem


def function(name: str) -> Work:
    """The function, its inputs and its check. Raises InputError if there is none, or if it cannot run here."""
    one = described(name)
    lacks = missing(name)
    if lacks:
        how = f"; `wattloom workload install {name}` brings it" if all(need.by_install for need in lacks) else ""
        raise InputError(name, f"cannot run here, it needs {', '.join(map(str, lacks))}{how}")
    return Work(one)


def loaded(one: SuiteFunction) -> Callable[[dict[str, Any]], Any]:
    """A function of another language, from its file: where packages were installed beside it if it has some."""
    from wattloom.local.loading import load

    folder = installed(one.name)
    if one.runtime == "native":
        builds = {path.name.removeprefix(BUILD): str(path) for path in folder.glob(f"{BUILD}*")}
        return load(builds, name=one.name, runtime_options={"warm": True})
    if one.runtime == "wasm":
        return load(str(folder / "el-passo.wasm"), name=one.name)
    file = folder / source(one.name).name if one.is_installed else source(one.name)
    options = {"classpath": ["lib/*.jar"]} if one.runtime == "java" and one.is_installed else {}
    return load(f"{file}:handler", name=one.name, runtime_options=options)


@lru_cache(KEPT)
def _event(family: str, seed: int) -> dict[str, Any]:
    found: dict[str, Any] = _family(family).event(seed)
    return found


def _family(family: str) -> Any:
    name = "matrix" if family.startswith("matrix") else family
    return _module("families", name)


def _module(folder: str, family: str) -> Any:
    return import_module(f"wattloom.suite.{folder}.{family.replace('-', '_')}")
