"""What processes did, as the processor counts it: cycles, instructions, stalled cycles.

Owns how the kernel's perf events are opened and read (perf_event_open has no name in Python). Knows nothing of joules.
Virtual machines often count nothing: then `problem` says so, and whoever asks goes by CPU time.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

SYSCALL: Final = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
ATTR_BYTES: Final = 128
INHERIT: Final = 1 << 1
"""Threads and children that the process starts from now on are counted with it."""
TIMES: Final = 1 | 2
"""With each count, for how long it was wanted and for how long it ran: there may be fewer counters than events."""
CLOSE_ON_EXEC: Final = 1 << 3
PARANOID: Final = Path("/proc/sys/kernel/perf_event_paranoid")
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class Event(NamedTuple):
    """One thing that can be counted: the kernel's kind and number for it."""

    name: str
    kind: int
    number: int


CYCLES: Final = Event("cycles", 0, 0)
INSTRUCTIONS: Final = Event("instructions", 0, 1)
STALLED_FRONT: Final = Event("stalled cycles, front end", 0, 7)
STALLED_BACK: Final = Event("stalled cycles, back end", 0, 8)
TASK_CLOCK: Final = Event("task clock", 1, 1)
"""Counted by the kernel itself, in nanoseconds: there on every machine."""
WANTED: Final = (CYCLES, INSTRUCTIONS, STALLED_BACK, STALLED_FRONT)


def problem(event: Event = CYCLES) -> str | None:
    """Why this machine does not count the event for us, and how to allow it. None: it does."""
    found = _open(event, os.getpid())
    if isinstance(found, int):
        os.close(found)
        return None
    return found.reason


def countable(wanted: tuple[Event, ...] = WANTED) -> tuple[Event, ...]:
    """Those that this machine counts."""
    return tuple(event for event in wanted if problem(event) is None)


class ProcessCounters:
    """Counts of some processes with all their threads. Used by one thread; `close` when done."""

    def __init__(self, events: tuple[Event, ...]) -> None:
        self.events: Final = events
        self._open: dict[int, list[list[int]]] = {}
        """By process: for each of its threads a descriptor of every event."""

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, pid: int) -> bool:
        return pid in self._open

    def watch(self, pid: int) -> str | None:
        """Count this process from now on; why not, if that is refused (it is gone, or somebody else's)."""
        if pid in self._open:
            return None
        threads: list[list[int]] = []
        refused = "the process is gone"
        for thread in _threads(pid):
            found = self._watch_thread(thread)
            if isinstance(found, str):
                refused = found
            else:
                threads.append(found)
        if not threads:
            return refused
        self._open[pid] = threads
        return None

    def read(self, pid: int) -> tuple[float, ...] | None:
        """What each event has counted since `watch`. None: it is not watched, or cannot be read."""
        threads = self._open.get(pid)
        if threads is None:
            return None
        try:
            return tuple(sum(_count(thread[number]) for thread in threads) for number in range(len(self.events)))
        except OSError:
            return None

    def unwatch(self, pid: int) -> None:
        for thread in self._open.pop(pid, []):
            _close(thread)

    def close(self) -> None:
        for pid in list(self._open):
            self.unwatch(pid)

    def __enter__(self) -> "ProcessCounters":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _watch_thread(self, thread: int) -> list[int] | str:
        """A descriptor of every event; all or none."""
        opened: list[int] = []
        for event in self.events:
            found = _open(event, thread)
            if not isinstance(found, int):
                _close(opened)
                return found.reason
            opened.append(found)
        return opened


class _Refused(NamedTuple):
    reason: str


def _open(event: Event, thread: int) -> int | _Refused:
    """A descriptor that counts the event in a thread, on whatever CPU it runs."""
    number = SYSCALL.get(platform.machine())
    if number is None or sys.platform != "linux":
        return _Refused(f"perf events are not known to us on {platform.machine()}")
    wanted = struct.pack("<IIQQQQQ", event.kind, ATTR_BYTES, event.number, 0, 0, TIMES, INHERIT)
    attributes = ctypes.create_string_buffer(wanted.ljust(ATTR_BYTES, b"\0"), ATTR_BYTES)
    found = int(_LIBC.syscall(number, attributes, thread, -1, -1, CLOSE_ON_EXEC))
    return found if found >= 0 else _Refused(_in_words(event, ctypes.get_errno()))


def _in_words(event: Event, code: int) -> str:
    if code in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL):
        return f"this machine does not count {event.name}: most virtual machines show their guests no counters"
    if code in (errno.EACCES, errno.EPERM):
        return (
            f"counting {event.name} is not allowed here (kernel.perf_event_paranoid is {_paranoid()}). To allow it "
            "until the next boot: sudo sysctl kernel.perf_event_paranoid=1; or for one program: "
            "sudo setcap cap_perfmon+ep on the python that runs it"
        )
    if code == errno.ESRCH:
        return "the process is gone"
    if code in (errno.EMFILE, errno.ENFILE):
        return "too many files are open: fewer processes can be counted (ulimit -n)"
    return f"{event.name} cannot be counted: {os.strerror(code)}"


def _paranoid() -> str:
    try:
        return PARANOID.read_text().strip()
    except OSError:
        return "unknown"


def _threads(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    return []


def _count(descriptor: int) -> float:
    """Scaled up for the time in which other events had the counter."""
    count, wanted, ran = struct.unpack("<QQQ", os.read(descriptor, 24))
    return float(count) if ran >= wanted or ran == 0 else count * (wanted / ran)


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)
