"""`wattloom.load`: a function of another language, by the file it is in.

Owns the way from a file's name, or from several builds of one function, to something that can be called. Which runtimes
there are is `runtimes`' business.
"""

import os
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wattloom.errors import InputError, clean
from wattloom.local.decorator import RemoteFunction, options_with
from wattloom.local.options import Options
from wattloom.runtimes.function_file import Build, FunctionFile, named_digest
from wattloom.runtimes.loading import checked_options, runtime_class, runtime_of

if TYPE_CHECKING:
    from wattloom.local.executor import Executor

SAME_ARCH: Final = {"amd64": "x86_64", "x86-64": "x86_64", "arm64": "aarch64"}
ANY: Final = "any"
SEPARATORS: Final = "-_. "


class LoadedFunction(RemoteFunction[..., Any]):
    """A function in a file. Called plainly it runs in a worker all the same, and is waited for."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.remote(*args, **kwargs).result()

    def local(self, *args: Any, **kwargs: Any) -> Any:
        """It is not Python's: it cannot be called in this process."""
        raise TypeError(f"{self.name} is no Python: it runs in a worker (call it, or use .remote)")

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def __wattloom_name__(self) -> str:
        """What journals call it."""
        return self.name

    @property
    def file(self) -> FunctionFile:
        """What is sent of it."""
        found = self.__wattloom__[1]
        assert isinstance(found, FunctionFile)
        return found

    def options(self, *, executor: "Executor | None" = None, **changed: Any) -> "LoadedFunction":
        return LoadedFunction(self.file, options_with(self.__wattloom__[0], changed), executor or self.executor)

    def __repr__(self) -> str:
        return f"<wattloom function {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return LoadedFunction, (self.file, self.__wattloom__[0])


def load(
    file: "str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]]",
    *,
    name: str = "",
    runtime: str = "",
    runtime_options: Mapping[str, Any] | None = None,
    executor: "Executor | None" = None,
    **wishes: Any,
) -> LoadedFunction:
    """A function of another language: `load("f.js:handler")`, `load("f.wasm")`,
    `load("app.jar:org.example.F.handler")`, `load("./program")`; `.remote`, `.map` and `.options` as of
    `wattloom.function`, which has the other options too.

    Several builds of one function by architecture: `load({"x86_64": "f-x86", "aarch64": "f-arm", "any": "f.wasm"})`;
    which of them runs is decided with where it runs. `runtime`: instead of the one that the file's name says.
    `runtime_options`: what that runtime can be told. `name`: what it is called in journals. Arguments and results are
    JSON, or one argument that is bytes. Raises InputError."""
    builds = file if isinstance(file, Mapping) else {"": file}
    if not builds:
        raise InputError("load", "name at least one file")
    found = [_build(key, os.fspath(path), runtime, runtime_options or {}) for key, path in builds.items()]
    if len({build.variant for build in found}) != len(found):
        raise InputError("load", "two builds have the same name")
    function = FunctionFile(clean(name) or _name_of(found), tuple(found))
    return LoadedFunction(function, options_with(Options(), wishes), executor)


def _build(key: str, spec: str, runtime: str, options: Mapping[str, Any]) -> Build:
    """`key`: empty, an architecture, `any`, or NAME=ARCHITECTURE."""
    path, entry = split_spec(spec)
    named, _, arch = key.rpartition("=")
    arch = SAME_ARCH.get(arch, arch)
    if path.is_dir():
        raise InputError(spec, "is a folder")
    cls = runtime_class(runtime or runtime_of(path))
    digest = named_digest(path)
    for_these = cls.check(path, entry)
    if arch and arch != ANY and for_these and arch not in for_these:
        raise InputError(spec, f"is named as a build for {arch}, and is one for {' and '.join(for_these)}")
    archs = (arch,) if arch and arch != ANY else for_these
    known = cls.options.__struct_fields__
    own = {option: value for option, value in options.items() if option in known} if key else options
    return Build(
        cls.name, str(path.absolute()), digest, entry, named or arch or "default", archs, checked_options(cls, own)
    )


def split_spec(spec: str) -> tuple[Path, str]:
    """The file, and what in it; a colon may be part of a file's name."""
    if Path(spec).is_file():
        return Path(spec), ""
    path, colon, entry = spec.rpartition(":")
    return (Path(path), entry) if colon else (Path(spec), "")


def _name_of(builds: list[Build]) -> str:
    """The file and what in it; of several builds what their names have in common."""
    first = builds[0]
    if len(builds) == 1:
        return clean(f"{first.file}:{first.entry}" if first.entry else first.file)
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*(build.file for build in builds), strict=False))
    return clean("".join(letters[0] for letters in alike).rstrip(SEPARATORS) or first.file)
