"""Much of everything: many tasks, many threads, more work than workers, and large data."""

import threading
from concurrent.futures import Executor, Future, as_completed, wait
from typing import Any

import pytest
from tests.local.conformance import tasks
from tests.local.conformance.conftest import MakeExecutor, NewGate
from tests.local.conformance.observing import eventually

MEGABYTE = 1_000_000


def test_two_thousand_small_tasks_from_several_threads(executor: Executor) -> None:
    results: dict[int, int] = {}

    def submit_and_collect(start: int) -> None:
        futures = {executor.submit(tasks.double, i): i for i in range(start, start + 500)}
        results.update({futures[future]: future.result() for future in as_completed(futures, timeout=20)})

    threads = [threading.Thread(target=submit_and_collect, args=(start,)) for start in range(0, 2000, 500)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: 2 * i for i in range(2000)}


def test_two_thousand_small_tasks_through_map(executor: Executor) -> None:
    assert list(executor.map(tasks.double, range(2000), chunksize=50)) == list(range(0, 4000, 2))


def test_far_more_long_tasks_than_workers(make: MakeExecutor, gate: tasks.Gate) -> None:
    executor = make(max_workers=2)
    futures = [executor.submit(tasks.pass_gate, gate, i) for i in range(10)]
    assert eventually(futures[0].running)
    assert not any(future.done() for future in futures)
    gate.open()
    assert [future.result(timeout=10) for future in futures] == list(range(10))


def test_a_slow_task_does_not_hold_short_ones_behind_it(make: MakeExecutor, gate: tasks.Gate) -> None:
    executor = make(max_workers=2)
    slow = executor.submit(tasks.pass_gate, gate)
    short = [executor.submit(tasks.double, i) for i in range(200)]
    assert wait(short, timeout=10).not_done == set()
    assert not slow.done()


def test_tasks_start_in_the_order_they_were_submitted(make: MakeExecutor, new_gate: NewGate) -> None:
    executor = make(max_workers=1)
    gate, order = new_gate(), new_gate()
    ahead = executor.submit(tasks.pass_gate, gate)
    futures = [executor.submit(tasks.append_line, order.path, i) for i in range(50)]
    gate.open()
    wait([ahead, *futures], timeout=10)
    with open(order.path) as lines:
        assert [int(line) for line in lines] == list(range(50))


@pytest.mark.parametrize("megabytes", [1, 10])
def test_large_arguments_arrive_whole(executor: Executor, megabytes: int) -> None:
    data = bytes(range(250)) * (megabytes * MEGABYTE // 250)
    assert executor.submit(tasks.size, data).result() == megabytes * MEGABYTE
    assert executor.submit(tasks.hand_back, data).result() == data


def test_large_results_arrive_whole(executor: Executor) -> None:
    assert executor.submit(tasks.block, 10 * MEGABYTE).result() == bytes(10 * MEGABYTE)


def test_several_large_arguments_at_once_do_not_block_each_other(executor: Executor) -> None:
    """More than a pipe holds in both directions at once: a writer that waits for a reader must not be waited for."""
    futures = [executor.submit(tasks.hand_back, bytes([i]) * 3 * MEGABYTE) for i in range(8)]
    for i, future in enumerate(futures):
        assert future.result(timeout=15) == bytes([i]) * 3 * MEGABYTE


def test_a_large_argument_does_not_change_the_small_ones_around_it(executor: Executor) -> None:
    futures: list[Future[Any]] = []
    for i in range(20):
        futures += [executor.submit(tasks.double, i), executor.submit(tasks.size, bytes(i * 50_000))]
    assert [future.result() for future in futures[::2]] == list(range(0, 40, 2))
    assert [future.result() for future in futures[1::2]] == [i * 50_000 for i in range(20)]


def test_numpy_arrays_arrive_whole_and_can_be_written(executor: Executor) -> None:
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    array = numpy.arange(1_250_000, dtype="float64").reshape(1250, 1000)
    assert executor.submit(tasks.total, array).result() == array.sum()
    back = executor.submit(tasks.hand_back, array[::2, 1:]).result()
    assert numpy.array_equal(back, array[::2, 1:])
    back += 1
    assert array[0, 1] == 1
    assert executor.submit(tasks.double_in_place, array).result()[-1, -1] == 2 * array[-1, -1]
