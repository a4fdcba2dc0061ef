"""The engine with a clock and a log: events in, instructions handed on.

Owns the engine's time (seconds since this process began to decide), the log and the timer for ticks. Knows neither
the API server nor what becomes of an instruction.
"""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic, perf_counter
from typing import Final

from wattloom.errors import EventRefused
from wattloom.policies.protocol import Policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import AnyInstruction
from wattloom.scheduling.log import LogWriter

LOG: Final = logging.getLogger(__name__)


class Deciding:
    """One engine. `tell` it what happened; what it wants done goes to `carry_out`, which must not tell at once."""

    def __init__(
        self,
        policy: Policy,
        carry_out: Callable[[AnyInstruction], None],
        *,
        log: LogWriter | None = None,
        clock: Callable[[], float] = monotonic,
        observe: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self.engine = Engine(policy)
        self.refused = 0
        """Events that contradicted what the engine knows: each is a defect, and is logged."""
        self._carry_out = carry_out
        self._log = log
        self._clock = clock
        self._observe = observe
        self._begun = clock()
        self._timer: asyncio.TimerHandle | None = None
        self._due: float | None = None

    @property
    def now(self) -> float:
        """Never before what the engine was told last."""
        return max(self.engine.time, self._clock() - self._begun)

    def tell(self, event: ev.AnyEvent) -> bool:
        """False, and a line in the log, if the engine refuses it."""
        begun = perf_counter()
        try:
            wanted = self.engine.handle(event)
        except EventRefused as refused:
            self.refused += 1
            LOG.error("the engine refused %s: %s", type(event).__name__, refused)
            return False
        if self._log is not None:
            self._write(self._log, event, wanted)
        if type(event) is ev.TaskSubmitted:
            self._observe(perf_counter() - begun)
        for instruction in wanted:
            self._carry_out(instruction)
        if self.engine.next_tick != self._due:
            self._set_timer()
        return True

    def begin_anew(self, policy: Policy, log: LogWriter | None) -> None:
        """With an engine that knows nothing, and another log: it has to be told everything. Time goes on."""
        self.stop()
        self._due = None
        self.engine = Engine(policy)
        self._log = log

    def _write(self, log: LogWriter, event: ev.AnyEvent, wanted: list[AnyInstruction]) -> None:
        try:
            log.write(event, wanted)
        except OSError as problem:  # a full disk is no reason to decide no more
            self._log = None
            LOG.error("decisions are not logged any more: %s", problem.strerror or problem)

    def stop(self) -> None:
        """No more ticks."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        self.stop()
        self._due = self.engine.next_tick
        if self._due is not None:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, self._due - self.now), self._tick)

    def _tick(self) -> None:
        self._due = None
        self.tell(ev.Tick(self.now))
