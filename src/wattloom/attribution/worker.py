"""What the account knows of one worker process, and what its short calls are promised.

Owns the worker's CPU time between two closed intervals and how it falls to ended calls, the running one and neither.
A call that is far shorter than an interval gets a tariff at its end instead of a figure: it keeps its CPU time, and the
figure can be worked out when the interval is over. One tariff serves thousands of calls.
"""

from math import inf
from pathlib import Path
from typing import Final

from wattloom.attribution.intensities import OWN
from wattloom.attribution.sharing import Call, Pool
from wattloom.energy.forecast import Provenance, Unknown
from wattloom.energy.measured import Energy
from wattloom.metering.proc import children_seconds, process_seconds
from wattloom.units import Joules

LONG_S: Final = 0.1
"""Only calls that run so long have children worth looking for."""


class Tariff:
    """What a CPU second costs the short calls of one function on one worker in one interval, with the sums over the
    calls that will pay by it."""

    __slots__ = ("calls", "clock_j", "joules", "provenance", "seconds", "spread", "squares", "unknown")

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0
        """CPU seconds of these calls."""
        self.squares = 0.0
        """Of the CPU seconds of each."""
        self.provenance: Provenance | None = None
        """None: it is not set yet."""
        self.joules = 0.0
        """Of one CPU second."""
        self.spread = 0.0
        """Of one CPU second."""
        self.clock_j = 0.0
        """What each call's clock leaves open."""
        self.unknown = ""
        """Why it never will be."""

    def set(self, joules: float, spread: float, clock_j: float, provenance: Provenance) -> None:
        self.joules = joules
        self.spread = spread
        self.clock_j = clock_j
        self.provenance = provenance

    def energy(self, cpu_s: float) -> Energy | Unknown | None:
        """Of a call with so much CPU time; None: not known yet."""
        if self.unknown:
            return Unknown(self.unknown)
        if self.provenance is None:
            return None
        return Energy(Joules(cpu_s * self.joules), Joules(cpu_s * self.spread + self.clock_j), self.provenance)


