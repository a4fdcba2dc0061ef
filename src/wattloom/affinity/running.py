"""Bags carried out: functions on an executor, one on each core, until the time is over.

Owns the loop of a round, which calls count, and what becomes of a function that crashes. The joules are the executor's.
"""

import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from wattloom.affinity.bags import Bag, rounds
from wattloom.affinity.seen import Seen, SeenBag, Trial
from wattloom.affinity.targets import Target
from wattloom.affinity.timed import Timed, Timing
from wattloom.energy.forecast import Unknown
from wattloom.energy.measured import Energy
from wattloom.errors import WattloomError
from wattloom.local.errors import in_words
from wattloom.local.executor import Executor
from wattloom.local.future import TaskFuture
from wattloom.local.import_path import prints_nowhere
from wattloom.metering.proc import PROC, busy_seconds, family_seconds

CALL_S: Final = 0.1
"""So long is a call meant to be: executions that are shorter are made several at a time."""
MOST_TIMES: Final = 100_000
BEAT_S: Final = 0.25
MOST_AT_ONCE: Final = 8
LEAST_SHARE: Final = 0.01
"""Of its time that a call had a core, whatever is read."""
TIMEOUT_S: Final = 600.0
LONGEST_PROBLEM: Final = 200


def submitted(executor: Executor, target: Target, timeout_s: float, timed: Timed | None) -> TaskFuture:
    """A call of it on its way. `timed`: several executions of a function of Python, with their clocks."""
    options = msgspec.structs.replace(target.options, timeout=timeout_s)
    return executor.submit_with(options, timed or target.function, target.args)


def timing_of(future: TaskFuture, began: float) -> Timing:
    """What a call took. `began`: when it was submitted. InputError and whatever the function raised."""
    found = future.result()
    if isinstance(found, Timing):
        return found
    return Timing(1, began, future.seconds or 0.0, 0.0, 0, False)


def tried(target: Target, timeout_s: float = TIMEOUT_S, **how: Any) -> Trial:
    """Call it twice in a worker of its own: how it starts from nothing, how long it takes, and whether it works."""
    timed = Timed(target.function) if target.python else None
    with tempfile.TemporaryDirectory(prefix="wattloom-trial-") as folder:
        journal = Path(folder) / "trial.journal"
        how = {"initializer": prints_nowhere, **how}
        with Executor(1, journal=journal, meter="off", policy="fifo", **how) as executor:
            began = time.monotonic()
            try:
                first = timing_of(submitted(executor, target, timeout_s, timed), began)
                took = time.monotonic() - began
                again = timing_of(submitted(executor, target, timeout_s, timed), began)
            except Exception as problem:
                if not executor.usable:
                    raise
                return Trial(function=target.name, problem=_words(problem))
    times = round(CALL_S / max(again.seconds, CALL_S / MOST_TIMES))
    return Trial(
        function=target.name,
        cold_start_s=first.began - began if target.python else max(took - again.seconds, 0.0),
        memory=again.peak_bytes,
        times=max(times, 1),
    )


def without_waiting(timing: Timing, share: float) -> Timing:
    """A call that was timed from outside, without what it waited for a core."""
    took = timing.seconds
    return msgspec.structs.replace(timing, seconds=took * (1.0 - share), waited_s=took * share)


Threads = dict[tuple[str, str], tuple[float, float]]
"""By process and thread: seconds that it ran, and that it could have run and had no core."""


def threads_below() -> Threads:
    """Of processes that workers have started, and of theirs."""
    found: Threads = {}
    for child in _children("self"):
        for grandchild in _children(child):
            _add_threads(grandchild, found)
    return found


