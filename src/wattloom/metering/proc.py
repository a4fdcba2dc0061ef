"""CPU time as the kernel counts it: of the machine, of a process, of its children.

Owns how /proc is read. Knows nothing of joules. What is not there is None.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Final

USER_HZ: Final = 100
"""Ticks per second in /proc, the same on every architecture Wattloom runs on."""
TICK_S: Final = 1.0 / USER_HZ
_NS: Final = 1e-9
_BUSY: Final = (1, 2, 3, 6, 7)
"""user, nice, system, irq, softirq. Not steal (another guest had the CPU), and guest time is in user already."""


def busy_seconds(proc: Path, cpus: Collection[int] | None = None) -> float | None:
    """CPU seconds that were busy since boot, of all CPUs or of some."""
    try:
        text = (proc / "stat").read_bytes()
        if cpus is None:
            return _busy_ticks(text[: text.index(b"\n")]) / USER_HZ
        wanted = {b"cpu%d" % cpu for cpu in cpus}
        lines = text[: text.index(b"\nintr") if b"\nintr" in text else len(text)].split(b"\n")
        found = [_busy_ticks(line) for line in lines if line.partition(b" ")[0] in wanted]
    except (OSError, ValueError, IndexError):
        return None
    return sum(found) / USER_HZ if len(found) == len(wanted) else None


def _busy_ticks(line: bytes) -> int:
    fields = line.split()
    if not fields[0].startswith(b"cpu"):
        raise ValueError("not a line of CPU times")
    return sum(int(fields[index]) for index in _BUSY)


def process_seconds(folder: Path) -> float | None:
    """CPU seconds of a process, all its threads, those that have ended too. None: it is gone."""
    fields = _stat(folder)
    if fields is None:
        return None
    # schedstat counts nanoseconds, but of the first thread only; stat counts ticks of all. The larger one is right.
    return max((fields[11] + fields[12]) * TICK_S, _first_thread(folder))


def family_seconds(folder: Path) -> float | None:
    """CPU seconds of a process, of the children it has waited for, and of those that still run where /proc tells."""
    fields = _stat(folder)
    if fields is None:
        return None
    own = max((fields[11] + fields[12]) * TICK_S, _first_thread(folder))
    return own + (fields[13] + fields[14]) * TICK_S + _living_children(folder)


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
