"""The future of a task: its states, its callbacks, cancelling it, and waiting for it with a limit."""

import logging
import threading
from concurrent.futures import CancelledError, Executor, Future, as_completed, wait
from typing import Any

import pytest
from tests.local.conformance import tasks
from tests.local.conformance.conftest import MakeExecutor, NewGate
from tests.local.conformance.observing import eventually

Gate = tasks.Gate
QUEUED = 100  # enough that the last are surely waiting, however many an executor sends ahead


def busy_with_a_queue(executor: Executor, gate: Gate) -> list[Future[Any]]:
    """All workers wait at the gate, and a queue stands behind them."""
    return [executor.submit(tasks.pass_gate, gate, i) for i in range(QUEUED)]


def test_a_running_task_says_so(executor: Executor, new_gate: NewGate) -> None:
    started, gate = new_gate(), new_gate()
    future = executor.submit(tasks.announce_and_pass, started, gate, "done")
    started.wait()
    assert eventually(future.running)
    assert (future.done(), future.cancelled(), future.cancel()) == (False, False, False)
    gate.open()
    assert future.result() == "done"
    assert (future.running(), future.done(), future.cancelled()) == (False, True, False)


def test_a_waiting_task_is_neither_running_nor_done(executor: Executor, gate: Gate) -> None:
    last = busy_with_a_queue(executor, gate)[-1]
    assert (last.running(), last.done(), last.cancelled()) == (False, False, False)
    gate.open()
    assert last.result() == QUEUED - 1


def test_a_finished_task_cannot_be_cancelled(executor: Executor) -> None:
    future = executor.submit(tasks.answer)
    future.result()
    assert not future.cancel()
    assert not future.cancelled()
    assert future.result() == 42


def test_a_failed_task_is_done_and_gives_its_exception_both_ways(executor: Executor) -> None:
    future = executor.submit(tasks.divide, 1, 0)
    error = future.exception()
    assert isinstance(error, ZeroDivisionError)
    assert future.done()
    with pytest.raises(ZeroDivisionError) as caught:
        future.result()
    assert caught.value is error


def test_a_task_that_succeeds_has_no_exception(executor: Executor) -> None:
    assert executor.submit(tasks.answer).exception() is None


def test_a_result_can_be_asked_for_again(executor: Executor) -> None:
    future = executor.submit(tasks.wrap, 1)
    assert future.result() is future.result()


def test_a_waiting_task_can_be_cancelled_and_then_never_runs(make: MakeExecutor, gate: Gate, marks: Any) -> None:
    executor = make(max_workers=1)
    busy_with_a_queue(executor, gate)
    future = executor.submit(tasks.leave_mark, str(marks), "ran")
    assert future.cancel()
    assert future.cancel(), "cancelling twice is allowed"
    assert (future.cancelled(), future.done(), future.running()) == (True, True, False)
    gate.open()
    executor.shutdown(wait=True)
    assert list(marks.iterdir()) == []


def test_asking_a_cancelled_task_for_anything_raises(executor: Executor, gate: Gate) -> None:
    last = busy_with_a_queue(executor, gate)[-1]
    assert last.cancel()
    with pytest.raises(CancelledError):
        last.result()
    with pytest.raises(CancelledError):
        last.exception()


def test_cancelling_wakes_a_thread_that_waits_for_the_result(executor: Executor, gate: Gate) -> None:
    last = busy_with_a_queue(executor, gate)[-1]
    seen: list[type[BaseException]] = []

    def wait_for_it() -> None:
        try:
            last.result()
        except CancelledError as error:
            seen.append(type(error))

    thread = threading.Thread(target=wait_for_it)
    thread.start()
    assert last.cancel()
    thread.join(timeout=5)
    assert seen == [CancelledError]