def waited_s(before: Threads, after: Threads) -> float:
    """What calls waited for a core: of each process the thread that ran most makes them; others that help it, as
    collectors of garbage do, may wait for long without holding it up."""
    busiest: dict[str, tuple[float, float]] = {}
    for (process, thread), (ran, waited) in after.items():
        ran_then, waited_then = before.get((process, thread), (0.0, 0.0))
        busiest[process] = max(busiest.get(process, (0.0, 0.0)), (ran - ran_then, waited - waited_then))
    return sum(max(waited, 0.0) for _, waited in busiest.values())


def _add_threads(process: str, found: Threads) -> None:
    for file in (PROC / process / "task").glob("*/schedstat"):
        with suppress(OSError, ValueError, IndexError):
            ran, waited = file.read_text().split()[:2]
            found[process, file.parent.name] = int(ran) * 1e-9, int(waited) * 1e-9
    for child in _children(process):
        _add_threads(child, found)


def _children(process: str) -> list[str]:
    found: list[str] = []
    for file in (PROC / process / "task").glob("*/children"):
        with suppress(OSError):
            found += file.read_text().split()
    return found


class _Tally:
    """One function in one bag."""

    def __init__(self, target: Target, times: int) -> None:
        self.target: Final = target
        self.timed: Final = Timed(target.function, times) if target.python else None
        self.at_once: Final = 1 if target.python else min(times, MOST_AT_ONCE)
        """Calls that are on their way for one core: short ones follow each other without a pause."""
        self.calls: Final[list[tuple[Timing, TaskFuture]]] = []
        """Those that count."""
        self.problem = ""

    def take_waiting_out(self, share: float, first: int) -> None:
        """Of calls from that one on, if they have not done so themselves."""
        if not self.target.python:
            self.calls[first:] = [(without_waiting(timing, share), future) for timing, future in self.calls[first:]]

    def seen(self, virtual: bool) -> Seen:
        return tallied(
            self.target.name, [(timing, future.energy) for timing, future in self.calls], virtual, self.problem
        )


def tallied(
    function: str, calls: Iterable[tuple[Timing, Energy | Unknown]], virtual: bool = False, problem: str = ""
) -> Seen:
    """What calls of a function in one bag come to."""
    found = Seen(function=function, executions=0, seconds=0.0, problem=problem)
    sums = {name: getattr(found, name) for name in found.__struct_fields__}
    for timing, energy in calls:
        _add(sums, timing, energy, virtual)
    return msgspec.structs.replace(found, **sums)


def _add(sums: dict[str, Any], timing: Timing, energy: Energy | Unknown, virtual: bool) -> None:
    """A virtual node's joules are of the time that a call took, also while it waited: only its own counts."""
    count = timing.executions
    own = timing.seconds / (timing.seconds + timing.waited_s) if virtual and timing.seconds > 0.0 else 1.0
    sums["calls"] += 1
    sums["executions"] += count
    sums["seconds"] += timing.seconds
    sums["seconds_squared"] += timing.seconds * timing.seconds / count
    sums["waited_s"] += timing.waited_s
    if isinstance(energy, Energy):
        sums["metered"] += count
        sums["joules"] += own * energy.joules
        sums["joules_squared"] += (own * energy.joules) ** 2 / count
        sums["doubt_j"] += own * energy.spread


