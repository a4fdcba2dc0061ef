"""Calls with keys: made once, over restarts, by whichever copy of a program, however long ago within the days set."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.local.chaos.patience import within_seconds
from tests.local.chaos.processes import within
from tests.local.chaos.scripts import Script

import wattloom
from wattloom.history.log import VERSION, Header
from wattloom.journal.journal import Journal
from wattloom.journal.keys import keys_path
from wattloom.journal.sqlite_store import SqliteStore
from wattloom.local import dispatcher
from wattloom.local.errors import OutcomeUnknown
from wattloom.local.options import Options

SOON_S = 20.0
MakeScript = Callable[[str], Script]

CALLS = """
    import dataclasses, enum, os, sys, time
    from pathlib import Path
    import wattloom

    @dataclasses.dataclass(frozen=True)
    class Order:
        number: int

    class Colour(enum.Enum):
        RED = 1

    def charge(what=None, seconds=0.0):
        with open("effects", "a") as file:
            file.write("x")
        time.sleep(seconds)
        return repr(what)
"""


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    with within_seconds(60):
        yield


@pytest.fixture
def script(tmp_path: Path) -> Iterator[MakeScript]:
    made: list[Script] = []

    def make(text: str) -> Script:
        made.append(Script(tmp_path, CALLS + text))
        return made[-1]

    yield make
    for each in made:
        each.end()


def effects(folder: Path) -> int:
    return len((folder / "effects").read_text()) if (folder / "effects").exists() else 0


# -- the same call -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        "Order(7)",
        "Colour.RED",
        "{'a', 'b', 'c', 'd', 'e'}",
        "['abc', ''.join(['a', 'bc'][:len(sys.argv)])]",
        "lambda: 1",
    ],
)
def test_equal_arguments_are_the_same_call_after_a_restart(script: MakeScript, tmp_path: Path, arguments: str) -> None:
    """Pickles of equal values differ from process to process, and are not asked."""
    here = script(f"""
    with wattloom.Executor(1, journal="work.journal", meter="off") as executor:
        call = wattloom.function(executor=executor, key="order-7")(charge)
        print(bool(call.remote({arguments}).result()))
    """)
    assert [here.run(), here.run("again")] == ["True\n", "True\n"]
    assert effects(tmp_path) == 1


# -- how long ----------------------------------------------------------------------------------------------------------


def test_a_busy_program_forgets_no_key_however_much_its_journal_lets_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTLOOM_LOCAL__RETENTION_MEGABYTES", "0.01")
    monkeypatch.setattr(dispatcher, "LONG_RUN", 1_000)
    with wattloom.Executor(1, journal=tmp_path / "journal", meter="off") as executor:
        first = executor.submit_with(Options(key="k"), time.monotonic).result(SOON_S)
        for _ in range(5):
            assert list(executor.map(abs, range(200))) == list(range(200))
            time.sleep(0.05)
        assert executor.submit_with(Options(key="k"), time.monotonic).result(SOON_S) == first
    assert len(list(executor.recovered)) == 0


@pytest.mark.parametrize(("sum_then", "given"), [(None, 42), (0xA2F3B59C, 42), (1, 8)])
def test_results_that_an_earlier_version_kept_in_its_journals_are_still_given_unless_damaged(
    tmp_path: Path, sum_then: int | None, given: int
) -> None:
    path = tmp_path / "work.journal"
    with closing(Journal.open(path)) as journal:
        journal.begin_run(Header(VERSION, "spread", "local"), time.time())
        assert isinstance(journal.store, SqliteStore)
        journal.store.connection().execute(
            "INSERT INTO results (key, task, run, outcome, time, body, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)",
            ("builtins.pow\nk", "1-1", 1, "finished", time.time(), b"d" * 16 + b"\x80\x05K\x2a.", sum_then),
        )
        journal.end_run(time.time())
    with wattloom.Executor(1, journal=path, meter="off") as executor:
        assert executor.submit_with(Options(key="k"), pow, (2, 3)).result(SOON_S) == given


# -- for whom ----------------------------------------------------------------------------------------------------------

COPY = """
    executor = wattloom.Executor(1, meter="off")
    options = dict(idempotent="idempotent" in sys.argv, infrastructure_retries=0)
    call = wattloom.function(executor=executor, key="order-1", **options)(charge)
    print("begins", flush=True)
    future = call.remote([sys.argv[1]], float(sys.argv[2]))
    try:
        print(Path(executor.journal).stem[-2:] == "-2", future.result(), flush=True)
    except wattloom.OutcomeUnknown as problem:
        print("unknown", problem, flush=True)
    executor.shutdown()
