"""CPU time as the kernel counts it: of the machine, of a process, of its children.

Owns how /proc and the clocks of processes are read. Knows nothing of joules. What is not there is None.

Reading a file lets other threads have the interpreter, and it may be long until they give it back: so as few files are
read as will do, and files that are read again stay open.
"""

import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

USER_HZ: Final = 100
"""Ticks per second in /proc, the same on every architecture Wattloom runs on."""
TICK_S: Final = 1.0 / USER_HZ
_NS: Final = 1e-9
PROC: Final = Path("/proc")
STAT_BYTES: Final = 1 << 18
CPU_CLOCK: Final = 2
"""Of the three clocks of a process, the one that the scheduler keeps, in nanoseconds."""
_OPEN: Final[list[int]] = []
_BUSY: Final = (1, 2, 3, 6, 7)
"""user, nice, system, irq, softirq. Not steal (another guest had the CPU), and guest time is in user already."""


def busy_seconds(proc: Path, cpus: Collection[int] | None = None) -> float | None:
    """CPU seconds that were busy since boot, of all CPUs or of some."""
    try:
        text = machine_stat() if proc == PROC else (proc / "stat").read_bytes()
        if cpus is None:
            return busy_ticks(text[: text.index(b"\n")]) / USER_HZ
        wanted = {b"cpu%d" % cpu for cpu in cpus}
        lines = text[: text.index(b"\nintr") if b"\nintr" in text else len(text)].split(b"\n")
        found = [busy_ticks(line) for line in lines if line.partition(b" ")[0] in wanted]
    except (OSError, ValueError, IndexError):
        return None
    return sum(found) / USER_HZ if len(found) == len(wanted) else None


def busy_ticks(line: bytes) -> int:
    """Of a line `cpu` or `cpu0` of /proc/stat. ValueError, IndexError: it is none."""
    fields = line.split()
    if not fields[0].startswith(b"cpu"):
        raise ValueError("not a line of CPU times")
    return sum(int(fields[index]) for index in _BUSY)


def machine_stat() -> bytes:
    """The machine's own /proc/stat, which stays open."""
    if not _OPEN:
        _OPEN.append(os.open("/proc/stat", os.O_RDONLY | os.O_CLOEXEC))
    return os.pread(_OPEN[0], STAT_BYTES, 0)


def process_seconds(folder: Path) -> float | None:
    """CPU seconds of a process, all its threads, those that have ended too. None: it is gone."""
    if folder.parent == PROC:
        return time.process_time() if folder.name == "self" else process_clock(int(folder.name))
    fields = _stat(folder)
    if fields is None:
        return None
    # schedstat counts nanoseconds, but of the first thread only; stat counts ticks of all. The larger one is right.
    return max((fields[11] + fields[12]) * TICK_S, _first_thread(folder))


def children_seconds(folder: Path) -> float | None:
    """CPU seconds of the children a process has waited for, and of those that still run where /proc tells. None: it is
    gone."""
    fields = _stat(folder)
    return None if fields is None else (fields[13] + fields[14]) * TICK_S + _living_children(folder)


def family_seconds(folder: Path) -> float | None:
    """CPU seconds of a process and of its children."""
    own, children = process_seconds(folder), children_seconds(folder)
    return None if own is None or children is None else own + children


def process_clock(pid: int) -> float | None:
    """A process's CPU clock: its number is made from the process's (see clock_getcpuclockid in the C library)."""
    try:
        return time.clock_gettime((~pid << 3) | CPU_CLOCK)
    except OSError:
        return None


def _stat(folder: Path) -> list[int] | None:
    """Fields of `stat` from the state on, with the state as 0."""
    try:
        text = (folder / "stat").read_bytes()
        fields = text[text.rindex(b")") + 2 :].split()  # a program's name may hold blanks and brackets
        return [0, *map(int, fields[1:15])]
    except (OSError, ValueError):
        return None


def _first_thread(folder: Path) -> float:
    try:
        return int((folder / "schedstat").read_bytes().split()[0]) * _NS
    except (OSError, ValueError, IndexError):
        return 0.0


def _living_children(folder: Path) -> float:
    """Children that the first thread started, and theirs. Needs a kernel with CONFIG_PROC_CHILDREN; else 0."""
    try:
        pids = (folder / "task" / folder.name / "children").read_bytes().split()
    except OSError:
        return 0.0
    return sum(family_seconds(folder.parent / pid.decode()) or 0.0 for pid in pids)
