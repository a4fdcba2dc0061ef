"""What the next program on a journal finds, and what happens to journals that cannot be used."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.local.chaos.patience import within_seconds
from tests.local.chaos.processes import within
from tests.local.chaos.scripts import Script

import wattloom
from wattloom.journal.errors import JournalBusy, JournalCorrupt, JournalError
from wattloom.journal.spool import Spool
from wattloom.local.errors import ExecutorLost

SOON_S = 30.0

CALLS = """
    import os, sys, time
    from pathlib import Path
    import wattloom

    def append(name, seconds=0.0):
        with open(name, "a") as file:
            file.write("x")
        time.sleep(seconds)
        return Path(name).stat().st_size

    def die():
        os.kill(os.getpid(), 9)
"""

MakeScript = Callable[..., Script]
Open = Callable[..., wattloom.Executor]


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    with within_seconds(40):
        yield


@pytest.fixture
def reopen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """An executor on the journal of the scripts, in their folder."""
    monkeypatch.chdir(tmp_path)
    opened: list[wattloom.Executor] = []

    def opener(workers: int = 1) -> wattloom.Executor:
        opened.append(wattloom.Executor(workers, journal="work.journal"))
        return opened[-1]

    yield opener
    for executor in opened:
        executor.kill_workers()


@pytest.fixture
def script(tmp_path: Path) -> Iterator[MakeScript]:
    made: list[Script] = []

    def make(text: str, *options: str, name: str = "script.py") -> Script:
        made.append(Script(tmp_path, CALLS + text, *options, name=name))
        return made[-1]

    yield make
    for each in made:
        each.end()


def killed(script: Script) -> None:
    """Run a script that kills itself."""
    program = script.start()
    _, errors = program.communicate(timeout=SOON_S)
    assert program.returncode == -signal.SIGKILL, errors


# -- the next life -----------------------------------------------------------------------------------------------------


def test_calls_that_had_not_begun_are_made_by_the_next_program(
    script: MakeScript, reopen: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    killed(
        script("""
    executor = wattloom.Executor(1, journal="work.journal")
    executor.submit(append, "running", 1000)
    for number in range(20):
        executor.submit(append, f"made-{number}")
    executor.sync()
    while not Path("running").exists():
        time.sleep(0.01)
    die()
    """)
    )
    with reopen(1) as executor:
        assert len(executor.recovered) == 21
        assert "20 calls that it had accepted are taken up again, and 1 had begun" in caplog.text
        assert "so its outcome is unknown" in caplog.text
        first, *rest = executor.recovered
        problem = first.exception(timeout=SOON_S)
        assert isinstance(problem, wattloom.OutcomeUnknown)
        assert "script.append" in str(problem)
        assert "not marked idempotent" in str(problem)
        assert [future.result(timeout=SOON_S) for future in rest] == [1] * 20
    with reopen(1) as executor:
        assert executor.recovered == []


def test_an_idempotent_call_that_had_begun_is_made_again(
    script: MakeScript, reopen: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    killed(
        script("""
    executor = wattloom.Executor(1, journal="work.journal")
    wattloom.function(idempotent=True, executor=executor)(append).remote("running", 0.5)
    executor.sync()
    while not Path("running").exists():
        time.sleep(0.01)
    die()
    """)
    )
    with reopen(1) as executor:
        assert "1 call that it had accepted is taken up again (executor.recovered)" in caplog.text
        (future,) = executor.recovered
        assert future.result(timeout=SOON_S) == 2


def test_a_result_that_was_seen_is_not_made_again(script: MakeScript, reopen: Open, tmp_path: Path) -> None:
    killed(
        script("""
    executor = wattloom.Executor(1, journal="work.journal")
    wattloom.function(idempotent=True, executor=executor)(append).remote("made").result()
    die()
    """)
    )
    with reopen(1) as executor:
        assert executor.recovered == []
    assert (tmp_path / "made").read_text() == "x"


def test_large_arguments_outlive_the_program(script: MakeScript, reopen: Open, tmp_path: Path) -> None:
    killed(
        script("""
    executor = wattloom.Executor(1, journal="work.journal")
    executor.submit(time.sleep, 1000)
    executor.submit(len, bytes(3_000_000))
    executor.sync()
    die()
    """)
    )
    with reopen(2) as executor:
        assert executor.recovered[1].result(timeout=SOON_S) == 3_000_000
        executor.kill_workers()


def test_a_recovered_call_keeps_its_timeout(script: MakeScript, reopen: Open, tmp_path: Path) -> None:
    killed(
        script("""
    executor = wattloom.Executor(1, journal="work.journal")
    wattloom.function(idempotent=True, timeout=0.3, executor=executor)(append).remote("running", 5)
    executor.sync()
    die()
    """)
    )
    with reopen(1) as executor:
        assert isinstance(executor.recovered[0].exception(timeout=4), wattloom.TaskTimeout)


def test_calls_are_taken_over_from_program_to_program_until_one_lives_long_enough(
    script: MakeScript, reopen: Open, tmp_path: Path
) -> None:
    first = """
    executor = wattloom.Executor(1, journal="work.journal")
    if not executor.recovered:
        executor.submit(time.sleep, 1000)
        for number in range(1500):
            executor.submit(append, f"made-{number % 10}-{number}")
    executor.sync()
    die()
    """
    for _ in range(3):
        killed(script(first))
    with reopen(2) as executor:
        assert len(executor.recovered) == 1501
        assert all(future.result(timeout=SOON_S) == 1 for future in executor.recovered[1:])
        executor.kill_workers()
    assert len(list(tmp_path.glob("made-*"))) == 1500


def test_the_default_journal_of_a_program_is_recovered_by_its_next_run(script: MakeScript) -> None:
    here = script("""
    executor = wattloom.Executor(1)
    if "again" not in sys.argv:
        executor.submit(append, "running", 1000)
        executor.submit(append, "made")
        executor.sync()
        while not Path("running").exists():
            time.sleep(0.01)
        die()
    print([type(future.exception()).__name__ for future in executor.recovered])
    executor.shutdown()
    """)
    killed(here)
    assert here.run("again") == "['OutcomeUnknown', 'NoneType']\n"


NESTED = """
    def inner(path):
        with wattloom.Executor(1, meter="off") as executor:
            found = [each.result() for each in executor.recovered]
            if path is not None:
                executor.submit(time.sleep, 1.0)
                executor.submit(append, path)
                executor.sync()
                Path(path + ".ready").touch()
                time.sleep(30.0)
            return found

    if __name__ == "__main__":
        with wattloom.Executor(1, meter="off") as executor:
            print(executor.submit(inner, sys.argv[1] if len(sys.argv) > 1 else None).result())
