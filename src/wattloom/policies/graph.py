"""The graph of tasks as a policy may look at it: who comes after whom, how long the way is, and who has time.

Owns the lengths of ways through the graph. They are worked out when somebody asks, from forecast seconds, and kept
until the graph or a forecast changes. A way that has a task of unknown length has an unknown length.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Final

from wattloom.energy.forecast import Unknown
from wattloom.policies.ask import Ask
from wattloom.workload.shape import Shape

Way = tuple[float, str]
"""Seconds to the end of the last that comes after a task, its own included; and the next task on that way."""


class Graph:
    """Tasks that have not ended. Look, do not touch."""

    def __init__(self, seconds: Callable[[Shape], float], revision: Callable[[], tuple[int, int]]) -> None:
        """`seconds`: of a task of this shape, inf if unknown. `revision`: changes when ways may have others lengths."""
        self.tasks: Mapping[str, Ask] = {}
        self.edges: Mapping[str, Sequence[Ask]] = {}
        """By task: those that come after it."""
        self._seconds: Final = seconds
        self._revision: Final = revision
        self._known_at: tuple[int, int] = (-1, -1)
        self._ways: dict[str, Way] = {}
        self._begins: dict[str, float] = {}

    def after(self, task: str) -> list[str]:
        """What it still waits for, in order."""
        ask = self.tasks.get(task)
        return [] if ask is None else [name for name in dict.fromkeys(ask.task.after) if name in self.tasks]

    def dependents(self, task: str) -> list[str]:
        """Who waits for it, in order of their submission."""
        return [ask.task.id for ask in self.edges.get(task, ()) if ask.task.id in self.tasks]

    def seconds(self, task: str) -> float | Unknown:
        """What it takes alone on the fastest machine here."""
        ask = self.tasks.get(task)
        return _known(inf if ask is None else self._seconds(ask.shape))

    def remaining(self, task: str) -> float | Unknown:
        """Seconds from its start to the end of the last task that depends on it, if none of them has to wait."""
        self._keep_up()
        return _known(self._way(task)[0])

    def critical_path(self, task: str) -> list[str]:
        """The longest way from it to an end: itself first."""
        self._keep_up()
        path = [task]
        while following := self._way(path[-1])[1]:
            path.append(following)
        return path

    def slack(self, task: str) -> float | Unknown:
        """How many seconds it may start later without delaying the last end of the tasks it is connected with."""
        self._keep_up()
        connected = self._connected(task)
        end = max(self._begin(name) + self._way(name)[0] for name in connected)
        return _known(end - (self._begin(task) + self._way(task)[0]) if end < inf else inf)

    def _keep_up(self) -> None:
        revision = self._revision()
        if revision != self._known_at:
            self._known_at = revision
            self._ways.clear()
            self._begins.clear()

    def _way(self, task: str) -> Way:
        """Without recursion: workflows may be thousands of tasks deep."""
        open_tasks = [task]
        while open_tasks:
            at = open_tasks[-1]
            missing = [name for name in self.dependents(at) if name not in self._ways] if at not in self._ways else []
            if missing:
                open_tasks += missing
                continue
            open_tasks.pop()
            if at not in self._ways:
                longest = max(((self._ways[name][0], name) for name in self.dependents(at)), default=(0.0, ""))
                self._ways[at] = (self._own(at) + longest[0], longest[1])
        return self._ways[task]

    def _begin(self, task: str) -> float:
        """Seconds from now until all that it waits for has ended, if none of them has to wait."""
        open_tasks = [task]
        entered: set[str] = set()  # once each: a task that was found may name one that waits for it
        while open_tasks:
            at = open_tasks[-1]
            if at not in entered:
                entered.add(at)
                missing = [name for name in self.after(at) if name not in self._begins and name not in entered]
                if missing:
                    open_tasks += missing
                    continue
            open_tasks.pop()
            if at not in self._begins:
                ends = (self._begins.get(name, 0.0) + self._own(name) for name in self.after(at))
                self._begins[at] = max(ends, default=0.0)
        return self._begins[task]

    def _connected(self, task: str) -> list[str]:
        found = dict.fromkeys([task])
        open_tasks = [task]
        while open_tasks:
            at = open_tasks.pop()
            for name in (*self.after(at), *self.dependents(at)):
                if name not in found:
                    found[name] = None
                    open_tasks.append(name)
        return list(found)

    def _own(self, task: str) -> float:
        ask = self.tasks.get(task)
        return inf if ask is None else self._seconds(ask.shape)


def _known(seconds: float) -> float | Unknown:
    return seconds if seconds < inf else Unknown("a task on the way has no known run time")
