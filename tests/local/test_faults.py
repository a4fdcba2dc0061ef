"""Calls that go wrong: each ends as its fault semantics say, the others go on, and the message says what happened."""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, wait
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.local.chaos.patience import within_seconds
from tests.local.chaos.processes import within

import wattloom
from wattloom.local.errors import CannotSend, ExecutorLost, InitializerFailed, TaskRejected

SOON_S = 30.0
TIMEOUT_S = 0.3

Make = Callable[..., wattloom.Executor]


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    with within_seconds(40):
        yield


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[wattloom.Executor] = []

    def maker(workers: int = 2, **options: Any) -> wattloom.Executor:
        made.append(wattloom.Executor(workers, **({"journal": tmp_path / "work.journal"} | options)))
        return made[-1]

    yield maker
    for executor in made:
        executor.kill_workers()


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wattloom.Executor]:
    """One for all that go wrong: it has to stand that too."""
    found = wattloom.Executor(2, journal=tmp_path_factory.mktemp("journal") / "work.journal")
    yield found
    found.kill_workers()


def append(path: Path, text: str = "x") -> int:
    """Leave a sign; how many there are then."""
    with path.open("a") as file:
        file.write(text)
    return path.stat().st_size


# -- a worker dies -----------------------------------------------------------------------------------------------------


def segfault() -> None:
    ctypes.string_at(0)


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def abort() -> None:
    os.abort()


def leave() -> None:
    os._exit(3)


DEATHS = {segfault: "SIGSEGV", kill_itself: "SIGKILL", abort: "SIGABRT", leave: "exit code 3"}


@pytest.mark.parametrize("death", DEATHS, ids=lambda death: death.__name__)
def test_a_call_whose_worker_dies_has_an_unknown_outcome_and_says_how(
    executor: wattloom.Executor, death: Callable[[], None]
) -> None:
    problem = executor.submit(death).exception(timeout=SOON_S)
    assert isinstance(problem, wattloom.OutcomeUnknown)
    assert DEATHS[death] in str(problem)
    assert death.__name__ in str(problem)
    assert executor.submit(abs, -1).result(timeout=SOON_S) == 1


def test_a_worker_that_dies_harms_no_other_call(executor: wattloom.Executor) -> None:
    calls = [executor.submit(leave if number % 25 == 12 else abs, *([] if number % 25 == 12 else [-number]))
             for number in range(200)]  # fmt: skip
    wait(calls, timeout=SOON_S)
    for number, call in enumerate(calls):
        if number % 25 == 12:
            assert isinstance(call.exception(), wattloom.OutcomeUnknown)
        else:
            assert call.result() == number


def die_unless_tried(path: Path, times: int) -> int:
    tried = append(path)
    if tried < times:
        os._exit(1)
    return tried


def test_an_idempotent_call_is_made_again_when_its_worker_dies(executor: wattloom.Executor, tmp_path: Path) -> None:
    call = wattloom.function(idempotent=True, executor=executor)(die_unless_tried)
    assert call.remote(tmp_path / "tries", 3).result(timeout=SOON_S) == 3


def test_infrastructure_retries_bound_how_often(executor: wattloom.Executor, tmp_path: Path) -> None:
    call = wattloom.function(idempotent=True, infrastructure_retries=1, executor=executor)(die_unless_tried)
    problem = call.remote(tmp_path / "tries", 100).exception(timeout=SOON_S)
    assert isinstance(problem, wattloom.WorkerLost)
    assert "exit code 1" in str(problem)
    assert (tmp_path / "tries").read_text() == "xx"


def test_a_worker_killed_from_outside_while_it_has_a_process_of_its_own_is_noticed(
    executor: wattloom.Executor, tmp_path: Path
) -> None:
    def fork_and_wait() -> None:
        if os.fork() == 0:
            signal.pause()
        (tmp_path / "worker").write_text(f"{os.getpid()}\n")
        time.sleep(60)

    call = executor.submit(fork_and_wait)
    assert within(SOON_S, lambda: (tmp_path / "worker").exists() and "\n" in (tmp_path / "worker").read_text())
    os.kill(int((tmp_path / "worker").read_text()), signal.SIGKILL)
    assert isinstance(call.exception(timeout=SOON_S), wattloom.OutcomeUnknown)