"""


def test_an_executor_in_a_worker_recovers_what_its_own_program_left_and_nobody_elses(
    script: MakeScript, tmp_path: Path
) -> None:
    mine, other = script(NESTED, name="mine.py"), script(NESTED, name="other.py")
    program = mine.start(tmp_path / "made")
    assert within(SOON_S, (tmp_path / "made.ready").exists)
    program.kill()
    assert within(SOON_S, lambda: not mine.left())
    assert other.run() == "[]\n"
    assert not (tmp_path / "made").exists()
    assert mine.run() == "[None, 1]\n"


LAUNCHED = """
import os, sys, time
from pathlib import Path
import wattloom

def append(name):
    with open(name, "a") as file:
        file.write("x")

executor = wattloom.Executor(1, meter="off")
if "{what}" == "leave":
    executor.submit(time.sleep, 30.0)
    executor.submit(append, "made")
    executor.sync()
    os.kill(os.getpid(), 9)
print(len(executor.recovered))
executor.shutdown()
"""


def launched(tmp_path: Path, text: str) -> "subprocess.CompletedProcess[str]":
    surroundings = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
    return subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=SOON_S
    )


def test_what_another_command_left_is_told_and_not_run(tmp_path: Path) -> None:
    """As with notebooks, tests, servers and `python -c`: they are all started by the same program."""
    assert launched(tmp_path, LAUNCHED.format(what="leave")).returncode == -signal.SIGKILL
    other = launched(tmp_path, LAUNCHED.format(what="look"))
    assert other.stdout == "0\n"
    assert "unfinished calls of another command" in other.stderr
    assert not (tmp_path / "made").exists()
    (journal,) = {word.strip("';") for word in other.stderr.split() if word.endswith((".journal", ".journal;"))}
    assert wattloom.prune(journal, older_than_days=0.0)[0].runs == []
    assert wattloom.prune(journal, older_than_days=0.0, unfinished=True)[0].runs == [1]
    assert launched(tmp_path, LAUNCHED.format(what="look")).stderr == ""


def test_commands_that_never_come_again_leave_nothing_for_ever(tmp_path: Path) -> None:
    """Each has a journal of its own: one for every date that is given to it, say."""
    state = tmp_path / "state" / "wattloom"
    assert launched(tmp_path, LAUNCHED.format(what="leave")).returncode == -signal.SIGKILL
    (left,) = state.glob("*.journal")
    for number in range(2):
        assert launched(tmp_path, LAUNCHED.format(what=number)).stdout == "0\n"
    for journal in state.glob("*.journal*"):
        os.utime(journal, (1e9, 1e9))
    assert launched(tmp_path, LAUNCHED.format(what="later")).stdout == "0\n"
    found = {path.name.partition(".")[0] for path in state.iterdir()}
    assert len(found) == 2
    assert left.stem in found


def test_a_program_whose_class_is_gone_says_so_for_that_call_alone(
    script: MakeScript, reopen: Open, tmp_path: Path
) -> None:
    (tmp_path / "shapes.py").write_text("class Square:\n    side = 3\n")
    killed(
        script("""
    import shapes
    executor = wattloom.Executor(1, journal="work.journal")
    executor.submit(time.sleep, 1000)
    executor.submit(getattr, shapes.Square(), "side")
    executor.submit(abs, -1)
    executor.sync()
    die()
    """)
    )
    (tmp_path / "shapes.py").unlink()
    executor = reopen(2)
    problem = executor.recovered[1].exception(timeout=SOON_S)
    assert isinstance(problem, ModuleNotFoundError)
    assert "shapes" in str(problem)
    assert executor.recovered[2].result(timeout=SOON_S) == 1


# -- keys --------------------------------------------------------------------------------------------------------------


def append(path: Path, text: str = "x", seconds: float = 0.0) -> int:
    with path.open("a") as file:
        file.write(text)
    time.sleep(seconds)
    return path.stat().st_size


def fail(path: Path) -> None:
    append(path)
    raise LookupError("on purpose")


def test_a_call_with_a_key_is_made_once_in_a_run(tmp_path: Path) -> None:
    with wattloom.Executor(2, journal=tmp_path / "work.journal") as executor:
        call = wattloom.function(executor=executor)(append).options(key="order-17")
        futures = [call.remote(tmp_path / "made", "x", 0.1) for _ in range(10)]
        assert [future.result(timeout=SOON_S) for future in futures] == [1] * 10
        assert call.remote(tmp_path / "made", "x", 0.1).result(timeout=SOON_S) == 1
        assert call.options(key="order-18").remote(tmp_path / "made").result(timeout=SOON_S) == 2
    assert (tmp_path / "made").read_text() == "xx"


def test_a_call_with_a_key_is_made_once_over_runs(tmp_path: Path) -> None:
    for _ in range(3):
        with wattloom.Executor(1, journal=tmp_path / "work.journal") as executor:
            call = wattloom.function(executor=executor)(append).options(key="order-17")
            assert call.remote(tmp_path / "made").result(timeout=SOON_S) == 1
    assert (tmp_path / "made").read_text() == "x"


def test_a_call_with_a_key_that_failed_may_be_made_again(tmp_path: Path) -> None:
    for _ in range(2):
        with wattloom.Executor(1, journal=tmp_path / "work.journal") as executor:
            call = wattloom.function(executor=executor)(fail).options(key="order-17")
            with pytest.raises(LookupError):
                call.remote(tmp_path / "made").result(timeout=SOON_S)
    assert (tmp_path / "made").read_text() == "xx"


def test_a_large_result_is_kept_with_its_key(tmp_path: Path) -> None:
    for _ in range(2):
        with wattloom.Executor(1, journal=tmp_path / "work.journal") as executor:
            call = wattloom.function(executor=executor)(bytes).options(key="large")
            assert call.remote(1_000_000).result(timeout=SOON_S) == bytes(1_000_000)


def test_a_key_holds_over_a_kill(script: MakeScript, tmp_path: Path) -> None:
    here = script("""
    executor = wattloom.Executor(1, journal="work.journal")
    call = wattloom.function(idempotent=True, executor=executor)(append).options(key="order-17")
    future = call.remote("made", 0.5)
    if "again" not in sys.argv:
        executor.sync()
        die()
    print(future.result(), [each.result() for each in executor.recovered])
    executor.shutdown()
    """)
    killed(here)
    made = len((tmp_path / "made").read_text()) if (tmp_path / "made").exists() else 0
    assert here.run("again") == f"{made + 1} [{made + 1}]\n"


# -- journals that cannot be used --------------------------------------------------------------------------------------


def test_two_programs_on_one_named_journal_the_second_is_told_who_has_it(tmp_path: Path) -> None:
    with wattloom.Executor(1, journal=tmp_path / "work.journal") as executor:
        assert executor.submit(abs, -1).result(timeout=SOON_S) == 1
        text = f"import wattloom; wattloom.Executor(1, journal={str(tmp_path / 'work.journal')!r})"
        second = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=SOON_S)
        assert second.returncode == 1
        assert "JournalBusy" in second.stderr
        assert str(os.getpid()) in second.stderr
        with pytest.raises(JournalBusy, match="this program already"):
            wattloom.Executor(1, journal=tmp_path / "work.journal")


def test_programs_at_a_time_without_a_named_journal_get_each_their_own(script: MakeScript, tmp_path: Path) -> None:
    here = script("""
    with wattloom.Executor(1) as executor:
        Path(sys.argv[1]).write_text("")
        while len(list(Path().glob("here-*"))) < 3:
            time.sleep(0.01)
        print(executor.submit(abs, -1).result(), executor.journal)
    """)
    programs = [here.start(f"here-{number}") for number in range(3)]
    said = [program.communicate(timeout=SOON_S) for program in programs]
    assert [errors for _, errors in said] == [""] * 3
    assert {out.split()[0] for out, _ in said} == {"1"}
    assert len({out.split()[1] for out, _ in said}) == 3


def test_a_damaged_journal_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "work.journal"
    for text in (b"this is not a journal at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000):
        path.write_bytes(text)
        with pytest.raises(JournalCorrupt, match=r"Move it away") as problem:
            wattloom.Executor(1, journal=path)
        assert str(path) in str(problem.value)
        assert path.read_bytes() == text


def test_a_folder_that_may_not_be_written_is_a_clear_error(tmp_path: Path) -> None:
    folder = tmp_path / "read-only"
    folder.mkdir()
    text = f"""
