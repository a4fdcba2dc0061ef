"""What the account knows of one worker process.

Owns the worker's CPU time between two closed intervals and how it falls to ended calls, the running one and neither.
"""

from math import inf
from pathlib import Path
from typing import Final

from wattloom.attribution.sharing import Call, Pool
from wattloom.attribution.tariff import Tariff
from wattloom.metering.proc import children_seconds, process_seconds

LONG_S: Final = 0.1
"""Only calls that run so long have children worth looking for."""


class Worker:
    """A process that runs one call at a time."""

    __slots__ = (
        "age",
        "awake",
        "broken",
        "children_s",
        "drawn_s",
        "ended",
        "ended_before",
        "folder",
        "gone",
        "late_s",
        "most_s",
        "pool",
        "rest_s",
        "running",
        "seen_s",
        "short",
        "short_s",
        "tariff",
        "used_s",
    )

    def __init__(self, folder: Path, gone: bool = False) -> None:
        self.folder = folder
        self.gone = gone
        """The process has ended: its number may soon be another's, so it is not looked at any more."""
        self.ended: list[Call] = []
        self.short: dict[str, list[float]] = {}
        """Short calls that ended, by function: how many, their CPU seconds, and the squares of these."""
        self.short_s = 0.0
        self.drawn_s = 0.0
        """CPU seconds of calls in `ended` that may be in the pool already."""
        self.tariff = Tariff()
        """For the short calls of this interval."""
        self.running: tuple[str, str] | None = None
        self.ended_before = 0
        """Calls in `ended` when it was said what is running: an end after that may be its own."""
        self.pool = Pool()
        self.children_s = 0.0
        """CPU seconds of its children, as last seen."""
        self.most_s = inf
        """The running call cannot have used more CPU time than this."""
        self.seen_s = 0.0
        """CPU seconds up to the last closed interval."""
        self.used_s = 0.0
        """CPU seconds since then, as the kernel saw them."""
        self.late_s = 0.0
        """CPU seconds that ended calls report beyond that: of children the kernel did not show."""
        self.rest_s = 0.0
        """CPU seconds that no ended call reports."""
        self.age = 0
        """For how many closed intervals the running call has run."""
        self.awake = True
        """It may have used CPU time without a call, as at its start."""
        self.broken = False
        """The running call ran through a time whose joules are unknown: so are its own."""

    def run(self, task: str, function: str, most_s: float = inf) -> None:
        self.running = (task, function)
        self.most_s = most_s
        self.ended_before = len(self.ended)

    def end_short(self, function: str, cpu_s: float) -> Tariff | None:
        """A short call has ended. None: it may have been paid for in part, so it must be charged by itself."""
        first = self.running is not None and len(self.ended) == self.ended_before
        if first or self.broken or self.drawn_s < self.pool.seconds:
            self.drawn_s += cpu_s
            return None
        sums = self.short.get(function)
        if sums is None:
            sums = self.short[function] = [0.0, 0.0, 0.0]
        sums[0] += 1.0
        sums[1] += cpu_s
        sums[2] += cpu_s * cpu_s
        self.short_s += cpu_s
        return self.tariff

    def look(self) -> None:
        """Read its CPU time, and see whether the running call has ended. A process that is gone is not read again."""
        if not self.gone and (self.awake or self.ended or self.short or self.running is not None):
            own = process_seconds(self.folder)
            if self.ended or self.age or (self.running is not None and self.most_s > LONG_S):
                children = children_seconds(self.folder)
                self.children_s = self.children_s if children is None else max(children, self.children_s)
            if own is not None:
                self.used_s = max(own + self.children_s - self.seen_s, 0.0)
        running = self.running
        if running is not None and any(task == running[0] for task, _, _ in self.ended[self.ended_before :]):
            self.running = None

    def give_up_broken(self) -> list[str]:
        """The task whose call is over that ran through a time without readings: it is left out, with its pool."""
        if not self.broken or not (self.ended or self.gone or self.running is None):
            return []
        self.broken = False
        self.pool.empty()
        if self.ended:
            return [self.ended.pop(0)[0]]
        died, self.running = self.running, None
        return [] if died is None else [died[0]]

    def weigh(self) -> None:
        """Set what was used against what ended calls report."""
        fresh = max(sum(call[2] for call in self.ended) - self.pool.seconds, 0.0) + self.short_s
        self.late_s = max(fresh - self.used_s, 0.0)
        self.rest_s = max(self.used_s - fresh, 0.0)

    def close(self) -> None:
        """Begin the next interval."""
        called = bool(self.ended or self.short)
        self.age = 0 if self.running is None else 1 if called else self.age + 1
        called = called or self.running is not None
        self.seen_s += self.used_s
        self.awake = called or self.used_s > 0.0 or self.seen_s == 0.0
        self.used_s = self.late_s = self.rest_s = 0.0
        self.ended = []
        self.ended_before = 0
        self.drawn_s = 0.0
        if self.short:
            self.short = {}
            self.short_s = 0.0
            self.tariff = Tariff()
