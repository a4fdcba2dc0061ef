"""One call of `wattloom` in a child of this process: everything is imported already, nothing leaks into the next.

Owns limits of time, processor time and memory, and what a call left behind: exit code, output, how long it took.
"""

import atexit
import io
import os
import resource
import select
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.fuzz import values
from tests.fuzz.cases import Case

CPU_S: Final = 20
WALL_S: Final = 90.0
MEMORY: Final = 4 << 30
FILE: Final = 256 << 20
SERVES_S: Final = 2.5
"""After so long a command that goes on until Ctrl-C gets one."""
SERVES: Final = (
    "top", "exporter", "meter export", "meter read", "kubernetes scheduler", "kubernetes extender",
    "validate attribution", "demo", "profile cpu", "profile gpu", "measure", "run",
    "workload run",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call."""

    code: int
    """Below 0: the signal that ended it."""
    out: str
    err: str
    seconds: float
    hung: bool = False
    interrupted: bool = False


def call(case: Case, seeds: Path, folder: Path) -> Outcome:
    """Run it in a folder of its own, which is made for it."""
    prepare(case, seeds, folder)
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _child(case, folder)
    code, hung, interrupted = _wait(child, case.command in SERVES)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # what it may have left behind
    texts = [(folder / name).read_bytes().decode("utf-8", "replace") for name in (".out", ".err")]
    return Outcome(code, texts[0], texts[1], time.monotonic() - began, hung, interrupted)


def prepare(case: Case, seeds: Path, folder: Path) -> None:
    """The files of the seeds, the case's own made wrong."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(seeds, folder, ignore=shutil.ignore_patterns("state", ".*"))
    values.furnish(folder)
    if case.file:
        (folder / case.file).write_bytes(case.content((seeds / case.file).read_bytes()))


def environment(case: Case, folder: Path) -> dict[str, str]:
    """What the command sees: nothing of whoever runs the fuzzer."""
    found = {name: os.environ[name] for name in ("PATH", "VIRTUAL_ENV") if name in os.environ}
    found |= {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "TERM": "dumb", "WATTLOOM_TRACEBACK": "1"}
    found |= {"COLUMNS": case.columns} if case.columns else {}
    return found | dict(case.environment)


def _child(case: Case, folder: Path) -> None:
    """Never returns."""
    code = 99
    try:
        os.setsid()
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment(case, folder))
        _streams(case.encoding)
        for limit, most in ((resource.RLIMIT_CPU, CPU_S), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, FILE)):
            resource.setrlimit(limit, (most, most + (limit == resource.RLIMIT_CPU)))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        atexit._clear()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = ["wattloom", *case.words]
        code = _main()
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with suppress(BaseException):
            sys.stderr.flush()
        os._exit(code & 0xFF)


def _main() -> int:
    from wattloom.cli.main import main

    try:
        main()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
            return 1
        return ended.code or 0
    return 0


def _streams(encoding: str) -> None:
    """As Python opens them at its start."""
    for number, name in ((0, os.devnull), (1, ".out"), (2, ".err")):
        opened = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, number)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, "rb", closefd=False), encoding)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "wb", closefd=False), encoding, "strict", write_through=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "wb", closefd=False), encoding, "backslashreplace", write_through=True)
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr  # type: ignore[misc]


def _wait(child: int, serves: bool) -> tuple[int, bool, bool]:
    """Exit code, whether it hung, whether it was interrupted."""
    handle = os.pidfd_open(child)
    try:
        interrupted = serves and not select.select([handle], [], [], SERVES_S)[0]
        if interrupted:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGINT)
        hung = not select.select([handle], [], [], WALL_S)[0]
        if hung:
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    finally:
        os.close(handle)
    code = os.waitstatus_to_exitcode(status)
    return code, hung or code in (-signal.SIGXCPU, -signal.SIGKILL), interrupted
