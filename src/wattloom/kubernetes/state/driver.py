"""The engine's driver with the machine's clock: events in, instructions handed on, ticks when they are due.

Owns the engine's time (seconds since this process began to decide) and the timer for ticks; that a log which cannot be
written, or an event that the engine refuses, stops nobody from deciding. Knows neither the API server nor what becomes
of an instruction.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic, perf_counter
from typing import Final

from wattloom.driving.driver import Driver, DrivingMode
from wattloom.errors import EventRefused
from wattloom.history.log import LogWriter
from wattloom.policies.protocol import Policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import AnyInstruction
from wattloom.scheduling.ledger import REMEMBERED_ENDS

LOG: Final = logging.getLogger(__name__)


class TimedDriver:
    """One engine. `tell` it what happened; what it wants done goes to `carry_out`, one by one."""

    def __init__(
        self,
        policy: Policy,
        carry_out: Callable[[AnyInstruction], None],
        *,
        log: LogWriter | None = None,
        clock: Callable[[], float] = monotonic,
        observe: Callable[[float], None] = lambda seconds: None,
        mode: DrivingMode = "obey",
        remembered_ends: int = REMEMBERED_ENDS,
    ) -> None:
        self._new_engine: Final = partial(Engine, remembered_ends=remembered_ends)
        self.driver: Final = Driver(self._new_engine(policy), self._hand_on, _Written.to(log), mode, self._note)
        self.refused = 0
        """Events that contradicted what the engine knows: each is a defect, and is logged."""
        self._carry_out = carry_out
        self._clock = clock
        self._observe = observe
        self._begun = clock()
        self._decided = 0.0
        """When the engine had answered to the present event, if it wants something done."""
        self._timer: asyncio.TimerHandle | None = None
        self._due: float | None = None

    @property
    def engine(self) -> Engine:
        return self.driver.engine

    @property
    def now(self) -> float:
        """Never before what the engine was told last."""
        return max(self.engine.time, self._clock() - self._begun)

    def tell(self, event: ev.AnyEvent) -> bool:
        """False, and a line in the log, if the engine refuses it; while instructions are carried out it waits its
        turn."""
        if self.driver.busy:
            self.driver.tell(event)
            return True
        begun, self._decided = perf_counter(), 0.0
        try:
            self.driver.tell(event)
        except EventRefused as problem:
            self._note(event, problem)
            return False
        if type(event) is ev.TaskSubmitted:
            self._observe((self._decided or perf_counter()) - begun)
        self._set_timer()
        return True

    def begin_anew(self, policy: Policy, log: LogWriter | None, state: Iterable[ev.AnyEvent]) -> None:
        """With an engine that knows nothing but what is told it here, and another log. Time goes on."""
        self.driver.begin_anew(self._new_engine(policy), _Written.to(log), state)
        self._set_timer()

    def stop(self) -> None:
        """No more ticks."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _hand_on(self, instructions: list[AnyInstruction], time: float) -> None:
        if not self._decided:
            self._decided = perf_counter()
        for instruction in instructions:
            self._carry_out(instruction)

    def _note(self, event: ev.AnyEvent, problem: EventRefused) -> None:
        self.refused += 1
        LOG.error("the engine refused %s: %s", type(event).__name__, problem)

    def _set_timer(self) -> None:
        due = self.driver.next_tick
        if due != self._due:
            self.stop()
            self._due = due
            if due is not None:
                self._timer = asyncio.get_running_loop().call_later(max(0.0, due - self.now), self._tick)

    def _tick(self) -> None:
        self._due = None
        self.tell(ev.Tick(self.now))


class _Written:
    """A log in a file, as far as the disk takes it: a full one is no reason to decide no more."""

    @classmethod
    def to(cls, log: LogWriter | None) -> "_Written | None":
        return None if log is None else cls(log)

    def __init__(self, log: LogWriter) -> None:
        self._log: LogWriter | None = log

    def write(self, event: ev.AnyEvent, instructions: list[AnyInstruction]) -> None:
        if self._log is None:
            return
        try:
            self._log.write(event, instructions)
        except OSError as problem:
            self._log = None
            LOG.error("decisions are not logged any more: %s", problem.strerror or problem)
