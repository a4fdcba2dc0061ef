"""`map(buffersize=)`: no more than so many results wait to be taken, so the input may be endless.

The argument is Python 3.14's. There the standard executors have it too and are the reference; before, nothing in the
standard library can be compared, and only ours is tried.
"""

import itertools
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest
from tests.local.conformance import tasks
from tests.local.conformance.conftest import MakeExecutor
from tests.local.conformance.observing import eventually

if sys.version_info >= (3, 14):
    pytestmark = pytest.mark.only("process-pool", "thread-pool", "wattloom", why="threads are the plainest reference")
else:
    pytestmark = pytest.mark.only("wattloom", why="the standard executors have buffersize since Python 3.14")


def mapped(executor: Executor, *args: Any, **options: Any) -> Iterator[Any]:
    """`map` as 3.14 declares it; the type stubs of older versions do not know the argument."""
    untyped: Any = executor
    results: Iterator[Any] = untyped.map(*args, **options)
    return results


class Counted:
    """An endless input that knows how far it was read."""

    def __init__(self) -> None:
        self.read = 0

    def __iter__(self) -> Iterator[int]:
        for number in itertools.count():
            self.read += 1
            yield number


def marks_in(folder: Path) -> int:
    return len(list(folder.iterdir()))


@pytest.mark.parametrize("buffersize", ["4", 1.5, object()])
def test_a_buffer_that_is_not_a_whole_number_is_refused_at_once(executor: Executor, buffersize: Any) -> None:
    with pytest.raises(TypeError, match="buffersize"):
        mapped(executor, tasks.double, [1], buffersize=buffersize)


@pytest.mark.parametrize("buffersize", [0, -1])
def test_a_buffer_without_room_is_refused_at_once(executor: Executor, buffersize: int) -> None:
    with pytest.raises(ValueError, match="buffersize"):
        mapped(executor, tasks.double, [1], buffersize=buffersize)


@pytest.mark.parametrize("buffersize", [None, 1, 3, 10, 1000])
def test_results_are_the_same_with_any_buffer(executor: Executor, buffersize: int | None) -> None:
    results = mapped(executor, tasks.add, range(10), itertools.repeat(1, 12), buffersize=buffersize)
    assert list(results) == list(range(1, 11))


@pytest.mark.parametrize("chunksize", [1, 3])
def test_chunks_and_buffer_go_together(executor: Executor, chunksize: int) -> None:
    results = mapped(executor, tasks.double, range(10), buffersize=2, chunksize=chunksize)
    assert list(results) == list(range(0, 20, 2))


def test_an_endless_input_gives_as_many_results_as_are_taken(executor: Executor) -> None:
    results = mapped(executor, tasks.double, itertools.count(), buffersize=4)
    assert list(itertools.islice(results, 50)) == list(range(0, 100, 2))


def test_before_the_first_result_is_taken_only_the_buffer_is_read(executor: Executor) -> None:
    numbers = Counted()
    results = mapped(executor, tasks.double, numbers, buffersize=5)
    assert numbers.read == 5
    assert next(results) == 0


def test_the_input_is_never_read_further_than_the_buffer_beyond_what_was_taken(executor: Executor) -> None:
    numbers = Counted()
    results = mapped(executor, tasks.double, numbers, buffersize=3)
    for taken, _ in enumerate(itertools.islice(results, 20), start=1):
        assert taken <= numbers.read <= taken + 3


def test_a_full_buffer_runs_its_tasks_and_no_more(make: MakeExecutor, marks: Path) -> None:
    executor = make()
    results = mapped(executor, tasks.leave_mark, itertools.repeat(str(marks)), itertools.count(), buffersize=4)
    assert eventually(lambda: marks_in(marks) == 4)
    executor.shutdown(wait=True)
    assert marks_in(marks) == 4
    del results


def test_the_buffer_refills_while_results_are_taken(executor: Executor, marks: Path) -> None:
    results = mapped(executor, tasks.leave_mark, itertools.repeat(str(marks)), itertools.count(), buffersize=2)
    next(results)
    assert eventually(lambda: marks_in(marks) == 3)


def test_an_empty_input_is_no_trouble(executor: Executor) -> None:
    assert list(mapped(executor, tasks.double, [], buffersize=4)) == []
    assert list(mapped(executor, tasks.answer, buffersize=4)) == []


def test_an_error_comes_in_its_place(executor: Executor) -> None:
    results = mapped(executor, tasks.divide, itertools.repeat(1), [1, 2, 0, 4], buffersize=2)
    assert (next(results), next(results)) == (1, 0.5)
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_a_late_result_raises_timeout(executor: Executor, gate: tasks.Gate) -> None:
    results = mapped(executor, tasks.pass_gate, itertools.repeat(gate), itertools.count(), buffersize=2, timeout=0.1)
    with pytest.raises(TimeoutError):
        next(results)


def test_after_shutdown_what_is_in_the_buffer_can_be_taken_if_the_input_had_no_more(make: MakeExecutor) -> None:
    executor = make()
    results = mapped(executor, tasks.double, range(3), buffersize=3)
    executor.shutdown(wait=True)
    assert list(results) == [0, 2, 4]


def test_after_shutdown_the_rest_of_the_input_is_refused_not_dropped(make: MakeExecutor) -> None:
    executor = make()
    results = mapped(executor, tasks.double, range(10), buffersize=3)
    executor.shutdown(wait=True)
    with pytest.raises(RuntimeError):
        list(results)


def test_giving_up_the_results_stops_reading_the_input(executor: Executor) -> None:
    numbers = Counted()
    results = mapped(executor, tasks.double, numbers, buffersize=2)
    next(results)
    read = numbers.read
    del results
    assert executor.submit(tasks.answer).result() == 42
    assert numbers.read == read
