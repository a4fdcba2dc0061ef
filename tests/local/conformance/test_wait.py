"""`concurrent.futures.wait` on our futures: what it returns, and when."""

import time
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, FIRST_EXCEPTION, Executor, Future, wait
from typing import Any

import pytest
from tests.local.conformance import tasks
from tests.local.conformance.conftest import MakeExecutor, NewGate

Gate = tasks.Gate
SOON_S = 10.0


def finished(executor: Executor, value: Any = None) -> Future[Any]:
    future = executor.submit(tasks.hand_back, value)
    future.result()
    return future


def failed(executor: Executor) -> Future[Any]:
    future = executor.submit(tasks.divide, 1, 0)
    future.exception()
    return future


def test_nothing_to_wait_for_is_over_at_once() -> None:
    assert wait([], timeout=0) == (set(), set())


@pytest.mark.parametrize("when", [FIRST_COMPLETED, FIRST_EXCEPTION, ALL_COMPLETED])
def test_finished_futures_are_returned_at_once(executor: Executor, when: str) -> None:
    futures = {finished(executor, 1), failed(executor)}
    done, pending = wait(futures, timeout=0, return_when=when)
    assert (done, pending) == (futures, set())


def test_a_future_given_twice_counts_once(executor: Executor) -> None:
    future = executor.submit(tasks.answer)
    done, pending = wait([future, future], timeout=SOON_S)
    assert (done, pending) == ({future}, set())


def test_first_completed_returns_while_others_run(executor: Executor, gate: Gate) -> None:
    slow, quick = executor.submit(tasks.pass_gate, gate), executor.submit(tasks.answer)
    done, pending = wait([slow, quick], timeout=SOON_S, return_when=FIRST_COMPLETED)
    assert (done, pending) == ({quick}, {slow})


def test_first_completed_counts_one_that_was_done_before(executor: Executor, gate: Gate) -> None:
    before, slow = finished(executor), executor.submit(tasks.pass_gate, gate)
    done, pending = wait([slow, before], timeout=SOON_S, return_when=FIRST_COMPLETED)
    assert (done, pending) == ({before}, {slow})


def test_first_completed_counts_one_that_was_cancelled(make: MakeExecutor, gate: Gate) -> None:
    executor = make(max_workers=1)
    futures = [executor.submit(tasks.pass_gate, gate) for _ in range(100)]
    assert futures[-1].cancel()
    gate.open()
    assert futures[-1] in wait(futures, timeout=SOON_S).done
    done, _ = wait([futures[-1]], timeout=0, return_when=FIRST_COMPLETED)
    assert done == {futures[-1]}


def test_first_exception_passes_over_success(make: MakeExecutor, new_gate: NewGate) -> None:
    executor, never, later = make(max_workers=3), new_gate(), new_gate()
    slow, failing = executor.submit(tasks.pass_gate, never), executor.submit(tasks.fail_behind, later)
    good = executor.submit(tasks.open_after, later, 0.05)
    done, pending = wait([slow, failing, good], timeout=SOON_S, return_when=FIRST_EXCEPTION)
    assert failing in done
    assert slow in pending


def test_first_exception_counts_one_that_failed_before(executor: Executor, gate: Gate) -> None:
    before, slow = failed(executor), executor.submit(tasks.pass_gate, gate)
    done, pending = wait([slow, before], timeout=SOON_S, return_when=FIRST_EXCEPTION)
    assert (done, pending) == ({before}, {slow})


def test_first_exception_without_one_waits_for_all(executor: Executor) -> None:
    futures = {executor.submit(tasks.double, i) for i in range(10)}
    assert wait(futures, timeout=SOON_S, return_when=FIRST_EXCEPTION) == (futures, set())


def test_all_completed_waits_for_failures_too(executor: Executor) -> None:
    futures = {executor.submit(tasks.divide, 1, i % 2) for i in range(10)} | {finished(executor)}
    assert wait(futures, timeout=SOON_S, return_when=ALL_COMPLETED) == (futures, set())


@pytest.mark.parametrize("when", [FIRST_COMPLETED, FIRST_EXCEPTION, ALL_COMPLETED])
def test_when_time_is_up_the_rest_is_reported_as_not_done(executor: Executor, gate: Gate, when: str) -> None:
    slow = executor.submit(tasks.pass_gate, gate)
    begun = time.monotonic()
    assert wait([slow], timeout=0.1, return_when=when) == (set(), {slow})
    assert 0.05 < time.monotonic() - begun < 2


def test_a_finish_during_the_wait_ends_it(executor: Executor, gate: Gate) -> None:
    slow = executor.submit(tasks.pass_gate, gate, 1)
    opener = executor.submit(tasks.open_after, gate, 0.05)
    begun = time.monotonic()
    assert wait([slow, opener], timeout=SOON_S).not_done == set()
    assert time.monotonic() - begun < SOON_S / 2


def test_many_futures_can_finish_while_the_wait_is_set_up(executor: Executor) -> None:
    """Once a race: futures that finish between the look at their state and the registration of the waiter."""
    for _ in range(5):
        futures = [executor.submit(tasks.double, i) for i in range(40)]
        assert wait(futures, timeout=SOON_S).not_done == set()
