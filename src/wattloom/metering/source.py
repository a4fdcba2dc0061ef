"""What a source of joules or watts is that must be asked: over a network, or by another program.

Owns the protocol of sources, what they answer, and how answers become a running count. Knows neither threads nor any
protocol of the network; what may be believed is `count`'s.
"""

from collections.abc import Callable, Mapping, Sequence
from math import hypot, inf, isfinite
from typing import Final, Protocol

import msgspec

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.errors import WattloomError
from wattloom.metering.count import Limits, seconds_asleep
from wattloom.metering.counters import Counters, Raw
from wattloom.metering.integrated import STEP, Integrated
from wattloom.metering.protocol import Quantity, Sample

MICRO: Final = 1e6
WALL_W: Final = 20_000.0
"""More than one machine can draw at the plug, accelerators and all."""
PACKAGE_W: Final = 4_000.0
"""More than all packages of one machine with their memory can draw."""

BRIDGED: Final = 1.0 / 3.0
"""Of the longest gap that power is integrated over, when answers were missing in it."""
LEARNING: Final = 0.1


class SourceProblem(WattloomError):
    """The source gave no figure; the text says why and what to do. Holds no password and no token."""


class Watts(msgspec.Struct, frozen=True):
    """A power, as the source shows it."""

    watts: float
    age_s: float = 0.0
    """How long ago it was measured, as far as the source tells."""
    stamp: object = None
    """The source's own mark of this figure. The same mark again: nothing is new."""


class Joules(msgspec.Struct, frozen=True):
    """Counters that only rise, in joules, by name: what is metered is their sum."""

    counters: Mapping[str, float]
    age_s: float = 0.0
    stamp: object = None


Answer = Watts | Joules


class Source(Protocol):
    """Asked by one thread, the poller's, save for `missing` and `forget`."""

    name: str
    summary: str
    quantity: Quantity
    provenance: Provenance
    """May become another with an answer, where the source says how it knows."""
    limits: Limits
    """`still_s` is how old the last figure may be."""
    least_s: float
    """Time between two questions, at least."""
    timeout_s: float
    """For one answer as a whole."""

    def missing(self) -> str | None:
        """What must be set before it can be asked at all. Touches nothing. None: it can be asked."""

    def ask(self) -> Sequence[Answer]:
        """The figures that are new, oldest first; or SourceProblem. Returns within about `timeout_s`."""

    def close(self) -> None:
        """Take leave."""

    def forget(self) -> None:
        """Drop what is open without a word: after a fork it is another process's."""


class EnergyCounter:
    """One count out of a source's answers."""

    def __init__(self, limits: Limits, epoch: int = 0, asleep: Callable[[], float] = seconds_asleep) -> None:
        self._limits, self._asleep = limits, asleep
        self._kind: type[Answer] | None = None
        self._epoch = epoch
        self._stamp: object = None
        self.last: Sample | None = None
        """The last good reading, in the poller's time."""
        self._begin()

    def _begin(self) -> None:
        limits, asleep = self._limits, self._asleep
        # An idle machine may draw the same whole watts for hours.
        self._power = Integrated(msgspec.structs.replace(limits, still_s=inf), asleep=asleep)
        # Who counts by himself has counted on in a gap.
        self._counters = Counters[str](msgspec.structs.replace(limits, gap_s=inf), joules=1.0 / MICRO, asleep=asleep)
        self._shown: dict[str, int] = {}
        self._watts: float | None = None
        self._unrest = 0.0
        """How much power changes from one answer to the next: the mean of the squares."""
        self._failed = False

    def take(self, now: float, answer: Answer, waited_s: float) -> str:
        """Go on with what was answered at `now`, and may have been new since `waited_s` before. What is wrong with it;
        empty: nothing. A count that broke off is a problem now; the next good reading has the new epoch."""
        if answer.stamp is not None and answer.stamp == self._stamp:
            return ""
        if isinstance(answer, Watts) and answer.watts == 0.0:
            return "the source shows 0 W: a machine that runs draws more, so it does not know"
        time = now - max(answer.age_s, 0.0)
        if self.last is not None and time < self.last.time:
            return ""  # ages are not exact: the next one will be later
        self._stamp = answer.stamp
        if self._is_another_count(time, answer):
            self._epoch = self.last.epoch + 1 if self.last is not None else self._epoch
            self._begin()
        self._kind, self._failed = type(answer), False
        found: Sample | Unknown | None
        if isinstance(answer, Watts):
            found = self._integrate(now, time, answer.watts)
        else:
            found = self._follow(now, time, answer, 0.0 if answer.stamp is not None else waited_s)
        if isinstance(found, Sample):
            self.last = msgspec.structs.replace(found, epoch=self._epoch + found.epoch)
        return found.reason if isinstance(found, Unknown) else ""

    def fail(self) -> None:
        """There was no answer when there should have been one."""
        self._failed = True

    def _is_another_count(self, time: float, answer: Answer) -> bool:
        """Joules where there were watts; or watts after failures, when nobody knows what was drawn meanwhile."""
        if self._kind is None or type(answer) is not self._kind:
            return self._kind is not None
        missed = self._failed and isinstance(answer, Watts) and self.last is not None
        return missed and self.last is not None and time - self.last.time > BRIDGED * self._limits.gap_s

    def _integrate(self, now: float, time: float, watts: float) -> Sample | Unknown:
        """Between two answers power may have gone up and down unseen: as much as it usually does between two."""
        found, last = self._power.read(now, watts, time), self.last
        if isinstance(found, Unknown) or not isfinite(watts) or (last is not None and found.time <= last.time):
            return found
        before, self._watts = self._watts, watts
        if before is None or last is None or self._epoch + found.epoch != last.epoch:
            return found
        self._unrest += LEARNING * ((watts - before) ** 2 - self._unrest)
        unseen_j = self._unrest**0.5 * (found.time - last.time) * STEP
        return msgspec.structs.replace(found, resolution_j=hypot(found.resolution_j, unseen_j))

    def _follow(self, now: float, time: float, answer: Joules, waited_s: float) -> Sample | Unknown | None:
        """None: nothing has risen, so the last reading is still the newest."""
        shown = {name: round(joules * MICRO) for name, joules in answer.counters.items()}
        if shown == self._shown and answer.stamp is None:
            return None
        self._shown, before = shown, self._counters.last
        # One part may stand still, as an accelerator that is off; all together may not, which the reader sees to.
        raw = {name: Raw(value, still=True) for name, value in shown.items()}
        found = self._counters.read(now, raw, _step(shown), time)
        if isinstance(found, Unknown) or before is None or found.time <= before.time:
            return found
        watts = (found.joules - before.joules) / (found.time - before.time)
        return msgspec.structs.replace(found, resolution_j=max(found.resolution_j, watts * waited_s * STEP))


def _step(shown: Mapping[str, int]) -> int:
    """How fine the counters are, by the look of them: some show whole joules only."""
    return int(MICRO) if all(value % int(MICRO) == 0 for value in shown.values()) else 1000
