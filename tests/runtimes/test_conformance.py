"""Every runtime does what a worker counts on: Python, and all that bring functions in files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.runtimes import builds, python_samples
from tests.runtimes.builds import needs

from wattloom.local.loading import load
from wattloom.runtimes.loading import runtime_class
from wattloom.runtimes.packing import pack
from wattloom.runtimes.python import PythonRuntime
from wattloom.testing.runtime_conformance import CHECKS, Check, Samples, check_name

HERE = Path(__file__).parent / "samples"


def python() -> Samples:
    """Its functions run in this process: they cannot end it."""

    def blob(name: str) -> bytes:
        return pack(getattr(python_samples, name)).body if name != "nowhere" else b"\x80\x05cnowhere\nnowhere\n."

    return Samples(PythonRuntime, blob, frozenset({"end", "die"}))


def files(
    spec: Callable[[str], str], without: frozenset[str] = frozenset(), options: dict[str, Any] | None = None
) -> Samples:
    """Functions in files, by the name of the sample."""

    def blob(name: str) -> bytes:
        (build,) = load(spec(name), runtime_options=options).file.builds
        return msgspec.msgpack.encode(build)

    (build,) = load(spec("echo"), runtime_options=options).file.builds
    return Samples(runtime_class(build.runtime), blob, without)


def node() -> Samples:
    needs("node", "nodejs")
    return files(lambda name: f"{HERE / 'samples.js'}:{name}")


def java() -> Samples:
    needs("javac", "openjdk-17-jdk-headless")
    return files(lambda name: f"{HERE / 'Samples.java'}:{name}")


def native() -> Samples:
    """One process for each call: it counts nothing."""
    program = builds.native()
    return files(lambda name: f"{program}:{name}", frozenset({"count"}))


def native_warm() -> Samples:
    program = builds.native()
    return files(lambda name: f"{program}:{name}", options={"warm": True})


def native_of_another_architecture() -> Samples:
    program = builds.aarch64()
    return files(lambda name: f"{program}:{name}", frozenset({"count"}))


def wasm() -> Samples:
    """A fresh instance for each call, inside the worker."""
    program = builds.wasm()
    return files(lambda name: f"{program}:{name}", frozenset({"count", "die"}))


RUNTIMES = [python, node, java, native, native_warm, native_of_another_architecture, wasm]


@pytest.mark.parametrize("check", CHECKS, ids=check_name)
@pytest.mark.parametrize("samples", RUNTIMES, ids=lambda each: each.__name__)
def test_a_runtime_does_what_a_worker_counts_on(samples: Callable[[], Samples], check: Check) -> None:
    check(samples())
