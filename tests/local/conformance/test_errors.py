"""Errors of a task, and things that cannot be sent: one future fails with them, the executor goes on."""

import threading
import traceback
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any

import pytest
from tests.local.conformance import tasks, trouble


def goes_on(executor: Executor) -> bool:
    return all(executor.submit(tasks.double, i).result() == 2 * i for i in range(5))


def error_of(future: Future[Any]) -> Exception:
    error = future.exception(timeout=10)
    assert isinstance(error, Exception)
    assert not isinstance(error, BrokenExecutor)
    return error


def test_the_remote_traceback_is_the_cause(executor: Executor) -> None:
    error = error_of(executor.submit(trouble.fail_deep_inside, 3))
    assert type(error) is ValueError
    assert error.args == ("from far away",)
    assert error.__cause__ is not None
    remote = str(error.__cause__)
    assert 'raise ValueError("from far away")  # this comment shows in the traceback' in remote
    assert remote.count("in fail_deep_inside") == 4
    assert "trouble.py" in remote


def test_the_remote_traceback_is_printed_with_the_error(executor: Executor) -> None:
    printed = "".join(traceback.format_exception(error_of(executor.submit(trouble.fail_deep_inside, 0))))
    assert "this comment shows in the traceback" in printed


def test_the_cause_of_the_remote_error_shows_in_its_traceback(executor: Executor) -> None:
    error = error_of(executor.submit(trouble.fail_with_a_cause))
    assert type(error) is KeyError
    assert "ZeroDivisionError" in str(error.__cause__)


def test_an_error_keeps_its_fields(executor: Executor) -> None:
    error = error_of(executor.submit(trouble.raise_tagged, 7))
    assert isinstance(error, trouble.Tagged)
    assert error.tag == 7


def test_errors_in_map_have_the_remote_traceback_too(executor: Executor) -> None:
    with pytest.raises(ValueError, match="from far away") as caught:
        list(executor.map(trouble.fail_deep_inside, [0]))
    assert "this comment shows in the traceback" in str(caught.value.__cause__)


def test_leaving_by_sys_exit_ends_the_task_and_not_the_worker(executor: Executor) -> None:
    error = executor.submit(trouble.leave_by_system_exit, 3).exception(timeout=10)
    assert isinstance(error, SystemExit)
    assert error.code == 3
    assert goes_on(executor)


def test_a_task_that_raises_keyboard_interrupt_ends_alone(executor: Executor) -> None:
    assert isinstance(executor.submit(trouble.interrupt_itself).exception(timeout=10), KeyboardInterrupt)
    assert goes_on(executor)


@pytest.mark.parametrize("argument", [threading.Lock(), trouble.RefusesToLeave(), (number for number in range(3))])
def test_an_argument_that_cannot_be_sent_fails_its_future(executor: Executor, argument: Any) -> None:
    error_of(executor.submit(tasks.hand_back, argument))
    error_of(executor.submit(tasks.hand_back, value=argument))
    assert goes_on(executor)


def test_among_many_only_the_one_that_cannot_be_sent_fails(executor: Executor) -> None:
    arguments: list[Any] = [*range(10), trouble.RefusesToLeave(), *range(10)]
    futures = [executor.submit(tasks.hand_back, argument) for argument in arguments]
    error_of(futures.pop(10))
    assert [future.result() for future in futures] == [*range(10), *range(10)]


def test_a_result_that_cannot_be_sent_fails_its_future(executor: Executor) -> None:
    error_of(executor.submit(trouble.make_a_lock))
    error_of(executor.submit(trouble.RefusesToLeave))
    assert goes_on(executor)


def test_an_error_that_cannot_be_pickled_still_fails_its_future(executor: Executor) -> None:
    error_of(executor.submit(trouble.raise_with_a_lock))
    assert goes_on(executor)


BREAKS = "ProcessPoolExecutor breaks for good when unpickling fails; ours fails the one task"


@pytest.mark.only("wattloom", why=BREAKS)
def test_an_error_that_cannot_be_unpickled_is_still_told(executor: Executor) -> None:
    error = error_of(executor.submit(trouble.raise_two_words))
    assert "TwoWords" in "".join(traceback.format_exception(error))
    assert goes_on(executor)


@pytest.mark.only("wattloom", why=BREAKS)
def test_an_argument_that_cannot_be_unpickled_fails_its_future(executor: Executor) -> None:
    error = error_of(executor.submit(tasks.hand_back, trouble.RefusesToArrive()))
    assert "refuses to be unpickled" in "".join(traceback.format_exception(error))
    assert goes_on(executor)


@pytest.mark.only("wattloom", why=BREAKS)
def test_a_result_that_cannot_be_unpickled_fails_its_future(executor: Executor) -> None:
    error = error_of(executor.submit(trouble.make_one_that_refuses_to_arrive))
    assert "refuses to be unpickled" in "".join(traceback.format_exception(error))
    assert goes_on(executor)


@pytest.mark.only("wattloom", why=BREAKS)
def test_a_value_that_exits_on_arrival_ends_neither_worker_nor_program(executor: Executor) -> None:
    assert executor.submit(tasks.hand_back, trouble.LeavesOnArrival()).exception(timeout=10) is not None
    assert executor.submit(trouble.LeavesOnArrival).exception(timeout=10) is not None
    assert goes_on(executor)


@pytest.mark.only("process-pool", why=BREAKS)
@pytest.mark.parametrize("task", [trouble.raise_two_words, trouble.make_one_that_refuses_to_arrive])
def test_the_standard_pool_breaks_on_what_cannot_be_unpickled(executor: Executor, task: Any) -> None:
    assert isinstance(executor.submit(task).exception(timeout=10), BrokenExecutor)
