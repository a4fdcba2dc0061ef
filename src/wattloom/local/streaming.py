"""Output of a command on its way: read as it comes, passed on at once, and the end of it kept.

Owns pipes and pseudo-terminals. A command whose output goes to a terminal gets a terminal, so that it shows its bars
and colours; what goes to one place in the end goes through one of them, so that its order stays.
"""

import fcntl
import os
import pty
import struct
import termios
from contextlib import suppress
from typing import Final

READ_AT_ONCE: Final = 1 << 16
MOST_KEPT: Final = 64 * 1024


class Stream:
    """From the command to a descriptor. `to` None: it is only kept."""

    def __init__(self, to: int | None) -> None:
        self._to = to
        self.kept: Final = bytearray()
        """The last bytes of it."""
        self.read_end, self.write_end = _terminal_like(to) if to is not None and os.isatty(to) else os.pipe()
        self._open = [self.read_end, self.write_end]

    def pass_on(self) -> bool:
        """What is there now; whether more may come and somebody wants it."""
        try:
            data = os.read(self.read_end, READ_AT_ONCE)
        except OSError:  # a terminal that nobody has open any more
            return False
        self.kept.extend(data)
        del self.kept[:-MOST_KEPT]
        return bool(data) and self._write(data)

    def _write(self, data: bytes) -> bool:
        if self._to is None:
            return True
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._to, left) :]
            except BlockingIOError:
                _wait_for_room(self._to)
            except OSError:  # nobody reads it, or the disk is full
                return False
        return True

    def close_write_end(self) -> None:
        self._close(self.write_end)

    def close(self) -> None:
        self._close(self.read_end)
        self._close(self.write_end)

    def _close(self, end: int) -> None:
        if end in self._open:
            self._open.remove(end)
            os.close(end)


def streams_for(out: int | None, err: int | None) -> tuple[Stream, Stream]:
    """For standard output and standard error: twice the same if both go to the same place."""
    first = Stream(out)
    return first, first if _same(out, err) else Stream(err)


def _same(one: int | None, other: int | None) -> bool:
    if one is None or other is None:
        return one is other
    return os.path.sameopenfile(one, other)


def _terminal_like(real: int) -> tuple[int, int]:
    """A terminal as wide as the real one, that changes nothing: the real one does."""
    master, slave = pty.openpty()
    with suppress(OSError, termios.error):
        modes = termios.tcgetattr(slave)
        modes[1] &= ~termios.OPOST
        termios.tcsetattr(slave, termios.TCSANOW, modes)
        size = fcntl.ioctl(real, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
    return master, slave


def _wait_for_room(descriptor: int) -> None:
    """Whoever gave it to us may have made it non-blocking."""
    from select import select

    select([], [descriptor], [])
