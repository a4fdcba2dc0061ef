"""A function as bags run it: several executions in one call, timed where they run.

Owns the clocks around them, in the worker. Seconds are those of a core of its own: what the call waited for a core that
others had is not among them, where the kernel tells.
"""

import os
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

THREAD: Final = "/proc/thread-self/schedstat"
STATUS: Final = "/proc/self/status"
_NS: Final = 1e-9


class Timing(msgspec.Struct, frozen=True):
    """What some executions took."""

    executions: int
    began: float
    """By the machine's monotonic clock."""
    seconds: float
    """Of a core of its own, all executions together."""
    waited_s: float
    """For a core, beside these; 0 where the kernel does not say."""
    peak_bytes: int
    """Most memory that the process has held; 0: not known."""
    first: bool
    """Whether the process had not run it before."""


class Timed:
    """What is sent to a worker in place of the function. It answers with a `Timing`; what the function returns is not
    sent back."""

    def __init__(self, function: Callable[..., Any], times: int = 1) -> None:
        self._function = function
        self._times = times
        self._ran = False
        self.__module__ = getattr(function, "__module__", None) or type(function).__module__
        self.__qualname__ = getattr(function, "__qualname__", None) or type(function).__qualname__

    def __reduce__(self) -> "tuple[type[Timed], tuple[Callable[..., Any], int]]":
        return Timed, (self._function, self._times)

    def __call__(self, *args: Any, **kwargs: Any) -> Timing:
        function, first, self._ran = self._function, not self._ran, True
        waited, began = _waited_s(), time.monotonic()
        for _ in range(self._times):
            function(*args, **kwargs)
        seconds, waited_s = time.monotonic() - began, _waited_s() - waited
        waited_s = min(max(waited_s, 0.0), seconds)
        return Timing(self._times, began, seconds - waited_s, waited_s, _peak_bytes(), first)


def _waited_s() -> float:
    """Seconds for which this thread could have run and had no core, since its start."""
    try:
        handle = os.open(THREAD, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(handle, 128).split()[1]) * _NS
        finally:
            os.close(handle)
    except (OSError, ValueError, IndexError):
        return 0.0


def _peak_bytes() -> int:
    try:
        with open(STATUS, "rb") as status:
            for line in status:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 0
