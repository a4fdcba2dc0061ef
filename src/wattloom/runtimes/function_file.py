"""Functions by file: which runtime runs which build, and how that is written down.

Owns the record that is sent to workers and kept in journals in place of a pickle: paths and digests, no code. A file
that has changed since is refused by whoever loads it.
"""

import os
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec

from wattloom.errors import InputError
from wattloom.runtimes.raised import FunctionFailed, Raised
from wattloom.workload.function import Variant

MARK: Final = b"wattloom-function-file\n"
"""How a function begins that is no pickle."""
READ_AT_ONCE: Final = 1 << 20


class Build(msgspec.Struct, frozen=True, omit_defaults=True):
    """One build of a function, in one file."""

    runtime: str
    path: str
    """Absolute."""
    digest: str
    entry: str = ""
    """What in it is called, as its runtime understands it; empty: what is usual there."""
    variant: str = "default"
    arch: tuple[str, ...] = ()
    """Architectures it runs on; empty: any."""
    options: dict[str, Any] = {}
    """Of the runtime."""

    @property
    def file(self) -> str:
        return os.path.basename(self.path)


class FunctionFile(msgspec.Struct, frozen=True):
    """A function of another language, in one file or in several builds."""

    name: str
    builds: tuple[Build, ...]

    @property
    def blob(self) -> bytes:
        """As it is sent and kept."""
        return MARK + msgspec.msgpack.encode(self)

    @property
    def variants(self) -> tuple[Variant, ...]:
        return tuple(Variant(build.variant, build.arch) for build in self.builds)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.name} is a function in a file: it runs in workers only (wattloom.load)")


def is_function_file(blob: bytes) -> bool:
    return blob.startswith(MARK)


def from_blob(blob: bytes) -> FunctionFile:
    return msgspec.msgpack.decode(blob[len(MARK) :], type=FunctionFile)


def build_of(blob: bytes, variant: str) -> bytes:
    """The same with the one build that was decided on; a pickle is its own only build."""
    if not is_function_file(blob):
        return blob
    function = from_blob(blob)
    chosen = [build for build in function.builds if build.variant == variant] or [function.builds[0]]
    return FunctionFile(function.name, tuple(chosen)).blob


# -- files -------------------------------------------------------------------------------------------------------------


def digest_of(path: Path) -> str:
    """Of a file's bytes. Raises OSError."""
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        while data := file.read(READ_AT_ONCE):
            digest.update(data)
    return digest.hexdigest()


def named_digest(path: Path) -> str:
    """The same for a file that a user has named. Raises InputError."""
    try:
        return digest_of(path)
    except OSError as problem:
        raise InputError(str(path), f"cannot be read: {problem.strerror or problem}") from problem


Stamp = tuple[int, int, int] | None
"""A file's number, size and time of change; None: it cannot be seen."""


def stamp_of(build: Build) -> Stamp:
    """Cheap enough to look at before every call."""
    try:
        found = os.stat(build.path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def check_unchanged(build: Build) -> None:
    """In the worker: it is the file that was meant. Raises FunctionFailed."""
    try:
        now = digest_of(Path(build.path))
    except OSError as problem:
        text = f"{build.path} cannot be read: {problem.strerror or problem}"
        raise FunctionFailed(Raised("FileMissing", text, runtime=build.runtime)) from problem
    if now != build.digest:
        text = f"{build.path} has changed since the call was made: load it again, and call that"
        raise FunctionFailed(Raised("FileChanged", text, runtime=build.runtime))
