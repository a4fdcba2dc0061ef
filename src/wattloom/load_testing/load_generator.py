"""The load generator: calls at given times, whatever has become of those before (open loop), on an executor.

Owns the pace: a call is submitted when it is due. One that is submitted late is counted as late, and its latency counts
from when it was due, so that a slow generator or a slow executor cannot hide behind each other. No more calls than a
bound are open at a time: what is due beyond that is refused and counted, as a server with a full queue would.
"""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from wattloom.errors import InputError
from wattloom.local.errors import TaskTimeout
from wattloom.local.executor import Executor
from wattloom.local.future import TaskFuture
from wattloom.local.options import Options
from wattloom.workload.open_loop import Arrival

WARM_UP_S: Final = 60.0
"""Within which the first call of a function must have ended."""
LATE_S: Final = 0.01
"""A call that is submitted so much later than it was due is late."""
LONGEST_SLEEP_S: Final = 0.25
MOST_OPEN: Final = 10_000


class Call(msgspec.Struct, frozen=True):
    """How a function is called."""

    function: Callable[..., Any]
    args: Callable[[int], tuple[Any, ...]] = lambda number: ()
    """Of the call of this number."""
    cpu: float = 1.0


class Counts:
    """What became of the calls of one function, as far as the generator knows."""

    __slots__ = ("asked", "futures", "late", "refused")

    def __init__(self) -> None:
        self.asked: int = 0
        """That were due."""
        self.late: int = 0
        self.refused: int = 0
        """Because too many were open."""
        self.futures: list[TaskFuture] = []


class LoadGenerator:
    """Drives one schedule. It may be interrupted at any time: what was counted stands."""

    def __init__(self, executor: Executor, calls: dict[str, Call], most_open: int = MOST_OPEN) -> None:
        self._executor: Final = executor
        self._calls: Final = calls
        self._most_open: Final = most_open
        self._options: Final = {name: Options(cpu=call.cpu, idempotent=True) for name, call in calls.items()}
        self._lock: Final = threading.Lock()
        self._open: int = 0
        self.counts: Final = {name: Counts() for name in calls}
        self.late_by: Final[dict[str, float]] = {}
        """By task, how much later than due it was submitted."""
        self.seconds: float = 0.0
        """How long it has driven."""
        self.first_s: float = 0.0
        """When, after the beginning, the first call was submitted."""
        self._beaten: float = 0.0
        """When `beat` was told last."""

    @property
    def tasks(self) -> set[str]:
        """Names of all calls that were submitted."""
        return set(self.late_by)

    def warm_up(self, times: dict[str, int]) -> None:
        """Call each so often at once, and wait: workers are started and modules imported before anything counts."""
        futures = [(name, self._submit(name, n, WARM_UP_S)) for name, count in times.items() for n in range(count)]
        for name, future in futures:
            if isinstance(future.exception(), TaskTimeout):
                raise InputError(f"functions.{name}", f"has not returned after {WARM_UP_S:g} s: it cannot be driven")

    def run(
        self, arrivals: Iterable[Arrival], seconds: float, beat: Callable[[float], None] = lambda now: None
    ) -> None:
        """Submit every call when it is due; then wait until the time is over. `beat` is told about four times a second
        how far the schedule is driven, which is less than the time that has passed where the generator is late."""
        began = self._beaten = time.monotonic()
        for due, name in arrivals:
            while (wait := began + due - time.monotonic()) > 0.0:
                time.sleep(min(wait, LONGEST_SLEEP_S))
                self._pulse(min(due, time.monotonic() - began), beat)
            if self._due(name, began + due) and len(self.late_by) == 1:
                self.first_s = time.monotonic() - began
            self._pulse(due, beat)
        while (now := time.monotonic() - began) < seconds:
            time.sleep(min(seconds - now, LONGEST_SLEEP_S))
            self.seconds = now
            beat(now)
        self.seconds = seconds

    def _pulse(self, driven: float, beat: Callable[[float], None]) -> None:
        self.seconds = driven
        if (now := time.monotonic()) >= self._beaten + LONGEST_SLEEP_S:
            self._beaten = now
            beat(driven)

    def finish(self, timeout: float) -> None:
        """Wait for what is open, not longer than so many seconds."""
        end = time.monotonic() + timeout
        while self._open and time.monotonic() < end:
            time.sleep(0.01)

    def _due(self, name: str, due: float) -> bool:
        """Whether it was submitted."""
        counts = self.counts[name]
        counts.asked += 1
        if self._open >= self._most_open:
            counts.refused += 1
            return False
        future = self._submit(name, counts.asked - 1)
        late = max(0.0, time.monotonic() - due)
        counts.late += late > LATE_S
        counts.futures.append(future)
        self.late_by[future.task_id] = late
        return True

    def _submit(self, name: str, number: int, timeout_s: float | None = None) -> TaskFuture:
        call = self._calls[name]
        options = self._options[name]
        if timeout_s is not None:
            options = msgspec.structs.replace(options, timeout=timeout_s)
        with self._lock:
            self._open += 1
        future = self._executor.submit_with(options, call.function, call.args(number))
        future.add_done_callback(self._done)
        return future

    def _done(self, future: object) -> None:
        with self._lock:
            self._open -= 1
