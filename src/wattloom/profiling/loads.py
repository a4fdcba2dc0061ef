"""Loads that run: stress-ng or our own loops on given CPUs, for a time, and what they did in it.

Owns the processes. A load is a process group of its own that dies with us, however we die, and is bounded in time.
"""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from platform import python_version
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from wattloom.errors import InputError
from wattloom.interpreter import own_environment, own_module
from wattloom.profiling import own_load, tied
from wattloom.profiling.stressors import Stressor

STRESS_NG: Final = "stress-ng"
STARTING_S: Final = 0.6
"""How long stress-ng may take to start on a busy machine."""
GRACE_S: Final = 5.0
"""How long a load may take to end by itself."""
MISSING: Final = (
    "stress-ng is not installed: sudo apt install stress-ng, sudo dnf install stress-ng or brew install stress-ng; "
    "or use our own loops with --builtin"
)
_RATE: Final = re.compile(r"^\s+bogo-ops-per-second-real-time:\s*([0-9.]+)", re.MULTILINE)


class Work(msgspec.Struct, frozen=True):
    """What a load has done."""

    cpu_s: float
    """CPU seconds, of all its processes."""
    ops_per_s: float | None
    problem: str = ""


def tool_used(builtin: bool) -> str:
    """What makes the load, with versions: `stress-ng 0.15.06; Python 3.11.2, numpy 2.1.0`. Raises if it is missing."""
    from importlib.metadata import version

    own = f"Python {python_version()}, numpy {version('numpy')}"
    if builtin:
        return own
    if shutil.which(STRESS_NG) is None:
        raise InputError("stressors", MISSING)
    said = subprocess.run([STRESS_NG, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"version (\d+(?:\.\d+)+)", said)
    return f"{STRESS_NG} {found[1] if found else 'of unknown version'}; {own}"


class Load:
    """One load that was started. `with` ends it in any case."""

    def __init__(self, stressor: Stressor, cpus: Sequence[int], seconds: float, builtin: bool = False) -> None:
        self._own = builtin or not stressor.words
        self._folder = TemporaryDirectory(prefix="wattloom-profile-", ignore_cleanup_errors=True)
        self._result, self._begun = (Path(self._folder.name) / name for name in ("result", "begun"))
        self._workers = len(cpus)
        self._cpu_before = _children_s()
        # stress-ng counts whole seconds, from before its workers are there.
        self.seconds = seconds if self._own else float(ceil(seconds + STARTING_S))
        """How long it will run, from when it is at work."""
        command = (_own if self._own else _stress_ng)(stressor, cpus, self.seconds, self._result)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", tied.__file__, str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=self._folder.name,
            env=own_environment() | own_load.ONE_THREAD,
            start_new_session=True,
        )

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    @property
    def at_work(self) -> bool:
        """Whether all its CPUs are loaded: our own loops say so, stress-ng has a process for each."""
        if self._own:
            return self._begun.exists()
        try:
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        except OSError:  # a kernel that does not list children, or a load that is over
            return True
        return len(children) >= self._workers

    def certain_until(self, started: float, at_work: float) -> float:
        """Until when it loads its CPUs for sure, if it was started and at work not before these times."""
        # stress-ng counts its time from its own start, our loops from theirs.
        return (at_work if self._own else started) + self.seconds

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> "Load":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def finish(self) -> Work:
        """Wait for its end, which is near, and say what it did."""
        try:
            _, said = self._process.communicate(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            self.stop()
            return Work(
                _children_s() - self._cpu_before, None, f"the load did not end within {GRACE_S:g} s of its time"
            )
        cpu_s = _children_s() - self._cpu_before
        if self._process.returncode != 0:
            last = said.decode(errors="replace").strip().splitlines()[-1:] or ["nothing said"]
            return Work(cpu_s, None, f"the load failed with code {self._process.returncode}: {last[0]}")
        rate = self._rate()
        return Work(cpu_s, rate, "" if rate is not None else "the load did not say how much it did")

    def stop(self) -> None:
        """End it and all its processes, by asking first."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, sign)
            with suppress(subprocess.TimeoutExpired):
                self._process.communicate(timeout=GRACE_S)
                break
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # whatever its first process has left behind
        self._folder.cleanup()

    def _rate(self) -> float | None:
        try:
            said = self._result.read_text()
        except OSError:
            return None
        if self._own:
            return float(msgspec.json.decode(said)["ops_per_s"])
        rates = _RATE.findall(said)
        return sum(map(float, rates)) if rates else None


def _stress_ng(stressor: Stressor, cpus: Sequence[int], seconds: float, result: Path) -> list[str]:
    words = [word.format(n=len(cpus)) for word in stressor.words]
    pinned = ["--taskset", ",".join(map(str, cpus))]
    return [STRESS_NG, *words, *pinned, "--timeout", f"{seconds:.0f}", "--metrics", "--yaml", str(result)]


def _own(stressor: Stressor, cpus: Sequence[int], seconds: float, result: Path) -> list[str]:
    words = (stressor.own, ",".join(map(str, cpus)), str(seconds), str(result), str(result.with_name("begun")))
    return own_module("wattloom.profiling.own_load", *words)


def _children_s() -> float:
    """CPU seconds of all children that were waited for, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
