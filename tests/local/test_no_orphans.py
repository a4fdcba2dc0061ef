"""However a program ends, nothing it started lives on: no worker, and no process that a task has started."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.local.chaos.patience import within_seconds
from tests.local.chaos.processes import within
from tests.local.chaos.scripts import Script

GONE_S = 2.0
TASKS = 2

PROGRAM = """
    import os, subprocess, sys, time
    from pathlib import Path
    import wattloom

    def work(place):
        subprocess.Popen(["sleep", "1000"])
        Path(f"begun-{place}").touch()
        time.sleep(1000)

    def wait_for_ever(submit):
        futures = [submit(place) for place in range(4)]
        futures[0].result()

"""
USES = {
    "inside with": """
    with wattloom.Executor(2) as executor:
        wait_for_ever(lambda place: executor.submit(work, place))""",
    "without with": """
    executor = wattloom.Executor(2)
    wait_for_ever(lambda place: executor.submit(work, place))""",
    "the default executor": """
    wait_for_ever(wattloom.function(work).remote)""",
    "in a thread": """
    import threading
    with wattloom.Executor(2) as executor:
        thread = threading.Thread(target=wait_for_ever, args=(lambda place: executor.submit(work, place),), daemon=True)
        thread.start()
        thread.join()""",
}

MakeScript = Callable[[str], Script]


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    with within_seconds(30):
        yield


@pytest.fixture
def script(tmp_path: Path) -> Iterator[MakeScript]:
    made: list[Script] = []

    def make(text: str) -> Script:
        made.append(Script(tmp_path, text))
        return made[-1]

    yield make
    for each in made:
        each.end()


def started(script: Script, begun: int = TASKS) -> "subprocess.Popen[str]":
    """The script, as soon as so many of its tasks run."""
    program = script.start()
    assert within(15.0, lambda: len(list(script.folder.glob("begun-*"))) >= begun or program.poll() is not None)
    assert program.poll() is None, program.communicate()
    assert len(script.left()) >= 1 + 2 * begun, "a program, its workers and what these have started"
    return program


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_program_that_is_ended_leaves_no_process(script: MakeScript, use: str, number: signal.Signals) -> None:
    here = script(PROGRAM + USES[use])
    program = started(here)
    os.killpg(program.pid, number)  # what a terminal does at Ctrl-C
    _, errors = program.communicate(timeout=GONE_S + 1.0)
    assert within(GONE_S, lambda: not here.left()), "processes outlive their program"
    assert program.returncode == -number
    assert ("KeyboardInterrupt" in errors) == (number == signal.SIGINT)


def test_nothing_is_left_if_only_the_parent_is_killed_while_a_fork_of_it_lives(script: MakeScript) -> None:
    here = script(
        PROGRAM
        + """
    executor = wattloom.Executor(2)
    futures = [executor.submit(work, place) for place in range(2)]
    while not Path("begun-0").exists() or not Path("begun-1").exists():
        time.sleep(0.01)
    if os.fork() == 0:
        time.sleep(1000)
    time.sleep(1000)"""
    )
    program = started(here)
    assert within(5.0, lambda: len(here.left()) == 6), "the program, its fork, two workers, two children"
    program.kill()
    program.wait()
    assert within(GONE_S, lambda: len(here.left()) == 1), "all but the fork are gone"


def test_a_worker_that_is_killed_takes_what_it_started_along(script: MakeScript) -> None:
    here = script("""
    import os, signal, subprocess, time
    import wattloom

    def work():
        child = subprocess.Popen(["sleep", "1000"])
        if os.fork() == 0:
            signal.pause()
        os.kill(os.getpid(), signal.SIGKILL)

    with wattloom.Executor(1) as executor:
        print(type(executor.submit(work).exception(timeout=5)).__name__, flush=True)
        time.sleep(1000)
    """)
    program = here.start()
    assert program.stdout is not None
    assert program.stdout.readline() == "OutcomeUnknown\n"
    assert within(GONE_S, lambda: here.left() == [program.pid])


def test_a_worker_that_is_stopped_for_its_timeout_takes_what_it_started_along(script: MakeScript) -> None:
    here = script("""
    import subprocess, time
    import wattloom

    @wattloom.function(timeout=0.2)
    def work():
        subprocess.run(["sleep", "1000"])

    print(type(work.remote().exception()).__name__)
    """)
    assert here.run() == "TaskTimeout\n"
    assert not here.left()


def test_a_program_that_ends_by_an_error_finishes_what_was_submitted_and_leaves_nothing(script: MakeScript) -> None:
    here = script("""
    import time
    from pathlib import Path
    import wattloom

    def work():
        time.sleep(0.2)
        Path("finished").touch()

    executor = wattloom.Executor(1)
    executor.submit(work)
    raise LookupError("on purpose")
    """)
    program = here.start()
    _, errors = program.communicate(timeout=10)
    assert "LookupError: on purpose" in errors
    assert (here.folder / "finished").exists()
    assert within(GONE_S, lambda: not here.left())


def test_the_executors_inside_a_task_end_with_it(script: MakeScript) -> None:
    here = script("""
    import time
    from pathlib import Path
    import wattloom

    def inner(place):
        Path(f"begun-{place}").touch()
        time.sleep(1000)

    def outer():
        with wattloom.Executor(1, journal="inner.journal") as executor:
            executor.submit(inner, 0).result()

    with wattloom.Executor(1, journal="outer.journal") as executor:
        executor.submit(outer).result()
    """)
    program = here.start()
    assert within(15.0, lambda: (here.folder / "begun-0").exists())
    assert len(here.left()) == 3
    program.kill()
    program.wait()
    assert within(GONE_S, lambda: not here.left())
