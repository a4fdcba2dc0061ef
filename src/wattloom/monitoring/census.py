"""Who has used CPU time since the last look: processes that live, and those that came and went.

Owns the list of living processes from look to look. Every CPU second is counted once: by the process's own clock while
it is seen, else by the control group that counts it, else by the parent that waited for it. Knows nothing of joules and
has no clock.
"""

from typing import Final

import msgspec

from wattloom.monitoring.cgroup_names import Place, place_of
from wattloom.monitoring.cgroups import ControlGroups
from wattloom.monitoring.child_time import capped, unseen
from wattloom.monitoring.group_counts import GroupCounts
from wattloom.monitoring.kernel import Kernel, Machine, ProcessStat, ThisKernel
from wattloom.monitoring.process import Process

SETTLED: Final = 3
"""Looks after which a new process is taken to be where it will stay."""
ROUND: Final = 60
"""In so many looks everybody is asked again where they belong."""
CARRIED_S: Final = 0.5
"""CPU seconds of nobody that a later look may still give to somebody."""
CHILDLESS: Final = 5
"""In so many looks those are asked once that were never seen to have children: their count keeps what they miss."""
FEW: Final = 200
"""As long as no more than so many have run, all are asked at every look."""


class Exited(msgspec.Struct, frozen=True, gc=False):
    """CPU time of processes that were not seen, or of the ends of such that were."""

    place: Place
    cpu_s: float
    parent: str = ""
    """Name of the process that waited for them. Empty: the control group counted them."""


class Count(msgspec.Struct, frozen=True):
    """One look."""

    used: tuple[tuple[Process, float], ...]
    """Who ran, and for how many CPU seconds since the last look."""
    exited: tuple[Exited, ...]
    ended: tuple[Process, ...]
    """Who was there at the last look and is not any more."""
    busy_s: float | None
    """CPU seconds of the whole machine since boot."""
    living: int
    hidden: int
    """Of the living, those we may not read: they have CPU time, but neither name nor place."""


