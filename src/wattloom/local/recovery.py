"""Calls that an earlier run of the journal had accepted and not ended.

Owns the question which of them had begun. What follows from that is the engine's decision.
"""

import logging
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from wattloom.journal.journal import Journal
from wattloom.journal.payloads import Unfinished
from wattloom.journal.progress import Progress
from wattloom.local.future import TaskFuture
from wattloom.local.job import Job
from wattloom.local.worker_pool import WORKER
from wattloom.scheduling.events import Past
from wattloom.workload.function import Function
from wattloom.workload.requirements import Requirements

KILLED: Final = "the program that ran it was ended"
UNSEEN: Final = f"{KILLED}, and nothing says whether it had begun"
LOG: Final = logging.getLogger("wattloom")


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
            with suppress(OSError):  # it is in nobody's way
                path.unlink()


class RunProgress(msgspec.Struct):
    """How far the workers of a run had come, as far as their files say."""

    begun: dict[int, int]
    """By share: the placement that its worker had begun last."""
    unreadable: list[str]
    """What keeps the others from being known: a share that no file names may have been theirs."""


def recovered(journal: Journal) -> Recovered:
    """Look through earlier runs."""
    left = journal.unfinished()
    names = {each.task.id for each in left}
    wanted = {name for each in left if each.call is not None for name in each.call.spool}
    files = _files(journal)
    runs = sorted({each.run for each in left})
    progress = {run: _progress(journal, run, files) for run in runs}
    functions: dict[str, Function] = {}
    found = Recovered([], [], [], runs, [])
    for each in left:
        functions.setdefault(each.task.function, each.definition or Function(each.task.function))
        found.jobs.append((_job(each, names), _what_became_of(each, progress[each.run])))
        if each.cancelled:
            found.cancelled.append(each.task.id)
    found.functions = list(functions.values())
    found.leftovers = [path for path in files if path.name not in wanted]
    return found


def _files(journal: Journal) -> list[Path]:
    """None, if the folder may not be looked into: then nobody knows what had begun."""
    try:
        return sorted(path for path in journal.spool.folder.iterdir() if path.is_file())
    except OSError:
        return []


# -- what had begun ----------------------------------------------------------------------------------------------------


def _progress(journal: Journal, run: int, files: list[Path]) -> RunProgress:
    """The run says which files there must be, and how each is known. Earlier versions did not: of their runs, those
    that are there are believed, and nobody knows whether these are all."""
    expected: dict[str, int] = journal.workers_of(run)
    found = RunProgress({}, [] if expected else ["it is not written down which files there were"])
    if not expected:
        expected = {path.name: 0 for path in files if path.name.startswith(f"{WORKER}-{run}-")}
    for name, own in expected.items():
        try:
            share, begun = _read(journal.spool.path(name), own)
            found.begun[share] = begun
        except (OSError, ValueError) as problem:
            found.unreadable.append(f"{name}: {problem}")
    return found


def _read(path: Path, own: int) -> tuple[int, int]:
    """Share and last begun placement. Raises OSError, or ValueError if it is another file."""
    progress = Progress.open(path)
    try:
        if progress.own != own:
            raise ValueError("it is another worker's")
        return progress.share, progress.begun()
    finally:
        progress.close()


def _what_became_of(task: Unfinished, progress: RunProgress) -> str:
    """Empty: it had not begun, for certain. What does not say so counts as begun."""
    if not task.placed:
        return ""
    begun = progress.begun.get(task.share)
    if not (task.started or not task.same_boot):
        if begun is None and progress.unreadable:
            LOG.warning("nothing says whether task %s had begun (%s)", task.task.id, progress.unreadable[0])
            return _given_up(task, f"{UNSEEN} ({progress.unreadable[0]})")
        if begun is None or begun < task.place:
            return ""
    return _given_up(task, KILLED)


def _given_up(task: Unfinished, message: str) -> str:
    """What the engine makes of it, in words: one that takes its program with it is not to do so for ever."""
    most = task.task.infrastructure_retries
    if not task.task.idempotent or task.losses < most:
        return message
    return f"{message}; it was lost so {task.losses + 1} times, and infrastructure_retries is {most}: it is given up"


def _past(task: Unfinished) -> Past | None:
    """What counts on: an attempt that came to nothing is one all the same."""
    past = Past(
        attempts=task.attempt,
        failures=task.failures,
        losses=task.losses,
        joules=task.joules,
        spread_j=task.spread_j,
        provenance=task.provenance,
    )
    return None if past == Past() else past


def _job(task: Unfinished, names: set[str]) -> Job:
    call, function = task.call, task.function
    spec = task.task
    after = tuple(name for name in spec.after if name in names)
    spec = msgspec.structs.replace(spec, after=after)
    job = Job(
        spec,
        TaskFuture(spec.id),
        call.function if call is not None else "",
        function.blob if function is not None else b"",
        call.args if call is not None else b"",
        call.spool[0] if call is not None and call.spool else "",
    )
    if call is not None:
        job.key, job.timeout, job.content = call.key, call.timeout or None, call.content
    job.past = _past(task)
    needs = spec.requirements or (task.definition.requirements if task.definition is not None else Requirements())
    job.cpu = needs.cpu
    return job
