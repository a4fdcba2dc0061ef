"""A program that always has something open begins new runs all the same: every call is in one run at a time, is made
once and pays once, whichever runs it spans; and what may be kept is all that is kept."""

import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.local.chaos.patience import within_seconds
from tests.local.chaos.scripts import Script

import wattloom
from wattloom import VirtualNode, api
from wattloom.energy.measured import Energy
from wattloom.history.log import Log
from wattloom.history.runs import runs
from wattloom.local import dispatcher
from wattloom.machines.profile import MachineProfile
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import Place
from wattloom.units import GIB

SHORT_RUN = 8000
"""Bytes of log, instead of many millions."""
SOON_S = 60.0

KILLED_IN_A_LATER_RUN = """
    import os, time
    from pathlib import Path
    import wattloom
    from wattloom.history.runs import runs
    from wattloom.local import dispatcher

    dispatcher.LONG_RUN = 4000
    dispatcher.CARRIED = 600

    def append(name, seconds=0.0):
        with open(name, "a") as file:
            file.write("x")
        time.sleep(seconds)
        return Path(name).stat().st_size

    executor = wattloom.Executor(2, journal="work.journal", meter="off")
    again = wattloom.function(idempotent=True, executor=executor)(append)
    long = [executor.submit(append, "long", 1000), again.remote("again", 0.7)]
    left = [executor.submit(append, f"left-{number}") for number in range(5)]
    while not (Path("long").exists() and Path("again").exists()):
        time.sleep(0.01)
    short = wattloom.function(cpu=0.0, executor=executor)(append)
    number = 0
    while runs(executor.journal)[-1].run < 4:
        short.remote(f"short-{number}").result()
        number += 1
    print(number, *(each.task_id for each in (*long, *left)), flush=True)
    os.kill(os.getpid(), 9)
"""


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    with within_seconds(170):
        yield


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal whose runs are soon long, however much is open."""
    monkeypatch.setattr(dispatcher, "LONG_RUN", SHORT_RUN)
    monkeypatch.setattr(dispatcher, "CARRIED", 600)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "work.journal"


def append(name: str, seconds: float = 0.0) -> int:
    with Path(name).open("a") as file:
        file.write("x")
    time.sleep(seconds)
    return Path(name).stat().st_size


def fail_until(name: str, times: int, seconds: float) -> int:
    made = append(name, seconds)
    if made <= times:
        raise ValueError(name)
    return made


def spin(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def joules_of(future: wattloom.TaskFuture) -> float:
    energy = future.energy
    assert isinstance(energy, Energy)
    return energy.joules


def everything_is_right(path: Path, tasks: set[str]) -> None:
    """Every task is listed once, finished; every run leads to the same decisions by itself; only the last is open."""
    listed = api.tasks(path, limit=None)
    assert Counter(task.task for task in listed) == Counter(tasks)
    assert {task.state for task in listed} == {"finished"}
    known = runs(path)
    assert len(known) > 2
    assert {run.state for run in known[:-1]} <= {"taken over", "ended"}
    assert known[-1].state == "ended"
    for run in known:
        assert api.replay(f"{path}#{run.run}").same_decisions


def test_calls_that_run_stand_behind_and_wait_over_many_runs_are_made_once(path: Path) -> None:
    with wattloom.Executor(2, journal=path, meter="off") as executor:
        long = executor.submit(append, "long", 3.0)
        short = [executor.submit(append, f"short-{number}") for number in range(100)]
        slow = [executor.submit(append, f"slow-{number}", 0.1) for number in range(4)]
        assert [future.result(SOON_S) for future in (*short, *slow)] == [1] * 104
        assert long.result(SOON_S) == 1
        names = {future.task_id for future in (long, *short, *slow)}
    everything_is_right(path, names)
    found = [
        record
        for run in runs(path)
        for record in Log(path, run.run).records()
        if isinstance(record, ev.TaskFound) and record.task.id == long.task_id
    ]
    assert found, "no run was turned over while it ran"


def test_numbers_of_placements_go_on_from_run_to_run(path: Path) -> None:
    with wattloom.Executor(2, journal=path, meter="off") as executor:
        for future in [executor.submit(append, f"short-{number}") for number in range(100)]:
            future.result(SOON_S)
    numbers = [
        record.number for run in runs(path) for record in Log(path, run.run).records() if isinstance(record, Place)
    ]
    assert len(runs(path)) > 2
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_call_that_is_cancelled_or_retried_in_a_later_run_ends_as_it_should(path: Path) -> None:
    with wattloom.Executor(2, journal=path, meter="off") as executor:
        retried = wattloom.function(retries=3, executor=executor)(fail_until).remote("retried", 3, 0.4)
        hopeless = wattloom.function(retries=2, executor=executor)(fail_until).remote("hopeless", 9, 0.4)
        waiting = executor.submit(append, "never")
        short = [wattloom.function(cpu=0.0, executor=executor)(append).remote(f"s{number}") for number in range(80)]
        for future in short:
            future.result(SOON_S)
        waiting.cancel()
        assert retried.result(SOON_S) == 4
        assert isinstance(hopeless.exception(SOON_S), ValueError)
    assert Path("hopeless").read_text() == "x" * 3
    rows = {task.task: task for task in api.tasks(path, limit=None)}
    assert rows[retried.task_id].attempts == 4
    assert (rows[hopeless.task_id].state, rows[hopeless.task_id].attempts) == ("failed", 3)
    assert all(api.replay(f"{path}#{run.run}").same_decisions for run in runs(path))


def test_after_kill_9_in_a_later_run_nothing_is_lost_and_nothing_is_doubled(path: Path, tmp_path: Path) -> None:
    script = Script(tmp_path, KILLED_IN_A_LATER_RUN)
    try:
        program = script.start()
        out, errors = program.communicate(timeout=100)
        assert program.returncode == -signal.SIGKILL, errors
    finally:
        script.end()
    made, long, again, *left = out.split()
    with wattloom.Executor(2, journal=path, meter="off") as executor:
        found = {future.task_id: future for future in executor.recovered}
        assert isinstance(found[long].exception(SOON_S), wattloom.OutcomeUnknown)
        if again in found:
            assert found[again].result(SOON_S) == 2
        assert [found[task].result(SOON_S) for task in left if task in found] == [1] * sum(t in found for t in left)
    assert Path("long").read_text() == "x"
    assert {Path(f"left-{number}").read_text() for number in range(5)} == {"x"}
    assert {Path(f"short-{number}").read_text() for number in range(int(made))} == {"x"}
    assert all(api.replay(f"{path}#{run.run}").same_decisions for run in runs(path))


# -- joules ------------------------------------------------------------------------------------------------------------


def test_joules_of_calls_that_span_runs_are_counted_once_and_whole(path: Path) -> None:
    """What meters counted is what tasks, idling and others used, in every run and over all; a call that has run through
    several has in the last one what it used in all, and one that was tried again what all its attempts did."""
    machine = MachineProfile("one", "x86_64", 1, 1, GIB, ((0.0, 10.0), (1.0, 30.0)))
    nodes = [VirtualNode("first", machine, 1.0), VirtualNode("second", machine, 1.0)]
    with wattloom.Executor(nodes=nodes, journal=path) as executor:
        long = executor.submit(spin, 1.5)
        retried = wattloom.function(retries=1, executor=executor)(fail_until).remote("retried", 1, 0.5)
        short = [executor.submit(time.sleep, 0.01) for _ in range(80)]
        for future in (*short, long, retried):
            future.result(SOON_S)
        energies = {future.task_id: joules_of(future) for future in (*short, long, retried)}
    known = runs(path)
    assert len(known) > 2
    everything_is_right(path, set(energies))
    usage = [event for run in known for event in Log(path, run.run).events() if isinstance(event, ev.UsageArrived)]
    for event in usage:
        tasks = sum(joules for joules, _ in event.tasks.values())
        assert event.meter_j == pytest.approx(tasks + event.running_j + event.idle_j + event.unattributed_j)
    assert sum(event.running_j for event in usage) == pytest.approx(0.0, abs=1e-6)
    listed = {task.task: task.joules or 0.0 for task in api.tasks(path, limit=None)}
    assert listed == pytest.approx(energies)
    charged = sum(joules for event in usage for joules, _ in event.tasks.values())
    assert sum(energies.values()) == pytest.approx(charged)
    assert sum(cost.joules for cost in api.functions(path)) == pytest.approx(charged)
    assert listed[long.task_id] >= 1.5 * 20.0 * 0.9


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_a_journal_stays_within_what_may_be_kept_under_constant_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call is always open, and others overlap."""
    monkeypatch.setenv("WATTLOOM_LOCAL__RETENTION_MEGABYTES", "3")
    path = tmp_path / "work.journal"
    largest = 0
    with wattloom.Executor(2, journal=path, meter="off") as executor:
        forever = executor.submit(time.sleep, 1000)
        waiting = [executor.submit(int) for _ in range(500)]
        for _ in range(40):
            more = [executor.submit(int) for _ in range(500)]
            for future in waiting:
                future.result(SOON_S)
            waiting = more
            largest = max(largest, path.stat().st_size)
        for future in waiting:
            future.result(SOON_S)
        known = runs(path)
        assert forever.running()
        executor.kill_workers()
    assert known[0].run > 1
    assert sum(run.bytes for run in known) <= 3e6 + 1e6
    assert largest < 6e6


def test_the_engine_forgets_what_has_ended_when_a_run_is_turned_over(path: Path) -> None:
    with wattloom.Executor(2, journal=path, meter="off") as executor:
        forever = executor.submit(time.sleep, 1000)
        for _ in range(5):
            for future in [executor.submit(int) for _ in range(200)]:
                future.result(SOON_S)
        executor.sync()
        assert len(executor._dispatcher._driver.engine.ledger.ended) < 300
        assert not forever.done()
        executor.kill_workers()
