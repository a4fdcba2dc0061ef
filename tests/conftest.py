"""What holds for every test: the signals its children begin with; and how workers find `tests/beds`.

A child inherits signals that its parent ignores, as under nohup or in the background of a script, and nobody could then
interrupt what a test starts. A signal that is handled, if only by doing nothing, is not inherited.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

ROOT = Path(__file__).parents[1]


def pytest_configure() -> None:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _ignore)


def _ignore(number: int, frame: FrameType | None) -> None:
    """As before for this process; its children begin as if nobody had ignored anything."""


@pytest.fixture(scope="module")
def beds_are_found() -> Iterator[None]:
    """Workers of an executor find functions of `tests.beds`, whoever started the tests and how."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        patch.syspath_prepend(ROOT)
        yield
