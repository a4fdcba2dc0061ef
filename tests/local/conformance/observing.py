"""What the conformance tests look at from outside: did it happen in time, and what is left of it.

Owns waiting for a condition, and the list of threads, processes and open files of this program. It knows no executor.
"""

import gc
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 5.0


def eventually(happens: Callable[[], bool], within_s: float = PATIENCE_S) -> bool:
    """True as soon as it happens; False if it does not happen in time."""
    until = time.monotonic() + within_s
    while not happens():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def _parent_and_state(stat: Path) -> tuple[int, str] | None:
    try:
        after_the_name = stat.read_text().rpartition(")")[2].split()
    except OSError:  # it ended while we looked
        return None
    return int(after_the_name[1]), after_the_name[0]


def is_alive(pid: int) -> bool:
    """A process that ended and waits for its parent to take note (a zombie) is not alive."""
    found = _parent_and_state(Path(f"/proc/{pid}/stat"))
    return found is not None and found[1] not in "ZX"


def all_gone(pids: Iterable[int]) -> bool:
    return not any(is_alive(pid) for pid in pids)


def descendants() -> frozenset[int]:
    """Every process below this one, zombies too: a zombie is something left behind."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        if (found := _parent_and_state(stat)) is not None:
            parents[int(stat.parent.name)] = found[0]
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return frozenset(below - {os.getpid()})


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@dataclass(frozen=True)
class Surroundings:
    """Threads, processes and open files at one moment."""

    threads: frozenset[threading.Thread]
    processes: frozenset[int]
    open_files: int

    @classmethod
    def now(cls) -> "Surroundings":
        gc.collect()
        return cls(frozenset(threading.enumerate()), descendants(), _open_files())

    def added_since(self) -> str:
        """Names what there is now and was not then; empty if nothing was left behind."""
        gc.collect()
        left = [f"thread {thread.name}" for thread in threading.enumerate() if thread not in self.threads]
        left += [f"process {pid}" for pid in descendants() - self.processes]
        if (more := _open_files() - self.open_files) > 0:
            left.append(f"{more} open files")
        return ", ".join(left)

    def are_restored(self) -> bool:
        return eventually(lambda: not self.added_since())
