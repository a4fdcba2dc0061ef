"""Single keys from a terminal, without Enter and without being shown.

Owns the terminal's mode while it is in use, and restores it whatever happens.
"""

import os
import select
import sys
import termios
import tty
from time import sleep
from types import TracebackType
from typing import Any


class Keyboard:
    """Keys while in use. Where there is no terminal to type at, it only waits."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def __enter__(self) -> "Keyboard":
        if sys.stdin.isatty():
            self._before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self._before is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)

    def wait(self, seconds: float) -> str:
        """The next key, or nothing if none comes in time. The end of the terminal is a `q`."""
        seconds = max(seconds, 0.0)
        if self._before is None:
            sleep(seconds)
            return ""
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        if not ready:
            return ""
        return os.read(sys.stdin.fileno(), 1).decode(errors="replace") or "q"
