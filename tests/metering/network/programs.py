"""Real programs for tests: found or skipped loudly, started in a folder of their own, ended by their id."""

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest


def tool(name: str, package: str, *places: str) -> str:
    """Where a program is. Skips the test if it is nowhere."""
    found = shutil.which(name) or next(
        (str(Path(place) / name) for place in places if (Path(place) / name).exists()), ""
    )
    if not found:
        pytest.skip(f"NOT TRIED: the program {name} is missing; get it with: sudo apt install {package}")
    return found


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def running(
    command: list[str], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=log.parent
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def short_folder() -> Iterator[Path]:
    """Unix sockets have short paths, pytest's folders have long ones."""
    with tempfile.TemporaryDirectory(prefix="wl", dir="/tmp") as folder:
        yield Path(folder)
