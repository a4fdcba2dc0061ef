"""Shutting down: what is refused afterwards, what is still finished, and what is cancelled."""

import threading
import time
from concurrent.futures import CancelledError, Executor, Future, as_completed, wait
from pathlib import Path
from typing import Any

import pytest
from tests.local.conformance import tasks, trouble
from tests.local.conformance.conftest import MakeExecutor
from tests.local.conformance.observing import eventually

Gate = tasks.Gate


def busy_with_a_queue(executor: Executor, gate: Gate, length: int = 100) -> list[Future[Any]]:
    return [executor.submit(tasks.pass_gate, gate, i) for i in range(length)]


def shut_down_aside(executor: Executor, **how: Any) -> threading.Thread:
    thread = threading.Thread(target=executor.shutdown, kwargs=how)
    thread.start()
    return thread


@pytest.mark.parametrize("waiting", [True, False])
def test_submitting_after_shutdown_is_refused(make: MakeExecutor, waiting: bool) -> None:
    executor = make()
    executor.submit(tasks.answer)
    executor.shutdown(wait=waiting)
    with pytest.raises(RuntimeError, match="shutdown"):
        executor.submit(tasks.answer)


@pytest.mark.parametrize("again", [{}, {"wait": False}, {"cancel_futures": True}])
def test_shutting_down_twice_is_allowed(make: MakeExecutor, again: dict[str, bool]) -> None:
    executor = make()
    future = executor.submit(tasks.answer)
    executor.shutdown()
    executor.shutdown(**again)
    assert future.result() == 42


def test_waiting_can_follow_a_shutdown_that_did_not_wait(make: MakeExecutor) -> None:
    executor = make()
    futures = [executor.submit(tasks.double, i) for i in range(10)]
    executor.shutdown(wait=False)
    executor.shutdown(wait=True)
    assert [future.result(timeout=10) for future in futures] == list(range(0, 20, 2))


def test_shutdown_finishes_what_was_accepted(make: MakeExecutor) -> None:
    executor = make()
    futures = [executor.submit(tasks.pause_and_tell_worker, 0.005) for _ in range(30)]
    executor.shutdown()
    assert all(future.done() for future in futures)
    assert all(future.exception() is None for future in futures)


def test_shutdown_waits_for_a_running_task(make: MakeExecutor, gate: Gate) -> None:
    executor = make()
    future = executor.submit(tasks.pass_gate, gate, "done")
    thread = shut_down_aside(executor)
    thread.join(timeout=0.1)
    assert thread.is_alive()
    gate.open()
    thread.join(timeout=10)
    assert not thread.is_alive()
    assert future.result(timeout=0) == "done"


def test_shutdown_without_waiting_returns_at_once_and_the_work_goes_on(make: MakeExecutor, gate: Gate) -> None:
    executor = make()
    futures = busy_with_a_queue(executor, gate, 10)
    begun = time.monotonic()
    executor.shutdown(wait=False)
    assert time.monotonic() - begun < 2
    assert not any(future.done() for future in futures)
    gate.open()
    assert [future.result(timeout=10) for future in futures] == list(range(10))


def test_leaving_the_with_block_waits(make: MakeExecutor, marks: Path) -> None:
    with make() as executor:
        futures = [executor.submit(tasks.leave_mark, str(marks), i) for i in range(20)]
    assert all(future.done() for future in futures)
    assert len(list(marks.iterdir())) == 20
    with pytest.raises(RuntimeError):
        executor.submit(tasks.answer)


def test_the_with_block_gives_the_executor_itself_and_lets_errors_through(make: MakeExecutor) -> None:
    outside = make()
    futures: list[Future[int]] = []

    def use_and_fail() -> None:
        with outside as inside:
            assert inside is outside
            futures.append(inside.submit(tasks.answer))
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        use_and_fail()
    assert futures[0].result(timeout=0) == 42


