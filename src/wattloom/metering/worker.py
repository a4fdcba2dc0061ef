"""What the account knows of one worker process.

Owns the worker's CPU time between two closed intervals and how it falls to ended calls, the running one and neither.
"""

from pathlib import Path

from wattloom.metering.attribution import Call, Pool
from wattloom.metering.proc import family_seconds


class Worker:
    """A process that runs one call at a time."""

    __slots__ = (
        "age",
        "awake",
        "broken",
        "ended",
        "ended_before",
        "folder",
        "gone",
        "late_s",
        "pool",
        "rest_s",
        "running",
        "seen_s",
        "used_s",
    )

    def __init__(self, folder: Path, gone: bool = False) -> None:
        self.folder = folder
        self.gone = gone
        """The process has ended: its number may soon be another's, so it is not looked at any more."""
        self.ended: list[Call] = []
        self.running: tuple[str, str] | None = None
        self.ended_before = 0
        """Calls in `ended` when it was said what is running: an end after that may be its own."""
        self.pool = Pool()
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

    def run(self, task: str, function: str) -> None:
        self.running = (task, function)
        self.ended_before = len(self.ended)

    def look(self) -> None:
        """Read its CPU time, and see whether the running call has ended. A process that is gone is not read again."""
        if not self.gone and (self.awake or self.ended or self.running is not None):
            seconds = family_seconds(self.folder)
            if seconds is not None:
                self.used_s = max(seconds - self.seen_s, 0.0)
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
        fresh = max(sum(call[2] for call in self.ended) - self.pool.seconds, 0.0)
        self.late_s = max(fresh - self.used_s, 0.0)
        self.rest_s = max(self.used_s - fresh, 0.0)

    def close(self) -> None:
        """Begin the next interval."""
        self.age = 0 if self.running is None else 1 if self.ended else self.age + 1
        called = self.running is not None or bool(self.ended)
        self.seen_s += self.used_s
        self.awake = called or self.used_s > 0.0 or self.seen_s == 0.0
        self.used_s = self.late_s = self.rest_s = 0.0
        self.ended = []
        self.ended_before = 0
