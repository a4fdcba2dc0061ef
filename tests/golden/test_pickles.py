"""What journals hold as pickles of the code before the redesign is unpickled, and does what it did."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from tests.golden import pickles

import wattloom
from wattloom.journal.errors import JournalFull
from wattloom.local.command import CommandFailed
from wattloom.local.errors import (
    CannotSend,
    ExecutorLost,
    OutcomeUnknown,
    TaskError,
    TaskRejected,
    TaskTimeout,
    WorkerLost,
)
from wattloom.metering.timeout import NoAnswer

pytestmark = pytest.mark.filterwarnings("ignore:.*has moved.*:DeprecationWarning")


@pytest.fixture
def found() -> dict[str, Any]:
    return {name: pickles.unpickled(name) for name in pickles.names()}


def test_every_one_of_them_is_unpickled(found: dict[str, Any]) -> None:
    assert list(found) == [name for name, _ in pickles.objects()]


def test_functions_are_called(found: dict[str, Any]) -> None:
    assert found["a chunk of calls"]((("abc",), ("ab",))).values == [3, 2]
    assert found["a function by its name"]("/a/b") == "b"
    assert found["a command"].__qualname__ == "ls"


def test_public_functions_are_those_of_today(found: dict[str, Any]) -> None:
    for name in ("tasks", "functions", "logs", "prune"):
        assert found[f"wattloom.{name}"] is getattr(wattloom, name)
    assert found["wattloom.machines"]() == wattloom.machines()


def test_exceptions_are_the_same_with_the_same_words(found: dict[str, Any]) -> None:
    results = found["its results"]
    assert (results.values, str(results.problem), results.text) == ([1], "two", "Traceback")
    assert isinstance(found["an input error"], wattloom.InputError)
    assert found["an input error"].field == "cpu"
    failed, full = found["a command that failed"], found["a full journal"]
    assert isinstance(failed, CommandFailed)
    assert (failed.code, failed.problem) == (3, "it failed")
    assert isinstance(full, JournalFull)
    assert (full.path, full.problem) == (Path("work.journal"), "disk full")
    assert (type(found["an executor that is lost"]), type(found["a meter that hangs"])) == (ExecutorLost, NoAnswer)


@pytest.mark.parametrize("kind", [WorkerLost, TaskTimeout, TaskRejected, OutcomeUnknown, CannotSend])
def test_what_became_of_an_inner_call_reaches_the_outer_ones_caller(kind: type[TaskError]) -> None:
    """The code before could not unpickle these: nothing was recorded of them."""
    again = pickle.loads(pickle.dumps(kind("1-2", "it is gone")))
    assert (type(again), again.task, str(again)) == (kind, "1-2", "it is gone")
