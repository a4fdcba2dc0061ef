"""A meter that may hang, asked in a way that does not.

Owns what its readers are told meanwhile. What comes too late is handed over at the next question, as of its own time.
The thread is `timeout`'s.
"""

from math import inf
from typing import Final

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.metering.protocol import Meter, Quantity, Sample, period_s
from wattloom.metering.readings import asked
from wattloom.metering.timeout import NoAnswer, TimeLimiter

WAIT_S: Final = 0.5
PAUSE_S: Final = 10.0


class PatientMeter:
    """The same meter; a question that is not answered in time is Unknown."""

    def __init__(self, meter: Meter, wait_s: float = WAIT_S, first_s: float | None = None) -> None:
        """`first_s`: so long the first answer may take, and one after a pause: it loads modules, wakes a device up."""
        self.name: str = meter.name
        self.summary: str = meter.summary
        self.quantity: Quantity = meter.quantity
        self.provenance: Provenance = meter.provenance
        self.model_error: float = meter.model_error
        self.period_s: float = period_s(meter)
        self._meter = meter
        self._wait_s = wait_s
        self._waited_s = wait_s
        self._first_s = wait_s if first_s is None else first_s
        self._limiter = TimeLimiter(f"wattloom-{meter.name}")
        self._asked = -inf
        """Time of the last question."""

    def available(self) -> str | None:
        return self._meter.available()

    def read(self, now: float) -> Sample | Unknown:
        try:
            late = self._limiter.late()
            answer: Sample | Unknown = self._ask(now) if late is None else late.result()
        except NoAnswer:
            return Unknown(self._silence(now))
        # Some sources say only with an answer how they know, and how often.
        self.provenance, self.period_s = self._meter.provenance, period_s(self._meter)
        return answer

    def close(self) -> None:
        """The thread ends, unless it hangs; then it ends with the program."""
        self._limiter.close()

    def _ask(self, now: float) -> Sample | Unknown:
        self._waited_s = self._first_s if now - self._asked > PAUSE_S else self._wait_s
        self._asked = now
        return self._limiter.ask(self._waited_s, asked, self._meter, now)

    def _silence(self, now: float) -> str:
        if now <= self._asked:
            return f"the meter {self.name} did not answer within {self._waited_s:g} s"
        return f"the meter {self.name} has not answered for {now - self._asked:.1f} s"
