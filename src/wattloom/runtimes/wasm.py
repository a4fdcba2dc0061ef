"""WebAssembly: WASI commands, and functions that a module exports, by wasmtime in the worker itself.

Owns what a module may do: nothing but compute, print and read folders that were named, within fuel and memory. Modules
are compiled once and kept in the user's cache, by digest.
"""

import os
from contextlib import suppress
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import msgspec

from wattloom.errors import InputError
from wattloom.runtimes import plain
from wattloom.runtimes.cache import kept
from wattloom.runtimes.function_file import Build
from wattloom.runtimes.loading import options_of
from wattloom.runtimes.once import Kind, outcome, pass_on, result
from wattloom.runtimes.protocol import BYTES, JSON, Outcome
from wattloom.runtimes.raised import FunctionFailed, Raised

if TYPE_CHECKING:
    import wasmtime

MISSING: Final = 'needs wasmtime (pip install "wattloom[wasm]")'
START: Final = "_start"
INITIALIZE: Final = "_initialize"
ALLOC: Final = "wattloom_alloc"
MEMORY: Final = "memory"
MAGIC: Final = b"\x00asm"
READ_AT_ONCE: Final = 1 << 20
LOW: Final = (1 << 32) - 1


class WasmOptions(msgspec.Struct, frozen=True):
    """Of a module."""

    fuel: int = 0
    """Steps that a call may take; 0: as many as it likes."""
    memory: int = 0
    """Bytes that it may have; 0: as many as it likes."""
    result: Kind = ""
    """What it gives back is taken for; empty: what the arguments were."""
    folders: list[str] = []
    """That it may read, by these names."""
    args: list[str] = []
    """Words behind its name, before the entry."""


class WasmRuntime:
    """One engine for modules with fuel, one for those without."""

    name: ClassVar[str] = "wasm"
    suffixes: ClassVar[tuple[str, ...]] = (".wasm",)
    options: ClassVar[type[msgspec.Struct]] = WasmOptions

    def __init__(self) -> None:
        self._engines: Final[dict[bool, Any]] = {}

    @staticmethod
    def check(path: Path, entry: str) -> tuple[str, ...]:
        if find_spec("wasmtime") is None:
            raise InputError(str(path), MISSING)
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise InputError(str(path), "is no WebAssembly (text has to be made one first, by wat2wasm)")
        return ()

    def load(self, blob: bytes) -> "Command | Export":
        if find_spec("wasmtime") is None:
            raise FunctionFailed(Raised("RuntimeMissing", MISSING, runtime=self.name))
        build = msgspec.msgpack.decode(blob, type=Build)
        options: WasmOptions = options_of(build, WasmOptions)
        engine = self._engine(options.fuel > 0)
        module = _module(engine, build, options.fuel > 0)
        parts = Parts(engine, module, build, options)
        exports = [each.name for each in module.exports]
        if build.entry and build.entry in exports and build.entry != START:
            return Export(parts)
        if START in exports:
            return Command(parts)
        functions = _functions(module)
        if not build.entry and len(functions) == 1:
            return Export(parts._replace(build=msgspec.structs.replace(build, entry=functions[0])))
        there = f"it exports {', '.join(functions)}" if functions else "it exports no function"
        text = f"{build.file} has no {build.entry or START}; {there}"
        raise FunctionFailed(Raised("NoSuchExport", text, runtime=self.name))

    def _engine(self, fuel: bool) -> "wasmtime.Engine":
        if fuel not in self._engines:
            import wasmtime

            config = wasmtime.Config()
            config.consume_fuel = fuel
            self._engines[fuel] = wasmtime.Engine(config)
        found: wasmtime.Engine = self._engines[fuel]
        return found

    def call(self, function: Any, body: bytes, buffers: list[memoryview], content: str) -> Outcome:
        if content not in (JSON, BYTES):
            return plain.unsendable("WebAssembly takes JSON or bytes, not pickles: call it by wattloom.load")
        try:
            found: Outcome = function.call(plain.whole_of(body, buffers), content)
        except FunctionFailed as problem:
            return plain.failed(problem.told)
        return found

    def failed(self, problem: BaseException, content: str) -> Outcome:
        return plain.outcome_of(problem, self.name)

    def processes(self) -> list[int]:
        return []

    def close(self) -> None:
        """It has no processes."""


