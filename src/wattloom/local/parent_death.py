"""Workers do not outlive the program, however it dies.

Owns both ropes between them: one that a worker ties itself to its parent with, and one that the parent holds, for
children of a worker that has died before. The kernel does the rest: no thread of ours need be alive.
"""

import fcntl
import os
import signal
from contextlib import suppress
from threading import Thread
from typing import Final

F_SETSIG: Final = 10
"""Which signal a descriptor sends; Python has no name for it."""


def die_with(lifeline: int) -> None:
    """Have the kernel kill this process and its children when the other end of the pipe is closed, however it dies.

    All workers inherit one description of the pipe, and a description has one owner: so this worker opens its own.
    """
    inherited, lifeline = lifeline, os.open(f"/proc/self/fd/{lifeline}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.close(inherited)
    try:
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
        if os.read(lifeline, 1) == b"":  # it was closed before we asked to be told
            os._exit(1)
    except BlockingIOError:
        pass
    except OSError:
        Thread(target=_wait_for_the_end, args=(lifeline,), daemon=True).start()


def _wait_for_the_end(lifeline: int) -> None:
    os.set_blocking(lifeline, True)
    os.read(lifeline, 1)
    os.killpg(0, signal.SIGKILL)


def tie_to_us(group: int) -> tuple[int, int]:
    """Have the kernel kill a worker and all it started when this process dies, even if the worker has died before.

    Both ends of a pipe are ours alone. When we die the kernel closes the later one first, and signals the group on
    behalf of the other. Either end is returned, to be closed in this order when the worker is gone.
    """
    read, write = os.pipe()
    with suppress(OSError):
        fcntl.fcntl(read, fcntl.F_SETOWN, -group)
        fcntl.fcntl(read, F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(read, fcntl.F_SETFL, fcntl.fcntl(read, fcntl.F_GETFL) | os.O_ASYNC)
    return read, write