def test_system_exit_in_a_call_is_an_exception_like_others(executor: wattloom.Executor) -> None:
    call = executor.submit(sys.exit, 7)
    problem = call.exception(timeout=SOON_S)
    assert isinstance(problem, SystemExit)
    assert problem.code == 7


def fork_and_return() -> int:
    return os.fork()


def test_a_call_that_forks_and_returns_twice_counts_once(make: Make) -> None:
    executor = make(1)
    assert executor.submit(fork_and_return).result(timeout=SOON_S) > 0
    assert [executor.submit(os.getpid).result(timeout=SOON_S) for _ in range(50)]
    assert len({executor.submit(os.getpid).result(timeout=SOON_S) for _ in range(50)}) == 1


def test_a_done_callback_may_submit_and_ask_for_the_joules(executor: wattloom.Executor) -> None:
    told: list[object] = []
    began = time.monotonic()
    first = executor.submit(abs, -1)
    first.add_done_callback(lambda _: told.append(executor.submit(abs, -2).result))
    first.add_done_callback(lambda _: told.append(first.energy))
    assert within(5.0, lambda: len(told) == 2)
    assert executor.submit(abs, -3).result(timeout=SOON_S) == 3
    assert time.monotonic() - began < 3.0, "the dispatcher waited for itself"


# -- a call hangs ------------------------------------------------------------------------------------------------------


def hang() -> None:
    time.sleep(60)


def hang_with_the_interpreter_locked() -> None:
    ctypes.PyDLL(None).sleep(60)


def hang_in_a_child() -> None:
    subprocess.run(["sleep", "60"], check=True)


def hang_and_refuse_to_end() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        pass


HANGS = [hang, hang_with_the_interpreter_locked, hang_in_a_child, hang_and_refuse_to_end]


@pytest.mark.parametrize("call", HANGS, ids=lambda call: call.__name__)
def test_a_call_that_hangs_is_stopped_after_its_timeout(executor: wattloom.Executor, call: Callable[[], None]) -> None:
    began = time.monotonic()
    problem = wattloom.function(timeout=TIMEOUT_S, executor=executor)(call).remote().exception(timeout=SOON_S)
    assert isinstance(problem, wattloom.TaskTimeout)
    assert isinstance(problem, TimeoutError)
    assert f"{TIMEOUT_S:g} s" in str(problem)
    assert call.__name__ in str(problem)
    assert TIMEOUT_S <= time.monotonic() - began < TIMEOUT_S + 2.0
    assert executor.submit(abs, -1).result(timeout=SOON_S) == 1


def hang_unless_tried(path: Path, times: int) -> int:
    tried = append(path)
    if tried < times:
        time.sleep(60)
    return tried


def test_a_timeout_counts_as_the_functions_own_failure(executor: wattloom.Executor, tmp_path: Path) -> None:
    call = wattloom.function(timeout=2.0, retries=1, executor=executor)(hang_unless_tried)
    assert call.remote(tmp_path / "tries", 2).result(timeout=SOON_S) == 2


def test_the_timeout_of_a_call_does_not_run_while_it_waits(make: Make) -> None:
    call = wattloom.function(timeout=TIMEOUT_S, executor=make(1))(time.sleep)
    waiting = [call.remote(TIMEOUT_S * 0.6) for _ in range(4)]
    assert [each.result(timeout=SOON_S) for each in waiting] == [None] * 4


# -- the function's own exceptions -------------------------------------------------------------------------------------


def fail_unless_tried(path: Path, times: int) -> int:
    tried = append(path)
    if tried < times:
        raise LookupError(f"try {tried}")
    return tried


def test_retries_are_for_the_functions_own_exceptions(executor: wattloom.Executor, tmp_path: Path) -> None:
    call = wattloom.function(retries=2, executor=executor)(fail_unless_tried)
    assert call.remote(tmp_path / "three", 3).result(timeout=SOON_S) == 3
    with pytest.raises(LookupError, match="try 3"):
        call.remote(tmp_path / "four", 4).result(timeout=SOON_S)


def test_retries_are_not_for_calls_whose_worker_died(executor: wattloom.Executor, tmp_path: Path) -> None:
    call = wattloom.function(retries=5, executor=executor)(die_unless_tried)
    problem = call.remote(tmp_path / "tries", 3).exception(timeout=SOON_S)
    assert isinstance(problem, wattloom.OutcomeUnknown)
    assert (tmp_path / "tries").read_text() == "x"


