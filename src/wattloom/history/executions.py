"""What executions of functions took, machine by machine, over all runs of some journals or logs.

Owns the gathering: busy seconds of a core, and joules where the log has them, of every call that finished, in the order
of their ends. One walk over each log. What the figures come to is not known here.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from wattloom.history.functions import logs_of
from wattloom.history.listing import seconds_of
from wattloom.history.log import Log
from wattloom.history.records import Happened, Walk
from wattloom.history.task_history import RunHistory, TaskHistory
from wattloom.scheduling import events as ev

SUREST: Final = ("measured", "modelled", "estimated")


class Executions:
    """Calls of one function on one machine, by one build."""

    __slots__ = ("backends", "core_s", "function", "joules", "machine", "provenance", "runs", "spread_j", "variant")

    def __init__(self, function: str, machine: str, variant: str) -> None:
        self.function: Final = function
        self.machine: Final = machine
        self.variant: Final = variant
        self.core_s: Final[list[float]] = []
        """Seconds times the cores it keeps busy, of each call."""
        self.joules: Final[list[float]] = []
        """Of those that have some, and did not begin from nothing."""
        self.spread_j: Final[list[float]] = []
        self.provenance = ""
        """The least sure of its joules; empty: there are none."""
        self.runs = 0
        self.backends: Final[set[str]] = set()

    def add(self, task: TaskHistory, core_s: float) -> None:
        """Joules of a call that began from nothing are mostly those of its start, which its seconds leave out."""
        self.core_s.append(core_s)
        if task.setup_s is None and task.joules is not None and task.joules > 0.0 and task.provenance in SUREST:
            self.joules.append(task.joules)
            self.spread_j.append(task.spread_j or 0.0)
            self.provenance = max(self.provenance or task.provenance, task.provenance, key=SUREST.index)


class _Node(msgspec.Struct, gc=False):
    name: str
    machine: str


class _Joined(Happened, gc=False):
    node: _Node


class _Cpu(msgspec.Struct, gc=False):
    cpu: float = 1.0


class _Needs(msgspec.Struct, gc=False):
    requirements: _Cpu | None = None


class _Submitted(msgspec.Struct, gc=False):
    task: _Needs


def executions(paths: Iterable[Path]) -> list[Executions]:
    """Of all functions in these journals or logs, where it is known on which machine they ran."""
    found: dict[tuple[str, str, str], Executions] = {}
    for log in [log for path in paths for log in logs_of(path)]:
        _gather(log, found)
    return list(found.values())


def _gather(log: Log, found: dict[tuple[str, str, str], Executions]) -> None:
    walk = Walk(log.name)
    tasks = RunHistory(walk)
    machines: dict[str, str] = {}

    def joined(event: _Joined) -> None:
        machines[event.node.name] = event.node.machine

    walk.on_event(ev.NodeJoined, _Joined, joined)
    walk.on_event(ev.NodeChanged, _Joined, joined)
    walk.take(log.lines())
    ended = [task for task in tasks.by_task.values() if task.outcome == "finished"]
    here: set[tuple[str, str, str]] = set()
    cores = _Cores(tasks)
    for task in sorted(ended, key=lambda each: each.ended or 0.0):
        seconds, machine = seconds_of(task), machines.get(task.node)
        if machine is None or seconds is None or not seconds > 0.0:
            continue
        key = task.function, machine, "" if task.variant == "default" else task.variant
        of = found.setdefault(key, Executions(*key))
        of.add(task, seconds * cores.of(task))
        if key not in here:
            here.add(key)
            of.runs += 1
            of.backends.add(log.header.backend)


class _Cores:
    """Cores that tasks asked for, and are taken to keep busy; 1 where that is not known."""

    def __init__(self, tasks: RunHistory) -> None:
        self._tasks: Final = tasks
        self._by_function: Final[dict[str, float]] = {}

    def of(self, task: TaskHistory) -> float:
        source = task.source
        if isinstance(source, bytes):
            own = msgspec.json.decode(source, type=_Submitted).task.requirements
            if own is not None:
                return own.cpu or 1.0
        if task.function not in self._by_function:
            defined = self._tasks.definition(task.function)
            self._by_function[task.function] = 1.0 if defined is None else defined.requirements.cpu or 1.0
        return self._by_function[task.function]
