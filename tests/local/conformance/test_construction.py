"""Making an executor: what it refuses before any work is accepted."""

import multiprocessing
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.local.conformance import tasks
from tests.local.conformance.conftest import MakeExecutor

import wattloom


@pytest.mark.parametrize("workers", [0, -1, -100])
def test_fewer_than_one_worker_is_refused(make: MakeExecutor, workers: int) -> None:
    with pytest.raises(ValueError, match="max_workers"):
        make(max_workers=workers)


@pytest.mark.parametrize("workers", ["2", [2], object()])
def test_workers_that_are_not_a_number_are_refused(make: MakeExecutor, workers: Any) -> None:
    with pytest.raises(TypeError):
        make(max_workers=workers)


def test_an_initializer_that_cannot_be_called_is_refused(make: MakeExecutor) -> None:
    not_callable: Any = "prepare"
    with pytest.raises(TypeError, match="initializer"):
        make(initializer=not_callable)


@pytest.mark.parametrize(("most", "problem"), [(0, ValueError), (-3, ValueError), ("2", TypeError), (1.5, TypeError)])
def test_a_wrong_number_of_tasks_per_child_is_refused(make: MakeExecutor, most: Any, problem: type[Exception]) -> None:
    with pytest.raises(problem, match="max_tasks_per_child"):
        make(max_tasks_per_child=most)


@pytest.mark.only("wattloom", why="the standard pool of some versions waits for ever for a worker it does not start")
@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_worker_is_replaced_after_so_many_tasks(make: MakeExecutor, most: int) -> None:
    executor = make(max_workers=1, max_tasks_per_child=most, initializer=tasks.prepare, initargs=("afresh",))
    found = [future.result() for future in [executor.submit(tasks.prepared_here) for _ in range(2 * most)]]
    one_by_one = [executor.submit(tasks.prepared_here).result() for _ in range(most)]
    workers = [pid for pid, _ in (*found, *one_by_one)]
    assert [workers.count(pid) for pid in dict.fromkeys(workers)] == [most] * 3
    assert all(prepared == [("afresh",)] for _, prepared in found)


@pytest.mark.only("wattloom", why="as above")
def test_workers_may_be_replaced_under_load_without_losing_anything(make: MakeExecutor) -> None:
    executor = make(max_workers=2, max_tasks_per_child=3)
    assert list(executor.map(tasks.double, range(40))) == [2 * number for number in range(40)]


def test_without_a_number_it_chooses_one_itself(make: MakeExecutor) -> None:
    assert make(max_workers=None).submit(tasks.answer).result() == 42


def test_an_executor_that_was_never_used_shuts_down(make: MakeExecutor) -> None:
    make().shutdown()
    with make():
        pass


def test_the_parameters_of_the_standard_pool_may_be_given_by_position(tmp_path: Path) -> None:
    """In its order, as its users write them."""
    context = multiprocessing.get_context("spawn")
    with wattloom.Executor(1, context, tasks.prepare, ("by position",), journal=tmp_path / "journal") as executor:
        assert executor.submit(tasks.prepared_here).result()[1] == [("by position",)]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_ours_takes_contexts_that_start_afresh_without_a_word(tmp_path: Path, method: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        context = multiprocessing.get_context(method)
        with wattloom.Executor(1, mp_context=context, journal=tmp_path / "journal") as executor:
            assert executor.submit(tasks.answer).result() == 42


def test_ours_says_that_it_does_not_fork(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    with (
        pytest.warns(RuntimeWarning, match="not forked"),
        wattloom.Executor(1, mp_context=context, journal=tmp_path / "journal") as executor,
    ):
        assert executor.submit(tasks.answer).result() == 42


def test_ours_refuses_what_is_no_context(tmp_path: Path) -> None:
    context: Any = "spawn"
    with pytest.raises(TypeError, match="mp_context"):
        wattloom.Executor(1, mp_context=context, journal=tmp_path / "journal")


def test_ours_ends_a_worker_in_the_middle_of_calls_that_were_sent_ahead(tmp_path: Path) -> None:
    """With a lease many calls are at a worker: those that it may not make any more go elsewhere."""
    lease = wattloom.LeaseTerms()
    with wattloom.Executor(
        1, max_tasks_per_child=7, lease=lease, journal=tmp_path / "journal", meter="off"
    ) as executor:
        workers = list(executor.map(tasks.worker_id, range(50)))
    made = sorted(workers.count(pid) for pid in set(workers))
    assert made[-1] == 7  # never more; on a busy machine one may be replaced before its last
    assert 8 <= len(made) <= 10
