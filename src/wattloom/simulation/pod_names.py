"""Which task of a log a pod is.

Owns that a pod's name may come back (as with stateful sets): its tasks carry a mark behind the name, and the last is
meant. Other tasks are called what they are called.
"""

from pathlib import Path
from typing import Final

from wattloom.scheduling.log import Log

BACKEND: Final = "kubernetes"


def task_meant(path: Path, name: str) -> str:
    """The last task of the pod `NAMESPACE/NAME`, if it is one of a log of pods; else the name itself."""
    log = Log(path)
    if log.header.backend != BACKEND or "/" not in name or "#" in name:
        return name
    begins = f'"id":"{name}#'.encode()
    found = name
    for line in log.lines():
        at = line.find(begins)
        if at >= 0:
            start = at + len(b'"id":"')
            found = line[start : line.index(b'"', start)].decode()
    return found
