"""A call that may have begun is not made again, whatever has become of the files that say how far workers had come; and
one that takes its program with it is given up, over all lives of the program."""

import os
import random
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.local.chaos.patience import within_seconds
from tests.local.chaos.scripts import Script

import wattloom
from wattloom import api
from wattloom.history.log import Log
from wattloom.history.task_history import RunHistory
from wattloom.journal.progress import Progress
from wattloom.local.job import Job
from wattloom.local.nodes import LocalNode
from wattloom.local.worker_pool import WorkerPool
from wattloom.local.worker_process import WorkerProcess
from wattloom.scheduling.instructions import Place
from wattloom.scheduling.lease_terms import LeaseTerms

SOON_S = 30.0

KILLS = """
    import os, time
    from pathlib import Path
    import wattloom

    def charge(name, after_s):
        with open(name, "a") as file:
            file.write("x")
        time.sleep(after_s)
        os.kill(os.getppid(), 9)
        time.sleep(1000)

    def append(name):
        with open(name, "a") as file:
            file.write("x")
        return Path(name).stat().st_size

    executor = wattloom.Executor(1, journal="work.journal", meter="off")
    executor.submit(charge, "charged", AFTER_S)
    executor.submit(append, "waited")
    time.sleep(1000)
"""
POISON = """
    import os, time
    import wattloom

    @wattloom.function(idempotent=True, infrastructure_retries=RETRIES)
    def poison():
        with open("taken", "a") as file:
            file.write("x")
        os.kill(os.getppid(), 9)
        time.sleep(1000)

    with wattloom.Executor(1, journal="work.journal", meter="off") as executor:
        if not executor.recovered:
            executor.submit(poison)
        for each in executor.recovered:
            print(repr(each.exception()))
"""


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    with within_seconds(180):
        yield


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Runs a script until it is killed by one of its calls."""
    made: list[Script] = []

    def run(text: str) -> None:
        made.append(Script(tmp_path, text))
        program = made[-1].start()
        _, errors = program.communicate(timeout=60)
        assert program.returncode == -signal.SIGKILL, errors

    yield run
    for script in made:
        script.end()


def spool(folder: Path) -> Path:
    return folder / "work.journal.spool"


def progress_files(folder: Path) -> list[Path]:
    found = sorted(spool(folder).glob("worker-*"))
    assert found
    return found


# -- ways to lose the progress of workers ------------------------------------------------------------------------------


def nothing(_: Path) -> None:
    pass


def folder_deleted(folder: Path) -> None:
    shutil.rmtree(spool(folder))


def folder_replaced(folder: Path) -> None:
    shutil.rmtree(spool(folder))
    spool(folder).mkdir(mode=0o700)


def files_deleted(folder: Path) -> None:
    for path in progress_files(folder):
        path.unlink()


def truncated(folder: Path) -> None:
    for path in progress_files(folder):
        os.truncate(path, 0)


def cut_short(folder: Path) -> None:
    for path in progress_files(folder):
        os.truncate(path, 16)


def zeroed(folder: Path) -> None:
    for path in progress_files(folder):
        path.write_bytes(bytes(path.stat().st_size))


def not_to_be_opened(folder: Path) -> None:
    """Whoever runs as root may read every file; a folder in its place is one that nobody can."""
    for path in progress_files(folder):
        path.unlink()
        path.mkdir()


def replaced_by_a_fresh_one(folder: Path) -> None:
    for path in progress_files(folder):
        path.unlink()
        Progress.create(path, own=7).close()


def replaced_by_one_of_an_earlier_version(folder: Path) -> None:
    for path in progress_files(folder):
        path.unlink()
        Progress.create(path).close()


def copied_without_it(folder: Path) -> None:
    """Under another name, so that the spool is another's, or nobody's."""
    for suffix in ("", "-wal", "-shm"):
        if (folder / f"work.journal{suffix}").exists():
            (folder / f"work.journal{suffix}").rename(folder / f"copy.journal{suffix}")


LOSSES: dict[Callable[[Path], None], str] = {
    nothing: "",
    folder_deleted: "No such file",
    folder_replaced: "No such file",
    files_deleted: "No such file",
    truncated: "not a progress file",
    cut_short: "not a progress file",
    zeroed: "not a progress file",
    not_to_be_opened: "Is a directory",
    replaced_by_a_fresh_one: "another worker",
    replaced_by_one_of_an_earlier_version: "another worker",
    copied_without_it: "No such file",
}


@pytest.mark.parametrize("after_s", [0.0, 0.5], ids=["start not reported", "start reported"])
@pytest.mark.parametrize("lose", LOSSES)
def test_a_call_that_had_begun_is_never_made_again(
    killed: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lose: Callable[[Path], None],
    after_s: float,
) -> None:
    killed(KILLS.replace("AFTER_S", str(after_s)))
    lose(tmp_path)
    monkeypatch.chdir(tmp_path)
    (journal,) = tmp_path.glob("*.journal")
    reported = any(b'"task-started"' in line for line in Log(journal).lines())
    assert reported or not after_s
    with wattloom.Executor(1, journal=journal, meter="off") as executor:
        charged, waited = executor.recovered
        problem = charged.exception(SOON_S)
        assert isinstance(problem, wattloom.OutcomeUnknown)
        if not reported:
            assert LOSSES[lose] in str(problem)
        assert waited.result(SOON_S) == 1
    assert (tmp_path / "charged").read_text() == "x"


def test_a_run_of_an_earlier_version_is_believed_as_far_as_it_says_something(
    killed: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which files there had to be is not written down in it, and placements have no number."""
    killed(KILLS.replace("AFTER_S", "0.0"))
    with closing(sqlite3.connect(tmp_path / "work.journal")) as connection:
        rows = connection.execute("SELECT id, records FROM log").fetchall()
        for row, records in rows:
            changed = records.replace(b',"number":1}', b"}")
            connection.execute("UPDATE log SET records = ?, checksum = NULL WHERE id = ?", (changed, row))
        assert sum(b',"number"' in records for _, records in rows) == 1
        connection.execute("DELETE FROM workers")
        connection.commit()
    for path in progress_files(tmp_path):
        words = bytearray(path.read_bytes())
        words[6 * 8 : 7 * 8] = bytes(8)
        path.write_bytes(words)
    monkeypatch.chdir(tmp_path)
    with wattloom.Executor(1, journal="work.journal", meter="off") as executor:
        charged, waited = executor.recovered
        assert "the program that ran it was ended. It" in str(charged.exception(SOON_S))
        assert waited.result(SOON_S) == 1
    assert (tmp_path / "charged").read_text() == "x"


