"""Native programs: one process for each call, or one that stays warm and speaks frames (`wattloom.h`).

Owns which architecture a program is for, and who runs one that is for another: qemu-user, on nodes that are shown as
machines of that kind. Such a run says that the build works, and nothing of its speed or joules.
"""

import os
import platform
import shutil
import struct
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec

from wattloom.errors import InputError
from wattloom.runtimes import plain
from wattloom.runtimes.child import Child
from wattloom.runtimes.function_file import Build
from wattloom.runtimes.loading import options_of
from wattloom.runtimes.once import Kind, outcome, result, run_once
from wattloom.runtimes.protocol import BYTES, JSON, VALUE, Outcome
from wattloom.runtimes.raised import FunctionFailed, Raised
from wattloom.runtimes.warm import WarmProcess

ELF: Final = b"\x7fELF"
MACHINES: Final = {
    3: "i386", 21: "ppc64le", 22: "s390x", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 258: "loongarch64",
}  # fmt: skip
"""As the head of a program numbers them."""


class NativeOptions(msgspec.Struct, frozen=True):
    """Of a program."""

    warm: bool = False
    """It stays between calls and speaks frames, as with `wattloom.h`."""
    result: Kind = ""
    """What it writes is taken for, where each call is a process."""
    args: list[str] = []
    """Words behind its name, before the entry."""


class NativeRuntime:
    """Programs of this machine, and those that qemu-user runs here."""

    name: ClassVar[str] = "native"
    suffixes: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[type[msgspec.Struct]] = NativeOptions

    def __init__(self) -> None:
        self._warm: Final[list[WarmProcess]] = []

    @staticmethod
    def check(path: Path, entry: str) -> tuple[str, ...]:
        if not os.access(path, os.X_OK):
            hint = f"chmod +x {path}" if path.suffix == "" else "no runtime knows files of this kind"
            raise InputError(str(path), f"may not be executed ({hint})")
        arch = arch_of(path)
        return (arch,) if arch else ()

    def load(self, blob: bytes) -> "Program | WarmProgram":
        build = msgspec.msgpack.decode(blob, type=Build)
        options = options_of(build, NativeOptions)
        command = [*_emulator(build), build.path, *options.args, *filter(None, [build.entry])]
        if not options.warm:
            return Program(command, options.result)
        warm = WarmProcess(self.name, lambda: Child(command))
        self._warm.append(warm)
        return WarmProgram(warm, warm.load({"path": build.path, "entry": build.entry}))

    def call(self, function: Any, body: bytes, buffers: list[memoryview], content: str) -> Outcome:
        if content not in (JSON, BYTES):
            return plain.unsendable("a program takes JSON or bytes, not pickles: call it by wattloom.load")
        found: Outcome = function.call(body, buffers, content)
        return found

    def failed(self, problem: BaseException, content: str) -> Outcome:
        return plain.outcome_of(problem, self.name)

    def processes(self) -> list[int]:
        return [pid for warm in self._warm for pid in warm.processes()]

    def close(self) -> None:
        for warm in self._warm:
            warm.close()


class Program:
    """Started for each call."""

    def __init__(self, command: list[str], result: Kind) -> None:
        self._command: Final = command
        self._result: Final = result

    def call(self, body: bytes, buffers: list[memoryview], content: str) -> Outcome:
        try:
            code, out, said = run_once(self._command, plain.whole_of(body, buffers))
        except OSError as problem:
            text = f"{self._command[0]} cannot be run: {problem.strerror or problem}"
            return plain.failed(Raised("CannotStart", text, runtime=NativeRuntime.name))
        return outcome(NativeRuntime.name, code, out, said, self._result, content)


class WarmProgram:
    """Kept between calls."""

    def __init__(self, warm: WarmProcess, key: bytes) -> None:
        self._warm: Final = warm
        self._key: Final = key

    def call(self, body: bytes, buffers: list[memoryview], content: str) -> Outcome:
        found = self._warm.call(self._key, body, buffers, content)
        if found.status != VALUE or found.content != JSON:
            return found
        return result(bytes(plain.whole_of(found.packed.body, found.packed.raw)), "json")  # it may be none


def arch_of(path: Path) -> str:
    """The architecture a program is for; empty: a script, which is for any, or one that we have no name for."""
    with path.open("rb") as file:
        head = file.read(20)
    if len(head) < 20 or not head.startswith(ELF):
        return ""
    (machine,) = struct.unpack_from("<H" if head[5] == 1 else ">H", head, 18)
    return MACHINES.get(machine, "")


def _emulator(build: Build) -> list[str]:
    """The words before a program of another architecture. Raises FunctionFailed if there is nobody to run it."""
    arch, here = arch_of(Path(build.path)), platform.machine()
    if not arch or arch == here or (arch, here) == ("i386", "x86_64"):
        return []
    for name in (f"qemu-{arch}-static", f"qemu-{arch}"):
        found = shutil.which(name)
        if found is not None:
            return [found]
    text = (
        f"{build.file} is a program for {arch}, and this machine is {here}: to run it here needs qemu-{arch}-static "
        "(Debian and Ubuntu: apt-get install qemu-user-static)"
    )
    raise FunctionFailed(Raised("RuntimeMissing", text, runtime=NativeRuntime.name))
