"""Futures of ours in an event loop."""

import asyncio
from concurrent.futures import Executor

import pytest
from tests.local.conformance import tasks
from tests.local.conformance.conftest import MakeExecutor
from tests.local.conformance.observing import eventually

Gate = tasks.Gate


def test_a_wrapped_future_can_be_awaited(executor: Executor) -> None:
    async def main() -> int:
        return await asyncio.wrap_future(executor.submit(tasks.add, 40, 2))

    assert asyncio.run(main()) == 42


def test_an_error_arrives_where_it_is_awaited(executor: Executor) -> None:
    async def main() -> None:
        await asyncio.wrap_future(executor.submit(tasks.divide, 1, 0))

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())


def test_the_loop_can_run_functions_in_it(executor: Executor) -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(loop.run_in_executor(executor, tasks.double, i) for i in range(30)))

    assert asyncio.run(main()) == list(range(0, 60, 2))


def test_the_loop_goes_on_while_a_task_runs(executor: Executor, gate: Gate) -> None:
    async def main() -> str:
        waiting = asyncio.get_running_loop().run_in_executor(executor, tasks.pass_gate, gate, "through")
        await asyncio.sleep(0.01)
        assert not waiting.done()
        gate.open()
        result: str = await waiting
        return result

    assert asyncio.run(main()) == "through"


def test_cancelling_the_awaiting_side_cancels_a_waiting_task(make: MakeExecutor, gate: Gate) -> None:
    executor = make(max_workers=1)
    futures = [executor.submit(tasks.pass_gate, gate) for _ in range(100)]

    async def main() -> None:
        wrapped = asyncio.wrap_future(futures[-1])
        wrapped.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wrapped

    asyncio.run(main())
    assert eventually(futures[-1].cancelled)


def test_a_limit_on_awaiting_is_kept(executor: Executor, gate: Gate) -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(executor.submit(tasks.pass_gate, gate)), timeout=0.05)

    asyncio.run(main())
    gate.open()
    assert executor.submit(tasks.answer).result() == 42


def test_asyncio_as_completed_gives_all(executor: Executor) -> None:
    async def main() -> set[int]:
        wrapped = [asyncio.wrap_future(executor.submit(tasks.double, i)) for i in range(10)]
        return {await ended for ended in asyncio.as_completed(wrapped, timeout=10)}

    assert asyncio.run(main()) == set(range(0, 20, 2))
