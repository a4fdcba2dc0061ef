"""`concurrent.futures.as_completed` on our futures: each one once, as it ends, and none kept alive."""

import weakref
from concurrent.futures import Executor, as_completed

import pytest
from tests.local.conformance import tasks
from tests.local.conformance.conftest import MakeExecutor, NewGate
from tests.local.conformance.observing import eventually

Gate = tasks.Gate


def test_all_come_each_once(executor: Executor) -> None:
    futures = [executor.submit(tasks.divide, 1, i % 3) for i in range(30)]
    seen = list(as_completed(futures, timeout=10))
    assert len(seen) == 30
    assert set(seen) == set(futures)


def test_they_come_as_they_end_not_as_they_were_given(executor: Executor, new_gate: NewGate) -> None:
    gates = [new_gate(), new_gate()]
    first, second = (executor.submit(tasks.pass_gate, gate, i) for i, gate in enumerate(gates))
    ended = as_completed([first, second], timeout=10)
    gates[1].open()
    assert next(ended) is second
    gates[0].open()
    assert next(ended) is first
    assert list(ended) == []


def test_those_that_ended_before_come_even_without_time(executor: Executor, gate: Gate) -> None:
    done, slow = executor.submit(tasks.answer), executor.submit(tasks.pass_gate, gate)
    done.result()
    ended = as_completed([slow, done], timeout=0)
    assert next(ended) is done
    with pytest.raises(TimeoutError):
        next(ended)


def test_when_time_is_up_it_says_how_many_are_missing(executor: Executor, gate: Gate) -> None:
    futures = [executor.submit(tasks.pass_gate, gate) for _ in range(3)]
    futures.append(executor.submit(tasks.pass_gate, gate))
    with pytest.raises(TimeoutError, match=r"4 \(of 4\) futures unfinished"):
        list(as_completed(futures, timeout=0.05))


def test_a_future_given_twice_comes_once(executor: Executor, gate: Gate) -> None:
    future = executor.submit(tasks.pass_gate, gate)
    ended = as_completed([future, future], timeout=10)
    gate.open()
    assert list(ended) == [future]


def test_nothing_given_nothing_comes() -> None:
    assert list(as_completed([], timeout=0)) == []


def test_futures_of_two_executors_can_be_awaited_together(make: MakeExecutor) -> None:
    futures = [make(max_workers=1).submit(tasks.double, i) for i in range(2)]
    assert {future.result() for future in as_completed(futures, timeout=10)} == {0, 2}


def test_a_future_that_was_taken_is_not_kept(executor: Executor) -> None:
    futures = [executor.submit(tasks.double, i) for i in range(10)]
    ended = as_completed(futures, timeout=10)
    for future in ended:
        futures.remove(future)
        watch = weakref.ref(future)
        del future
        assert eventually(lambda watch=watch: watch() is None)  # type: ignore[misc]
