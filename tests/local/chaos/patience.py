"""A hang is a failure, with the traceback of where it hangs.

Owns the alarm that a test is under.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def within_seconds(seconds: int) -> Iterator[None]:
    """Raises TimeoutError in the main thread when they have passed."""

    def give_up(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"the test hangs: more than {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
