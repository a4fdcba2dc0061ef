"""When the joules are read, and who is told: the engine, by events, and what is learned of functions.

Owns the pace a policy wants beside the accounting's own. How joules are shared out is `accounting`'s. One thread alone.
"""

from typing import Final

from wattloom.local.accounting import USUAL_S, Accounting
from wattloom.local.future import Reading
from wattloom.local.instructions import Instructions
from wattloom.local.journaled_run import JournaledRun
from wattloom.local.run_clock import RunClock
from wattloom.local.worker_host import WorkerHost
from wattloom.scheduling import events as ev

KEEP_LEARNED_S: Final = 10.0


class MeterReadings:
    """The readings of the accounting, if there is any."""

    def __init__(
        self,
        accounting: Accounting | None,
        journaled: JournaledRun,
        instructions: Instructions,
        host: WorkerHost,
        clock: RunClock,
    ) -> None:
        self._accounting: Final = accounting
        self._journaled: Final = journaled
        self._instructions: Final = instructions
        self._host: Final = host
        self._clock: Final = clock
        self._machine_of: Final = {node.name: node.profile.name for node in host.nodes}
        self._keep_learned_at: float = KEEP_LEARNED_S
        self._reading_at: float = 0.0

    @property
    def due(self) -> float | None:
        """When the next one is wanted; None: nothing runs."""
        return None if self._accounting is None else self._accounting.due

    def begin(self) -> None:
        """From now on joules are counted."""
        if self._accounting is not None:
            self._accounting.begin(self._clock.look())  # of the reading, not of the executor's first moment

    def ask(self, reading: Reading) -> None:
        """Somebody waits for it."""
        if self._accounting is None:
            reading.done.set()
        else:
            self._accounting.ask(reading)

    def pass_time(self, now: float) -> None:
        due = self.due
        if due is not None and due <= now:
            self.read(self._clock.look())  # commands may have taken a while: joules are of the time they are counted

    def is_all_paid(self) -> bool:
        """Whether calls that have ended have their joules now."""
        return self.due is None or self.read(self._clock.look())

    def finish(self) -> None:
        """The last ones."""
        if self.due is not None:
            self.read(self._clock.now)
        self._journaled.keep_learned()

    def close(self) -> None:
        if self._accounting is not None:
            self._accounting.close()

    def read(self, now: float) -> bool:
        """Whether the meter said something: what ended before has its joules then."""
        accounting = self._accounting
        if accounting is None:
            return False
        interval = self._instructions.driver.engine.policy.reading_interval_s
        wanted = interval is not None and now >= self._reading_at
        told = self._tell(accounting, now, wanted)
        if wanted and interval is not None:
            self._reading_at = now + interval
        if interval is not None and accounting.due is not None:
            # The policy waits for it, though nothing may have changed.
            accounting.due = min(accounting.due, max(self._reading_at, now + USUAL_S))
        if now >= self._keep_learned_at:
            self._journaled.keep_learned()
            self._keep_learned_at = now + KEEP_LEARNED_S
        return told

    def _tell(self, accounting: Accounting, now: float, wanted: bool) -> bool:
        told = False
        for event, used, draws in accounting.read(now, self._host.busy()):
            if event.seconds > 0.0:
                told = True
                self._instructions.tell(event)
                if wanted:
                    watts = event.meter_j / event.seconds
                    self._instructions.tell(ev.ReadingArrived(now, event.node, watts, draws))
            for function, each in used.items():
                self._journaled.learn(function, self._machine_of[event.node], each)
        return told
