"""A meter that may hang, asked in a way that does not.

Owns the thread that asks and the time it is given. What comes too late is handed over at the next question, as of its
own time. Knows nothing of what is done with a reading.
"""

from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.metering.protocol import Meter, Quantity, Sample, period_s

WAIT_S: Final = 0.5


class Patient:
    """The same meter; a question that is not answered in time is Unknown."""

    def __init__(self, meter: Meter, wait_s: float = WAIT_S) -> None:
        self.name: str = meter.name
        self.summary: str = meter.summary
        self.quantity: Quantity = meter.quantity
        self.provenance: Provenance = meter.provenance
        self.model_error: float = meter.model_error
        self.period_s: float = period_s(meter)
        self._meter = meter
        self._wait_s = wait_s
        self._questions: SimpleQueue[float | None] = SimpleQueue()
        self._answers: SimpleQueue[Sample | Unknown] = SimpleQueue()
        self._asked: float | None = None
        """Time of the question that has no answer yet."""
        self._thread: Thread | None = None

    def available(self) -> str | None:
        return self._meter.available()

    def read(self, now: float) -> Sample | Unknown:
        if self._thread is None:
            self._thread = Thread(target=self._serve, name=f"wattloom-{self.name}", daemon=True)
            self._thread.start()
        if self._asked is not None:
            return self._late(now, self._asked)
        self._asked = now
        self._questions.put(now)
        try:
            answer = self._answers.get(timeout=self._wait_s)
        except Empty:
            return Unknown(f"the meter {self.name} did not answer within {self._wait_s:g} s")
        self._asked = None
        return answer

    def close(self) -> None:
        """The thread ends, unless it hangs; then it ends with the program."""
        self._questions.put(None)

    def _late(self, now: float, asked: float) -> Sample | Unknown:
        try:
            answer = self._answers.get_nowait()
        except Empty:
            return Unknown(f"the meter {self.name} has not answered for {now - asked:.1f} s")
        self._asked = None
        return answer

    def _serve(self) -> None:
        while (now := self._questions.get()) is not None:
            try:
                answer = self._meter.read(now)
            except Exception as problem:  # anybody's meter: what it raises is no figure
                answer = Unknown(f"the meter {self.name} failed: {type(problem).__name__}: {problem}")
            self._answers.put(answer)
