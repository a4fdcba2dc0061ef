"""Processes of a chaos run, seen from outside through /proc.

Owns the mark by which they are known: a variable in their environment, which everything they start inherits.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

MARK = "WATTLOOM_CHAOS_MARK"
WORKER = b"wattloom.local.worker"


def marked(mark: str) -> list[int]:
    """All that live; one that is dead and not yet buried does not."""
    wanted = f"{MARK}={mark}".encode()
    return [pid for pid in _all() if wanted in _read(pid, "environ").split(b"\0") and _stat(pid)[:1] != ["Z"]]


def workers_of(parent: int) -> list[int]:
    return [pid for pid in _all() if _stat(pid)[1:2] == [str(parent)] and WORKER in _read(pid, "cmdline").split(b"\0")]


def group_of(leader: int) -> list[int]:
    """Those in its process group that live."""
    return [pid for pid in _all() if (found := _stat(pid))[2:3] == [str(leader)] and found[0] != "Z"]


def within(seconds: float, happens: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while not happens():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def _all() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _stat(pid: int) -> list[str]:
    """State, parent, group and so on."""
    return _read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
