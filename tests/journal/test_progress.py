"""A worker's progress is seen by its parent, outlives both, and calls can be taken back without a doubt."""

import signal
import timeit
from pathlib import Path

import pytest

from wattloom.journal.progress import NO_LIMIT, Progress

from .conftest import Start


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "spool" / "worker-1"


def test_both_sides_see_the_same_numbers(file: Path) -> None:
    parent = Progress.create(file)
    worker = Progress.open(file)
    assert (parent.begun(), parent.ended(), parent.limit) == (0, 0, NO_LIMIT)
    assert worker.begin(7)
    assert (parent.begun(), parent.ended()) == (7, 0)
    worker.end(7)
    assert (parent.begun(), parent.ended()) == (7, 7)
    parent.limit = 9
    assert worker.limit == 9
    assert worker.begin(9)
    assert not worker.begin(10)
    assert parent.begun() == 9
    parent.close()
    worker.close()


def test_a_call_taken_back_is_not_begun_and_one_that_had_begun_is_not_taken_back(file: Path) -> None:
    parent, worker = Progress.create(file), Progress.open(file)
    worker.begin(3)
    assert parent.take_back(2) == 3
    assert parent.take_back(5) == 5
    assert worker.begin(5)
    assert not worker.begin(6)
    parent.limit = NO_LIMIT
    assert worker.begin(6)


KILLED = """
import os, sys
from pathlib import Path
from wattloom.journal.progress import Progress

progress = Progress.open(Path(sys.argv[1]))
for number in (1, 2, 3):
    progress.begin(number)
    if number < 3:
        progress.end(number)
os.kill(os.getpid(), 9)
"""


def test_after_kill_9_it_is_known_which_call_had_begun(file: Path, start: Start) -> None:
    Progress.create(file).close()
    assert start(KILLED, file).wait(timeout=60) == -signal.SIGKILL
    found = Progress.open(file)
    assert (found.begun(), found.ended()) == (3, 2)


RACER = """
import sys
from pathlib import Path
from wattloom.journal.progress import Progress

progress = Progress.open(Path(sys.argv[1]))
print("ready", flush=True)
number = 1
while progress.begin(number):
    number += 1
print(number - 1, flush=True)
sys.stdin.readline()
"""


def test_parent_and_worker_agree_on_what_was_taken_back_in_a_race(file: Path, start: Start) -> None:
    for _ in range(10):
        parent = Progress.create(file)
        worker = start(RACER, file)
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdout.readline()
        while parent.begun() < 1000:
            pass
        highest = parent.take_back(parent.begun() + 20)
        last = int(worker.stdout.readline())
        worker.stdin.close()
        worker.stdin = None
        assert worker.wait(timeout=60) == 0
        assert last <= highest, "a call that was taken back was begun"
        assert last >= highest - 1, "only the one being begun may be in doubt"


def test_beginning_a_call_costs_far_less_than_a_microsecond(file: Path) -> None:
    progress = Progress.create(file)
    best = min(timeit.repeat(lambda: progress.begin(5), number=20_000, repeat=10)) / 20_000
    assert best < 1e-6


@pytest.mark.parametrize("content", [b"", b"x" * 64, b"x" * 100])
def test_another_file_is_not_taken_for_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match="not a progress file"):
        Progress.open(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        Progress.open(tmp_path / "nothing")
