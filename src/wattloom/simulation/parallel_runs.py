"""Many independent runs: one after the other, or on all cores when that pays, with the same results.

Owns the processes. A run that fails elsewhere is run again here, so that its error is the one the user would have seen.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from ctypes import c_longlong
from multiprocessing.context import BaseContext
from typing import Any, Final

import msgspec

from wattloom.errors import PolicyError, WattloomError
from wattloom.interpreter import without_the_working_folder
from wattloom.policies.loading import load_policy
from wattloom.policies.protocol import Policy
from wattloom.simulation.loop import Simulation
from wattloom.simulation.result import Result
from wattloom.simulation.trial import Trial

Progress = Callable[[int, int], None]
"""Told (tasks ended, tasks in all)."""

WORTH_A_PROCESS: Final = 20_000
"""Tasks to simulate in all, below which starting processes costs more than it gains."""
LOOK_EVERY_S: Final = 0.2


class Job(msgspec.Struct, frozen=True):
    """One run: a trial by its number, and a policy."""

    trial: int
    spec: str
    """As the user wrote it."""
    seed: int | None
    policy: Policy | None = None
    """A ready one, where there is no way to write it."""


def run_all(trials: list[Trial], jobs: list[Job], progress: Progress | None, processes: int | None) -> list[Result]:
    """All jobs' results, in their order."""
    workers = min(len(jobs), _workers(trials, jobs) if processes is None else processes)
    if workers < 2 or any(job.policy is not None for job in jobs):
        return _one_by_one(trials, jobs, progress)
    found = _in_processes(trials, jobs, progress, workers)
    return [
        result if result is not None else run_one(trials[job.trial], job)
        for job, result in zip(jobs, found, strict=True)
    ]


def run_one(trial: Trial, job: Job, progress: Progress | None = None) -> Result:
    """A fresh policy on a fresh engine."""
    policy = job.policy if job.policy is not None else load_policy(job.spec)
    with blamed_on(policy, job.spec):
        result = Simulation(trial, policy, progress=progress).run()
    return msgspec.structs.replace(result, policy=job.spec, seed=job.seed)


@contextmanager
def blamed_on(policy: Policy, spec: str) -> Iterator[None]:
    """What goes wrong with a policy of the user's own is the policy's error, whatever it is."""
    try:
        yield
    except WattloomError:
        raise
    except Exception as problem:
        if type(policy).__module__.startswith("wattloom."):
            raise
        raise PolicyError(spec, f"failed: {type(problem).__name__}: {problem}") from problem


def _workers(trials: list[Trial], jobs: list[Job]) -> int:
    """How many processes pay: none for little work, and none beside threads, which a fork does not survive."""
    work = sum(len(trials[job.trial].arrivals) for job in jobs)
    if work < WORTH_A_PROCESS or not _can_fork():
        return 1
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _can_fork() -> bool:
    return sys.platform == "linux" and threading.active_count() == 1


def _one_by_one(trials: list[Trial], jobs: list[Job], progress: Progress | None) -> list[Result]:
    total = sum(len(trials[job.trial].arrivals) for job in jobs)
    before = 0
    results: list[Result] = []
    for job in jobs:
        results.append(run_one(trials[job.trial], job, _shifted(progress, before, total)))
        before += len(trials[job.trial].arrivals)
    return results


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, _: progress(before + done, total)


# -- in this process, about the others ---------------------------------------------------------------------------------


def _in_processes(trials: list[Trial], jobs: list[Job], progress: Progress | None, workers: int) -> list[Result | None]:
    """Results in the jobs' order; None where a run failed or its process died."""
    context: BaseContext = multiprocessing.get_context("fork" if _can_fork() else "spawn")
    done = context.RawArray(c_longlong, len(jobs))
    before = set(multiprocessing.active_children())
    with without_the_working_folder():
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(trials, jobs, done))
    try:
        with without_the_working_folder():
            futures = [pool.submit(_work, number) for number in range(len(jobs))]
        _watch(futures, done, sum(len(trials[job.trial].arrivals) for job in jobs), progress)
        return [_result(future) for future in futures]
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        raise
    finally:
        pool.shutdown()


def _watch(futures: list[Future[Result | None]], done: Any, total: int, progress: Progress | None) -> None:
    waiting = set(futures)
    while waiting:
        waiting = wait(waiting, timeout=LOOK_EVERY_S).not_done
        if progress is not None:
            progress(sum(done), total)


def _result(future: "Future[Result | None]") -> Result | None:
    try:
        return future.result()
    except BrokenProcessPool:
        return None


# -- in the other processes --------------------------------------------------------------------------------------------

_given: tuple[list[Trial], list[Job], Any] | None = None
"""What this process was started for."""


def _begin(trials: list[Trial], jobs: list[Job], done: Any) -> None:
    global _given
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is told by the first process alone
    _given = trials, jobs, done


def _work(number: int) -> Result | None:
    assert _given is not None
    trials, jobs, done = _given

    def tell(ended: int, _: int) -> None:
        done[number] = ended

    job = jobs[number]
    try:
        result = run_one(trials[job.trial], job, tell)
    except Exception:  # run again in the first process, which shows it to the user
        return None
    done[number] = len(trials[job.trial].arrivals)
    return result