class Census:
    """Sample about once a second. The first sample only takes down who is there."""

    def __init__(self, kernel: Kernel | None = None, groups: ControlGroups | None = None) -> None:
        self._kernel: Final = kernel or ThisKernel()
        self._groups: Final = groups or ControlGroups()
        self._counts: Final = GroupCounts(self._groups)
        self._living: dict[int, Process] = {}
        self._reserved: dict[str, float] = {}
        """Cores by group."""
        self._looks = 0
        self._forks = -1
        self._stirred = 0
        """The last look before which somebody came or went."""
        self._machine_s: float | None = None
        self._known_s = 0.0
        """CPU seconds since the first look that somebody is known to have used."""

    @property
    def living(self) -> dict[int, Process]:
        return self._living

    def reserved(self, place: Place) -> float:
        """Cores set aside for the group of a place. It seldom changes, and is read anew once in a while."""
        known = self._reserved.get(place.group)
        if known is None:
            known = self._reserved[place.group] = self._counts.reserved(place.group) or 0.0
        return known

    def sample(self) -> Count:
        self._counts.read()
        root_s, machine = self._groups.used_s("/"), self._kernel.machine()
        used, ended = self._see()
        exited = [Exited(self._place(path), seconds) for path, seconds in self._counts.unseen().items()]
        self._known_s += sum(seconds for _, seconds in used) + sum(each.cpu_s for each in exited)
        whole_s = root_s if root_s is not None else machine.busy_s
        if machine.forks != self._forks or ended:
            self._stirred = self._looks
        if self._looks and self._looks - self._stirred < CHILDLESS:
            exited += self._children(used, ended, self._unclaimed(whole_s))
        if self._looks == 0:
            self._machine_s, self._known_s = whole_s, 0.0
            used, exited = [], []
        elif whole_s is not None and self._machine_s is not None:
            self._known_s = max(self._known_s, whole_s - self._machine_s - CARRIED_S)
        self._looks += 1
        self._forks = machine.forks
        if self._looks % ROUND == 0:
            self._reserved.clear()  # names of groups that are gone
        return self._count(used, exited, ended, machine)

    # -- who is there ------------------------------------------------------------------------------------------------

    def _see(self) -> tuple[list[tuple[Process, float]], list[Process]]:
        """Who ran, and who is gone."""
        living, now = self._living, {}
        clock = self._kernel.used_s
        used: list[tuple[Process, float]] = []
        turn = self._looks % ROUND
        for pid, inode in self._kernel.listing():
            process = living.get(pid)
            if process is None or process.inode != inode:
                process = self._newcomer(pid, inode, process)
            seconds = clock(pid)
            if seconds is None:
                continue  # it ended while we looked
            now[pid] = process
            if seconds > process.used_s:
                used.append((process, seconds - process.used_s))
                process.used_s = seconds
            if process.age < SETTLED or pid % ROUND == turn:
                self._ask_again(process)
            process.age += 1
            self._counts.alive(process.place.group)
        self._living = now
        for process, seconds in used:
            self._counts.charge(process.place.group, seconds)
        return used, [process for pid, process in living.items() if now.get(pid) is not process]

    def _newcomer(self, pid: int, inode: int, before: Process | None) -> Process:
        stat = self._kernel.stat(pid)
        if before is not None and stat is not None and self._is_still(before, stat):
            before.inode = inode
            return before
        process = Process(pid, inode)
        process.meet(stat)
        if self._looks == 0:
            process.used_s = self._kernel.used_s(pid) or 0.0
            process.age = SETTLED
            self._ask_again(process)
        else:
            process.children_s = 0.0  # what it waited for was after the last look too
        return process

    def _is_still(self, process: Process, stat: ProcessStat) -> bool:
        """The kernel had merely forgotten the directory; unless the clock went back: starts are told in ticks."""
        return stat.start == process.start and (self._kernel.used_s(process.pid) or 0.0) >= process.used_s

    def _ask_again(self, process: Process) -> None:
        if process.age and process.age < SETTLED:
            stat = self._kernel.stat(process.pid)
            if stat is not None and stat.start == process.start:
                process.name, process.parent = stat.name, stat.parent
        process.settle(self._kernel, self._groups)
        self._counts.meet(process)

    def _place(self, path: str) -> Place:
        return place_of(path)

    # -- who came and went -------------------------------------------------------------------------------------------

    def _unclaimed(self, whole_s: float | None) -> float:
        """CPU seconds of the machine that nobody is known to have used."""
        if whole_s is None or self._machine_s is None:
            return 0.0
        return max(whole_s - self._machine_s - self._known_s, 0.0)

    def _children(self, used: list[tuple[Process, float]], ended: list[Process], most_s: float) -> list[Exited]:
        """Of those whose group counts nothing: what their parents waited for. Only who ran can have waited."""
        self._adopt(ended)
        gains: dict[Process, float] = {}
        parents = {process.parent for process in (*self._living.values(), *ended)}
        few, turn = len(used) <= FEW, self._looks % CHILDLESS
        for process, _ in used:
            likely = few or process.children_s > 0.0 or process.pid in parents or process.pid % CHILDLESS == turn
            if not likely or self._counts.counts(process.place.group):
                continue
            stat = self._kernel.stat(process.pid)
            if stat is not None and stat.start == process.start and stat.children_s > process.children_s:
                gains[process] = stat.children_s - process.children_s
                process.children_s = stat.children_s
        if not gains:
            return []
        claims = capped(unseen(gains, (*ended, *self._ended_since(gains, ended)), self._living), most_s)
        self._known_s += sum(claims.values())
        return [Exited(parent.place, seconds, parent.name) for parent, seconds in claims.items()]

    def _adopt(self, ended: list[Process]) -> None:
        """Children of those that ended have a new parent."""
        gone = {process.pid for process in ended}
        for process in self._living.values() if gone else ():
            if process.parent in gone:
                stat = self._kernel.stat(process.pid)
                if stat is not None and stat.start == process.start:
                    process.parent = stat.parent

    def _ended_since(self, parents: dict[Process, float], ended: list[Process]) -> list[Process]:
        """Children that were seen at this look and ended before their parents were asked."""
        pids = {parent.pid for parent in parents}
        mine = [process for process in self._living.values() if process.parent in pids]
        found = [process for process in mine if self._kernel.used_s(process.pid) is None]
        for process in found:
            del self._living[process.pid]
        ended += found
        return found

    def _count(
        self, used: list[tuple[Process, float]], exited: list[Exited], ended: list[Process], machine: Machine
    ) -> Count:
        hidden = sum(process.hidden for process in self._living.values())
        return Count(tuple(used), tuple(exited), tuple(ended), machine.busy_s, len(self._living), hidden)
