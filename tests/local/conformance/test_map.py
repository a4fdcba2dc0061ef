"""`map`: order, errors in their place, chunks, and what happens when nobody wants the rest."""

import itertools
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest
from tests.local.conformance import tasks
from tests.local.conformance.conftest import MakeExecutor
from tests.local.conformance.observing import eventually

Gate = tasks.Gate
Job = tuple[Callable[..., object], tuple[Any, ...]]


@pytest.mark.parametrize("chunksize", [1, 2, 7, 50, 1000])
def test_results_come_in_the_order_of_the_input(executor: Executor, chunksize: int) -> None:
    assert list(executor.map(pow, range(50), itertools.repeat(2), chunksize=chunksize)) == [i**2 for i in range(50)]


def test_order_holds_when_the_first_is_the_slowest(executor: Executor, gate: Gate) -> None:
    open_gate = Gate(gate.path + "-open")
    open_gate.open()
    results = executor.map(tasks.pass_gate, [gate, open_gate, open_gate], "abc")
    gate.open()
    assert list(results) == ["a", "b", "c"]


@pytest.mark.parametrize("chunksize", [0, -1])
def test_a_chunk_of_nothing_is_refused_at_once(executor: Executor, chunksize: int) -> None:
    with pytest.raises(ValueError, match="chunksize"):
        executor.map(tasks.double, range(3), chunksize=chunksize)


def test_the_shortest_of_several_iterables_decides(executor: Executor) -> None:
    assert list(executor.map(tasks.add, [1, 2, 3], [10, 20])) == [11, 22]
    assert list(executor.map(tasks.add, [1, 2, 3], itertools.count(10), chunksize=2)) == [11, 13, 15]


def test_without_iterables_or_with_empty_ones_there_is_nothing_to_do(executor: Executor, marks: Path) -> None:
    assert list(executor.map(tasks.answer)) == []
    assert list(executor.map(tasks.double, [])) == []
    assert list(executor.map(tasks.leave_mark, [str(marks)], [])) == []
    assert list(marks.iterdir()) == []


def test_the_result_is_an_iterator(executor: Executor) -> None:
    results = executor.map(tasks.double, [1, 2])
    assert isinstance(results, Iterator)
    assert (next(results), next(results)) == (2, 4)
    with pytest.raises(StopIteration):
        next(results)


def test_work_starts_before_anybody_asks_for_a_result(executor: Executor, marks: Path) -> None:
    results = executor.map(tasks.leave_mark, [str(marks)] * 3, range(3))
    assert eventually(lambda: len(list(marks.iterdir())) == 3)
    assert list(results) == [None] * 3


def test_without_a_buffer_the_input_is_read_to_its_end_at_once(executor: Executor) -> None:
    numbers = iter(range(20))
    results = executor.map(tasks.double, numbers)
    assert list(numbers) == []
    assert list(results) == list(range(0, 40, 2))


def test_an_error_comes_in_its_place_and_ends_the_results(executor: Executor) -> None:
    results = executor.map(tasks.divide, [1, 1, 1, 1], [1, 2, 0, 4])
    assert (next(results), next(results)) == (1, 0.5)
    with pytest.raises(ZeroDivisionError):
        next(results)
    with pytest.raises(StopIteration):
        next(results)


def test_an_error_inside_a_chunk_reaches_the_caller(executor: Executor) -> None:
    with pytest.raises(ZeroDivisionError):
        list(executor.map(tasks.divide, [1] * 10, [1] * 5 + [0] + [1] * 4, chunksize=4))
    assert executor.submit(tasks.answer).result() == 42


def test_an_error_of_the_input_reaches_the_caller_of_map(executor: Executor) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise OSError("the input ended badly")

    with pytest.raises(OSError, match="ended badly"):
        executor.map(tasks.double, broken())
    assert executor.submit(tasks.answer).result() == 42


