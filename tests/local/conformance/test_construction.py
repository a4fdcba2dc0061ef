"""Making an executor: what it refuses before any work is accepted."""

from typing import Any

import pytest
from tests.local.conformance import tasks
from tests.local.conformance.conftest import MakeExecutor


@pytest.mark.parametrize("workers", [0, -1, -100])
def test_fewer_than_one_worker_is_refused(make: MakeExecutor, workers: int) -> None:
    with pytest.raises(ValueError, match="max_workers"):
        make(max_workers=workers)


@pytest.mark.parametrize("workers", ["2", [2], object()])
def test_workers_that_are_not_a_number_are_refused(make: MakeExecutor, workers: Any) -> None:
    with pytest.raises(TypeError):
        make(max_workers=workers)


def test_an_initializer_that_cannot_be_called_is_refused(make: MakeExecutor) -> None:
    not_callable: Any = "prepare"
    with pytest.raises(TypeError, match="initializer"):
        make(initializer=not_callable)


def test_without_a_number_it_chooses_one_itself(make: MakeExecutor) -> None:
    assert make(max_workers=None).submit(tasks.answer).result() == 42


def test_an_executor_that_was_never_used_shuts_down(make: MakeExecutor) -> None:
    make().shutdown()
    with make():
        pass
