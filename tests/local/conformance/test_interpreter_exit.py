"""The end of a program: accepted work is finished, nothing hangs, nothing is left, the exit code is the program's."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.local.conformance.observing import all_gone, eventually

IMPORTS = {
    "process-pool": "from concurrent.futures import ProcessPoolExecutor as Executor",
    "wattloom": "from wattloom import Executor",
}

SCRIPT = """
import atexit, os, pathlib, signal, sys, time
{imports}

def mark(name, pause=0.01):
    time.sleep(pause)
    pathlib.Path(name).touch()
    return os.getpid()

def main():
{body}

if __name__ == "__main__":
    main()
"""


@dataclass(frozen=True)
class Ended:
    """How a script ended."""

    code: int
    output: str
    errors: str
    seconds: float


RunScript = Callable[[str], Ended]


@pytest.fixture
def run_script(kind: str, tmp_path: Path, marks: Path) -> RunScript:
    """Runs a script, the body of its `main` given, in the folder of marks."""

    def run(body: str) -> Ended:
        script = tmp_path / "script.py"
        script.write_text(SCRIPT.format(imports=IMPORTS[kind], body=textwrap.indent(textwrap.dedent(body), "    ")))
        environment = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, str(script)], cwd=marks, env=environment, capture_output=True, text=True, timeout=20
        )
        return Ended(done.returncode, done.stdout, done.stderr, time.monotonic() - begun)

    return run


def names_in(marks: Path) -> list[str]:
    return sorted(path.name for path in marks.iterdir())


TEN = sorted(f"m{i}" for i in range(10))


def test_work_still_waiting_at_the_end_is_finished(run_script: RunScript, marks: Path) -> None:
    ended = run_script("""
        executor = Executor(max_workers=2)
        for i in range(10):
            executor.submit(mark, f"m{i}")
    """)
    assert (ended.code, ended.errors) == (0, "")
    assert names_in(marks) == TEN


def test_work_left_by_a_shutdown_that_did_not_wait_is_finished(run_script: RunScript, marks: Path) -> None:
    ended = run_script("""
        executor = Executor(max_workers=1)
        for i in range(10):
            executor.submit(mark, f"m{i}")
        executor.shutdown(wait=False)
    """)
    assert (ended.code, ended.errors) == (0, "")
    assert names_in(marks) == TEN


def test_cancelled_work_is_not_waited_for(run_script: RunScript, marks: Path) -> None:
    ended = run_script("""
        global executor  # ProcessPoolExecutor forgets the wish to cancel if it is itself forgotten too early
        executor = Executor(max_workers=1)
        futures = [executor.submit(mark, f"m{i}", 0.05) for i in range(100)]
        executor.shutdown(wait=False, cancel_futures=True)
    """)
    assert (ended.code, ended.errors) == (0, "")
    assert len(names_in(marks)) < 50


def test_callbacks_run_although_the_program_has_come_to_its_end(run_script: RunScript) -> None:
    ended = run_script("""
        executor = Executor(max_workers=1)
        executor.submit(mark, "m", 0.1).add_done_callback(lambda done: print("called", done.exception(), flush=True))
    """)
    assert (ended.code, ended.output, ended.errors) == (0, "called None\n", "")


@pytest.mark.parametrize("use", ["pass", 'executor.submit(mark, "m").result()'])
def test_an_executor_never_shut_down_does_not_hold_up_the_end(run_script: RunScript, use: str) -> None:
    ended = run_script(f"""
        executor = Executor(max_workers=2)
        {use}
    """)
    assert (ended.code, ended.errors) == (0, "")
    assert ended.seconds < 10


def test_no_worker_outlives_the_program(run_script: RunScript) -> None:
    ended = run_script("""
        executor = Executor(max_workers=2)
        print(*executor.map(mark, "abcdef"))
    """)
    assert ended.code == 0
    pids = {int(pid) for pid in ended.output.split()}
    assert pids
    assert eventually(lambda: all_gone(pids))


def test_the_exit_code_is_the_programs_own(run_script: RunScript, marks: Path) -> None:
    ended = run_script("""
        with Executor(max_workers=2) as executor:
            for i in range(10):
                executor.submit(mark, f"m{i}")
            sys.exit(3)
    """)
    assert (ended.code, ended.errors) == (3, "")
    assert names_in(marks) == TEN


def test_a_program_that_fails_still_finishes_its_work(run_script: RunScript, marks: Path) -> None:
    ended = run_script("""
        executor = Executor(max_workers=2)
        for i in range(10):
            executor.submit(mark, f"m{i}")
        raise LookupError("of the program")
    """)
    assert ended.code == 1
    assert "LookupError: of the program" in ended.errors
    assert names_in(marks) == TEN


def test_a_failed_task_that_nobody_asked_about_does_not_change_the_exit_code(run_script: RunScript) -> None:
    ended = run_script("""
        with Executor(max_workers=1) as executor:
            executor.submit(divmod, 1, 0)
    """)
    assert (ended.code, ended.errors) == (0, "")


def test_submitting_when_the_program_has_ended_is_refused(run_script: RunScript) -> None:
    ended = run_script("""
        executor = Executor(max_workers=1)
        executor.submit(mark, "m").result()

        def late():
            try:
                executor.submit(mark, "late")
            except RuntimeError as error:
                print(type(error).__name__, "shutdown" in str(error))

        atexit.register(late)
    """)
    assert (ended.code, ended.output, ended.errors) == (0, "RuntimeError True\n", "")


def test_two_executors_left_open_both_finish(run_script: RunScript, marks: Path) -> None:
    ended = run_script("""
        executors = [Executor(max_workers=1), Executor(max_workers=1)]
        for i in range(10):
            executors[i % 2].submit(mark, f"m{i}")
    """)
    assert (ended.code, ended.errors) == (0, "")
    assert names_in(marks) == TEN


def test_an_interrupted_program_leaves_no_worker(run_script: RunScript) -> None:
    """Ctrl-C reaches the whole group of a terminal; here it reaches the program alone, which is harder."""
    ended = run_script("""
        executor = Executor(max_workers=2)
        print(*executor.map(mark, "abcdef"), flush=True)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)
    """)
    assert ended.code == -signal.SIGINT
    assert "KeyboardInterrupt" in ended.errors
    pids = {int(pid) for pid in ended.output.split()}
    assert pids
    assert eventually(lambda: all_gone(pids))
