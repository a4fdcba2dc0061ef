"""The future that a caller holds.

Owns the future and the question for its joules. It is set by the dispatcher.
"""

import os
import threading
from concurrent.futures import Future
from concurrent.futures._base import CANCELLED, CANCELLED_AND_NOTIFIED, FINISHED, PENDING
from contextlib import suppress
from time import monotonic
from typing import Any, Final, NoReturn, Protocol

from wattloom.attribution.worker import Tariff
from wattloom.energy.forecast import Provenance, Unknown
from wattloom.energy.measured import Energy
from wattloom.local import errors
from wattloom.units import Joules

METERED_WITHIN_S: Final = 10.0
"""So long `energy` waits for the meter."""
DONE: Final = (FINISHED, CANCELLED, CANCELLED_AND_NOTIFIED)
CONDITIONS: Final = tuple(map(threading.Condition, [threading.RLock()] * 61))
"""Shared by all futures: enough that hardly anybody is woken for another's. They have one lock, because `wait` and
`as_completed` take those of several futures at a time, in the order of the futures."""


def _renew_conditions() -> None:
    """In a forked child nobody is left to let go of the lock, or to be woken. In place: futures that the child has from
    its parent keep theirs."""
    lock = threading.RLock()
    for condition in CONDITIONS:
        threading.Condition.__init__(condition, lock)


os.register_at_fork(after_in_child=_renew_conditions)


class CallDispatcher(Protocol):
    """What a future asks of the dispatcher that will set it."""

    def cancel_later(self, task: str) -> None:
        """Nobody wants it any more."""

    def check_that_it_can_come(self, future: "TaskFuture") -> None:
        """Before somebody waits for it. Raises why that would be in vain."""

    def meter_now(self, future: "TaskFuture") -> str:
        """Wait until it has its joules; why the meter said nothing, if so."""


class TaskFuture(Future[Any]):
    """A future that also knows what the call cost.

    The standard future makes a condition of its own, ten objects that the garbage collector looks at again and again as
    long as the call waits. Here many futures share one, so whoever waits looks whether it was for him.
    """

    __slots__ = ("_dispatcher", "_energy", "_owed", "_tariff", "seconds", "task_id")

    def __init__(self, task: str, number: int = 0) -> None:
        self._condition = CONDITIONS[number % len(CONDITIONS)]
        self._state = PENDING
        self._result = None
        self._exception = None
        self._waiters: list[Any] = []
        self._done_callbacks: list[Any] = []
        self.task_id: Final = task
        """Its name in the journal, for `wattloom why`, `tasks` and `logs`."""
        self._energy: tuple[float, float, Provenance] | float | Unknown | None = None
        """Its joules; or, of a short call, its CPU seconds, for which it pays by the tariff."""
        self._tariff: Tariff | None = None
        self.seconds: float | None = None
        """How long its last attempt ran, by its worker's clock; None: it has not ended, or nobody saw how."""
        self._owed: int = 0
        """Attempts that have ended and whose joules are not known yet."""
        self._dispatcher: CallDispatcher | None = None
        """Whom to ask for a reading, and to tell that it was cancelled."""

    def __reduce__(self) -> NoReturn:
        raise errors.CannotSend(
            self.task_id,
            f"a future (task {self.task_id}) cannot be sent to another process: give its result, future.result(), or "
            "submit the call when it is there, with add_done_callback",
        )

    def cancel(self) -> bool:
        """As every future's: possible until the call is sent to a worker."""
        if not super().cancel():
            return False
        if self._dispatcher is not None:
            self._dispatcher.cancel_later(self.task_id)
        return True

    def result(self, timeout: float | None = None) -> Any:
        """As every future's."""
        try:
            return Future.result(self, 0 if self._is_done_within(timeout) else -1)
        finally:
            del self  # an exception keeps the frames it went through

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """As every future's."""
        try:
            return Future.exception(self, 0 if self._is_done_within(timeout) else -1)
        finally:
            del self

    def _is_done_within(self, timeout: float | None) -> bool:
        if self._state in DONE:
            return True
        if self._dispatcher is not None and (timeout is None or timeout > 0.0):
            self._dispatcher.check_that_it_can_come(self)
        end = None if timeout is None else monotonic() + timeout
        with self._condition:
            while self._state not in DONE:
                left = None if end is None else end - monotonic()
                if left is not None and left <= 0.0:
                    return False
                self._condition.wait(left)
        return True

    @property
    def energy(self) -> Energy | Unknown:
        """What the call cost: joules, their spread, and whether measured, modelled or estimated. Waits for its end, as
        `result` does."""
        if not self.done():
            self.exception()
        found = None if self._owed else self._known_energy()
        if found is None and self._dispatcher is not None and not self.cancelled():
            problem = self._dispatcher.meter_now(self)
            found = self._known_energy()
            if found is None and problem:
                return Unknown(problem)
        return Unknown("the call was not metered") if found is None else found

    def _known_energy(self) -> Energy | Unknown | None:
        known = self._energy
        if isinstance(known, tuple):
            return Energy(Joules(known[0]), Joules(known[1]), known[2])
        if isinstance(known, float):
            return None if self._tariff is None else self._tariff.energy(known)
        return known


class Reading:
    """Somebody waits for the meter."""

    __slots__ = ("done", "future", "problem")

    def __init__(self, future: TaskFuture) -> None:
        self.future: Final = future
        self.done: Final = threading.Event()
        self.problem: str = ""
        """Why the meter said nothing, if it did not."""


def tell_waiters(future: TaskFuture) -> None:
    """It was cancelled: those who wait for it in `wait` and `as_completed` are told once."""
    with suppress(RuntimeError):
        if future._state == CANCELLED:
            future.set_running_or_notify_cancel()