def _module(engine: "wasmtime.Engine", build: Build, fuel: bool) -> "wasmtime.Module":
    """From the cache, if there is one. Raises FunctionFailed."""
    import wasmtime

    made = blake2b(f"{build.digest} {version('wasmtime')} {fuel}".encode(), digest_size=16).hexdigest()
    try:
        with suppress(OSError, wasmtime.WasmtimeError):
            path = kept("wasm", made, lambda new: _compile(engine, build, new))
            return wasmtime.Module.deserialize_file(engine, str(path))
        return wasmtime.Module.from_file(engine, build.path)  # there is no cache, or it holds something else
    except wasmtime.WasmtimeError as problem:
        raise FunctionFailed(Raised("CompileError", str(problem), runtime=WasmRuntime.name)) from problem


def _compile(engine: "wasmtime.Engine", build: Build, path: Path) -> None:
    import wasmtime

    path.write_bytes(wasmtime.Module.from_file(engine, build.path).serialize())


def _functions(module: "wasmtime.Module") -> list[str]:
    import wasmtime

    own = (START, INITIALIZE, ALLOC)
    return [each.name for each in module.exports if isinstance(each.type, wasmtime.FuncType) and each.name not in own]


class Parts(NamedTuple):
    """What an instance is made of."""

    engine: "wasmtime.Engine"
    module: "wasmtime.Module"
    build: Build
    options: WasmOptions


class Streams:
    """Standard input, output and error of one call, in memory."""

    def __init__(self, body: bytes | memoryview) -> None:
        self._ends: Final = [os.memfd_create(name) for name in ("in", "out", "err")]
        left = memoryview(body)
        while left:
            left = left[os.write(self._ends[0], left) :]

    def path(self, position: int) -> str:
        return f"/proc/self/fd/{self._ends[position]}"

    def size(self, position: int) -> int:
        return os.fstat(self._ends[position]).st_size

    def read(self, position: int, since: int = 0) -> bytes:
        found = bytearray()
        while data := os.pread(self._ends[position], READ_AT_ONCE, since + len(found)):
            found += data
        return bytes(found)

    def close(self) -> None:
        for end in self._ends:
            os.close(end)


class Instance:
    """A module that runs, with what it prints."""

    def __init__(self, parts: "Parts", body: bytes | memoryview = b"") -> None:
        import wasmtime

        engine, module, build, options = parts
        self.streams: Final = Streams(body)
        self.store: Final = wasmtime.Store(engine)
        wasi = wasmtime.WasiConfig()
        wasi.argv = [build.file, *options.args, *filter(None, [build.entry])]
        wasi.env = list(os.environ.items())
        wasi.stdin_file = self.streams.path(0)
        wasi.stdout_file = self.streams.path(1)
        wasi.stderr_file = self.streams.path(2)
        for folder in options.folders:
            wasi.preopen_dir(folder, folder, fs_mutable=False)
        self.store.set_wasi(wasi)
        self.refuel(options)
        if options.memory:
            self.store.set_limits(memory_size=options.memory)
        linker = wasmtime.Linker(engine)
        linker.define_wasi()
        self.instance: Final = linker.instantiate(self.store, module)

    def refuel(self, options: WasmOptions) -> None:
        if options.fuel:
            self.store.set_fuel(options.fuel)

    def run(self, name: str, *args: Any) -> tuple[int, Any]:
        """Exit code and result. Raises FunctionFailed: it has trapped."""
        import wasmtime

        try:
            return 0, self.instance.exports(self.store)[name](self.store, *args)  # type: ignore[operator]
        except wasmtime.ExitTrap as end:
            return end.code, None
        except (wasmtime.Trap, wasmtime.WasmtimeError) as problem:
            raise FunctionFailed(_trap(problem)) from problem


def _trap(problem: Exception) -> Raised:
    text = str(getattr(problem, "message", "") or problem)
    reasons = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in reasons if "wasm trap" in line or "fuel" in line]
    last = (named or reasons or [""])[-1]
    return Raised("Trap", last.partition(": ")[2] if last[:1].isdigit() else last, text, WasmRuntime.name)