class Worker:
    """A process that runs one call at a time."""

    __slots__ = (
        "age",
        "awake",
        "before",
        "broken",
        "children_s",
        "clock_s",
        "closed_s",
        "drawn_s",
        "earlier",
        "ended",
        "ended_before",
        "folder",
        "gone",
        "guess",
        "kept_s",
        "late_s",
        "most_s",
        "opened_s",
        "pool",
        "rest_s",
        "running",
        "seen_s",
        "short",
        "short_s",
        "used_s",
    )

    def __init__(self, folder: Path, gone: bool = False) -> None:
        self.folder = folder
        self.gone = gone
        """The process has ended: its number may soon be another's, so it is not looked at any more."""
        self.ended: list[Call] = []
        self.short: dict[str, Tariff] = {}
        """Short calls that ended, by function."""
        self.short_s = 0.0
        self.drawn_s = 0.0
        """CPU seconds of calls in `ended` that may be in the pool already."""
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
        self.kept_s = 0.0
        """Those of them that may be the running call's."""
        self.clock_s = 0.0
        """What its CPU clock shows."""
        self.closed_s = 0.0
        """What it showed when the last interval was closed."""
        self.opened_s = 0.0
        """And when that was opened."""
        self.earlier: dict[str, float] = {}
        """By function: CPU seconds of calls that have ended in this interval and used them in earlier ones."""
        self.before: dict[str, float] = {}
        """Those of them that they used in the one before."""
        self.guess: tuple[str, float] | None = None
        """The function that was running when the last interval was closed, and the CPU seconds that may be its own."""
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

    def place(self, function: str, cpu_s: float, clock_s: float) -> None:
        """A call has ended when the worker's CPU clock showed this: some of its time may lie before this interval."""
        if clock_s <= 0.0:
            clock_s = self.clock_s + max(cpu_s - self.pool.seconds, 0.0)  # it is not known: as if it were the first
        began_s = clock_s - cpu_s
        if began_s < self.closed_s:
            earlier_s = min(self.closed_s - began_s, cpu_s)
            self.earlier[function] = self.earlier.get(function, 0.0) + earlier_s
            self.before[function] = self.before.get(function, 0.0) + min(earlier_s, self.closed_s - self.opened_s)

    def end_short(self, function: str, cpu_s: float, clock_s: float = 0.0) -> Tariff | None:
        """A short call has ended. None: it may have been paid for in part, so it must be charged by itself."""
        first = self.running is not None and len(self.ended) == self.ended_before
        if first or self.broken or self.drawn_s < self.pool.seconds:
            self.drawn_s += cpu_s
            return None
        tariff = self.short.get(function)
        if tariff is None:
            tariff = self.short[function] = Tariff()
        tariff.calls += 1
        tariff.seconds += cpu_s
        tariff.squares += cpu_s * cpu_s
        self.short_s += cpu_s
        if clock_s - cpu_s < self.closed_s:
            self.place(function, cpu_s, clock_s)
        return tariff

    def look(self) -> None:
        """Read its CPU time, and see whether the running call has ended. A process that is gone is not read again."""
        if not self.gone and (self.awake or self.ended or self.short or self.running is not None):
            own = process_seconds(self.folder)
            if self._may_have_children(own):
                children = children_seconds(self.folder)
                self.children_s = self.children_s if children is None else max(children, self.children_s)
            if own is not None:
                self.used_s = max(own + self.children_s - self.seen_s, 0.0)
                self.clock_s = own + self.children_s
        running = self.running
        if running is not None and any(task == running[0] for task, _, _ in self.ended[self.ended_before :]):
            self.running = None

    def _may_have_children(self, own: float | None) -> bool:
        """Short calls have none, unless it has had some before, or they report more than it has used itself."""
        if self.ended or self.age or self.children_s > 0.0 or (self.running is not None and self.most_s > LONG_S):
            return True
        return own is not None and self.short_s > own - self.seen_s

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
        self.kept_s = 0.0 if self.running is None else min(self.rest_s, self.most_s)

    def share_out(self, cpu: dict[str, float]) -> None:
        """Add the CPU seconds that are paid for in this interval to those of their functions, as far as they were
        seen."""
        fresh = self.used_s + self.late_s - self.rest_s
        seen = min(self.used_s / fresh, 1.0) if fresh > 0.0 else 0.0
        paid_s = self.pool.seconds
        for _, function, cpu_s in self.ended:
            cpu[function] = cpu.get(function, 0.0) + max(cpu_s - paid_s, 0.0) * seen
            paid_s = max(paid_s - cpu_s, 0.0)
        for function, tariff in self.short.items():
            cpu[function] = cpu.get(function, 0.0) + tariff.seconds * seen
        if self.running is not None:
            cpu[self.running[1]] = cpu.get(self.running[1], 0.0) + self.kept_s

    def tell_apart(self, ran: dict[str, float], before: dict[str, float]) -> None:
        """Add the CPU seconds of this interval to those of the functions that ran, by the worker's clock. What was
        taken for the running call's in the interval `before` may have been that of others: by now it is known."""
        if (self.ended or self.short) and self.guess is not None:
            guessed, guess_s = self.guess
            before[guessed] = before.get(guessed, 0.0) - guess_s
            for function, seconds in self.before.items():
                before[function] = before.get(function, 0.0) + seconds
                guess_s -= seconds
            before[OWN] = before.get(OWN, 0.0) + guess_s
        left_s = self.used_s
        for function, seconds in self._within().items():
            ran[function] = ran.get(function, 0.0) + seconds
            left_s -= seconds
        self.guess = None
        if self.running is not None:
            self.guess = (self.running[1], max(left_s, 0.0))
            ran[self.running[1]] = ran.get(self.running[1], 0.0) + self.guess[1]
        else:
            ran[OWN] += left_s

    def _within(self) -> dict[str, float]:
        """CPU seconds of ended calls by function, without what they had used before this interval."""
        within: dict[str, float] = {}
        for _, function, cpu_s in self.ended:
            within[function] = within.get(function, 0.0) + cpu_s
        for function, tariff in self.short.items():
            within[function] = within.get(function, 0.0) + tariff.seconds
        for function, seconds in self.earlier.items():
            within[function] = max(within.get(function, 0.0) - seconds, 0.0)
        return within

    def close(self) -> None:
        """Begin the next interval."""
        called = bool(self.ended or self.short)
        self.age = 0 if self.running is None else 1 if called else self.age + 1
        called = called or self.running is not None
        self.seen_s += self.used_s
        self.awake = called or self.used_s > 0.0 or self.seen_s == 0.0
        self.used_s = self.late_s = self.rest_s = self.kept_s = 0.0
        self.opened_s, self.closed_s = self.closed_s, self.clock_s
        if self.earlier:
            self.earlier, self.before = {}, {}
        self.ended = []
        self.ended_before = 0
        self.drawn_s = 0.0
        if self.short:
            self.short = {}
            self.short_s = 0.0
