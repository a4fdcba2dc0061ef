"""A kernel whose processes a test starts, runs and ends, and a census that says what it is told."""

from collections.abc import Iterable
from itertools import count as numbers
from pathlib import Path

from wattloom.monitoring.census import Count, Exited
from wattloom.monitoring.cgroup_names import Place
from wattloom.monitoring.kernel import Machine, ProcessStat
from wattloom.monitoring.process import Process


class _One:
    def __init__(self, pid: int, parent: int, start: int, inode: int, cgroup: str, command: str) -> None:
        self.pid, self.parent, self.start, self.inode = pid, parent, start, inode
        self.cgroup, self.command = cgroup, command
        self.used_s = self.children_s = 0.0


class ScriptedKernel:
    """Accounts as Linux does: a child's whole CPU time goes to the parent that waits for it."""

    def __init__(self) -> None:
        self._inodes, self._ticks = numbers(100), numbers(1000)
        self.processes: dict[int, _One] = {}
        self.busy_s = 0.0
        self.forks = 0
        self.hidden: set[int] = set()
        self.start(1, 0, command="init")

    def start(self, pid: int, parent: int = 1, cgroup: str = "0::/", command: str = "prog") -> None:
        self.forks += 1
        self.processes[pid] = _One(pid, parent, next(self._ticks), next(self._inodes), cgroup, command)

    def run(self, pid: int, seconds: float) -> None:
        self.processes[pid].used_s += seconds
        self.busy_s += seconds

    def end(self, pid: int, waited_for: bool = True) -> None:
        one = self.processes.pop(pid)
        for child in self.processes.values():
            child.parent = 1 if child.parent == pid else child.parent
        if waited_for:
            self.processes[one.parent].children_s += one.used_s + one.children_s

    def forget_directories(self) -> None:
        """The kernel needs memory: directories of /proc get new inodes when they are looked at again."""
        for one in self.processes.values():
            one.inode = next(self._inodes)

    # -- what a census asks ------------------------------------------------------------------------------------------

    def listing(self) -> Iterable[tuple[int, int]]:
        return [(one.pid, one.inode) for one in self.processes.values()]

    def used_s(self, pid: int) -> float | None:
        return self.processes[pid].used_s if pid in self.processes else None

    def stat(self, pid: int) -> ProcessStat | None:
        one = self.processes.get(pid)
        if one is None or pid in self.hidden:
            return None
        return ProcessStat(one.command.split()[0], one.parent, one.start, one.children_s)

    def text(self, pid: int, file: str) -> bytes | None:
        one = self.processes.get(pid)
        if one is None or pid in self.hidden:
            return None
        return (one.cgroup + "\n").encode() if file == "cgroup" else one.command.replace(" ", "\0").encode()

    def machine(self) -> Machine:
        return Machine(self.busy_s, self.forks)


class GroupTree:
    """Control groups of version 2, on disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        (root / "cgroup.controllers").write_text("cpu memory\n")

    def use(self, path: str, seconds: float) -> None:
        """The group, and all around it, have used so much more."""
        place = self.root / path.strip("/")
        place.mkdir(parents=True, exist_ok=True)
        for folder in (place, *place.parents):
            if folder == self.root:
                return
            file = folder / "cpu.stat"
            before = int(file.read_text().split()[1]) if file.exists() else 0
            file.write_text(f"usage_usec {before + round(seconds * 1e6)}\nuser_usec 0\nsystem_usec 0\n")

    def set(self, path: str, file: str, text: str) -> None:
        (self.root / path.strip("/") / file).write_text(f"{text}\n")

    def remove(self, path: str) -> None:
        for file in (self.root / path.strip("/")).iterdir():
            file.unlink()
        (self.root / path.strip("/")).rmdir()


class ScriptedCensus:
    """Says who ran, as the test says."""

    def __init__(self) -> None:
        self.living: dict[int, Process] = {}
        self.busy_s = 0.0
        self._inodes = numbers(1)
        self._used: dict[Process, float] = {}
        self._exited: list[Exited] = []
        self.cores: dict[Place, float] = {}

    def start(self, pid: int, place: Place | None = None) -> Process:
        """A PID that is there already is used again: the old one has ended."""
        process = Process(pid, next(self._inodes))
        process.meet(None)
        process.name = f"p{pid}"
        process.place = place or Place()
        self.living[pid] = process
        return process

    def run(self, pid: int, seconds: float) -> None:
        process = self.living[pid]
        self._used[process] = self._used.get(process, 0.0) + seconds
        self.busy_s += seconds

    def came_and_went(self, place: Place, seconds: float, parent: str = "") -> None:
        self._exited.append(Exited(place, seconds, parent))
        self.busy_s += seconds

    def end(self, pid: int) -> None:
        self.living.pop(pid, None)

    def reserved(self, place: Place) -> float:
        return self.cores.get(place, 0.0)

    def sample(self) -> Count:
        used, self._used = self._used, {}
        exited, self._exited = self._exited, []
        return Count(tuple(used.items()), tuple(exited), (), self.busy_s, len(self.living), 0)
