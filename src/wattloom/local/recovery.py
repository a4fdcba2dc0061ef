"""Calls that an earlier run of the journal had accepted and not ended.

Owns the question which of them had begun. What follows from that is the engine's decision.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from wattloom.journal.calls import Unfinished
from wattloom.journal.journal import Journal
from wattloom.journal.progress import Progress
from wattloom.local.future import TaskFuture
from wattloom.local.job import Job
from wattloom.local.workforce import WORKER
from wattloom.workload.function import Function
from wattloom.workload.requirements import Requirements

KILLED: Final = "the program that ran it was ended"


class Recovered(msgspec.Struct):
    """What is to be told to the engine of the new run."""

    functions: list[Function]
    jobs: list[tuple[Job, str]]
    """With what became of it; empty: it had not begun."""
    cancelled: list[str]
    """Those of them that nobody wants any more."""
    runs: list[int]
    leftovers: list[Path]
    """Files of earlier runs, to be deleted when the new run has taken over: not before, they say what had begun."""

    def delete_leftovers(self) -> None:
        for path in self.leftovers:
            path.unlink(missing_ok=True)


def recovered(journal: Journal) -> Recovered:
    """Look through earlier runs."""
    left = journal.unfinished()
    names = {each.task.id for each in left}
    wanted = {name for each in left if each.call is not None for name in each.call.spool}
    files = _files(journal)
    begun = _begun(files)
    functions: dict[str, Function] = {}
    found = Recovered([], [], [], sorted({each.run for each in left}), [])
    for each in left:
        functions.setdefault(each.task.function, each.definition or Function(each.task.function))
        found.jobs.append((_job(each, names), KILLED if _had_begun(each, begun) else ""))
        if each.cancelled:
            found.cancelled.append(each.task.id)
    found.functions = list(functions.values())
    found.leftovers = [path for path in files if path.name not in wanted]
    return found


def _files(journal: Journal) -> list[Path]:
    folder = journal.spool.folder
    return sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []


def _begun(files: list[Path]) -> dict[tuple[int, int], int]:
    """By run and share: the placement that its worker had begun last."""
    found: dict[tuple[int, int], int] = {}
    for path in files:
        kind, _, rest = path.name.partition("-")
        if kind == WORKER and rest.partition("-")[0].isdigit():
            with suppress(OSError, ValueError):
                progress = Progress.open(path)
                found[int(rest.partition("-")[0]), progress.share] = progress.begun()
                progress.close()
    return found


def _had_begun(task: Unfinished, begun: dict[tuple[int, int], int]) -> bool:
    """Whether it may have begun: if its worker's progress does not say, it may if it was placed."""
    if not task.placed:
        return False
    if not task.same_boot:
        return True
    return task.place <= begun.get((task.run, task.share), 0)


def _job(task: Unfinished, names: set[str]) -> Job:
    call, function = task.call, task.function
    spec = task.task
    after = tuple(name for name in spec.after if name in names)
    spec = msgspec.structs.replace(spec, after=after, retries=max(0, spec.retries - task.failures))
    job = Job(
        spec,
        TaskFuture(spec.id),
        call.function if call is not None else "",
        function.blob if function is not None else b"",
        call.args if call is not None else b"",
        call.spool[0] if call is not None and call.spool else "",
    )
    if call is not None:
        job.key, job.timeout = call.key, call.timeout or None
    needs = spec.requirements or (task.definition.requirements if task.definition is not None else Requirements())
    job.cpu = needs.cpu
    return job
