"""What the kernel tells of processes: which there are, what CPU time they have used, who they are.

Owns the system calls and the forms of the files. Knows nothing of containers or joules. What is not there is None.

A list of a thousand processes costs one directory and a thousand clocks, and no file is opened: the directory's inode
numbers say which processes are the same as before, since a PID that is used again gets a directory of its own.
"""

import os
from collections.abc import Iterable
from typing import Protocol

import msgspec

from wattloom.metering.proc import TICK_S, USER_HZ, busy_ticks, machine_stat, process_clock


class Machine(msgspec.Struct, frozen=True, gc=False):
    """What /proc/stat tells of all processes together."""

    busy_s: float | None
    """CPU seconds since boot. None: it does not say."""
    forks: int
    """Processes and threads that were ever started."""


class ProcessStat(msgspec.Struct, frozen=True, gc=False):
    """What /proc/<pid>/stat tells of one."""

    name: str
    parent: int
    start: int
    """Ticks since boot."""
    children_s: float
    """CPU seconds of children that it has waited for, and of theirs."""


class Kernel(Protocol):
    """What a census asks. A test may answer."""

    def listing(self) -> Iterable[tuple[int, int]]:
        """PID and inode of every process that may be seen."""

    def used_s(self, pid: int) -> float | None:
        """CPU seconds of a process, all its threads, those that ended too. None: it is gone."""

    def stat(self, pid: int) -> ProcessStat | None:
        """None: it is gone, or may not be read."""

    def text(self, pid: int, file: str) -> bytes | None:
        """`cgroup` or `cmdline`. None: it is gone, or may not be read."""

    def machine(self) -> Machine: ...


class ThisKernel:
    """The one we run on."""

    def listing(self) -> Iterable[tuple[int, int]]:
        with os.scandir("/proc") as entries:
            return [(int(entry.name), entry.inode()) for entry in entries if entry.name.isdecimal()]

    def used_s(self, pid: int) -> float | None:
        return process_clock(pid)

    def stat(self, pid: int) -> ProcessStat | None:
        text = self.text(pid, "stat")
        return None if text is None else parsed_stat(text)

    def text(self, pid: int, file: str) -> bytes | None:
        try:
            descriptor = os.open(f"/proc/{pid}/{file}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return os.read(descriptor, 4096)
        except OSError:  # it went away between the two calls
            return None
        finally:
            os.close(descriptor)

    def machine(self) -> Machine:
        try:
            return parsed_machine(machine_stat())
        except OSError:
            return Machine(None, 0)


def parsed_stat(text: bytes) -> ProcessStat | None:
    try:
        first, last = text.index(b"("), text.rindex(b")")  # a program's name may hold blanks and brackets
        fields = text[last + 2 :].split(None, 20)
        waited_for = (int(fields[13]) + int(fields[14])) * TICK_S
        return ProcessStat(text[first + 1 : last].decode(errors="replace"), int(fields[1]), int(fields[19]), waited_for)
    except (ValueError, IndexError):
        return None


def parsed_machine(text: bytes) -> Machine:
    try:
        busy = busy_ticks(text[: text.index(b"\n")]) / USER_HZ
    except (ValueError, IndexError):
        return Machine(None, 0)
    at = text.rfind(b"\nprocesses ")
    return Machine(busy, int(text[at + 11 : text.index(b"\n", at + 11)]) if at >= 0 else 0)
