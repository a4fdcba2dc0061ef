"""What a reviewer broke: hostile exceptions, storms of cancellation, keys, retries, and many functions."""

import io
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import pytest

import wattloom
from wattloom.errors import InputError
from wattloom.local import dispatcher
from wattloom.local.errors import CannotSend, OutcomeUnknown
from wattloom.local.future import TaskFuture
from wattloom.local.options import Options

SOON_S = 20


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[wattloom.Executor]:
    with wattloom.Executor(2, journal=tmp_path / "journal") as made:
        yield made


def test_threads_that_wait_for_the_same_futures_do_not_lock_each_other_out() -> None:
    futures = [TaskFuture(str(number), number) for number in range(500)]
    rounds = [0, 0, 0]

    def look(who: int) -> None:
        chance, end = Random(who), time.monotonic() + 1.0
        while time.monotonic() < end:
            wait(chance.sample(futures, 40), timeout=0)
            rounds[who] += 1

    threads = [threading.Thread(target=look, args=(who,), daemon=True) for who in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON_S)
    assert not any(thread.is_alive() for thread in threads)
    assert all(rounds)


def test_a_storm_of_cancellations_leaves_nobody_behind(executor: wattloom.Executor) -> None:
    chance = Random(4)
    for _ in range(3):
        futures = [executor.submit(pow, number, 2) for number in range(800)]
        for future in futures:
            if chance.random() < 0.5:
                future.cancel()
        assert not wait(futures, timeout=SOON_S).not_done


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("says nothing")


def raise_mute() -> NoReturn:
    raise Mute


def raise_no_character() -> NoReturn:
    raise ValueError("\udcff")


class Changeling(Exception):
    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (7,)


def raise_changeling(_: int = 0) -> NoReturn:
    raise Changeling


def test_an_exception_that_is_pickled_as_something_else_is_told_as_such(executor: wattloom.Executor) -> None:
    """What arrives cannot be raised: once that was a TypeError from inside the future."""
    problem = executor.submit(raise_changeling).exception(SOON_S)
    assert isinstance(problem, CannotSend)
    assert "Changeling" in str(problem)
    assert "__reduce__" in str(problem)
    with pytest.raises(TypeError, match="__reduce__"):
        list(executor.map(raise_changeling, range(4), chunksize=2))
    assert executor.submit(pow, 2, 5).result(SOON_S) == 32


class Untellable(Exception):
    def __getattribute__(self, name: str) -> Any:
        if name in ("__cause__", "__context__", "__notes__"):
            raise ValueError(name)
        return super().__getattribute__(name)


def raise_untellable() -> NoReturn:
    raise Untellable


def test_an_exception_whose_traceback_cannot_be_written_ends_its_call_alone(executor: wattloom.Executor) -> None:
    worker = executor.submit(os.getpid).result(SOON_S)
    assert executor.submit(raise_untellable).exception(SOON_S) is not None
    assert executor.submit(os.getpid).result(SOON_S) == worker


# -- what a call does to its worker ------------------------------------------------------------------------------------


def print_and(trick: str) -> str:
    print("said before", trick)
    exec(trick, {"sys": sys, "os": os, "io": io})
    return trick


TRICKS = [
    "sys.stdout = None",
    "sys.stderr = None",
    "sys.stdout = object()",
    "sys.stdout.close()",
    "sys.stdout = io.StringIO(); sys.stdout.close()",
    "sys.stdin = None",
    "os.close(0)",
    "os.close(1)",
    "os.close(2)",
    "os.chdir('/')",
    "del sys.stdout",
    "sys.modules.pop('traceback')",
    "sys.path.clear()",
    "os.environ.clear()",
]


