"""The meter for sources that are slow, far away or may hang: they are asked in the background.

Owns what a reader is told and when a figure is too old for that. The asking is the `Poller`'s. `read` returns at once:
the count as of the last good answer, with the time of that answer in the reader's own clock.
"""

import os
from collections.abc import Callable
from time import monotonic
from typing import Final
from weakref import finalize

from wattloom.energy.forecast import Unknown
from wattloom.machines.curves import FUNCTIONS_DIFFER
from wattloom.metering.poller import News, Poller
from wattloom.metering.protocol import Sample
from wattloom.metering.source import Source

OTHER_CLOCK_S: Final = 1.0
"""Readers' clocks run as ours does and differ by where they begin. A larger change than this: another clock."""
PATIENCE: Final = 1.5
"""Times the source's timeout, until a question without an answer counts as hung."""


class Polled:
    """A meter on a source that is asked in the background, from the first `available` or `read` on."""

    def __init__(self, source: Source, *, clock: Callable[[], float] = monotonic) -> None:
        self.name = source.name
        self.summary = source.summary
        self.quantity = source.quantity
        self.provenance = source.provenance
        self.model_error = FUNCTIONS_DIFFER
        self.period_s = source.least_s
        self._source: Final = source
        self._clock = clock
        self._poller: Poller | None = None
        self._asked: float | None = None
        self._offset: float | None = None
        """From our clock to the reader's."""
        self._told: tuple[Sample, Sample] | None = None
        """The last count, in our time and in the reader's."""

    def available(self) -> str | None:
        missing = self._source.missing()
        if missing is not None:
            return missing
        poller = self._running()
        if not poller.refresh(self._source.timeout_s):
            return f"{self.name}: no answer within {self._source.timeout_s:g} s"
        self.provenance = self._source.provenance
        return poller.news.problem or None

    def refresh(self, timeout_s: float) -> bool:
        """Have the source asked now, and wait for that. False: it has not answered in time. For readers who can wait
        and want the count as of now, as at the end of a measurement."""
        return self._source.missing() is None and self._running().refresh(timeout_s)

    def read(self, now: float) -> Sample | Unknown:
        if self._asked is not None and now < self._asked:
            return Unknown(f"asked for {now} after {self._asked}: time went backwards")
        missing = self._source.missing()
        if missing is not None:
            return Unknown(_first_line(missing))
        self._asked = now
        poller, here = self._running(), self._clock()
        poller.look(here)
        self._align(now - here)
        self.provenance = self._source.provenance
        self.period_s = poller.period_s
        return self._in_readers_time(poller.news, poller.busy_since, here, now)

    def close(self) -> None:
        """Stop asking. Not needed: a meter that is dropped stops by itself."""
        if self._poller is not None:
            self._poller.end()

    # -- what is told ------------------------------------------------------------------------------------------------

    def _in_readers_time(self, news: News, since: float | None, here: float, now: float) -> Sample | Unknown:
        if since is not None and here - since > PATIENCE * self._source.timeout_s:
            return Unknown(f"{self.name}: no answer for {here - since:.1f} s")
        if news.problem:
            return Unknown(_first_line(news.problem))
        if news.last is None:
            return Unknown(f"{self.name}: the first answer is still awaited")
        age = here - news.last.time
        if age > self._source.limits.still_s:
            return Unknown(f"{self.name}: stale, the last news is {age:.0f} s old")
        return self._sample(news.last, now)

    def _sample(self, last: Sample, now: float) -> Sample:
        """The same count is always told with the same time."""
        told = self._told
        if told is not None and told[0] is last:
            return told[1]
        time = min(last.time + (self._offset or 0.0), now)
        if told is not None and told[1].epoch == last.epoch:
            time = max(time, told[1].time)
        sample = Sample(time, last.joules, last.resolution_j, last.busy_s, last.epoch)
        self._told = last, sample
        return sample

    def _align(self, offset: float) -> None:
        """A reader is told a time and then comes to us, late at times: the earliest it came is nearest to the truth."""
        if self._offset is None or offset > self._offset or self._offset - offset > OTHER_CLOCK_S:
            self._offset = offset

    # -- who asks ----------------------------------------------------------------------------------------------------

    def _running(self) -> Poller:
        """The poller of this process: a fork takes the meter along, but no thread."""
        poller = self._poller
        if poller is not None and poller.pid == os.getpid():
            return poller
        epoch = 0
        if poller is not None:
            self._source.forget()
            epoch = poller.news.last.epoch + 1 if poller.news.last is not None else 1
        self._poller = poller = Poller(self._source, self._clock, epoch)
        finalize(self, poller.end)
        poller.start()
        return poller


def _first_line(problem: str) -> str:
    """Without the ways to mend it, which are for `available`."""
    return problem.partition("\n")[0]
