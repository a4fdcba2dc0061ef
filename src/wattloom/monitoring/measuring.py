"""Joules of a block of code or of a command, measured from beside it.

Owns the clock, the thread that reads the meter meanwhile, and the command's process. The arithmetic is `measurement`'s.
"""

import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread, current_thread, main_thread
from time import monotonic, process_time, sleep
from types import FrameType, TracebackType
from typing import IO, Any, Final

import msgspec

from wattloom.energy.forecast import Unknown
from wattloom.energy.measured import Energy
from wattloom.errors import InputError
from wattloom.machines.this_machine import this_machine
from wattloom.metering.choosing import choose_meter
from wattloom.metering.patient_meter import PatientMeter
from wattloom.metering.proc import children_seconds, family_seconds
from wattloom.metering.protocol import Meter, period_s
from wattloom.monitoring.measurement import BlockAccount, Measured

READ_EVERY_S: Final = 0.5
SLOWEST_S: Final = 10.0
"""So long a slow source is given to show what came after the end."""
HANGS_S: Final = 5.0
"""A meter that has not answered by then is not waited for: the block or the command must come to its end."""
NOT_FOUND: Final = 127
NOT_ALLOWED: Final = 126


class Measurement:
    """A block of code: `with wattloom.measure() as measured: ...`, then `measured.joules`."""

    def __init__(self, meter: "str | Meter" = "auto", *, cpu: Callable[[], float] | None = None) -> None:
        self._wanted = meter
        self._cpu = cpu or own_cpu_seconds
        self._done: Measured | None = None
        self._over = Event()
        self._lock = Lock()

    # -- what came of it ------------------------------------------------------------------------------------------

    @property
    def result(self) -> Measured:
        """All figures, once the block is over."""
        if self._done is None:
            raise InputError("measure", "the block is not over yet: ask after it")
        return self._done

    @property
    def energy(self) -> Energy | Unknown:
        """Joules above idle, with spread and provenance; or why there are none."""
        return self.result.energy

    @property
    def joules(self) -> float | None:
        """Of `energy`; None: unknown."""
        return self.energy.joules if isinstance(self.energy, Energy) else None

    @property
    def seconds(self) -> float:
        return self.result.seconds

    # -- the block ------------------------------------------------------------------------------------------------

    def __enter__(self) -> "Measurement":
        here = this_machine()
        wanted = self._wanted
        meter = choose_meter(here, "" if wanted == "auto" else wanted) if isinstance(wanted, str) else wanted
        self._done = None
        self._over.clear()
        self._account = BlockAccount(PatientMeter(meter, HANGS_S), here)
        self._account.begin(monotonic(), self._cpu())
        self._thread = Thread(target=self._look_on, name="wattloom-measure", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def end(self) -> Measured:
        """The block is over; the same as leaving it."""
        now, cpu_s = monotonic(), self._cpu()
        self._over.set()
        self._thread.join()
        with self._lock:
            self._wait_for_reading(now, cpu_s)
            self._done = self._account.end(now, cpu_s)
        return self._done

    def _wait_for_reading(self, now: float, cpu_s: float) -> None:
        """A slow source shows the end of the block only later."""
        period = period_s(self._account.meter)
        while self._account.sample(max(now, monotonic()), cpu_s) or not self._account.read_until(now):
            # One that says what is wrong with it is not given as long as one that is only slow.
            patience = min(period + 1.0, 2.0) if self._account.waiting else min(3.0 * period + 1.0, SLOWEST_S)
            if self._account.read_until(now) or period <= 0.0 or monotonic() > now + patience:
                return
            sleep(0.05)

    def _look_on(self) -> None:
        while not self._over.wait(READ_EVERY_S):
            with self._lock:
                self._account.sample(monotonic(), self._cpu())


def own_cpu_seconds() -> float:
    """Of this process, its threads and its children."""
    waited = resource.getrusage(resource.RUSAGE_CHILDREN)
    children = children_seconds(Path(f"/proc/{os.getpid()}")) or 0.0
    return process_time() + max(waited.ru_utime + waited.ru_stime, children)


# -- commands ----------------------------------------------------------------------------------------------------------


class MeasuredCommand(msgspec.Struct, frozen=True):
    """A command that was run and measured."""

    command: tuple[str, ...]
    exit_code: int
    """128 and the signal's number if it was killed."""
    measured: Measured


class CommandCannotRun(InputError):
    """There is no such command, or it may not be run."""

    def __init__(self, command: str, problem: str, code: int) -> None:
        super().__init__("command", f"{command}: {problem}")
        self.code = code


def measure_command(
    command: Sequence[str], *, meter: "str | Meter" = "auto", stdout: int | IO[Any] | None = None
) -> MeasuredCommand:
    """Run a command in this terminal, and measure it with its children. Signals that would end us go to the command."""
    if not command:
        raise InputError("command", "is empty")
    watched = _Watched()
    measurement = Measurement(meter, cpu=watched.cpu_seconds)
    with _signals_go_to(watched), measurement:
        code = watched.run(command, stdout)
    return MeasuredCommand(tuple(command), code, measurement.result)


@contextmanager
def _signals_go_to(watched: "_Watched") -> Iterator[None]:
    """Ctrl-C reaches the command by itself, from the terminal. Handled here, not ignored: that it would inherit."""
    if current_thread() is not main_thread():
        yield
        return
    handlers = {signal.SIGINT: _leave_to_command, signal.SIGTERM: watched.forward, signal.SIGHUP: watched.forward}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Watched:
    """The command's process, and what it has used."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._used_s = 0.0
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def forward(self, number: int, frame: FrameType | None) -> None:
        """Whoever ends us means the command: it is not to go on alone."""
        if self._process is not None:
            with suppress(OSError):
                os.kill(self._process.pid, number)

    def cpu_seconds(self) -> float:
        with self._lock:
            seen = family_seconds(self._folder) if self._folder is not None else None
            self._used_s = max(self._used_s, seen or 0.0)
            return self._used_s

    def run(self, command: Sequence[str], stdout: int | IO[Any] | None) -> int:
        process = self._process = _start(command, stdout)
        self._folder = Path(f"/proc/{process.pid}")
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # it is reaped: nobody need wait again
        self._process = None
        with self._lock:
            self._folder = None
            self._used_s = max(self._used_s, used.ru_utime + used.ru_stime)
        return process.returncode if process.returncode >= 0 else 128 - process.returncode


def _start(command: Sequence[str], stdout: int | IO[Any] | None) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(command, stdout=stdout)
    except FileNotFoundError:
        raise CommandCannotRun(command[0], "there is no such command", NOT_FOUND) from None
    except OSError as problem:
        raise CommandCannotRun(command[0], problem.strerror or str(problem), NOT_ALLOWED) from None


def _leave_to_command(number: int, frame: FrameType | None) -> None:
    """The terminal has sent it to the command too."""
