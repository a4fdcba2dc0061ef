"""The demo's real part: every function some times on all cores, and what the journal says of it.

Owns the run and the gathering of its figures. It prints nothing.
"""

import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev
from typing import Final

from wattloom.cli.demo_functions import functions
from wattloom.history.log import Log
from wattloom.local.executor import Executor
from wattloom.machines.this_machine import this_machine
from wattloom.metering.choosing import choose_meter
from wattloom.report.here import FunctionHere, Here, Reading
from wattloom.scheduling import events as ev

Progress = Callable[[int, int], None]
SHORT_S: Final = 0.2
"""The last reading may cover a moment only, in which the kernel's ticks say little: it goes with the one before."""


def run_here(calls: int, progress: Progress | None = None) -> Here:
    """Call one function after the other, each so many times."""
    work = functions()
    machine = this_machine()
    meter = choose_meter(machine)
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "demo.journal"
        made = _make(work, calls, journal, progress)
        found = _Gathered(Log(journal), made)
    source = meter.summary
    if meter.provenance == "estimated":
        source = f"{source}; the curve: {machine.source}" if machine.source else source
    costs = [found.cost(function.__name__) for function in work]
    phases = [(function.__name__, *found.spans[function.__name__]) for function in work]
    return Here(machine.name, meter.provenance, source, costs, found.readings, phases)


def _make(work: list[Callable[[], object]], calls: int, journal: Path, progress: Progress | None) -> dict[str, str]:
    """Make the calls; the function's name of each task."""
    made: dict[str, str] = {}
    with Executor(journal=journal) as executor:
        for function in work:
            for _ in range(2):
                executor.submit(function).result()  # the first calls pay for imports, and do not count
        for function in work:
            futures = [executor.submit(function) for _ in range(calls)]
            for future in futures:
                future.result()
                made[future.task_id] = function.__name__
                if progress is not None:
                    progress(len(made), calls * len(work))
    return made


class _Gathered:
    """Figures of the calls, from the journal."""

    def __init__(self, log: Log, made: dict[str, str]) -> None:
        self._made: Final = made
        self._seconds: Final[dict[str, list[float]]] = defaultdict(list)
        self._joules: Final[dict[str, list[tuple[float, float]]]] = defaultdict(list)
        self.spans: Final[dict[str, tuple[float, float]]] = {}
        """By function: first submission and last end."""
        self.readings: list[Reading] = []
        for event in log.events():
            self._take(event)
        self._begin_at_zero()

    def _take(self, event: ev.AnyEvent) -> None:
        if isinstance(event, ev.TaskSubmitted) and event.task.id in self._made:
            self.spans.setdefault(self._made[event.task.id], (event.time, event.time))
        elif isinstance(event, ev.TaskFinished) and event.task in self._made:
            name = self._made[event.task]
            self._seconds[name].append(event.seconds or 0.0)
            self.spans[name] = (self.spans[name][0], event.time)
        elif isinstance(event, ev.UsageArrived):
            for task, figures in event.tasks.items():
                if task in self._made:
                    self._joules[self._made[task]].append(figures)
            self._read(event)

    def _read(self, usage: ev.UsageArrived) -> None:
        tasks_j = usage.meter_j - usage.idle_j - usage.unattributed_j
        self.readings.append(
            Reading(
                usage.time - usage.seconds,
                usage.time,
                tasks_j / usage.seconds,
                usage.idle_j / usage.seconds,
                usage.unattributed_j / usage.seconds,
            )
        )

    def _begin_at_zero(self) -> None:
        """Times count from the first call that counts."""
        zero = min((begin for begin, _ in self.spans.values()), default=0.0)
        self.readings = [
            Reading(max(0.0, r.begin_s - zero), r.end_s - zero, r.tasks_w, r.idle_w, r.unattributed_w)
            for r in self.readings
            if r.end_s > zero
        ]
        if len(self.readings) > 1 and self.readings[-1].end_s - self.readings[-1].begin_s < SHORT_S:
            last, before = self.readings.pop(), self.readings.pop()
            self.readings.append(_together(before, last))
        for name, (begin, end) in self.spans.items():
            self.spans[name] = (begin - zero, end - zero)

    def cost(self, name: str) -> FunctionHere:
        seconds, figures = self._seconds[name], self._joules[name]
        joules = [each for each, _ in figures]
        return FunctionHere(
            name,
            len(seconds),
            fmean(seconds),
            fmean(joules) if joules else 0.0,
            fmean(spread for _, spread in figures) if figures else 0.0,
            stdev(joules) if len(joules) > 1 else 0.0,
        )


def _together(one: Reading, other: Reading) -> Reading:
    first, second = one.end_s - one.begin_s, other.end_s - other.begin_s
    watts = [
        (getattr(one, part) * first + getattr(other, part) * second) / (first + second)
        for part in ("tasks_w", "idle_w", "unattributed_w")
    ]
    return Reading(one.begin_s, other.end_s, *watts)