def test_cancelling_at_shutdown_spares_what_runs_and_drops_the_queue(make: MakeExecutor, gate: Gate) -> None:
    executor = make()
    futures = busy_with_a_queue(executor, gate)
    assert eventually(futures[0].running)
    thread = shut_down_aside(executor, cancel_futures=True)
    assert eventually(futures[-1].cancelled)
    gate.open()
    thread.join(timeout=10)
    assert all(future.done() for future in futures)
    finished = [future.result() for future in futures if not future.cancelled()]
    assert finished[0] == 0
    assert len(finished) < 50, "those sent ahead may finish, the queue may not"


def test_cancelling_without_waiting_returns_at_once(make: MakeExecutor, gate: Gate) -> None:
    executor = make()
    futures = busy_with_a_queue(executor, gate)
    assert eventually(futures[0].running)
    executor.shutdown(wait=False, cancel_futures=True)
    assert eventually(futures[-1].cancelled)
    with pytest.raises(CancelledError):
        futures[-1].result(timeout=0)
    gate.open()
    assert futures[0].result(timeout=10) == 0


def test_a_late_wish_to_cancel_is_heard(make: MakeExecutor, gate: Gate) -> None:
    executor = make()
    futures = busy_with_a_queue(executor, gate)
    executor.shutdown(wait=False)
    executor.shutdown(wait=False, cancel_futures=True)
    assert eventually(futures[-1].cancelled)


WAITERS = "ProcessPoolExecutor cancels at shutdown without telling wait() and as_completed(), which then hang"


@pytest.mark.only("wattloom", why=WAITERS)
def test_those_who_wait_learn_of_futures_cancelled_at_shutdown(make: MakeExecutor, gate: Gate) -> None:
    executor = make()
    futures = busy_with_a_queue(executor, gate)
    executor.shutdown(wait=False, cancel_futures=True)
    gate.open()
    assert wait(futures, timeout=10).not_done == set()
    assert set(as_completed(futures, timeout=10)) == set(futures)


def test_shutdown_right_after_a_burst_does_not_hang(make: MakeExecutor) -> None:
    """Once a race: workers that start while the executor already shuts down."""
    for _ in range(5):
        executor = make(max_workers=3)
        results = executor.map(str, [2] * 4)
        executor.shutdown()
        assert list(results) == ["2"] * 4


@pytest.mark.only(
    "wattloom", why="ProcessPoolExecutor can fail with AttributeError when two threads shut it down at once"
)
def test_threads_that_shut_down_together_all_return(make: MakeExecutor, gate: Gate) -> None:
    executor = make()
    future = executor.submit(tasks.pass_gate, gate, 1)
    threads = [shut_down_aside(executor) for _ in range(4)]
    gate.open()
    for thread in threads:
        thread.join(timeout=10)
    assert not any(thread.is_alive() for thread in threads)
    assert future.result(timeout=0) == 1


def test_a_callback_may_shut_down_without_waiting(make: MakeExecutor, gate: Gate) -> None:
    executor = make()
    future = executor.submit(tasks.pass_gate, gate)
    future.add_done_callback(lambda _: executor.shutdown(wait=False))
    gate.open()
    future.result()

    def refused() -> bool:
        try:
            executor.submit(tasks.answer)
        except RuntimeError:
            return True
        return False

    assert eventually(refused)


def test_a_task_cancelled_right_before_shutdown_does_not_hold_it_up(make: MakeExecutor) -> None:
    executor = make(max_workers=1)
    executor.submit(tasks.answer).result()
    executor.submit(tasks.answer).cancel()
    executor.shutdown(wait=True)


def test_shutdown_with_something_unsendable_in_the_queue_does_not_hang(make: MakeExecutor) -> None:
    executor = make()
    futures = [executor.submit(tasks.hand_back, trouble.RefusesToLeave()) for _ in range(5)]
    executor.shutdown(wait=True)
    assert all(isinstance(future.exception(timeout=0), Exception) for future in futures)