@pytest.mark.parametrize("trick", TRICKS)
def test_what_a_call_does_to_its_surroundings_costs_neither_its_result_nor_its_worker(
    tmp_path: Path, trick: str
) -> None:
    with wattloom.Executor(1, journal=tmp_path / "journal", meter="off") as executor:
        worker = executor.submit(os.getpid).result(SOON_S)
        call = executor.submit(print_and, trick)
        assert call.result(SOON_S) == trick
        large = executor.submit(bytes, 1 << 20)  # through a file, which may get a number that was closed
        assert large.result(SOON_S) == bytes(1 << 20)
        assert executor.submit(os.getpid).result(SOON_S) == worker
    assert "said before" in wattloom.logs(call.task_id, tmp_path / "journal")[0].output


def test_a_program_without_standard_output_has_workers_that_may_print(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, wattloom\n"
        "def speak(number):\n"
        "    print('said', number)\n"
        "    return number\n"
        "with wattloom.Executor(1, journal=sys.argv[1], meter='off') as executor:\n"
        "    assert [executor.submit(speak, each).result() for each in range(3)] == [0, 1, 2]\n"
    )
    command = f"exec {sys.executable} {script} {tmp_path / 'journal'} <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], timeout=SOON_S).returncode == 0
    assert [each.output for each in wattloom.logs(journal=tmp_path / "journal")] == ["said 2\n", "said 1\n", "said 0\n"]


def fill_the_socket() -> None:
    """As where the system's sockets hold more than is read at once."""
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError), socket.socket(fileno=os.dup(int(name))) as channel:
            channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)


def sleep_and_die() -> NoReturn:
    time.sleep(0.3)
    os._exit(3)


def test_what_a_worker_said_before_it_died_counts_however_much_it_was(tmp_path: Path) -> None:
    """More than one read takes, as one message, while the dispatcher is kept busy by a callback."""
    with wattloom.Executor(1, journal=tmp_path / "journal", meter="off") as executor:
        executor.submit(fill_the_socket).result(SOON_S)
        first = executor.submit(time.sleep, 0.1)
        first.add_done_callback(lambda _: time.sleep(1.0))
        large = [executor.submit(bytes, 60_000) for _ in range(5)]
        last = executor.submit(sleep_and_die)
        assert [len(each.result(SOON_S)) for each in large] == [60_000] * 5
        assert isinstance(last.exception(SOON_S), OutcomeUnknown)


# -- names that cannot be written --------------------------------------------------------------------------------------


def test_a_function_whose_name_is_no_text_hurts_nobody(executor: wattloom.Executor) -> None:
    def odd() -> int:
        return 5

    odd.__qualname__ = odd.__name__ = "od\udcffd"
    assert executor.submit(odd).result(SOON_S) == 5
    assert executor.submit(pow, 2, 5).result(SOON_S) == 32


def test_files_whose_names_are_no_text_may_be_scripts_and_journals(tmp_path: Path) -> None:
    folder = tmp_path / "fold\udcffer"
    folder.mkdir()
    script = folder / "scr\udcffipt.py"
    script.write_text(
        "import sys, wattloom\n"
        "def double(number):\n"
        "    return 2 * number\n"
        "for journal in (None, sys.argv[1]):\n"
        "    with wattloom.Executor(1, journal=journal, meter='off') as executor:\n"
        "        assert executor.submit(double, 4).result() == 8\n"
        "        assert executor.submit(bytes, 1 << 20).result() == bytes(1 << 20)\n"
    )
    surroundings = os.environ | {"XDG_STATE_HOME": str(folder)}
    done = subprocess.run([sys.executable, script, folder / "own"], env=surroundings, timeout=SOON_S, cwd=folder)
    assert done.returncode == 0


# -- callbacks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", [TaskFuture.result, TaskFuture.exception, lambda future: future.energy])
def test_a_callback_that_waits_for_another_call_is_told_instead_of_hanging(
    executor: wattloom.Executor, ask: Callable[[TaskFuture], Any]
) -> None:
    """Its thread is the one that would tell of the other's end."""
    found: list[BaseException] = []
    over = threading.Event()
    slow = executor.submit(time.sleep, 0.3)

    def wait_for_it(_: Any) -> None:
        try:
            ask(slow)
        except BaseException as problem:
            found.append(problem)
        over.set()

    executor.submit(pow, 2, 3).add_done_callback(wait_for_it)
    assert over.wait(SOON_S)
    assert "callback" in str(found[0])
    assert slow.task_id in str(found[0])
    assert slow.result(SOON_S) is None


