"""Which task of which log a pod is.

Owns that a pod's name may come back (as with stateful sets): its tasks carry a mark behind the name, and the last is
meant; and that a scheduler's log that became too long stands beside it as FILE.1. Other tasks are called what they are
called.
"""

from pathlib import Path
from typing import Final

from wattloom.scheduling.log import Log

BACKEND: Final = "kubernetes"
DECISIONS: Final = (b'{"instruction":"place"', b'{"instruction":"wait"', b'{"instruction":"conclude"')


def task_meant(path: Path, name: str) -> tuple[Path, str]:
    """The log that has the decisions on a task, and the task.

    In a log of pods, `NAMESPACE/NAME` is the last of that name. If the log has no decision on it, the older one may.
    """
    older = path.parent / f"{path.name}.1"
    if not path.exists() and older.exists():  # its writer was ended just when a new one was to take the name
        path, older = older, path
    if "/" not in name or not path.exists() or Log(path).header.backend != BACKEND:
        return path, name
    task, decided = _last_of(path, name)
    if not decided and older.exists():
        before, decided = _last_of(older, name)
        if decided or not task:
            return (older, before) if before else (path, name)
    return path, task or name


def _last_of(path: Path, name: str) -> tuple[str, bool]:
    """The last task of that name in the log, empty if there is none, and whether anything was decided on it."""
    name = name if "#" in name else f"{name}#"
    begins, asked = f'"id":"{name}'.encode(), f'"task":"{name}'.encode()
    found, decided = b"", False
    for line in Log(path).lines():
        at = line.find(begins)
        if at >= 0:
            start = at + len(b'"id":"')
            task = line[start:].partition(b'"')[0]
            found, decided = task, decided and task == found
        elif asked in line and line.startswith(DECISIONS):
            decided = True
    return found.decode(errors="replace"), decided
