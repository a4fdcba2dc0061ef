"""What a reviewer broke: hostile exceptions, storms of cancellation, keys, retries, and many functions."""

import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, wait
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import pytest

import wattloom
from wattloom.errors import InputError
from wattloom.local import dispatcher
from wattloom.local.errors import OutcomeUnknown
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


def test_a_key_belongs_to_its_function_and_its_arguments(executor: wattloom.Executor) -> None:
    keyed = Options(key="k")
    assert executor.submit_with(keyed, pow, (2, 3)).result(SOON_S) == 8
    assert executor.submit_with(keyed, divmod, (7, 2)).result(SOON_S) == (3, 1)
    assert executor.submit_with(keyed, pow, (2, 3)).result(SOON_S) == 8
    assert isinstance(executor.submit_with(keyed, pow, (2, 4)).exception(SOON_S), InputError)


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
    future = executor.submit_with(Options(timeout=1.0, retries=2), hang_then_leave, (str(tmp_path / "marks"),))
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
        _ = executor.submit(pow, 2, 3).energy
    from wattloom.scheduling.events import ReadingArrived
    from wattloom.scheduling.log import Log

    assert any(isinstance(event, ReadingArrived) for event in Log(tmp_path / "journal").events())


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