@pytest.mark.parametrize(("call", "kind"), [(raise_mute, Mute), (raise_no_character, ValueError)])
def test_an_exception_that_cannot_be_written_hurts_nobody_else(
    executor: wattloom.Executor, call: Callable[[], Any], kind: type[Exception]
) -> None:
    assert type(executor.submit(call).exception(SOON_S)).__name__ == kind.__name__
    assert executor.submit(pow, 2, 5).result(SOON_S) == 32


def test_a_callback_that_wants_to_end_the_program_ends_nothing(executor: wattloom.Executor) -> None:
    def leave(_: object) -> NoReturn:
        raise SystemExit(3)

    future = executor.submit(pow, 2, 3)
    future.add_done_callback(leave)
    others = [executor.submit(pow, 2, number) for number in range(200)]
    assert not wait(others, timeout=SOON_S).not_done


def test_strange_surroundings_reach_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environb, b"WATTLOOM_ODD", b"\xff\xfe")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with wattloom.Executor(1, journal=tmp_path / "journal") as executor:
        assert executor.submit(os.getenvb, b"WATTLOOM_ODD").result(SOON_S) == b"\xff\xfe"


def test_options_are_checked_where_they_are_given(executor: wattloom.Executor) -> None:
    with pytest.raises(InputError, match=r"cpu"):
        executor.submit_with(Options(cpu=-1.0), pow, (2, 3))
    assert executor.submit(pow, 2, 3).result(SOON_S) == 8


def test_a_meter_that_is_none_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    wrong: Any = 3
    with pytest.raises(InputError, match=r"^meter: must be a meter's name, auto, off or a Meter, not int$"):
        wattloom.Executor(1, journal=tmp_path / "a.journal", meter=wrong)
    assert not list(tmp_path.iterdir())


# -- keys --------------------------------------------------------------------------------------------------------------


def test_a_key_belongs_to_its_function_and_alone_decides_what_is_the_same_call(
    executor: wattloom.Executor, caplog: pytest.LogCaptureFixture
) -> None:
    """Arguments cannot: whether pickles are equal depends on the process. Plain values that differ are told."""
    keyed = Options(key="k")
    assert executor.submit_with(keyed, pow, (2, 3)).result(SOON_S) == 8
    assert executor.submit_with(keyed, divmod, (7, 2)).result(SOON_S) == (3, 1)
    assert executor.submit_with(keyed, pow, (2, 3)).result(SOON_S) == 8
    assert not caplog.records
    assert executor.submit_with(keyed, pow, (2, 4)).result(SOON_S) == 8
    assert "other arguments" in caplog.text


def test_a_cancelled_call_does_not_keep_its_key(executor: wattloom.Executor, tmp_path: Path) -> None:
    busy = [executor.submit(time.sleep, 0.3) for _ in range(2)]
    first = executor.submit_with(Options(key="k"), pow, (2, 3))
    follower = executor.submit_with(Options(key="k"), pow, (2, 3))
    assert follower.cancel()
    assert not wait([follower], timeout=SOON_S).not_done
    assert first.cancel()
    assert executor.submit_with(Options(key="k"), pow, (2, 3)).result(SOON_S) == 8
    assert not wait(busy, timeout=SOON_S).not_done


# -- attempts ----------------------------------------------------------------------------------------------------------


def hang_then_leave(marks: str) -> None:
    tries = Path(marks)
    tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
    if len(tries.read_text()) == 1:
        time.sleep(60)
    os._exit(3)


def test_a_crash_after_a_timeout_is_a_crash(executor: wattloom.Executor, tmp_path: Path) -> None:
    future = executor.submit_with(Options(timeout=4.0, retries=2), hang_then_leave, (str(tmp_path / "marks"),))
    assert isinstance(future.exception(SOON_S), OutcomeUnknown)
    assert (tmp_path / "marks").read_text() == "xx"


