"""Which task of which log a pod is.

Owns that a pod's name may come back (as with stateful sets): its tasks carry a mark behind the name, and the last is
meant; and that a scheduler's log that became too long stands beside it as FILE.1. Other tasks are called what they are
called.
"""

from itertools import islice
from pathlib import Path
from typing import Final

from wattloom.history.log import Log
from wattloom.history.records import Happened, Part, Walk
from wattloom.history.steps import Steps, at_once
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import Conclude, Place, Wait

BACKEND: Final = "kubernetes"
LINES_AT_ONCE: Final = 4096


class _Named(Part, gc=False):
    id: str


class _Arrived(Happened, gc=False):
    task: _Named


class _Decided(Part, gc=False):
    task: str


def task_meant(path: Path, name: str) -> tuple[Path, str]:
    """The log that has the decisions on a task, and the task.

    In a log of pods, `NAMESPACE/NAME` is the last of that name. If the log has no decision on it, the older one may.
    """
    return at_once(finding(path, name))


def finding(path: Path, name: str) -> Steps[tuple[Path, str]]:
    """The same in steps."""
    older = path.parent / f"{path.name}.1"
    if not path.exists() and older.exists():  # its writer was ended just when a new one was to take the name
        path, older = older, path
    if "/" not in name or not path.exists() or Log(path).header.backend != BACKEND:
        return path, name
    here = _LastOf(name)
    yield from here.read(path)
    if not here.decided and older.exists():
        before = _LastOf(name)
        yield from before.read(older)
        if before.decided or not here.task:
            return (older, before.task) if before.task else (path, name)
    return path, here.task or name


class _LastOf:
    """The last task of a name in a log, empty if there is none, and whether anything was decided on it."""

    def __init__(self, name: str) -> None:
        self.task = ""
        self.decided = False
        self._name: Final = name if "#" in name else f"{name}#"
        self._walk: Final = Walk()
        for arrival in (ev.TaskSubmitted, ev.TaskOrphaned, ev.TaskFound):
            self._walk.on_event(arrival, _Arrived, self._arrived)
        for decision in (Place, Wait, Conclude):
            self._walk.on_instruction(decision, _Decided, self._decided)

    def read(self, path: Path) -> Steps[None]:
        lines, name = Log(path).lines(), self._name.encode()
        while some := list(islice(lines, LINES_AT_ONCE)):
            self._walk.take(line for line in some if name in line)
            yield

    def _arrived(self, event: _Arrived) -> None:
        task = event.task.id
        if task.startswith(self._name):
            self.decided = self.decided and task == self.task
            self.task = task

    def _decided(self, instruction: _Decided) -> None:
        self.decided = self.decided or instruction.task.startswith(self._name)
