"""The runtime of a worker that runs everything: Python itself, and others when a function of theirs first comes.

Owns the choice by what the function says of itself. One instance of each runtime, kept as long as the worker.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from wattloom.runtimes import plain
from wattloom.runtimes.function_file import Build, Stamp, check_unchanged, from_blob, is_function_file, stamp_of
from wattloom.runtimes.protocol import PICKLE, Outcome, Runtime
from wattloom.runtimes.python import PythonRuntime
from wattloom.runtimes.raised import FunctionFailed


class InAnotherRuntime:
    """A function that is not Python's, as its runtime has it."""

    __slots__ = ("build", "function", "runtime", "seen")

    def __init__(self, build: Build, runtime: Runtime, function: Any, seen: Stamp) -> None:
        self.build: Final = build
        self.runtime: Final = runtime
        self.function: Final = function
        self.seen = seen

    def check_unchanged(self) -> None:
        """A worker that is warm has the file as it was. Raises FunctionFailed if it is another now."""
        now = stamp_of(self.build)
        if now != self.seen:
            check_unchanged(self.build)
            self.seen = now


class Runtimes:
    """All of them, as one."""

    def __init__(self) -> None:
        self._python: Final = PythonRuntime()
        self._others: Final[dict[str, Runtime]] = {}

    def load(self, blob: bytes) -> Any:
        if not is_function_file(blob):
            return self._python.load(blob)
        (build,) = from_blob(blob).builds
        seen = stamp_of(build)
        check_unchanged(build)
        runtime = self._runtime(build.runtime)
        return InAnotherRuntime(build, runtime, runtime.load(msgspec.msgpack.encode(build)), seen)

    def _runtime(self, name: str) -> Runtime:
        if name not in self._others:
            from wattloom.runtimes.loading import runtime_class

            self._others[name] = runtime_class(name)()
        return self._others[name]

    def call(self, function: Any, body: bytes, buffers: list[memoryview], content: str) -> Outcome:
        if isinstance(function, InAnotherRuntime):
            try:
                function.check_unchanged()
            except FunctionFailed as problem:
                return self.failed(problem, content)
            return function.runtime.call(function.function, body, buffers, content)
        return self._python.call(function, body, buffers, content)

    def failed(self, problem: BaseException, content: str) -> Outcome:
        if isinstance(problem, FunctionFailed) and content != PICKLE:
            return plain.failed(problem.told)
        return self._python.failed(problem, content)

    def processes(self) -> Sequence[int]:
        return [pid for runtime in self._others.values() for pid in runtime.processes()]

    def close(self) -> None:
        for runtime in self._others.values():
            runtime.close()
