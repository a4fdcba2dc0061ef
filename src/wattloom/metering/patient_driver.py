"""A driver of devices that may hang or fail: a question that is not answered in time is a problem of the driver's.

Owns how long each question may take, so that whoever reads meters goes on with the rest of the machine. What comes too
late is of an earlier time, and nobody waits for it any more. The thread is `timeout`'s.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from wattloom.metering.device_counts import Spent
from wattloom.metering.device_meter import Device, Driver, DriverProblem, State
from wattloom.metering.devices import DeviceProcess, Kind
from wattloom.metering.timeout import NoAnswer, TimeLimiter

T = TypeVar("T")

WAIT_S: Final = 1.0
"""Much longer than a driver takes that is well; much shorter than one takes that is not."""
OPEN_S: Final = 20.0
"""Opening wakes sleeping devices, one after the other."""


class PatientDriver:
    """The same driver, asked with patience."""

    def __init__(self, driver: Driver, wait_s: float = WAIT_S, open_s: float = OPEN_S) -> None:
        self.kind: Kind = driver.kind
        self._driver, self._wait_s, self._open_s = driver, wait_s, open_s
        self._limiter = TimeLimiter("wattloom-devices")

    def open(self) -> tuple[Device, ...]:
        return self._ask(self._open_s, self._driver.open)

    def spent(self, device: Device) -> Spent:
        return self._ask(self._wait_s, self._driver.spent, device)

    def state(self, device: Device) -> State:
        return self._ask(self._wait_s, self._driver.state, device)

    def users(self, device: Device, now: float) -> list[DeviceProcess]:
        return self._ask(self._wait_s, self._driver.users, device, now)

    def _ask(self, wait_s: float, question: Callable[..., T], *arguments: Any) -> T:
        try:
            return self._limiter.ask(wait_s, question, *arguments)
        except NoAnswer as problem:
            raise DriverProblem(f"the driver {problem}") from None
        except DriverProblem:
            raise
        except Exception as problem:
            raise DriverProblem(f"the driver's binding failed: {type(problem).__name__}: {problem}") from problem
