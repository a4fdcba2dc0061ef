"""Which runtimes there are, and which of them runs a file.

Owns the entry points `wattloom.runtimes` and the choice by a file's name. Each of ours is one file of this room and
comes in by the same door as anybody else's.
"""

from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

import msgspec

from wattloom.errors import InputError
from wattloom.runtimes.function_file import Build
from wattloom.runtimes.protocol import Runtime

GROUP: Final = "wattloom.runtimes"
NATIVE: Final = "native"
"""Whatever has no other runtime and may be executed."""


@runtime_checkable
class FileRuntime(Runtime, Protocol):
    """A runtime whose functions are files: `load` is given a `Build` in MessagePack."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    """How the names of its files end."""
    options: ClassVar[type[msgspec.Struct]]
    """What `runtime_options` may hold."""

    @staticmethod
    def check(path: Path, entry: str) -> tuple[str, ...]:
        """Before anything is sent: the architectures the file is for; empty: any. Raises InputError, also if the
        program that runs it is missing: then it says which package brings it."""


def runtime_class(name: str) -> type[FileRuntime]:
    """Raises InputError that names those there are."""
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in found:
        raise InputError("runtime", f"there is no {name}; those installed are {', '.join(sorted(found)) or 'none'}")
    try:
        cls: type[FileRuntime] = found[name].load()
    except ImportError as problem:
        raise InputError(f"runtime {name}", f"cannot be loaded: {problem}") from problem
    return cls


def runtime_of(path: Path) -> str:
    """The runtime whose files are called so; else `native`, if it may be executed."""
    for entry in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        if path.name.endswith(tuple(runtime_class(entry.name).suffixes)):
            return entry.name
    return NATIVE


def checked_options(cls: type[FileRuntime], given: Mapping[str, Any]) -> dict[str, Any]:
    """As its runtime understands them. Raises InputError."""
    unknown = sorted(set(given) - set(cls.options.__struct_fields__))
    if unknown:
        known = ", ".join(cls.options.__struct_fields__) or "none"
        raise InputError(f"runtime_options.{unknown[0]}", f"is no option of the runtime {cls.name}; they are {known}")
    try:
        msgspec.convert(dict(given), cls.options)
    except msgspec.ValidationError as problem:
        what, _, where = str(problem).partition(" - at `$.")
        field = where.rstrip("`")
        raise InputError(f"runtime_options.{field}" if field else "runtime_options", what) from problem
    return dict(given)


def options_of(build: Build, kind: type[Any]) -> Any:
    """A build's options, as a value of its runtime's type."""
    return msgspec.convert(build.options, kind)