def test_the_journal_says_which_files_there_must_be_as_long_as_they_are_needed(tmp_path: Path) -> None:
    path = tmp_path / "work.journal"

    def written() -> list[str]:
        with closing(sqlite3.connect(path)) as connection:
            return sorted(name for (name,) in connection.execute("SELECT file FROM workers"))

    with wattloom.Executor(2, journal=path, meter="off") as executor:
        futures = [executor.submit(time.sleep, 0.3) for _ in range(4)]
        for future in futures:
            future.result(SOON_S)
        executor.sync()
        assert written() == sorted(file.name for file in progress_files(tmp_path))
        assert isinstance(executor.submit(os._exit, 3).exception(SOON_S), wattloom.OutcomeUnknown)
        executor.submit(int).result(SOON_S)
        executor.sync()
        assert written() == sorted(file.name for file in progress_files(tmp_path))
    assert written() == []


# -- calls that kill ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("retries", [0, 2])
def test_a_call_that_kills_its_program_is_given_up_over_all_its_lives(
    killed: Callable[[str], None], tmp_path: Path, retries: int
) -> None:
    text = POISON.replace("RETRIES", str(retries))
    for life in range(1, retries + 2):
        killed(text)
        assert (tmp_path / "taken").read_text() == "x" * life
    script = Script(tmp_path, text)
    try:
        said = script.run()
    finally:
        script.end()
    assert "WorkerLost" in said
    assert f"lost so {retries + 1} times, and infrastructure_retries is {retries}: it is given up" in said
    assert (tmp_path / "taken").read_text() == "x" * (retries + 1)
    (task,) = api.tasks(tmp_path / "work.journal")
    assert (task.state, task.attempts) == ("failed", retries + 1)
    assert "it is given up" in task.message


