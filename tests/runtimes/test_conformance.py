"""Every runtime does what a worker counts on: Python, and all that bring functions in files."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.runtimes import python_samples

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


def files(spec: Callable[[str], str], without: frozenset[str] = frozenset()) -> Samples:
    """Functions in files, by the name of the sample."""

    def blob(name: str) -> bytes:
        (build,) = load(spec(name)).file.builds
        return msgspec.msgpack.encode(build)

    (build,) = load(spec("echo")).file.builds
    return Samples(runtime_class(build.runtime), blob, without)


def needs(program: str, package: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"needs {program} (Debian: {package})")


def node() -> Samples:
    needs("node", "nodejs")
    return files(lambda name: f"{HERE / 'samples.js'}:{name}")


@pytest.mark.parametrize("check", CHECKS, ids=check_name)
@pytest.mark.parametrize("samples", [python, node], ids=lambda each: each.__name__)
def test_a_runtime_does_what_a_worker_counts_on(samples: Callable[[], Samples], check: Check) -> None:
    check(samples())