class BagRunner:
    """Runs bags on one executor, which learns from bag to bag what functions draw."""

    def __init__(
        self,
        executor: Executor,
        cores: int,
        targets: Sequence[Target],
        trials: Sequence[Trial],
        seconds: float,
        *,
        virtual: bool = False,
        timeout_s: float = TIMEOUT_S,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        self._executor, self._cores, self._seconds, self._beat = executor, cores, seconds, beat
        self._virtual: Final = virtual
        self._targets: Final = {each.name: each for each in targets}
        self._times: Final = {each.function: each.times for each in trials}
        self._timeout_s: Final = timeout_s
        self._foreign_s = 0.0
        """Of calls in the present round that do not time themselves."""
        self._tallies: dict[str, _Tally] = {}

    def run(self, number: int, bag: Bag) -> SeenBag:
        """One bag. A function that crashes is out of it, and another takes its core."""
        self._tallies = {name: _Tally(self._targets[name], self._times[name]) for name in bag}
        some = rounds(bag, self._cores)
        began, busy, ours = time.monotonic(), busy_seconds(PROC), _family_s()
        for each in some:
            self._round(each, self._seconds / len(some))
        seen = tuple(tally.seen(self._virtual) for tally in self._tallies.values())
        seconds = time.monotonic() - began
        others = 0.0
        if busy is not None and ours is not None:
            busy_s, ours_s = (busy_seconds(PROC) or busy) - busy, (_family_s() or ours) - ours
            others = round(max(0.0, busy_s - ours_s) / seconds, 3)
        return SeenBag(number=number, bag=bag, seen=seen, seconds=round(seconds, 3), other_cores=others)

    def _round(self, functions: Bag, seconds: float) -> None:
        running: dict[TaskFuture, _Tally] = {}
        before = {name: len(self._tallies[name].calls) for name in functions}
        self._warm_up(functions)
        threads, self._foreign_s = threads_below(), 0.0
        end = time.monotonic() + seconds
        for name in functions:
            for _ in range(self._tallies[name].at_once):
                self._next(self._tallies[name], running)
        while running:
            done, _ = wait(running, BEAT_S, FIRST_COMPLETED)
            goes_on = time.monotonic() < end or any(
                len(self._tallies[name].calls) == count and not self._tallies[name].problem
                for name, count in before.items()
            )
            for future in done:
                assert isinstance(future, TaskFuture)
                tally = running.pop(future)
                self._took(tally, future, goes_on)
                if goes_on:
                    self._next(tally, running)
            self._beat()
        if self._foreign_s > 0.0:
            share = min(waited_s(threads, threads_below()) / self._foreign_s, 1.0 - LEAST_SHARE)
            for name, count in before.items():
                self._tallies[name].take_waiting_out(share, count)

    def _next(self, tally: _Tally, running: dict[TaskFuture, _Tally]) -> None:
        """The next call on this core; of another function of the bag if this one has crashed."""
        if tally.problem:
            tally = next((each for each in self._tallies.values() if not each.problem), tally)
        if not tally.problem:
            future = submitted(self._executor, tally.target, self._timeout_s, tally.timed)
            running[future] = tally

    def _warm_up(self, functions: Bag) -> None:
        """Functions of other languages have a process of their own beside each worker: it is there before the time is
        taken. One of Python says itself that it was loaded."""
        for tally in {name: self._tallies[name] for name in functions}.values():
            if not tally.target.python and not tally.problem:
                calls = [submitted(self._executor, tally.target, self._timeout_s, None) for _ in range(self._cores)]
                for call in calls:
                    self._took(tally, call, counts=False)

    def _took(self, tally: _Tally, future: TaskFuture, counts: bool) -> None:
        """A call has ended. The first in a process, which loads it, and those that end when others have ended already
        do not count."""
        try:
            timing = timing_of(future, 0.0)
        except (Exception, CancelledError) as problem:
            if not self._executor.usable:
                raise WattloomError(f"the bag was broken off: {_words(problem)}") from problem
            tally.problem = tally.problem or _words(problem)
            return
        if not tally.target.python:
            self._foreign_s += timing.seconds
        if counts and not timing.first:
            tally.calls.append((timing, future))


def _words(problem: BaseException) -> str:
    return (in_words(problem).strip().splitlines() or [type(problem).__name__])[0][:LONGEST_PROBLEM]


def _family_s() -> float | None:
    """CPU seconds of this process and of all that it has started. None: the kernel does not tell."""
    total = time.process_time()
    try:
        for file in (PROC / "self" / "task").glob("*/children"):
            total += sum(family_seconds(PROC / pid.decode()) or 0.0 for pid in file.read_bytes().split())
    except OSError:
        return None
    return total