# -- memory ------------------------------------------------------------------------------------------------------------


def want_too_much() -> int:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, hard))
    try:
        return len(bytearray(8 << 30))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_a_call_that_gets_no_memory_raises_memory_error_and_its_worker_goes_on(make: Make) -> None:
    executor = make(1)
    before = executor.submit(os.getpid).result(timeout=SOON_S)
    assert isinstance(executor.submit(want_too_much).exception(timeout=SOON_S), MemoryError)
    assert executor.submit(os.getpid).result(timeout=SOON_S) == before


def eat_memory(group: str) -> NoReturn:
    Path(group, "cgroup.procs").write_text(str(os.getpid()))
    eaten = []
    while True:
        eaten.append(os.urandom(1 << 20))


def remove_group(group: Path) -> None:
    """As soon as the last process in it is gone."""
    for _ in range(100):
        try:
            group.rmdir()
            return
        except OSError:
            time.sleep(0.05)


@pytest.fixture
def small_group() -> Iterator[str]:
    """A control group of our own with little memory."""
    for parent, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = Path(parent, f"wattloom-test-{os.getpid()}")
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text(str(120 << 20))
            yield str(group)
            return
        except OSError:
            continue
        finally:
            remove_group(group)
    pytest.skip("NOT TRIED: death by the kernel's memory killer. It needs a control group, which root may make.")


def test_a_worker_that_the_kernel_kills_for_its_memory_is_like_any_that_dies(make: Make, small_group: str) -> None:
    executor = make(1)
    problem = executor.submit(eat_memory, small_group).exception(timeout=SOON_S)
    assert isinstance(problem, wattloom.OutcomeUnknown)
    assert "memory ran out" in str(problem)
    assert executor.submit(pow, 2, 5).result(timeout=SOON_S) == 32


# -- what cannot be sent -----------------------------------------------------------------------------------------------


class Stubborn:
    """Says itself that it cannot be sent."""

    def __reduce__(self) -> NoReturn:
        raise RuntimeError("I stay here")