class Command:
    """A WASI command: a fresh instance for each call."""

    def __init__(self, parts: "Parts") -> None:
        self._parts: Final = parts

    def call(self, body: bytes | memoryview, content: str) -> Outcome:
        instance = _instance(self._parts, body)
        try:
            code, _ = instance.run(START)
            out, said = instance.streams.read(1), instance.streams.read(2)
        except FunctionFailed:
            pass_on(instance.streams.read(2))
            raise
        finally:
            instance.streams.close()
        pass_on(said)
        wanted = self._parts.options.result
        return outcome(WasmRuntime.name, code, out, said[-2000:].decode(errors="replace"), wanted, content)


class Export:
    """A function that a module exports: numbers, or texts and bytes in its memory. The instance is kept."""

    def __init__(self, parts: "Parts") -> None:
        self._parts: Final = parts
        self._name: Final = parts.build.entry
        types = {each.name: each.type for each in parts.module.exports}
        kind = types[self._name]
        self._takes: Final = [str(each) for each in getattr(kind, "params", [])]
        gives = [str(each) for each in getattr(kind, "results", [])]
        self._by_memory: Final = ALLOC in types and self._takes == ["i32", "i32"] and gives == ["i64"]
        self._instance: Instance | None = None
        self._begin()

    def _begin(self) -> Instance:
        if self._instance is None:
            self._instance = _instance(self._parts)
            if INITIALIZE in {each.name for each in self._parts.module.exports}:
                self._instance.run(INITIALIZE)
        return self._instance

    def call(self, body: bytes | memoryview, content: str) -> Outcome:
        instance = self._begin()
        instance.refuel(self._parts.options)
        printed = [instance.streams.size(1), instance.streams.size(2)]
        try:
            return self._in_memory(instance, body, content) if self._by_memory else self._numbers(instance, body)
        except FunctionFailed:
            self._instance = None  # it is in no state to go on
            raise
        finally:
            for position, before in enumerate(printed, 1):
                pass_on(instance.streams.read(position, before))
            if self._instance is None:
                instance.streams.close()

    def _numbers(self, instance: Instance, body: bytes | memoryview) -> Outcome:
        try:
            args = msgspec.json.decode(body, type=list[int | float])
            given = [_as(kind, value) for kind, value in zip(self._takes, args, strict=True)]
        except (msgspec.DecodeError, ValueError) as problem:
            takes = ", ".join(self._takes) or "nothing"
            text = f"{self._name} takes numbers ({takes}): {problem}"
            raise FunctionFailed(Raised("WrongArguments", text, runtime=WasmRuntime.name)) from problem
        code, value = instance.run(self._name, *given)
        if code:
            return outcome(WasmRuntime.name, code, b"", "", "", JSON)
        try:
            return plain.value(plain.pack_plain((value,), {})[0].body[1:-1], JSON)
        except TypeError as problem:
            return plain.unsendable(f"the result cannot be sent back: {problem}")

    def _in_memory(self, instance: Instance, body: bytes | memoryview, content: str) -> Outcome:
        import wasmtime

        memory = instance.instance.exports(instance.store)[MEMORY]
        assert isinstance(memory, wasmtime.Memory)
        _, at = instance.run(ALLOC, len(body))
        memory.write(instance.store, bytes(body), at & LOW)
        code, packed = instance.run(self._name, at, len(body))
        if code:
            return outcome(WasmRuntime.name, code, b"", "", "", content)
        start, length = (packed >> 32) & LOW, packed & LOW
        out = bytes(memory.read(instance.store, start, start + length))
        return result(out, self._parts.options.result or ("bytes" if content == BYTES else "json"))


def _as(kind: str, value: float) -> float:
    """A number as the module takes it. Raises ValueError."""
    if kind in ("f32", "f64"):
        return float(value)
    if value != int(value):
        raise ValueError(f"{value} is no whole number")
    return int(value)


def _instance(parts: "Parts", body: bytes | memoryview = b"") -> Instance:
    import wasmtime

    try:
        return Instance(parts, body)
    except (wasmtime.WasmtimeError, wasmtime.Trap) as problem:
        raise FunctionFailed(_trap(problem)) from problem
