"""The load of a GPU as a process: our own, or a command of the user's, at a given share, until we end it.

Owns the process and what it prints. It is tied to us, so that it dies with us, and sees only the device it is to load.
"""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import Final

from wattloom.errors import InputError
from wattloom.interpreter import own_environment, own_module
from wattloom.metering.devices import DeviceReading
from wattloom.profiling import tied
from wattloom.profiling.gpu_file import By

GRACE_S: Final = 5.0
BUILT_IN: Final = "built in"
MASKS: Final = {"nvidia": ("CUDA_VISIBLE_DEVICES",), "amd": ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")}
"""Which variables show a process one device only: the first names it, and within that it is number 0."""


def words_of(load: str, by: By, device: DeviceReading, share: int) -> list[str]:
    """The command for one share. InputError says what is wrong with it."""
    if load == BUILT_IN:
        return own_module("wattloom.profiling.gpu_load", str(share), by)
    places = {"{share}": str(share), "{device}": str(device.index), "{uuid}": device.uuid}
    return [_filled(word, places) for word in _split(load)]


def problem_of(load: str, kind: str) -> None:
    """Raises InputError if such a device cannot be loaded like this."""
    if load == BUILT_IN:
        if kind != "nvidia":
            raise InputError("load", f"there is no load of our own for GPUs of {kind}: give one with --load")
    elif "{share}" not in load:
        raise InputError("load", f"{load!r} has no {{share}}: how is it to know how much to do?")
    elif not _split(load):
        raise InputError("load", "is empty")


def _split(load: str) -> list[str]:
    try:
        return shlex.split(load)
    except ValueError as problem:
        raise InputError("load", f"{load!r} cannot be read as a command: {problem}") from problem


def _filled(word: str, places: dict[str, str]) -> str:
    for place, value in places.items():
        word = word.replace(place, value)
    return word


def _alone(device: DeviceReading, environ: dict[str, str]) -> dict[str, str]:
    """The surroundings of a load that is to see this device only."""
    masks = MASKS.get(device.kind, ())
    if not masks or not device.uuid.startswith("GPU-"):
        return environ
    return environ | {masks[0]: device.uuid} | dict.fromkeys(masks[1:], "0")


class GpuLoad:
    """One load that was started. `with` ends it in any case."""

    def __init__(self, words: Sequence[str], device: DeviceReading, *, speaks: bool = False) -> None:
        # Not a pipe: a load that says a lot must never wait for us.
        self._errors = TemporaryFile()  # noqa: SIM115 -- closed by `stop`
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", tied.__file__, str(os.getpid()), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_alone(device, own_environment() if speaks else dict(os.environ)),
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._out = self._process.stdout
        os.set_blocking(self._out.fileno(), False)
        self._rest = b""
        self.speaks = speaks
        """Whether it is known to say how much it does, as our own."""
        self.counts = False
        """Whether it ever said how much it did."""

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    @property
    def group(self) -> int:
        """The number of its process group."""
        return self._process.pid

    def work(self) -> float:
        """What it did since this was last asked: the sum of the numbers it has printed, a line each."""
        total = 0.0
        *lines, self._rest = (self._rest + self._read()).split(b"\n")
        for line in lines:
            with suppress(ValueError):
                total += float(line)
                self.counts = True
        return total

    def failure(self) -> str:
        """Why it ended by itself."""
        self._errors.seek(0)
        last = self._errors.read().decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        return f"the load ended with code {self._process.returncode}: {last[0]}"

    def _read(self) -> bytes:
        found = b""
        with suppress(BlockingIOError):
            while part := os.read(self._out.fileno(), 65536):
                found += part
        return found

    def stop(self) -> None:
        """End it and all its processes, by asking first."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, sign)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=GRACE_S)
                break
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # whatever its first process has left behind
        self._out.close()
        self._errors.close()

    def __enter__(self) -> "GpuLoad":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
