"""What may be believed of a source of joules: the one place where its rules stand, for every meter.

Owns the running count with its epochs, and when a reading is unknown: time that ran backwards, a gap too long to be
bridged, a machine that slept, a rise beyond what can be drawn, a source that stands still. Knows neither files nor
networks.

There are two kinds of unknown. `Unknown` alone: this reading is worth nothing, the count waits, and the next good one
covers the time since the last. Broken off (`break_off`): what was drawn since the last good reading will never be
known, and a new epoch begins.
"""

import time as clocks
from collections.abc import Callable
from math import inf, isfinite
from typing import Final

import msgspec

from wattloom.energy.forecast import Unknown
from wattloom.metering.protocol import Sample

SLEPT_S: Final = 0.1
"""A shorter sleep than this is none: the two clocks are not read at the very same moment."""


class Limits(msgspec.Struct, frozen=True):
    """What a source can do. What goes beyond is not believed."""

    most_w: float
    """More than what is metered can draw: a faster rise is a mistake."""
    late_s: float = 0.1
    """How long after `now` a busy machine may come to read it."""
    gap_s: float = inf
    """The longest time between two good readings that is bridged."""
    still_s: float = inf
    """How long it may stand still: a counter without any rise, a power that is the same to the last digit."""


def seconds_asleep() -> float:
    """How long the machine was suspended since it was started: only one of these clocks runs on meanwhile."""
    if not hasattr(clocks, "CLOCK_BOOTTIME"):  # not Linux
        return 0.0
    return clocks.clock_gettime(clocks.CLOCK_BOOTTIME) - clocks.clock_gettime(clocks.CLOCK_MONOTONIC)


class Count:
    """Cumulative joules that only rise. Told the time of each reading and what was drawn since the last."""

    __slots__ = ("_asked", "_asleep", "_limits", "_moved", "_slept", "epoch", "last")

    def __init__(self, limits: Limits, asleep: Callable[[], float] = seconds_asleep) -> None:
        self.last: Sample | None = None
        """The last good reading, or where the count began anew."""
        self.epoch = 0
        self._limits = limits
        self._asleep = asleep
        self._slept = asleep()
        self._asked = -inf
        self._moved = 0.0

    def refusal(self, now: float) -> Unknown | None:
        """Why no reading can be given for `now`, whatever the source says. To be asked first."""
        if not isfinite(now) or now < self._asked:
            return Unknown(f"asked for {now} after {self._asked}: time went backwards")
        self._asked = now
        return None

    def seconds(self, time: float) -> float:
        """Since the last good reading."""
        return time - self.last.time if self.last is not None else 0.0

    def most_j(self, time: float) -> float:
        """What can have been drawn since the last good reading."""
        return (self.seconds(time) + self._limits.late_s) * self._limits.most_w

    def gap(self, time: float) -> str:
        """Why the time since the last good reading must not be bridged. Empty: it may be."""
        asleep = self._asleep() - self._slept
        if self.last is not None and asleep > SLEPT_S:
            return f"the machine was asleep for {asleep:.1f} s: what it drew meanwhile is nobody's"
        seconds = self.seconds(time)
        if seconds > self._limits.gap_s:
            return f"no good reading for {seconds:.1f} s, and more than {self._limits.gap_s:g} s are not bridged"
        return ""

    def still(self, time: float, moved: bool) -> Unknown | None:
        """Why a source that shows the same as before is not believed."""
        if moved or self.last is None:
            self._moved = time
            return None
        if time - self._moved <= self._limits.still_s:
            return None
        return Unknown(f"stale: the source has shown the same for {time - self._moved:.1f} s, so it is not at work")

    def rise(self, time: float, joules: float, resolution_j: float, busy_s: float | None = None) -> Sample | Unknown:
        """So much was drawn since the last good reading: the new one, or why it is not believed."""
        problem = self.gap(time) or self._impossible(time, joules)
        if problem:
            return self.break_off(time, problem)
        if self.last is None:
            self._slept, self._moved = self._asleep(), time
        before = self.last.joules if self.last is not None else 0.0
        self.last = Sample(time, before + joules, resolution_j, busy_s, self.epoch)
        return self.last

    def _impossible(self, time: float, joules: float) -> str:
        if not isfinite(joules):
            return f"the source gave {joules} J, which is no number"
        if joules < 0.0:
            return f"the count went backwards by {-joules:.6g} J"
        most = self.most_j(time)
        if self.last is not None and joules > most:
            return f"the count rose by {joules:.6g} J where at most {most:.6g} J is possible: it jumped"
        return ""

    def break_off(self, time: float, reason: str, resolution_j: float = 1e-3) -> Unknown:
        """What was drawn since the last good reading will never be known. The count goes on from here."""
        self.epoch += 1
        self._slept = self._asleep()
        self._moved = time
        before = self.last.joules if self.last is not None else 0.0
        self.last = Sample(time, before, resolution_j, epoch=self.epoch)
        return Unknown(reason)
