"""What holds for every test: the signals its children begin with.

A child inherits signals that its parent ignores, as under nohup or in the background of a script, and nobody could then
interrupt what a test starts. A signal that is handled, if only by doing nothing, is not inherited.
"""

import signal
from types import FrameType


def pytest_configure() -> None:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _ignore)


def _ignore(number: int, frame: FrameType | None) -> None:
    """As before for this process; its children begin as if nobody had ignored anything."""
