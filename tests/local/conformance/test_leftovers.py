"""What is left of an executor and its work: no thread, process or open file, and no reference to what is done."""

import gc
import weakref
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

import pytest
from tests.local.conformance import tasks, trouble
from tests.local.conformance.conftest import MakeExecutor
from tests.local.conformance.observing import Surroundings, all_gone, eventually


@contextmanager
def without_collector() -> Iterator[None]:
    """Only what nobody refers to goes away: a cycle that the collector would have to find shows."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def pids_of(executor: Executor) -> set[int]:
    return set(executor.map(tasks.pause_and_tell_worker, [0.01] * 8))


def test_after_shutdown_nothing_is_left(make: MakeExecutor, surroundings: Surroundings) -> None:
    executor = make()
    pids = pids_of(executor)
    executor.shutdown()
    assert all_gone(pids), "shutdown waits for the workers, not only for the work"
    del executor
    assert surroundings.are_restored(), surroundings.added_since()


def test_after_the_with_block_nothing_is_left(make: MakeExecutor, surroundings: Surroundings) -> None:
    with make() as executor:
        executor.submit(tasks.divide, 1, 0).exception()
        list(executor.map(tasks.double, range(20), chunksize=3))
    del executor
    assert surroundings.are_restored(), surroundings.added_since()


def test_after_shutdown_without_waiting_nothing_is_left_in_the_end(
    make: MakeExecutor, surroundings: Surroundings, gate: tasks.Gate
) -> None:
    executor = make()
    future = executor.submit(tasks.pass_gate, gate)
    executor.shutdown(wait=False)
    del executor
    gate.open()
    future.result()
    del future
    assert surroundings.are_restored(), surroundings.added_since()


def test_many_executors_one_after_another_leave_nothing(make: MakeExecutor, surroundings: Surroundings) -> None:
    for i in range(5):
        with make(max_workers=1) as executor:
            assert executor.submit(tasks.double, i).result() == 2 * i
    del executor
    assert surroundings.are_restored(), surroundings.added_since()


def test_an_executor_that_is_forgotten_goes_away_with_its_workers(
    make: MakeExecutor, surroundings: Surroundings
) -> None:
    executor = make()
    pids = pids_of(executor)
    watch = weakref.ref(executor)
    del executor
    gc.collect()
    assert watch() is None
    assert eventually(lambda: all_gone(pids))
    assert surroundings.are_restored(), surroundings.added_since()


def test_an_executor_that_is_forgotten_still_finishes_its_work(make: MakeExecutor, gate: tasks.Gate) -> None:
    executor = make()
    futures = [executor.submit(tasks.pass_gate, gate, i) for i in range(20)]
    results = executor.map(abs, range(-5, 5))
    del executor
    gc.collect()
    gate.open()
    assert [future.result(timeout=10) for future in futures] == list(range(20))
    assert list(results) == [5, 4, 3, 2, 1, 0, 1, 2, 3, 4]


@pytest.mark.parametrize("function", [tasks.unwrap, tasks.unwrap_and_fail, tasks.hand_back])
def test_an_argument_is_not_kept_once_the_task_is_done(executor: Executor, function: Any) -> None:
    parcel = tasks.Parcel("content")
    watch = weakref.ref(parcel)
    future = executor.submit(function, parcel)
    future.exception()
    with without_collector():
        del parcel
        assert eventually(lambda: watch() is None)


def test_an_argument_that_could_not_be_sent_is_not_kept(executor: Executor) -> None:
    parcel = tasks.Parcel(trouble.RefusesToLeave())
    watch = weakref.ref(parcel)
    assert executor.submit(tasks.unwrap, parcel).exception() is not None
    del parcel
    executor.submit(tasks.answer).result()
    gc.collect()
    assert eventually(lambda: watch() is None)


def test_the_argument_of_a_cancelled_task_is_not_kept(make: MakeExecutor, gate: tasks.Gate) -> None:
    executor = make(max_workers=1)
    ahead = [executor.submit(tasks.pass_gate, gate) for _ in range(100)]
    parcel = tasks.Parcel()
    watch = weakref.ref(parcel)
    future = executor.submit(tasks.unwrap, parcel)
    del parcel
    assert future.cancel()
    gate.open()
    ahead[-1].result()
    assert eventually(lambda: watch() is None)


def test_a_method_does_not_keep_its_object(executor: Executor) -> None:
    parcel = tasks.Parcel("content")
    watch = weakref.ref(parcel)
    assert executor.submit(parcel.open).result() == "content"
    with without_collector():
        del parcel
        assert eventually(lambda: watch() is None)


def test_a_result_goes_when_its_future_goes(executor: Executor) -> None:
    future = executor.submit(tasks.wrap, 1)
    watch, watch_future = weakref.ref(future.result()), weakref.ref(future)
    with without_collector():
        del future
        assert eventually(lambda: watch_future() is None)
        assert eventually(lambda: watch() is None)


def test_a_failed_future_goes_although_its_error_was_raised(executor: Executor) -> None:
    future = executor.submit(tasks.divide, 1, 0)
    watch = weakref.ref(future)
    with without_collector():
        with pytest.raises(ZeroDivisionError) as raised:
            future.result()
        del future
        assert eventually(lambda: watch() is None), f"{raised.value!r} keeps it"


def test_a_callback_is_not_kept_once_it_ran(executor: Executor) -> None:
    parcel = tasks.Parcel()
    watch = weakref.ref(parcel)
    future = executor.submit(tasks.answer)
    future.add_done_callback(lambda _, held=parcel: None)  # type: ignore[misc]
    future.result()
    del parcel, future
    assert eventually(lambda: watch() is None)


def test_workers_do_not_keep_what_they_were_given(make: MakeExecutor) -> None:
    """A worker that waits for its next task holds neither the argument nor the result of the last one."""
    executor = make(max_workers=1)
    executor.submit(tasks.watch_here, tasks.Parcel(1)).result()
    executor.submit(tasks.answer).result()
    assert executor.submit(tasks.still_watched_here).result() == 0