@pytest.mark.parametrize("chunksize", [1, 2])
def test_a_result_that_is_late_raises_timeout_after_those_in_time(
    executor: Executor, gate: Gate, chunksize: int
) -> None:
    open_gate = Gate(gate.path + "-open")
    open_gate.open()
    executor.submit(tasks.pass_gate, open_gate, "a worker is there").result()
    results = executor.map(tasks.pass_gate, [open_gate, open_gate, gate], "abc", timeout=2, chunksize=chunksize)
    assert (next(results), next(results)) == ("a", "b")
    with pytest.raises(TimeoutError):
        next(results)


def test_the_timeout_counts_from_the_call_of_map(executor: Executor, gate: Gate) -> None:
    results = executor.map(tasks.pass_gate, [gate], timeout=0)
    with pytest.raises(TimeoutError):
        next(results)


def first_then_a_long_queue(executor: Executor, first: Job, gate: Gate, marks: Path) -> Iterator[Any]:
    """After the first job comes one that blocks the only worker, and then many that would leave marks."""
    jobs = [first, (tasks.pass_gate, (gate,)), *((tasks.leave_mark, (str(marks), i)) for i in range(300))]
    return executor.map(tasks.call, *zip(*jobs, strict=True))


def most_never_ran(executor: Executor, gate: Gate, marks: Path) -> bool:
    """Some may have been sent ahead to the worker; the queue may not run."""
    gate.open()
    executor.shutdown(wait=True)
    return len(list(marks.iterdir())) < 150


def test_closing_the_results_cancels_what_has_not_started(make: MakeExecutor, gate: Gate, marks: Path) -> None:
    executor = make(max_workers=1)
    results: Any = first_then_a_long_queue(executor, (tasks.answer, ()), gate, marks)
    assert next(results) == 42
    results.close()
    assert most_never_ran(executor, gate, marks)


def test_forgetting_the_results_cancels_what_has_not_started(make: MakeExecutor, gate: Gate, marks: Path) -> None:
    executor = make(max_workers=1)
    results = first_then_a_long_queue(executor, (tasks.answer, ()), gate, marks)
    assert next(results) == 42
    del results
    assert most_never_ran(executor, gate, marks)


def test_an_error_cancels_what_has_not_started(make: MakeExecutor, gate: Gate, marks: Path) -> None:
    executor = make(max_workers=1)
    results = first_then_a_long_queue(executor, (tasks.divide, (1, 0)), gate, marks)
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert most_never_ran(executor, gate, marks)


@pytest.mark.parametrize("chunksize", [1, 5])
def test_a_result_that_was_taken_is_not_kept(executor: Executor, chunksize: int) -> None:
    for parcel in executor.map(tasks.wrap, range(10), chunksize=chunksize):
        watch = weakref.ref(parcel)
        del parcel
        assert eventually(lambda watch=watch: watch() is None)  # type: ignore[misc]


def test_an_input_whose_result_was_taken_is_not_kept(executor: Executor) -> None:
    parcels = [tasks.Parcel(i) for i in range(5)]
    watches = [weakref.ref(parcel) for parcel in parcels]
    results = executor.map(tasks.unwrap, iter(parcels))
    del parcels
    assert list(itertools.islice(results, 5)) == list(range(5))
    assert eventually(lambda: all(watch() is None for watch in watches)), "although the iterator is still here"
    assert next(results, None) is None


def test_results_can_be_taken_after_shutdown(make: MakeExecutor) -> None:
    executor = make()
    results = executor.map(tasks.double, range(10), chunksize=3)
    executor.shutdown(wait=True)
    assert list(results) == list(range(0, 20, 2))


def test_map_after_shutdown_is_refused(make: MakeExecutor) -> None:
    executor = make()
    executor.shutdown()
    with pytest.raises(RuntimeError):
        executor.map(tasks.double, [1])


def test_several_maps_at_once_do_not_mix(executor: Executor) -> None:
    evens, squares = executor.map(tasks.double, range(40)), executor.map(pow, range(40), [2] * 40, chunksize=3)
    for i, (even, square) in enumerate(zip(evens, squares, strict=True)):
        assert (even, square) == (2 * i, i * i)
