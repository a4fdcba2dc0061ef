"""Node: functions that modules of JavaScript export, called in a warm process.

Owns how node is found and started; `node_runner.js` is the other end. Module state is kept from call to call.
"""

import shutil
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec

from wattloom.errors import InputError
from wattloom.runtimes import plain
from wattloom.runtimes.child import Child
from wattloom.runtimes.function_file import Build
from wattloom.runtimes.loading import options_of
from wattloom.runtimes.protocol import Outcome
from wattloom.runtimes.warm import WarmProcess

RUNNER: Final = str(Path(__file__).with_name("node_runner.js"))
MISSING: Final = "needs node 18 or newer, which is not on the PATH (Debian and Ubuntu: apt-get install nodejs)"


class NodeOptions(msgspec.Struct, frozen=True):
    """Of a function in JavaScript."""

    flags: list[str] = []
    """Of node itself, as `--max-old-space-size=256`; functions with the same flags share a process."""


class NodeRuntime:
    """One process for each set of flags."""

    name: ClassVar[str] = "node"
    suffixes: ClassVar[tuple[str, ...]] = (".js", ".mjs", ".cjs")
    options: ClassVar[type[msgspec.Struct]] = NodeOptions

    def __init__(self) -> None:
        self._warm: Final[dict[tuple[str, ...], WarmProcess]] = {}

    @staticmethod
    def check(path: Path, entry: str) -> tuple[str, ...]:
        if shutil.which("node") is None:
            raise InputError(str(path), MISSING)
        return ()

    def load(self, blob: bytes) -> tuple[WarmProcess, bytes]:
        build = msgspec.msgpack.decode(blob, type=Build)
        flags = tuple(options_of(build, NodeOptions).flags)
        warm = self._warm.setdefault(flags, WarmProcess(self.name, lambda: _start(flags)))
        return warm, warm.load({"path": build.path, "entry": build.entry, "digest": build.digest})

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


def _start(flags: tuple[str, ...]) -> Child:
    program = shutil.which("node")
    if program is None:
        raise FileNotFoundError(MISSING)
    return Child([program, *flags, RUNNER])