"""


def begun(folder: Path, count: int = 1) -> None:
    assert within(SOON_S, lambda: effects(folder) >= count)


def told(program: "subprocess.Popen[str]") -> list[str]:
    return program.communicate(timeout=SOON_S)[0].splitlines()


def test_a_second_copy_gets_what_the_first_has_made(script: MakeScript, tmp_path: Path) -> None:
    here = script(COPY.replace("executor.shutdown()", "time.sleep(30.0 if sys.argv[1] == 'first' else 0.0)"))
    first = here.start("first", 0)
    begun(tmp_path)
    assert told(here.start("second", 0)) == ["begins", "True ['first']"]
    first.kill()
    assert effects(tmp_path) == 1


def test_copies_that_ask_at_the_same_time_make_a_call_once(script: MakeScript, tmp_path: Path) -> None:
    here = script(COPY)
    said = [told(program) for program in [here.start(number, 1.0) for number in range(3)]]
    assert len({lines[-1].split()[-1] for lines in said}) == 1
    assert effects(tmp_path) == 1


def test_a_copy_waits_for_the_end_of_anothers_call_and_makes_it_if_that_failed(
    script: MakeScript, tmp_path: Path
) -> None:
    here = script(
        COPY.replace("charge)", "fail)").replace(
            "    executor = wattloom",
            "    def fail(who, seconds):\n        charge(who, seconds)\n        return 1 // (who != ['first'])\n"
            "    executor = wattloom",
            1,
        )
    )
    first = here.start("first", 4.0)
    begun(tmp_path)
    second = here.start("second", 0)
    assert told(second)[-1] == "True 1"
    assert "ZeroDivisionError" in first.communicate(timeout=SOON_S)[1]
    assert effects(tmp_path) == 2


@pytest.mark.parametrize("how", ["idempotent", "once"])
def test_of_a_copy_that_was_killed_others_take_over_only_what_may_run_twice(
    script: MakeScript, tmp_path: Path, how: str
) -> None:
    here = script(COPY)
    first = here.start("first", 30.0, how)
    begun(tmp_path)
    second = here.start("second", 0, how)
    assert second.stdout is not None
    assert second.stdout.readline() == "begins\n"
    time.sleep(0.5)
    assert second.poll() is None, "it waits"
    os.kill(first.pid, signal.SIGKILL)
    last = told(second)[-1]
    if how == "idempotent":
        assert last == "True ['second']"
    else:
        assert last.startswith("unknown")
        assert "another key" in last
    assert effects(tmp_path) == 1 + (how == "idempotent")


def test_a_call_whose_end_nobody_saw_is_not_made_again_by_a_restart(script: MakeScript, tmp_path: Path) -> None:
    """Its recovery ends as unknown, and so does whoever asks for the same key, at once or later."""
    here = script(COPY)
    first = here.start("first", 30.0, "once")
    begun(tmp_path)
    os.kill(first.pid, signal.SIGKILL)
    for again in ("second", "third"):
        out, errors = here.start(again, 0, "once").communicate(timeout=SOON_S)
        assert out.splitlines()[-1].startswith("unknown"), errors
    assert effects(tmp_path) == 1
    assert here.run("fourth", 0, "idempotent").splitlines()[-1].endswith("['fourth']")


@pytest.mark.parametrize("where", ["claimed", "finished"])
def test_a_kill_between_the_keys_and_the_journal_neither_loses_nor_doubles(
    script: MakeScript, tmp_path: Path, where: str
) -> None:
    """The keys are written first. Killed in between, a claim is of a call that was never accepted, or a result of one
    that the journal takes for unfinished."""
    here = script(
        f"""
    from wattloom.local import idempotency
    if sys.argv[1] == "first":
        save = idempotency.Keys.save

        def save_and_die(self, unix):
            save(self, unix)
            if {where == "claimed"} or os.path.exists("effects"):
                os.kill(os.getpid(), 9)

        idempotency.Keys.save = save_and_die
    """
        + COPY
    )
    assert here.start("first", 0, "once").wait(SOON_S) == -signal.SIGKILL
    assert effects(tmp_path) == (where == "finished")
    whose = "second" if where == "claimed" else "first"
    for again in ("second", "third"):
        assert here.run(again, 0, "once").splitlines()[-1].endswith(f"['{whose}']")
    assert effects(tmp_path) == 1


def test_cancelling_what_waits_for_another_copy_ends_the_wait(script: MakeScript, tmp_path: Path) -> None:
    here = script("""
    executor = wattloom.Executor(1, meter="off")
    call = wattloom.function(executor=executor, key="order-1")(charge)
    if sys.argv[1] == "first":
        call.remote([1], 30.0).result()
    futures = [call.remote([1], 0.0) for _ in range(3)]
    time.sleep(0.5)
    print(futures[0].cancel())
    executor.shutdown(cancel_futures=True)
    print([each.cancelled() for each in futures])
    """)
    here.start("first")
    begun(tmp_path)
    assert here.run("second") == "True\n[True, True, True]\n"
    assert effects(tmp_path) == 1


def test_programs_with_journals_of_their_own_may_share_a_file_of_keys(tmp_path: Path) -> None:
    text = (
        "import sys, time, wattloom\n"
        "with wattloom.Executor(1, journal=sys.argv[1], meter='off') as executor:\n"
        "    print(wattloom.function(executor=executor, key='k')(time.monotonic).remote().result())\n"
    )
    surroundings = os.environ | {"WATTLOOM_LOCAL__KEYS": str(tmp_path / "shared.keys")}
    said = [
        subprocess.run([sys.executable, "-c", text, name], cwd=tmp_path, env=surroundings, capture_output=True).stdout
        for name in ("a.journal", "b.journal")
    ]
    assert said[0] == said[1] != b""


def test_calls_without_keys_make_no_file_of_keys(tmp_path: Path) -> None:
    with wattloom.Executor(1, journal=tmp_path / "journal", meter="off") as executor:
        assert executor.submit(abs, -1).result(SOON_S) == 1
        assert not keys_path(executor.journal).exists()
        assert executor.submit_with(Options(key="k"), abs, (-1,)).result(SOON_S) == 1
        assert keys_path(executor.journal).exists()


def die_after(path: str) -> None:
    Path(path).write_text("x" if not Path(path).exists() else Path(path).read_text() + "x")
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_call_that_took_its_worker_along_is_not_made_again_for_its_key(tmp_path: Path) -> None:
    with wattloom.Executor(1, journal=tmp_path / "journal", meter="off") as executor:
        for _ in range(2):
            call = executor.submit_with(Options(key="k"), die_after, (str(tmp_path / "effects"),))
            assert isinstance(call.exception(SOON_S), OutcomeUnknown)
    assert effects(tmp_path) == 1
