"""An executor that works for long begins new runs in between: its tasks are found in whichever run they are."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.local.chaos.patience import within_seconds
from tests.local.chaos.scripts import Script

import wattloom
from wattloom import api
from wattloom.history.runs import runs
from wattloom.local import dispatcher

BURSTS = 4
CALLS = 10
SHORT_RUN = 2000
"""Bytes of log, instead of many millions."""
SOON_S = 30.0

KILLED_LATER = """
    import os, sys, time
    from pathlib import Path
    import wattloom
    from wattloom.history.runs import runs
    from wattloom.local import dispatcher

    dispatcher.LONG_RUN = 2000

    def append(name, seconds=0.0):
        with open(name, "a") as file:
            file.write("x")
        time.sleep(seconds)
        return Path(name).stat().st_size

    executor = wattloom.Executor(1, journal="work.journal")
    for burst in range(3):
        for number in range(10):
            executor.submit(append, f"before-{burst}-{number}").result()
        while runs(executor.journal)[-1].run < burst + 2:
            time.sleep(0.02)
    print(len(runs(executor.journal)), flush=True)
    running = executor.submit(append, "running", 1000)
    left = [executor.submit(append, f"left-{number}") for number in range(5)]
    executor.sync()
    while not Path("running").exists():
        time.sleep(0.01)
    print(running.task_id, *(each.task_id for each in left), flush=True)
    os.kill(os.getpid(), 9)
"""


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    with within_seconds(150):
        yield


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal whose runs are soon long."""
    monkeypatch.setattr(dispatcher, "LONG_RUN", SHORT_RUN)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "work.journal"


def shouting() -> Callable[[int], int]:
    def shout(number: int) -> int:
        print("number", number)
        return number

    return shout


def work_in_bursts(path: Path) -> dict[str, int]:
    """Calls with pauses, in each of which a run ends; by task, what it printed."""
    shout = shouting()
    printed: dict[str, int] = {}
    with wattloom.Executor(2, journal=path) as executor:
        for burst in range(BURSTS):
            futures = {number: executor.submit(shout, number) for number in range(burst * CALLS, (burst + 1) * CALLS)}
            for number, future in futures.items():
                assert future.result(SOON_S) == number
                printed[future.task_id] = number
            until_another_run_begins(path, now=burst + 1)
    return printed


def until_another_run_begins(path: Path, now: int) -> None:
    end = time.monotonic() + SOON_S
    while runs(path)[-1].run <= now:
        assert time.monotonic() < end, "the run went on"
        time.sleep(0.02)


def test_every_task_is_found_in_whichever_run_it_is(path: Path) -> None:
    printed = work_in_bursts(path)
    assert len(runs(path)) > BURSTS
    found = api.tasks(path, limit=None)
    assert sorted(task.task for task in found) == sorted(printed)
    assert {task.run for task in found} <= {*range(1, runs(path)[-1].run + 1)}
    assert len({task.run for task in found}) >= BURSTS
    assert all(task.state == "finished" for task in found)
    for task, number in printed.items():
        assert [log.output for log in api.logs(task, path)] == [f"number {number}\n"]
    (cost,) = api.functions(path)
    assert cost.calls == cost.finished == BURSTS * CALLS


def test_why_is_answered_for_tasks_of_later_runs(path: Path) -> None:
    printed = work_in_bursts(path)
    for task in [next(iter(printed)), *list(printed)[-CALLS:]]:
        found = api.why(task, path)
        assert found.same_decisions
        assert found.task == task


def test_every_run_can_be_replayed_by_itself(path: Path) -> None:
    work_in_bursts(path)
    known = runs(path)
    assert len(known) > BURSTS
    assert {run.state for run in known} <= {"ended", "taken over"}
    for run in known:
        assert api.replay(f"{path}#{run.run}").same_decisions


def test_old_runs_are_let_go_while_the_program_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATTLOOM_LOCAL__RETENTION_MEGABYTES", "0.012")
    printed = work_in_bursts(path)
    known = runs(path)
    assert known[0].run > 1
    kept = [task.task for task in api.tasks(path, limit=None)]
    assert 0 < len(kept) < len(printed)
    assert all(api.logs(task, path)[0].output == f"number {printed[task]}\n" for task in kept)


def test_a_command_that_is_repeated_over_several_runs_has_its_figures_for_each(path: Path) -> None:
    done = api.run(["sleep", "0.1"], repeat=12, journal=path)
    assert len(runs(path)) > 1
    assert [call.state for call in done.calls] == ["finished"] * 12
    assert all(call.seconds is not None and call.seconds > 0.09 for call in done.calls)


def test_what_was_left_in_a_later_run_is_taken_over_and_found(path: Path, tmp_path: Path) -> None:
    script = Script(tmp_path, KILLED_LATER)
    try:
        program = script.start()
        out, errors = program.communicate(timeout=30)
        assert program.returncode == -signal.SIGKILL, errors
    finally:
        script.end()
    before, tasks = out.splitlines()
    assert int(before) >= 4
    running, *left = tasks.split()
    with wattloom.Executor(1, journal=path) as executor:
        found = {future.task_id: future for future in executor.recovered}
        assert sorted(found) == sorted([running, *left])
        assert isinstance(found[running].exception(SOON_S), wattloom.OutcomeUnknown)
        assert [found[task].result(SOON_S) for task in left] == [1] * len(left)
    assert {len((tmp_path / f"before-{burst}-{number}").read_text()) for burst in range(3) for number in range(10)} == {
        1
    }
    last = runs(path)[-1].run
    assert {api.logs(task, path)[0].run for task in left} <= {*range(int(before) + 1, last + 1)}
    assert api.logs(running, path)[0].state == "unknown"
    assert all(api.why(task, path).same_decisions for task in left)
    assert all(api.replay(f"{path}#{run.run}").same_decisions for run in runs(path))