def test_wait_and_as_completed_see_cancelled_tasks(executor: Executor, gate: Gate) -> None:
    futures = busy_with_a_queue(executor, gate)
    cancelled = {future for future in reversed(futures) if future.cancel()}
    assert cancelled
    gate.open()
    assert wait(futures, timeout=10).not_done == set()
    assert set(as_completed(futures, timeout=10)) == set(futures)
    assert {future for future in futures if future.cancelled()} == cancelled


def test_the_others_run_when_some_were_cancelled(executor: Executor, gate: Gate) -> None:
    futures = busy_with_a_queue(executor, gate)
    cancelled = {i for i in range(1, QUEUED, 2) if futures[i].cancel()}
    gate.open()
    assert [futures[i].result() for i in range(QUEUED) if i not in cancelled] == sorted(set(range(QUEUED)) - cancelled)


def test_a_limit_on_waiting_leaves_the_task_alone(executor: Executor, gate: Gate) -> None:
    future = executor.submit(tasks.pass_gate, gate, "late")
    with pytest.raises(TimeoutError):
        future.result(timeout=0.05)
    with pytest.raises(TimeoutError):
        future.exception(timeout=0)
    gate.open()
    assert future.result(timeout=10) == "late"
    assert future.exception(timeout=0) is None


def test_a_callback_gets_the_finished_future(executor: Executor, gate: Gate) -> None:
    future = executor.submit(tasks.pass_gate, gate, 5)
    seen: list[tuple[bool, Any]] = []
    future.add_done_callback(lambda done: seen.append((done is future, done.result())))
    assert seen == []
    gate.open()
    assert eventually(lambda: seen == [(True, 5)])


def test_a_callback_is_told_of_failure_and_of_cancelling(executor: Executor, gate: Gate) -> None:
    failing, last = executor.submit(tasks.fail_behind, gate), busy_with_a_queue(executor, gate)[-1]
    seen: list[str] = []
    failing.add_done_callback(lambda done: seen.append(type(done.exception()).__name__))
    last.add_done_callback(lambda done: seen.append(f"cancelled {done.cancelled()}"))
    last.cancel()
    assert seen == ["cancelled True"]
    gate.open()
    assert eventually(lambda: seen == ["cancelled True", "LookupError"])


def test_a_callback_added_late_runs_at_once_in_the_same_thread(executor: Executor) -> None:
    future = executor.submit(tasks.answer)
    future.result()
    seen: list[threading.Thread] = []
    future.add_done_callback(lambda _: seen.append(threading.current_thread()))
    assert seen == [threading.current_thread()]


def test_callbacks_run_in_order_and_one_that_raises_is_logged(
    executor: Executor, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    def raising(_: Future[Any]) -> None:
        raise AssertionError("a callback that fails")

    seen: list[int] = []
    future = executor.submit(tasks.pass_gate, gate, "unharmed")
    future.add_done_callback(lambda _: seen.append(1))
    future.add_done_callback(raising)
    future.add_done_callback(lambda _: seen.append(2))
    with caplog.at_level(logging.ERROR, logger="concurrent.futures"):
        gate.open()
        assert eventually(lambda: seen == [1, 2])
    assert "a callback that fails" in caplog.text
    assert future.result() == "unharmed"
    assert executor.submit(tasks.answer).result() == 42


def test_a_callback_may_submit_more_work(executor: Executor) -> None:
    finished = threading.Event()
    values: list[int] = []

    def go_on(done: Future[int]) -> None:
        values.append(done.result())
        if len(values) < 10:
            executor.submit(tasks.double, done.result()).add_done_callback(go_on)
        else:
            finished.set()

    executor.submit(tasks.double, 1).add_done_callback(go_on)
    assert finished.wait(timeout=10)
    assert values == [2**i for i in range(1, 11)]


def test_the_state_shows_in_the_text_of_a_future(executor: Executor, gate: Gate) -> None:
    last = busy_with_a_queue(executor, gate)[-1]
    assert "pending" in repr(last)
    last.cancel()
    assert "cancelled" in repr(last)
    finished = executor.submit(tasks.answer)
    gate.open()
    finished.result()
    assert "finished" in repr(finished)
