"""What control groups have counted beyond the processes that were seen in them: those that came and went.

Owns the sums per group since it was first seen. A group's count holds that of the groups inside it, and of groups and
processes that are gone. Only what is left over all looks together counts as unseen: single looks read the group and its
processes at slightly different moments.
"""

from typing import Final

from wattloom.monitoring.cgroups import ControlGroups, above
from wattloom.monitoring.process import Process

KEEP_EMPTY: Final = 3
"""Looks for which a group without processes is still asked: its last ones may have ended since."""


class _Group:
    __slots__ = ("began_s", "charged_s", "empty", "fresh", "last_s", "parent", "used_s")

    def __init__(self, began_s: float, parent: str) -> None:
        self.began_s = began_s
        self.used_s = 0.0
        """Since it was first seen."""
        self.last_s = 0.0
        """Rise at this look."""
        self.charged_s = 0.0
        """Of that, what is known to be of seen processes, groups inside, or was given out as unseen."""
        self.empty = 0
        self.fresh = True
        """First seen at this look: what its processes have used so far stands in the group around it."""
        self.parent = parent


class GroupCounts:
    """Say `read` before the processes are looked at, then `charge` for each, then `unseen`."""

    def __init__(self, groups: ControlGroups) -> None:
        self._groups = groups
        self._known: dict[str, _Group] = {}
        self._uncounted: set[str] = {"/"}

    def counts(self, path: str) -> bool:
        """Whether a group's CPU time is counted, as far as is known."""
        return path in self._known

    def read(self) -> None:
        for path, group in list(self._known.items()):
            used = self._groups.used_s(path)
            if used is None or group.empty > KEEP_EMPTY:  # removed, or empty for long
                self._drop(path)
                continue
            rise = max(used - group.began_s - group.used_s, 0.0)
            group.used_s, group.last_s = group.used_s + rise, rise
            group.empty += 1
            group.fresh = False
        for group in self._known.values():
            above_it = self._known.get(group.parent)
            if above_it is not None:
                above_it.charged_s += group.last_s

    def meet(self, process: Process) -> None:
        """A process has come, or has moved: its group is followed from now on."""
        path = process.place.group
        for each in (path, *above(path)):
            if each not in self._known and each not in self._uncounted:
                self._follow(each)
        self.alive(path)

    def alive(self, path: str) -> None:
        while (group := self._known.get(path)) is not None:
            group.empty = 0
            path = group.parent

    def charge(self, path: str, seconds: float) -> None:
        """A seen process of the group has used so much."""
        group = self._known.get(path)
        while group is not None and group.fresh:
            group = self._known.get(group.parent)
        if group is not None:
            group.charged_s += seconds

    def unseen(self) -> dict[str, float]:
        """CPU seconds by group that were of nobody who was seen."""
        found: dict[str, float] = {}
        for path, group in self._known.items():
            left = group.used_s - group.charged_s
            if left > 0.0:
                found[path] = left
                group.charged_s += left
        return found

    def reserved(self, path: str) -> float | None:
        return self._groups.reserved(path)

    def _follow(self, path: str) -> None:
        used = self._groups.used_s(path)
        if used is None:
            self._uncounted.add(path)
            return
        outer = [each for each in above(path) if each not in self._uncounted]
        self._known[path] = _Group(used, outer[0] if outer else "")

    def _drop(self, path: str) -> None:
        self._groups.close(path)
        del self._known[path]
        if len(self._uncounted) > 10_000:  # names of groups that are long gone
            self._uncounted = {"/"}