class TwoWords(Exception):
    """Can be pickled, not unpickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)


def raise_two_words() -> NoReturn:
    raise TwoWords("one", "two")


def raise_with_a_lock() -> NoReturn:
    raise ValueError("with a lock", threading.Lock())


def make_a_generator() -> Iterator[int]:
    yield 1


def test_an_argument_that_cannot_be_sent_is_named(executor: wattloom.Executor) -> None:
    for problem in (
        executor.submit(print, 1, threading.Lock()).exception(),
        executor.submit(print, 1, [{"deep": (threading.Lock(),)}]).exception(),
        executor.submit(print, 1, Stubborn()).exception(),
    ):
        assert isinstance(problem, CannotSend)
        assert isinstance(problem, TypeError)
        assert "argument 2" in str(problem)
        assert "argument 1" not in str(problem)


def test_a_named_argument_that_cannot_be_sent_is_named(executor: wattloom.Executor) -> None:
    problem = executor.submit(print, 1, end=threading.Lock()).exception()
    assert isinstance(problem, CannotSend)
    assert "'end'" in str(problem)


def test_a_function_that_holds_what_cannot_be_sent_is_named(executor: wattloom.Executor) -> None:
    lock = threading.Lock()

    def uses_a_lock() -> bool:
        return lock.locked()

    problem = executor.submit(uses_a_lock).exception()
    assert isinstance(problem, CannotSend)
    assert "uses_a_lock" in str(problem)
    assert "lock" in str(problem)


def test_a_result_that_cannot_be_sent_back_is_named(executor: wattloom.Executor) -> None:
    for make_it, name in ((threading.Lock, "lock"), (Stubborn, "Stubborn"), (make_a_generator, "generator")):
        problem = executor.submit(make_it).exception(timeout=SOON_S)
        assert isinstance(problem, CannotSend)
        assert "result" in str(problem)
        assert name in str(problem)


@pytest.mark.parametrize("call", [raise_two_words, raise_with_a_lock], ids=lambda call: call.__name__)
def test_an_exception_that_cannot_be_sent_back_keeps_its_words_and_traceback(
    executor: wattloom.Executor, call: Callable[[], NoReturn]
) -> None:
    problem = executor.submit(call).exception(timeout=SOON_S)
    assert isinstance(problem, CannotSend)
    assert call.__name__ in str(problem)
    assert "Error: ('with a lock'" in str(problem) or "TwoWords: one" in str(problem)


def test_what_cannot_be_sent_leaves_no_trace_and_the_executor_goes_on(make: Make, tmp_path: Path) -> None:
    executor = make()
    for _ in range(50):
        executor.submit(print, threading.Lock())
    assert executor.submit(abs, -1).result(timeout=SOON_S) == 1
    executor.shutdown()
    assert not list((tmp_path / "work.journal.spool").glob("*"))


# -- slow among short --------------------------------------------------------------------------------------------------


def test_a_slow_call_among_short_ones_holds_nobody_up(make: Make) -> None:
    executor = make(2)
    executor.submit(abs, 1).result(timeout=SOON_S)
    began = time.monotonic()
    short = [executor.submit(abs, -number) for number in range(250)]
    slow = executor.submit(time.sleep, 3.0)
    short += [executor.submit(abs, -number) for number in range(250)]
    done, _ = wait(short, timeout=1.5)
    assert len(done) == 500
    assert time.monotonic() - began < 1.5
    assert not slow.done()


def test_a_slow_call_that_looks_like_the_short_ones_holds_nobody_up(make: Make) -> None:
    """The same function: only its argument makes it slow, so that no forecast can know."""
    executor = make(2)
    for _ in range(50):
        executor.submit(time.sleep, 0.0).result(timeout=SOON_S)
    short = [executor.submit(time.sleep, 3.0 if number == 100 else 0.0) for number in range(500)]
    slow = short.pop(100)
    done, _ = wait(short, timeout=1.5)
    assert len(done) == 499
    assert not slow.done()


def test_a_short_result_is_not_kept_back_by_a_long_call_behind_it(make: Make) -> None:
    executor = make(1)
    for _ in range(50):
        executor.submit(time.sleep, 0.0).result(timeout=SOON_S)
    first = [executor.submit(time.sleep, 0.0) for _ in range(10)]
    long = executor.submit(time.sleep, 1.5)
    done, _ = wait(first, timeout=0.7)
    assert len(done) == 10
    assert not long.done()


# -- cancelling --------------------------------------------------------------------------------------------------------


def test_a_call_that_waits_can_be_cancelled_and_is_never_made(make: Make, tmp_path: Path) -> None:
    executor = make(1)
    running = executor.submit(time.sleep, 0.3)
    waiting = [executor.submit(append, tmp_path / f"made-{number}") for number in range(300)]
    cancelled = [future for future in waiting if future.cancel()]
    assert cancelled
    running.result(timeout=SOON_S)
    executor.shutdown()
    made = len(list(tmp_path.glob("made-*")))
    assert made == len(waiting) - len(cancelled)
    with pytest.raises(CancelledError):
        cancelled[0].result()


def test_cancelling_at_any_moment_either_prevents_the_call_or_gives_its_result(make: Make, tmp_path: Path) -> None:
    executor = make(2)
    cancelled: set[int] = set()
    futures: list[wattloom.TaskFuture] = []
    for number in range(400):
        futures.append(executor.submit(append, tmp_path / f"made-{number}"))
        if number % 3 == 0 and (victim := futures[max(0, number - number % 7)]).cancel():
            cancelled.add(futures.index(victim))
    wait(futures, timeout=SOON_S)
    assert {number for number, future in enumerate(futures) if future.cancelled()} == cancelled
    assert {int(path.name[5:]) for path in tmp_path.glob("made-*")} == set(range(400)) - cancelled
    assert all(path.stat().st_size == 1 for path in tmp_path.glob("made-*"))


def test_shutdown_can_cancel_what_waits(make: Make) -> None:
    executor = make(1)
    futures = [executor.submit(time.sleep, 0.05) for _ in range(50)]
    assert within(SOON_S, futures[0].running)
    executor.shutdown(cancel_futures=True)
    assert all(future.done() for future in futures)
    assert sum(future.cancelled() for future in futures) > 20
    assert not futures[0].cancelled()


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("after_s", [0.0, 0.03, 0.1, 0.4])
def test_killing_the_workers_ends_everything_at_once(make: Make, idempotent: bool, after_s: float) -> None:
    executor = make(2)
    calls = [wattloom.function(idempotent=idempotent, executor=executor)(time.sleep).remote(60) for _ in range(5)]
    time.sleep(after_s)
    began = time.monotonic()
    executor.kill_workers()
    assert time.monotonic() - began < 2.0
    assert all(call.done() for call in calls)


# -- beginning ---------------------------------------------------------------------------------------------------------


def fail_to_begin(word: str) -> NoReturn:
    raise LookupError(word)


def test_an_initializer_that_fails_breaks_the_executor_and_says_why(make: Make) -> None:
    executor = make(initializer=fail_to_begin, initargs=("no library here",))
    first = executor.submit(abs, 1)
    problem = first.exception(timeout=SOON_S)
    assert isinstance(problem, InitializerFailed)
    assert "no library here" in str(problem)
    assert "fail_to_begin" in str(problem)
    with pytest.raises(InitializerFailed):
        executor.submit(abs, 1)


def test_workers_that_die_before_they_are_ready_break_the_executor(make: Make) -> None:
    executor = make(initializer=os._exit, initargs=(9,))
    problem = executor.submit(abs, 1).exception(timeout=SOON_S)
    assert isinstance(problem, ExecutorLost)
    assert "exit code 9" in str(problem)


def test_a_call_that_needs_more_than_there_is_is_rejected(executor: wattloom.Executor) -> None:
    for needs in ({"cpu": 10_000.0}, {"memory": 10**15}):
        problem = wattloom.function(executor=executor, **needs)(abs).remote(1).exception(timeout=SOON_S)
        assert isinstance(problem, TaskRejected)
        assert "abs" in str(problem)
    assert executor.submit(abs, -1).result(timeout=SOON_S) == 1


# -- order -------------------------------------------------------------------------------------------------------------


def test_calls_of_higher_priority_go_first(make: Make, tmp_path: Path) -> None:
    executor = make(1)
    busy = executor.submit(time.sleep, 0.3)
    calls = {name: wattloom.function(priority=priority, executor=executor)(append)
             for name, priority in (("a", 0), ("b", 5), ("c", 10))}  # fmt: skip
    futures = [call.remote(tmp_path / "order", name) for _ in range(3) for name, call in calls.items()]
    wait([busy, *futures], timeout=SOON_S)
    assert (tmp_path / "order").read_text() == "cccbbbaaa"


# -- large things ------------------------------------------------------------------------------------------------------


def most_memory_kb() -> int:
    """Of this process at any time since it was reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise AssertionError("the kernel does not say")


