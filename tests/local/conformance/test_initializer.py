"""The initializer: once in every worker, before its first task; if it fails, nobody waits for ever."""

from concurrent.futures import BrokenExecutor, Future, wait
from typing import Any

import pytest
from tests.local.conformance import tasks
from tests.local.conformance.conftest import MakeExecutor, NewGate


def test_every_worker_is_prepared_once_with_the_arguments(make: MakeExecutor, new_gate: NewGate) -> None:
    executor = make(max_workers=3, initializer=tasks.prepare, initargs=("a", 1))
    gates = [new_gate() for _ in range(3)]
    reports = [future.result() for future in [executor.submit(tasks.meet_prepared, gate, gates) for gate in gates]]
    assert len({pid for pid, _ in reports}) == 3
    assert [prepared for _, prepared in reports] == [[("a", 1)]] * 3


def test_a_worker_is_not_prepared_again_for_later_tasks(make: MakeExecutor) -> None:
    executor = make(max_workers=1, initializer=tasks.prepare, initargs=("once",))
    for _ in range(5):
        assert executor.submit(tasks.prepared_here).result()[1] == [("once",)]


def test_an_initializer_may_have_no_arguments(make: MakeExecutor) -> None:
    executor = make(max_workers=1, initializer=tasks.prepare)
    assert executor.submit(tasks.prepared_here).result()[1] == [()]


def test_executors_do_not_share_what_their_initializers_did(make: MakeExecutor) -> None:
    executors = [make(max_workers=1, initializer=tasks.prepare, initargs=(name,)) for name in "ab"]
    executors.append(make(max_workers=1))
    assert [each.submit(tasks.prepared_here).result()[1] for each in executors] == [[("a",)], [("b",)], []]


def submitted_until_broken(executor: Any, count: int) -> list[Future[Any]]:
    """The initializer may fail while we still submit: then submitting raises, which is as good."""
    futures: list[Future[Any]] = []
    for _ in range(count):
        try:
            futures.append(executor.submit(tasks.answer))
        except BrokenExecutor:
            break
    return futures


def test_a_failing_initializer_breaks_the_executor_for_all_who_wait(make: MakeExecutor) -> None:
    executor = make(initializer=tasks.refuse_to_prepare, initargs=(1,))
    futures = submitted_until_broken(executor, 20)
    assert futures, "the first submit cannot know yet"
    assert wait(futures, timeout=10).not_done == set()
    for future in futures:
        assert isinstance(future.exception(timeout=0), BrokenExecutor)
    with pytest.raises(BrokenExecutor):
        executor.submit(tasks.answer)


def test_a_broken_executor_still_shuts_down(make: MakeExecutor) -> None:
    executor = make(initializer=tasks.refuse_to_prepare)
    with pytest.raises(BrokenExecutor):
        executor.submit(tasks.answer).result(timeout=10)
    executor.shutdown(wait=True)
    executor.shutdown(wait=True)


def test_a_failing_initializer_ends_a_map_too(make: MakeExecutor) -> None:
    executor = make(initializer=tasks.refuse_to_prepare)
    with pytest.raises(BrokenExecutor):
        list(executor.map(tasks.double, range(10), timeout=10))


@pytest.mark.only("wattloom", why="ProcessPoolExecutor only logs why the initializer failed; ours says it in the error")
def test_the_error_says_why_the_initializer_failed(make: MakeExecutor) -> None:
    error = make(initializer=tasks.refuse_to_prepare).submit(tasks.answer).exception(timeout=10)
    assert "this initializer always fails" in f"{error} {error.__cause__ if error else None}"