def burn_and_fail_once(marks: str, seconds: float) -> float:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    if not Path(marks).exists():
        Path(marks).touch()
        raise ValueError("once")
    return seconds


@pytest.mark.parametrize("seconds", [0.2, 0.004])
def test_joules_of_all_attempts_count(executor: wattloom.Executor, tmp_path: Path, seconds: float) -> None:
    future = executor.submit_with(Options(retries=1), burn_and_fail_once, (str(tmp_path / "marks"), seconds))
    energy = future.energy
    once = executor.submit(burn_and_fail_once, str(tmp_path / "marks"), seconds).energy
    assert isinstance(energy, wattloom.Energy)
    assert isinstance(once, wattloom.Energy)
    assert future.energy == energy
    assert energy.joules > 1.3 * once.joules


# -- many functions ----------------------------------------------------------------------------------------------------


def test_workers_do_not_keep_every_function_they_ever_had(executor: wattloom.Executor) -> None:
    def resident_mb() -> float:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def with_ballast(number: int) -> Callable[[], int]:
        ballast = bytes(500_000) + number.to_bytes(4, "little")
        return lambda: len(ballast)

    assert executor.submit(with_ballast(0)).result(SOON_S) == 500_004
    before = executor.submit(resident_mb).result(SOON_S)
    futures = [executor.submit(with_ballast(number)) for number in range(300)]
    assert {future.result(SOON_S) for future in futures} == {500_004}
    assert executor.submit(resident_mb).result(SOON_S) - before < 110


def test_a_policy_that_reads_meters_gets_readings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert dispatcher.LONG_RUN > 0
    with wattloom.Executor(1, journal=tmp_path / "journal", policy="exec:interval_s=0.1") as executor:
        for _ in range(3):
            executor.submit(time.sleep, 0.4).result(SOON_S)
        long = executor.submit(spin, 2.5)
        long.result(SOON_S)
        _ = executor.submit(pow, 2, 3).energy
    from wattloom.history.log import Log
    from wattloom.scheduling.events import ReadingArrived

    readings = [event for event in Log(tmp_path / "journal").events() if isinstance(event, ReadingArrived)]
    named = [reading for reading in readings if long.task_id in reading.tasks]
    assert named
    assert all(0.0 <= reading.tasks[long.task_id] <= reading.watts for reading in named)


def test_no_policy_by_its_name_alone_runs_more_calls_at_once_than_there_may_be_workers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """HSC's rule sets aside 80% of a core: five workers would be given six calls. What is left of it is said."""
    caplog.set_level("INFO", logger="wattloom")
    with wattloom.Executor(5, journal=tmp_path / "journal", policy="marginal-energy") as executor:
        ends = list(executor.map(during, range(12)))
    assert "marginal-energy is used as marginal-energy:guarantee=1" in caplog.text
    moments = sorted([(began, 1) for began, _ in ends] + [(ended, -1) for _, ended in ends])
    at_once = [sum(step for _, step in moments[: number + 1]) for number in range(len(moments))]
    assert max(at_once) <= 5


def during(_: int) -> tuple[float, float]:
    began = time.monotonic()
    time.sleep(0.3)
    return began, time.monotonic()


def spin(seconds: float) -> None:
    """So much CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def twice(number: int) -> int:
    return 2 * number


def test_a_closed_executor_leaves_the_descriptors_of_forked_processes_alone(tmp_path: Path) -> None:
    """Once its numbers were closed again in every later fork, whoever had them then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads about, from Python 3.12 on
        for _ in range(3):
            with wattloom.Executor(2, journal=tmp_path / "journal") as ours:
                assert ours.submit(twice, 1).result(SOON_S) == 2
            with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as theirs:
                assert list(theirs.map(twice, range(20))) == list(range(0, 40, 2))
