"""Calls that an earlier run of the journal had accepted and not ended.

Owns the question which of them had begun. What follows from that is the engine's decision.
"""

from typing import Final

import msgspec

from wattloom.journal.calls import Unfinished
from wattloom.journal.journal import Journal
from wattloom.journal.progress import Progress
from wattloom.local.job import Job, TaskFuture
from wattloom.workload.function import Function

KILLED: Final = "the program that ran it was ended"


class Recovered(msgspec.Struct):
    """What is to be told to the engine of the new run."""

    functions: list[Function]
    jobs: list[tuple[Job, str]]
    """With what became of it; empty: it had not begun."""
    runs: list[int]


def recovered(journal: Journal) -> Recovered:
    """Look through earlier runs, and tidy the spool folder up."""
    left = journal.unfinished()
    begun = _begun(journal)
    found = Recovered([], [], sorted({each.run for each in left}))
    names = {each.task.id for each in left}
    functions: dict[str, Function] = {}
    for each in left:
        functions.setdefault(each.task.function, each.definition or Function(each.task.function))
        had_begun = each.placed and each.place <= max(begun, default=0)
        found.jobs.append((_job(each, names), KILLED if had_begun else ""))
    found.functions = list(functions.values())
    journal.spool.sweep({name for each in left if each.call is not None for name in each.call.spool})
    return found


def _begun(journal: Journal) -> list[int]:
    """What each worker had begun last, as numbers of placements."""
    folder = journal.spool.folder
    found: list[int] = []
    for path in sorted(folder.glob("worker-*")) if folder.is_dir() else []:
        try:
            progress = Progress.open(path)
        except (OSError, ValueError):
            continue
        found.append(progress.begun())
        progress.close()
    return found


def _job(task: Unfinished, names: set[str]) -> Job:
    call, function = task.call, task.function
    spec = task.task
    if spec.after:
        spec = msgspec.structs.replace(spec, after=tuple(name for name in spec.after if name in names))
    job = Job(
        spec,
        TaskFuture(spec.id),
        call.function if call is not None else "",
        function.blob if function is not None else b"",
        call.args if call is not None else b"",
        call.spool[0] if call is not None and call.spool else "",
    )
    job.key = call.key if call is not None else ""
    return job
