"""Java: methods of classes in source files, class files and archives, called in a warm virtual machine.

Owns how the virtual machine is found and started, and what is compiled; `WattloomRunner.java` is the other end, and is
compiled once, into the user's cache. Static fields and one instance of each class are kept from call to call.
"""

import os
import re
import shutil
import subprocess
from glob import glob
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec

from wattloom.errors import InputError
from wattloom.runtimes import plain
from wattloom.runtimes.cache import kept
from wattloom.runtimes.child import Child
from wattloom.runtimes.function_file import Build, digest_of
from wattloom.runtimes.loading import options_of
from wattloom.runtimes.protocol import Outcome
from wattloom.runtimes.raised import FunctionFailed, Raised
from wattloom.runtimes.warm import WarmProcess

RUNNER: Final = Path(__file__).with_name("WattloomRunner.java")
MISSING: Final = (
    "needs a JDK 17 or newer, with java and javac on the PATH "
    "(Debian and Ubuntu: apt-get install openjdk-17-jdk-headless)"
)
PACKAGE: Final = re.compile(r"^\s*package\s+([\w.]+)\s*;", re.MULTILINE)
LATE_S: Final = 120.0


class JavaOptions(msgspec.Struct, frozen=True):
    """Of a function in Java."""

    classpath: list[str] = []
    """More folders and archives, as `lib/*.jar`; relative to the folder that the file is in."""
    flags: list[str] = []
    """Of the virtual machine, as `-Xmx256m`; functions with the same flags share one."""


class JavaRuntime:
    """One virtual machine for each set of flags."""

    name: ClassVar[str] = "java"
    suffixes: ClassVar[tuple[str, ...]] = (".java", ".class", ".jar")
    options: ClassVar[type[msgspec.Struct]] = JavaOptions

    def __init__(self) -> None:
        self._warm: Final[dict[tuple[str, ...], WarmProcess]] = {}

    @staticmethod
    def check(path: Path, entry: str) -> tuple[str, ...]:
        if shutil.which("java") is None or shutil.which("javac") is None:
            raise InputError(str(path), MISSING)
        return ()

    def load(self, blob: bytes) -> tuple[WarmProcess, bytes]:
        build = msgspec.msgpack.decode(blob, type=Build)
        options: JavaOptions = options_of(build, JavaOptions)
        flags = tuple(options.flags)
        more = _places(build, options)
        root, name = _where(build, more)
        warm = self._warm.setdefault(flags, WarmProcess(self.name, lambda: _start(flags)))
        told = {"path": build.path, "entry": _entry(build, name), "class": name, "classpath": [root, *more]}
        return warm, warm.load(told | {"digest": build.digest})

    def call(self, function: Any, body: bytes, buffers: list[memoryview], content: str) -> Outcome:
        warm, key = function
        found: Outcome = warm.call(key, body, buffers, content)
        return found

    def failed(self, problem: BaseException, content: str) -> Outcome:
        return plain.outcome_of(problem, self.name)

    def processes(self) -> list[int]:
        return [pid for warm in self._warm.values() for pid in warm.processes()]

    def close(self) -> None:
        for warm in self._warm.values():
            warm.close()


# -- classes -----------------------------------------------------------------------------------------------------------


def _places(build: Build, options: JavaOptions) -> list[str]:
    """The class path, with stars opened. Raises FunctionFailed: something in it is not there."""
    folder, found = Path(build.path).parent, list[str]()
    for place in options.classpath:
        there = sorted(glob(os.path.join(folder, place)))
        if not there:
            text = f"runtime_options.classpath: nothing is at {folder / place}"
            raise FunctionFailed(Raised("FileMissing", text, runtime=JavaRuntime.name))
        found += there
    return found


def _where(build: Build, more: list[str]) -> tuple[str, str]:
    """The folder or archive that holds its classes, and the class that the file is; empty: an archive, which has
    many."""
    path = Path(build.path)
    if path.suffix == ".jar":
        return build.path, ""
    if path.suffix == ".class":
        name = _class_name(path)
        return str(path.parents[name.count(".")]), name
    package = PACKAGE.search(path.read_text(errors="replace"))
    name = f"{package[1]}.{path.stem}" if package else path.stem
    return _compiled(build, more), name


def _entry(build: Build, name: str) -> str:
    """A method alone, or another class of the same package, in full."""
    package = name.rpartition(".")[0]
    if not name or "." not in build.entry or not package or build.entry.startswith(f"{package}."):
        return build.entry
    return f"{package}.{build.entry}"


def _class_name(path: Path) -> str:
    """Of a class file: its folders say its package, as far as its bytes name them."""
    data = path.read_bytes()
    name = path.stem
    for folder in path.parents:
        if not folder.name or f"{folder.name}/{name.replace('.', '/')}".encode() not in data:
            break
        name = f"{folder.name}.{name}"
    return name


def _compiled(build: Build, more: list[str]) -> str:
    """A source file as classes, in the cache. Raises FunctionFailed."""
    beside = sorted(str(place) for place in Path(build.path).parent.glob("*.java"))  # javac takes what is used of them
    places = [f"{place} {_version(place)}" for place in (*beside, *more)]
    words = [build.digest, build.file, *places, _version_of_java()]
    made = blake2b("\n".join(words).encode(), digest_size=16).hexdigest()
    return str(_kept(made, Path(build.path), more))


def _version(place: str) -> str:
    found = os.stat(place)
    return f"{found.st_mtime_ns} {found.st_size}"


def _version_of_java() -> str:
    return os.path.realpath(shutil.which("javac") or "")


def _kept(made: str, source: Path, more: list[str]) -> Path:
    try:
        return kept("java", made, lambda new: _compile(source, more, new))
    except OSError as problem:
        text = f"{source.name} cannot be compiled: {problem}"
        raise FunctionFailed(Raised("CompileError", text, runtime=JavaRuntime.name)) from problem


def _compile(source: Path, more: list[str], folder: Path) -> None:
    program = shutil.which("javac")
    if program is None:
        raise FunctionFailed(Raised("RuntimeMissing", MISSING, runtime=JavaRuntime.name))
    places = os.pathsep.join([str(source.parent), *more])
    command = [program, "-encoding", "UTF-8", "-implicit:class", "-d", str(folder), "-cp", places, str(source)]
    ran = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, timeout=LATE_S)
    if ran.returncode:
        text = ran.stderr or ran.stdout
        first = next((line for line in text.splitlines() if "error:" in line), text[:500])
        raise FunctionFailed(Raised("CompileError", first.strip(), text, JavaRuntime.name))


# -- the virtual machine -----------------------------------------------------------------------------------------------


def _start(flags: tuple[str, ...]) -> Child:
    program = shutil.which("java")
    if program is None:
        raise FileNotFoundError(MISSING)
    made = blake2b(f"{digest_of(RUNNER)} {_version_of_java()}".encode(), digest_size=16).hexdigest()
    runner = _kept(made, RUNNER, [])
    return Child([program, *flags, "-cp", str(runner), RUNNER.stem])