def reset_most_memory() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def test_large_arrays_arrive_whole_both_ways(executor: wattloom.Executor) -> None:
    numpy = pytest.importorskip("numpy")
    given = numpy.arange(3_000_000, dtype="float64").reshape(1000, 3000)
    back = executor.submit(lambda array, *, plus: (array + plus, array.sum()), given, plus=1.0).result(timeout=SOON_S)
    assert numpy.array_equal(back[0], given + 1.0)
    assert back[1] == given.sum()
    back[0][0, 0] = 5.0  # it is the caller's own
    transposed = executor.submit(lambda array: array.T, given).result(timeout=SOON_S)
    assert numpy.array_equal(transposed, given.T)


def test_large_arguments_are_not_copied_twice_in_the_calling_program(executor: wattloom.Executor) -> None:
    size = 200_000_000
    executor.submit(len, bytes(1_000_000)).result(timeout=SOON_S)
    numpy = pytest.importorskip("numpy")
    given = numpy.ones(size // 8)
    gc.collect()
    reset_most_memory()
    before = most_memory_kb()
    assert executor.submit(len, given).result(timeout=SOON_S) == size // 8
    assert (most_memory_kb() - before) * 1024 < size * 0.5, "a copy was made"


def test_a_large_result_is_held_once(make: Make, tmp_path: Path) -> None:
    executor = make()
    size = 200_000_000
    numpy = pytest.importorskip("numpy")
    executor.submit(numpy.ones, 10).result(timeout=SOON_S)
    gc.collect()
    reset_most_memory()
    before = most_memory_kb()
    result = executor.submit(numpy.ones, size // 8).result(timeout=SOON_S)
    assert result.sum() == size // 8
    assert (most_memory_kb() - before) * 1024 < size * 1.5, "it was copied"
    assert not list((tmp_path / "work.journal.spool").glob("result-*"))
