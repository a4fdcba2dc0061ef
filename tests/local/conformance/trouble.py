"""Work that goes wrong: errors, values that cannot be sent or received, and tasks that end their worker.

Owns the trouble; like the tasks, it can be imported by any worker process and knows no executor.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

from tests.local.conformance.tasks import PATIENCE_S, divide


def fail_deep_inside(depth: int) -> NoReturn:
    if depth:
        fail_deep_inside(depth - 1)
    raise ValueError("from far away")  # this comment shows in the traceback


def fail_with_a_cause() -> float:
    try:
        return divide(1, 0)
    except ZeroDivisionError as error:
        raise KeyError("outer") from error


def leave_by_system_exit(code: int) -> NoReturn:
    raise SystemExit(code)


def interrupt_itself() -> NoReturn:
    raise KeyboardInterrupt


class TwoWords(Exception):
    """Pickles, but cannot be unpickled: its constructor wants more than it remembers."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)
        self.second = second


class HoldsALock(Exception):
    """Cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("with a lock")
        self.lock = threading.Lock()


class Tagged(Exception):
    """Well behaved, with a field of its own."""

    def __init__(self, message: str, tag: int) -> None:
        super().__init__(message, tag)
        self.tag = tag


def raise_two_words() -> NoReturn:
    raise TwoWords("one", "two")


def raise_with_a_lock() -> NoReturn:
    raise HoldsALock


def raise_tagged(tag: int) -> NoReturn:
    raise Tagged("tagged", tag)


def make_a_lock() -> Any:
    return threading.Lock()


def refuse() -> NoReturn:
    raise ArithmeticError("refuses to be unpickled")


class RefusesToArrive:
    """Can be sent, cannot be received."""

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return refuse, ()


class RefusesToLeave:
    """Cannot be sent: says so with an error of its own."""

    def __reduce__(self) -> NoReturn:
        raise ArithmeticError("refuses to be pickled")


def make_one_that_refuses_to_arrive() -> RefusesToArrive:
    return RefusesToArrive()


def die_by_signal(number: int = signal.SIGKILL) -> NoReturn:
    os.kill(os.getpid(), number)
    signal.pause()
    raise AssertionError("still alive")


def die_by_exit(code: int) -> NoReturn:
    os._exit(code)


def write_pid_and_wait(path: str) -> NoReturn:
    Path(path).write_text(str(os.getpid()))
    time.sleep(PATIENCE_S)
    raise TimeoutError("nobody killed this worker")


def die_after(seconds: float) -> NoReturn:
    time.sleep(seconds)
    die_by_exit(1)


class DiesOnArrival:
    """Ends the process that receives it."""

    def __reduce__(self) -> tuple[Any, tuple[int]]:
        return os._exit, (1,)


class DiesOnLeaving:
    """Ends the process that sends it."""

    def __reduce__(self) -> NoReturn:
        die_by_exit(1)


class LeavesOnArrival:
    """Asks the process that receives it to exit, politely."""

    def __reduce__(self) -> tuple[Any, tuple[int]]:
        return sys.exit, (1,)
