"""The one way to drive an engine: tell it an event, log what it says, carry that out.

Owns the order of the three and the rule that nobody re-enters. An event that comes up while another is handled or
carried out waits its turn, so the log has events in the order in which the engine took them, each before anything was
done about it. Knows no clock, no file and no backend: those bring the log and carry out, and say when time has passed.

A log may keep what is written until it is committed. Who carries out then only prepares: what others can see (a message
to a worker, the end of a call) is done when the log has it for good.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Literal, Protocol

from wattloom.errors import EventRefused
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import AnyInstruction

DrivingMode = Literal["obey", "record", "shadow"]
"""`obey`: instructions are carried out. `shadow`: the engine decides as if they were, and they are logged, no more;
what others do instead it is told as events. `record`: others decide, and the engine is told what became of it: an event
that asks it for a decision is refused, and it wants no ticks."""

CarryOut = Callable[[list[AnyInstruction], float], None]
"""Told the instructions that an event has led to, if there are any, and its time. May tell the driver more."""

Refused = Callable[[ev.AnyEvent, EventRefused], None]

ASKING: Final = (ev.TaskSubmitted, ev.TaskOrphaned)
"""Events after which a policy is asked where their task should go."""


class EventLog(Protocol):
    """Where events are written, each with what the engine said to it."""

    def write(self, event: ev.AnyEvent, instructions: list[AnyInstruction], /) -> None: ...


class Driver:
    """One engine and its log.

    `refused` is told of events that waited their turn and were refused then; without it that is an error of whoever is
    telling.
    """

    def __init__(
        self,
        engine: Engine,
        carry_out: CarryOut,
        log: EventLog | None = None,
        mode: DrivingMode = "obey",
        refused: Refused | None = None,
    ) -> None:
        self.engine: Engine = engine
        self.log: EventLog | None = log
        self.mode: Final = mode
        self._carry_out: Final = carry_out
        self._obeys: Final = mode == "obey"
        self._records: Final = mode == "record"
        self._refused: Final = refused
        self.busy: bool = False
        """Whether an event is being handled or carried out: what is told now waits its turn."""
        self._later: Final[deque[ev.AnyEvent]] = deque()
        """What came up meanwhile, in order."""

    def tell(self, event: ev.AnyEvent) -> None:
        """What happened. Raises EventRefused, and nothing has changed, if it cannot be true; not for one that has to
        wait its turn."""
        if self.busy:
            self._later.append(event)
            return
        self.busy = True
        try:
            if self._later:  # left by an error of whoever carried out: they came before
                self._take_later()
            self._take(event)
            if self._later:
                self._take_later()
        finally:
            self.busy = False

    def tell_all(self, events: Iterable[ev.AnyEvent]) -> None:
        """The same for several at once: what comes up meanwhile has its turn after the last of them."""
        self._later.extend(events)
        if not self.busy:
            self.busy = True
            try:
                self._take_later()
            finally:
                self.busy = False

    @property
    def next_tick(self) -> float | None:
        """When to `tick` at the latest, if nothing else is told before; None: no need to."""
        return None if self._records else self.engine.next_tick

    def tick(self, now: float) -> bool:
        """Time has passed: the engine is told, if it wanted to be by now. Whether it was."""
        due = self.next_tick
        if due is None or due > now:
            return False
        self.tell(ev.Tick(now))
        return True

    def begin_anew(self, engine: Engine, log: EventLog | None, state: Iterable[ev.AnyEvent] = ()) -> None:
        """Go on with another engine and another log, which begins with how things stand. Not while it is telling."""
        assert not self.busy
        left = list(self._later)
        self._later.clear()
        self.engine, self.log = engine, log
        self.tell_all([*state, *left])

    def _take(self, event: ev.AnyEvent) -> None:
        if self._records and isinstance(event, ASKING):
            raise EventRefused("event", f"{type(event).__name__} asks for a decision: here others decide")
        instructions = self.engine.handle(event)
        log = self.log
        if log is not None:
            log.write(event, instructions)
        if instructions and self._obeys:
            self._carry_out(instructions, event.time)

    def _take_later(self) -> None:
        later = self._later
        while later:
            event = later.popleft()
            try:
                self._take(event)
            except EventRefused as problem:
                if self._refused is None:
                    raise
                self._refused(event, problem)