def test_losses_of_workers_and_of_programs_count_together(
    killed: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that dies, then the program: two of two."""
    text = POISON.replace("RETRIES", "1").replace(
        "os.kill(os.getppid(), 9)", 'os.kill(os.getppid() if os.path.getsize("taken") > 1 else os.getpid(), 9)'
    )
    killed(text)
    monkeypatch.chdir(tmp_path)
    with wattloom.Executor(1, journal="work.journal", meter="off") as executor:
        (lost,) = executor.recovered
        assert "lost so 2 times" in str(lost.exception(SOON_S))
    assert (tmp_path / "taken").read_text() == "xx"


# -- numbers -----------------------------------------------------------------------------------------------------------


class Told:
    """What workers are told, and starts of workers that fail at random."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
        self.numbers: dict[tuple[str, int], tuple[int, int]] = {}
        """By task and attempt: the number and the share."""
        self.in_order: dict[int, list[int]] = {}
        """By worker."""
        self.failed = 0
        self._draw = random.Random(seed)
        start, send = WorkerPool._start, WorkerPool._feed

        def fragile(force: WorkerPool, node: LocalNode) -> WorkerProcess:
            if self.failed < 12 and self._draw.random() < 0.5:
                self.failed += 1
                raise BlockingIOError(11, "Resource temporarily unavailable")
            return start(force, node)

        def noting(force: WorkerPool, worker: WorkerProcess, jobs: list[Job], now: float) -> None:
            for job in jobs:
                self.numbers[job.task.id, job.attempt] = (job.number, job.share)
                self.in_order.setdefault(worker.pid, []).append(job.number)
            send(force, worker, jobs, now)

        monkeypatch.setattr(WorkerPool, "_start", fragile)
        monkeypatch.setattr(WorkerPool, "_feed", noting)


def whole(seconds: float) -> None:
    """It takes the machine for itself, and its worker with it: then several are placed at once."""
    time.sleep(seconds)
    os._exit(1)


def part(seconds: float) -> None:
    time.sleep(seconds)


@pytest.mark.parametrize("lease", [True, False], ids=["with leases", "each for itself"])
@pytest.mark.parametrize("seed", range(3))
def test_the_number_a_worker_is_told_is_the_one_in_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, lease: bool
) -> None:
    """Starts fail wherever they like: what a worker notes as begun is what the next life reads, and no worker is told
    numbers that go down. Nobody is forgotten over it."""
    monkeypatch.setattr("wattloom.scheduling.placement.BACK_OFF_S", 0.05)
    told = Told(monkeypatch, seed)
    draw = random.Random(seed)
    terms = LeaseTerms() if lease else None
    with wattloom.Executor(3, journal=tmp_path / "work.journal", meter="off", lease=terms) as executor:
        large = wattloom.function(cpu=3, executor=executor)(whole)
        futures = []
        for _ in range(4):
            futures.append(large.remote(draw.choice([0.0, 0.1])))
            futures += [executor.submit(part, draw.choice([0.0, 0.001, 0.05])) for _ in range(draw.randint(3, 30))]
        for future in futures:
            assert future.exception(SOON_S) is None or isinstance(future.exception(), wattloom.OutcomeUnknown)
    assert told.failed
    for numbers in told.in_order.values():
        assert numbers == sorted(set(numbers))
    compared = 0
    history, log = RunHistory(), Log(tmp_path / "work.journal")
    for record in log.records():
        history.tell(record)
        if isinstance(record, Place) and (record.task, record.attempt) in told.numbers:
            task = history.open[record.task]
            assert told.numbers[record.task, record.attempt] == (task.place, task.share)
            compared += 1
    assert compared == len(told.numbers) >= len(futures)
    assert api.replay(tmp_path / "work.journal").same_decisions
