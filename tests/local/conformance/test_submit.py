"""Submitting: what arrives at the function, what comes back, and where it ran."""

import os
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest
from tests.local.conformance import tasks
from tests.local.conformance.conftest import MakeExecutor, NewGate


def test_it_is_an_executor_and_gives_futures(executor: Executor) -> None:
    assert isinstance(executor, Executor)
    assert isinstance(executor.submit(tasks.answer), Future)


def test_a_result_comes_back(executor: Executor) -> None:
    assert executor.submit(pow, 2, 8).result() == 256


def test_keywords_named_like_the_parameters_of_submit_reach_the_function(executor: Executor) -> None:
    future = executor.submit(tasks.capture, 1, self=2, fn=3, args=4, kwargs=5, timeout=6)
    assert future.result() == ((1,), {"self": 2, "fn": 3, "args": 4, "kwargs": 5, "timeout": 6})


def test_the_function_must_be_given_by_position(executor: Executor) -> None:
    with pytest.raises(TypeError):
        executor.submit(fn=tasks.capture, arg=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        executor.submit(arg=1)  # type: ignore[call-arg]


def test_a_function_that_is_not_callable_fails_its_own_future(executor: Executor) -> None:
    not_callable: object = 7
    with pytest.raises(TypeError):
        executor.submit(not_callable).result()  # type: ignore[arg-type]
    assert executor.submit(tasks.answer).result() == 42


def test_bound_methods_classes_and_builtins_can_be_sent(executor: Executor) -> None:
    assert executor.submit(tasks.Parcel("inside").open).result() == "inside"
    assert executor.submit(tasks.Parcel, 5).result() == tasks.Parcel(5)
    assert executor.submit("a-b".split, "-").result() == ["a", "b"]


LOCAL = "ProcessPoolExecutor sends functions by their name only; ours sends those without one by value"


@pytest.mark.only("wattloom", why=LOCAL)
def test_lambdas_and_closures_can_be_sent(executor: Executor) -> None:
    step = 10

    def climb(value: int) -> int:
        return value + step

    assert executor.submit(lambda: "anonymous").result() == "anonymous"
    assert executor.submit(climb, 5).result() == 15
    assert list(executor.map(lambda value: climb(value) * 2, range(3))) == [20, 22, 24]


@pytest.mark.only("process-pool", why=LOCAL)
def test_the_standard_pool_cannot_send_lambdas(executor: Executor) -> None:
    with pytest.raises((pickle.PicklingError, AttributeError)):
        executor.submit(lambda: "anonymous").result()


def test_none_and_false_are_results_like_any_other(executor: Executor) -> None:
    values: list[object] = [None, False, 0, "", [], NotImplemented, ...]
    assert [executor.submit(tasks.hand_back, value).result() for value in values] == values


def test_nested_data_come_back_equal(executor: Executor) -> None:
    tree = tasks.Parcel({"a": [1, (2.5, None)], ("k", 1): {b"x", b"y"}}, [tasks.Parcel(i) for i in range(3)])
    tree.inner[0].inner.append(tasks.Parcel("ünïcødé"))
    assert executor.submit(tasks.hand_back, tree).result() == tree


def test_shared_and_cyclic_structure_survives(executor: Executor) -> None:
    loop: list[object] = [1]
    loop.append(loop)
    back = executor.submit(tasks.hand_back, loop).result()
    assert back[1] is back
    assert back is not loop


def test_a_task_gets_a_copy_of_its_arguments(executor: Executor) -> None:
    mine = [3, 1, 2]
    assert executor.submit(list.sort, mine).result() is None
    assert mine == [3, 1, 2]


def test_tasks_run_in_other_processes(executor: Executor) -> None:
    assert executor.submit(os.getpid).result() != os.getpid()


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_as_many_tasks_run_at_once_as_there_are_workers(make: MakeExecutor, new_gate: NewGate, workers: int) -> None:
    """Also when there are more workers than cores: a worker may be waiting for something else than a core."""
    executor = make(max_workers=workers)
    gates = [new_gate() for _ in range(workers)]
    pids = {future.result() for future in [executor.submit(tasks.meet, gate, gates) for gate in gates]}
    assert len(pids) == workers


def test_there_are_never_more_workers_than_asked_for(make: MakeExecutor) -> None:
    executor = make(max_workers=2)
    futures = [executor.submit(tasks.pause_and_tell_worker, 0.005) for _ in range(40)]
    assert len({future.result() for future in futures}) <= 2


def test_an_idle_worker_is_used_again(make: MakeExecutor) -> None:
    executor = make(max_workers=1)
    assert len({executor.submit(tasks.worker_id).result() for _ in range(10)}) == 1


def test_the_result_of_one_task_feeds_the_next(executor: Executor) -> None:
    value = 1
    for _ in range(10):
        value = executor.submit(tasks.double, value).result()
    assert value == 1024


@pytest.mark.parametrize("wrapped", ["bare", "in a list", "in a dict", "by keyword", "in a closure"])
@pytest.mark.only("wattloom", why="the standard pool says that it cannot pickle a lock")
def test_a_future_as_an_argument_is_told_what_to_give_instead(executor: Executor, wrapped: str) -> None:
    future = executor.submit(tasks.answer)
    calls: dict[str, Callable[[], Future[Any]]] = {
        "bare": lambda: executor.submit(tasks.hand_back, future),
        "in a list": lambda: executor.submit(tasks.hand_back, [1, [future]]),
        "in a dict": lambda: executor.submit(tasks.hand_back, {"a": (future,)}),
        "by keyword": lambda: executor.submit(tasks.hand_back, value=future),
        "in a closure": lambda: executor.submit(lambda: future),
    }
    with pytest.raises(TypeError, match=r"a future .* give its result"):
        calls[wrapped]().result()
    assert executor.submit(tasks.double, future.result()).result() == 84


def test_it_can_be_used_from_several_threads_at_once(executor: Executor) -> None:
    sums: list[int] = []

    def use() -> None:
        sums.append(sum(future.result() for future in [executor.submit(tasks.double, i) for i in range(50)]))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [2450] * 4


def test_two_executors_live_side_by_side(make: MakeExecutor) -> None:
    first, second = make(max_workers=1), make(max_workers=1)
    one, other = first.submit(tasks.worker_id), second.submit(tasks.worker_id)
    assert one.result() != other.result()
    first.shutdown()
    assert second.submit(tasks.answer).result() == 42
