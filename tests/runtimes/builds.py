"""The C samples, built for this machine, for another architecture and for WebAssembly; once for each run of pytest."""

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from wattloom import runtimes

SOURCE = Path(__file__).parent / "samples" / "samples.c"


def needs(program: str, package: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"needs {program} (Debian: {package})")


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="wattloom-samples-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _built(name: str, *command: str) -> Path:
    path = _folder() / name
    subprocess.run([*command, "-O1", "-I", runtimes.include(), "-o", str(path), str(SOURCE)], check=True)
    return path


def native() -> Path:
    needs("gcc", "gcc")
    return _built("samples-x86", "gcc", "-Wall", "-Werror")


def aarch64() -> Path:
    needs("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross")
    needs("qemu-aarch64-static", "qemu-user-static")
    return _built("samples-arm", "aarch64-linux-gnu-gcc", "-static")


def wasm() -> Path:
    needs("clang", "clang lld wasi-libc libclang-rt-14-dev-wasm32")
    if not os.path.isdir("/usr/include/wasm32-wasi"):
        pytest.skip("needs wasi-libc (Debian: wasi-libc libclang-rt-14-dev-wasm32 lld)")
    pytest.importorskip("wasmtime")
    return _built("samples.wasm", "clang", "--target=wasm32-wasi", "--sysroot=/usr")
