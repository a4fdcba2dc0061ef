"""A driver that may hang or fail, asked in a way that does not: a GPU in trouble can keep a call for minutes.

Owns the thread that asks and the time it is given. While a question has no answer, every other one is refused at once,
so that whoever reads meters goes on with the rest of the machine. Knows nothing of what is asked.
"""

import os
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any, Final, TypeVar

from wattloom.metering.device_counts import Spent
from wattloom.metering.device_meter import Device, Driver, DriverProblem, State
from wattloom.metering.devices import DeviceProcess, Kind

T = TypeVar("T")
Question = tuple[Callable[..., Any], tuple[Any, ...]]
Answer = tuple[Any, BaseException | None]

WAIT_S: Final = 1.0
"""Much longer than a driver takes that is well; much shorter than one takes that is not."""
OPEN_S: Final = 20.0
"""Opening wakes sleeping devices, one after the other."""


class PatientDriver:
    """The same driver; a question that is not answered in time is a problem of the driver's."""

    def __init__(self, driver: Driver, wait_s: float = WAIT_S, open_s: float = OPEN_S) -> None:
        self.kind: Kind = driver.kind
        self._driver, self._wait_s, self._open_s = driver, wait_s, open_s
        self._questions: SimpleQueue[Question | None] = SimpleQueue()
        self._answers: SimpleQueue[Answer] = SimpleQueue()
        self._since: float | None = None
        """When the question was asked that has no answer yet."""
        self._pid = 0

    def open(self) -> tuple[Device, ...]:
        return self._ask(self._open_s, self._driver.open)

    def spent(self, device: Device) -> Spent:
        return self._ask(self._wait_s, self._driver.spent, device)

    def state(self, device: Device) -> State:
        return self._ask(self._wait_s, self._driver.state, device)

    def users(self, device: Device, now: float) -> list[DeviceProcess]:
        return self._ask(self._wait_s, self._driver.users, device, now)

    def _ask(self, wait_s: float, question: Callable[..., T], *arguments: Any) -> T:
        self._serve()
        self._refuse_while_busy()
        self._since = monotonic()
        self._questions.put((question, arguments))
        try:
            found, problem = self._answers.get(timeout=wait_s)
        except Empty:
            raise DriverProblem(f"the driver did not answer within {wait_s:g} s") from None
        self._since = None
        if isinstance(problem, DriverProblem):
            raise problem
        if problem is not None:
            raise DriverProblem(f"the driver's binding failed: {type(problem).__name__}: {problem}") from problem
        return found  # type: ignore[no-any-return]

    def _refuse_while_busy(self) -> None:
        """What comes too late is of an earlier time, and nobody waits for it any more."""
        if self._since is None:
            return
        try:
            self._answers.get_nowait()
        except Empty:
            raise DriverProblem(f"the driver has not answered for {monotonic() - self._since:.1f} s") from None
        self._since = None

    def _serve(self) -> None:
        """Start the thread: once, and once more in a child of a fork, which has none."""
        if self._pid == os.getpid():
            return
        self._pid, self._since = os.getpid(), None
        self._questions, self._answers = SimpleQueue(), SimpleQueue()
        Thread(target=_answer, args=(self._questions, self._answers), name="wattloom-devices", daemon=True).start()
        weakref.finalize(self, self._questions.put, None)


def _answer(questions: "SimpleQueue[Question | None]", answers: "SimpleQueue[Answer]") -> None:
    """The thread. It knows nothing of who asks, so that a meter that is dropped ends it."""
    while (asked := questions.get()) is not None:
        question, arguments = asked
        try:
            answers.put((question(*arguments), None))
        except Exception as problem:  # handed over to the one who asked
            answers.put((None, problem))
        del asked, question, arguments