import os
import wattloom
with wattloom.Executor(1, journal={str(tmp_path / "other.journal")!r}):
    pass  # all is imported now: another user may not be able to
if os.geteuid() == 0:  # the superuser may write everywhere
    os.setgroups([])
    os.setuid(65534)
wattloom.Executor(1, journal={str(folder / "work.journal")!r})
"""
    folder.chmod(0o555)
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=SOON_S)
    assert "JournalReadOnly" in found.stderr
    assert "WATTLOOM_LOCAL__JOURNAL" in found.stderr
    assert "Exception ignored" not in found.stderr


# -- a full disk -------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("NOT TRIED: a full disk. Only the superuser can mount a small one")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_a_clear_error_and_nothing_hangs(small_disk: Path) -> None:
    executor = wattloom.Executor(2, journal=small_disk / "work.journal")
    futures: list[wattloom.TaskFuture] = []
    with suppress(ExecutorLost):
        for number in range(200_000):
            futures.append(executor.submit(len, os.urandom(2000)))
            if number % 500 == 0 and futures[-1].exception(timeout=SOON_S) is not None:
                break
    assert within(SOON_S, lambda: all(future.done() for future in futures)), "futures wait for ever"
    lost = [found for future in futures if (found := future.exception()) is not None]
    assert lost
    assert all(isinstance(each, ExecutorLost | JournalError) for each in lost)
    assert all("disk is full" in str(each) for each in lost)
    with pytest.raises(ExecutorLost, match="disk is full"):
        executor.submit(abs, 1)
    executor.shutdown()


def submit_until_it_breaks(executor: wattloom.Executor) -> None:
    for _ in range(100_000):
        executor.submit(len, os.urandom(3000))


def test_after_a_full_disk_was_cleared_the_journal_goes_on(small_disk: Path) -> None:
    path = small_disk / "work.journal"
    with wattloom.Executor(1, journal=path) as executor:
        assert executor.submit(abs, -1).result(timeout=SOON_S) == 1
        free = os.statvfs(small_disk)
        (small_disk / "ballast").write_bytes(bytes(free.f_bavail * free.f_frsize - 8192))
        with pytest.raises(ExecutorLost, match="disk is full"):
            submit_until_it_breaks(executor)
    (small_disk / "ballast").unlink()
    with wattloom.Executor(1, journal=path) as executor:
        for future in executor.recovered:
            future.exception(timeout=SOON_S)
        assert executor.submit(abs, -1).result(timeout=SOON_S) == 1


def test_a_large_argument_never_takes_the_journals_last_room(small_disk: Path) -> None:
    disk = os.statvfs(small_disk)
    spool = Spool(small_disk / "spool")
    with pytest.raises(JournalError, match="disk is full"):
        spool.write("args", [bytes(disk.f_bavail * disk.f_frsize - 65536)])
    assert os.statvfs(small_disk).f_bavail * disk.f_frsize > 1_900_000


def test_a_large_argument_that_has_no_room_fails_alone(small_disk: Path) -> None:
    with wattloom.Executor(1, journal=small_disk / "work.journal") as executor:
        problem = executor.submit(len, bytes(10_000_000)).exception(timeout=SOON_S)
        assert isinstance(problem, JournalError)
        assert "disk is full" in str(problem)
        assert executor.submit(abs, -1).result(timeout=SOON_S) == 1


def test_a_large_result_that_has_no_room_fails_alone(small_disk: Path) -> None:
    with wattloom.Executor(1, journal=small_disk / "work.journal") as executor:
        problem = executor.submit(bytes, 10_000_000).exception(timeout=SOON_S)
        assert problem is not None
        assert "disk is full" in str(problem)
        assert executor.submit(abs, -1).result(timeout=SOON_S) == 1
