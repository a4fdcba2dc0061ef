"""Where people run Python: every one of these places works without anything being set up."""

import builtins
import code
import functools
import math
import operator
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tests.local.chaos.patience import within_seconds
from tests.local.chaos.scripts import Script

import wattloom

SOON_S = 30.0

MakeScript = Callable[..., Script]


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    with within_seconds(40):
        yield


@pytest.fixture
def script(tmp_path: Path) -> Iterator[MakeScript]:
    made: list[Script] = []

    def make(text: str, *options: str) -> Script:
        made.append(Script(tmp_path, text, *options))
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wattloom.Executor]:
    """One for all: nothing here breaks it."""
    found = wattloom.Executor(2, journal=tmp_path_factory.mktemp("journal") / "work.journal")
    yield found
    found.kill_workers()


# -- scripts -----------------------------------------------------------------------------------------------------------

PLAIN = """
    import wattloom

    def square(number):
        return number * number

    {guard}
        with wattloom.Executor(2) as executor:
            print(list(executor.map(square, range(4))))
"""


@pytest.mark.parametrize("guard", ['if __name__ == "__main__":', "if True:"], ids=["with guard", "without guard"])
def test_a_script_works_with_and_without_a_main_guard(script: MakeScript, guard: str) -> None:
    assert script(PLAIN.format(guard=guard)).run() == "[0, 1, 4, 9]\n"


def test_a_script_is_run_once_however_many_workers_there_are(script: MakeScript) -> None:
    here = script("""
    import wattloom
    print("top of the script")
    with wattloom.Executor(2) as executor:
        print(sum(executor.map(abs, range(100))))
    """)
    assert here.run() == "top of the script\n4950\n"


def test_everything_that_a_script_defines_can_be_called_given_and_returned(script: MakeScript) -> None:
    here = script("""
    import enum, functools
    from dataclasses import dataclass
    import wattloom

    FACTOR = 3

    @dataclass
    class Point:
        x: int
        def moved(self, by):
            return Point(self.x + by)
        @classmethod
        def origin(cls):
            return cls(0)
        @staticmethod
        def twice(number):
            return number * 2

    class Colour(enum.Enum):
        RED = 1

    class Wrong(Exception):
        pass

    def move(point, by=1):
        assert isinstance(point, Point)
        return Point(point.x + by * FACTOR)

    def outer(number):
        def inner(other):
            return number + other
        return inner

    def recursive(number):
        return 1 if number < 2 else number * recursive(number - 1)

    def fail():
        raise Wrong("as it should")

    class Adder:
        def __call__(self, left, right):
            return left + right

    with wattloom.Executor(2) as executor:
        call = lambda *what, **named: executor.submit(*what, **named).result()
        moved = call(move, Point(1))
        assert isinstance(moved, Point) and moved == Point(4), moved
        assert call(move, point=Point(1), by=2) == Point(7)
        assert call(Point(1).moved, 5) == Point(6)
        assert call(Point.origin) == Point(0)
        assert call(Point.twice, 4) == 8
        assert call(Point, 9) == Point(9)
        assert call(lambda point: point.x, Point(8)) == 8
        assert call(outer(10), 5) == 15
        assert call(functools.partial(move, by=0), Point(2)) == Point(2)
        assert call(recursive, 5) == 120
        assert call(Adder(), 1, 2) == 3
        assert call(lambda: Colour.RED) is Colour.RED
        assert call(lambda colour: colour is Colour.RED, Colour.RED)
        try:
            call(fail)
        except Wrong as problem:
            assert "as it should" in str(problem)
    print("all right")
    """)
    assert here.run() == "all right\n"


def test_changed_globals_are_seen_by_the_next_call(script: MakeScript) -> None:
    here = script("""
    import wattloom

    factor = 1
    table = {"a": 1}
    def helper(number):
        return number * factor
    def call(number):
        return helper(number), table["a"], step()
    def step():
        return "old"
    def mutable(value, seen=[]):
        return len(seen), value

    with wattloom.Executor(2) as executor:
        print(executor.submit(call, 10).result())
        factor = 2
        print(executor.submit(call, 10).result())
        table["a"] = 5
        print(executor.submit(call, 10).result())
        def step():
            return "new"
        print(executor.submit(call, 10).result())
        helper = lambda number: -number
        print(executor.submit(call, 10).result())
        mutable.__defaults__[0].append(1)
        print(executor.submit(mutable, 1).result())
    """)
    expected = ["(10, 1, 'old')", "(20, 1, 'old')", "(20, 5, 'old')", "(20, 5, 'new')", "(-10, 5, 'new')", "(1, 1)"]
    assert here.run().splitlines() == expected


def test_what_is_changed_after_submit_does_not_change_the_call(executor: wattloom.Executor) -> None:
    busy = [executor.submit(math.factorial, 20_000) for _ in range(4)]
    given = [1, 2]
    future = executor.submit(sum, given)
    given.append(100)
    assert future.result(timeout=SOON_S) == 3
    assert all(each.result(timeout=SOON_S) for each in busy)


def test_python_with_c_and_a_script_on_standard_input_work(tmp_path: Path) -> None:
    text = dedent(PLAIN.format(guard="if True:"))
    surroundings = os.environ | {"XDG_STATE_HOME": str(tmp_path)}
    for arguments, given in ((["-c", text], None), (["-"], text), ([], text)):
        found = subprocess.run(
            [sys.executable, *arguments],
            input=given,
            capture_output=True,
            text=True,
            env=surroundings,
            timeout=SOON_S,
            cwd=tmp_path,
        )
        assert (found.stdout, found.stderr) == ("[0, 1, 4, 9]\n", "")


def test_a_module_run_with_m_works(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "parts.py").write_text("def half(number):\n    return number / 2\n")
    (package / "__main__.py").write_text(
        "import wattloom\nfrom .parts import half\ndef double(number):\n    return half(number) * 4\n"
        "with wattloom.Executor(1) as executor:\n    print(executor.submit(double, 3).result())\n"
    )
    found = subprocess.run(
        [sys.executable, "-m", "package"],
        cwd=tmp_path,
        env=os.environ | {"XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SOON_S,
    )
    assert (found.stdout, found.stderr) == ("6.0\n", "")


def test_warnings_as_errors_find_nothing_to_complain_about(script: MakeScript) -> None:
    here = script(
        """
    import gc, wattloom

    def square(number):
        print("in a worker")
        return number * number

    with wattloom.Executor(2) as executor:
        executor.submit(square, 1).result()
        executor.submit(bytes, 1_000_000).result()
        executor.submit(len, bytes(1_000_000)).result()
        executor.submit(square, 1).energy
    again = wattloom.Executor(1)
    again.submit(abs, -1).result()
    del again
    gc.collect()
    wattloom.function(square).remote(2).result()
    """,
        "-W",
        "error",
        "-X",
        "dev",
    )
    assert here.run() == "in a worker\n" * 3


# -- interactive -------------------------------------------------------------------------------------------------------


def test_an_interactive_interpreter_works(executor: wattloom.Executor) -> None:
    """As notebooks and consoles do it: cells are executed in a namespace that has no file."""
    console = code.InteractiveInterpreter({"executor": executor, "__name__": "__console__"})
    cells = [
        "factor = 2\ndef scale(number):\n    return number * factor\n",
        "class Box:\n    def __init__(self, content):\n        self.content = content\n",
        "first = executor.submit(scale, 21).result()\n",
        "factor = 3\nsecond = executor.submit(scale, 21).result()\n",
        "def scale(number):\n    return -number\nthird = executor.submit(scale, 21).result()\n",
        "box = executor.submit(lambda box: Box(box.content + 1), Box(1)).result()\nsame = isinstance(box, Box)\n",
    ]
    for cell in cells:
        assert console.runsource(cell, symbol="exec") is False
    found: dict[str, Any] = console.locals
    assert [found["first"], found["second"], found["third"], found["box"].content] == [42, 63, -21, 2]


def test_the_interactive_prompt_works(tmp_path: Path) -> None:
    text = """
import wattloom
factor = 2
def scale(number):
    return number * factor

executor = wattloom.Executor(1)
executor.submit(scale, 21).result()
factor = 3
executor.submit(scale, 21).result()
exit()
"""
    surroundings = os.environ | {"XDG_STATE_HOME": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-i", "-q"], input=text, capture_output=True, text=True, env=surroundings, timeout=SOON_S
    )
    assert found.stdout.split() == ["42", "63"]


def test_ipython_works(tmp_path: Path) -> None:
    pytest.importorskip("IPython", reason="NOT TRIED: IPython is not installed (a plain interactive interpreter is)")
    text = (
        "import wattloom\nfactor = 2\ndef scale(number):\n    return number * factor\n\n"
        "executor = wattloom.Executor(1)\nprint(executor.submit(scale, 21).result())\n"
        "factor = 3\nprint(executor.submit(scale, 21).result())\nexecutor.shutdown()\n"
    )
    (tmp_path / "cells.ipy").write_text(text)
    surroundings = os.environ | {"XDG_STATE_HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path)}
    command = [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", "cells.ipy"]
    found = subprocess.run(command, capture_output=True, text=True, env=surroundings, cwd=tmp_path, timeout=SOON_S)
    assert found.stdout.split() == ["42", "63"]


# -- in pytest: functions of this very module --------------------------------------------------------------------------


def double(number: int) -> int:
    return number * 2


class Parcel:
    """Defined in a test module."""

    def __init__(self, content: int) -> None:
        self.content = content

    def doubled(self) -> "Parcel":
        return Parcel(double(self.content))


def test_functions_and_classes_of_a_test_module_can_be_sent(executor: wattloom.Executor) -> None:
    number = 5

    def closure(other: int) -> int:
        return number + double(other)

    assert executor.submit(double, 4).result(timeout=SOON_S) == 8
    assert executor.submit(closure, 4).result(timeout=SOON_S) == 13
    assert executor.submit(lambda: number).result(timeout=SOON_S) == 5
    back = executor.submit(Parcel(3).doubled).result(timeout=SOON_S)
    assert isinstance(back, Parcel)
    assert back.content == 6


CALLABLES: list[tuple[Callable[..., Any], tuple[Any, ...], Any]] = [
    (abs, (-1,), 1),
    (len, ("four",), 4),
    (math.sqrt, (16.0,), 4.0),
    (operator.add, (1, 2), 3),
    ("a-b".split, ("-",), ["a", "b"]),
    (str.upper, ("a",), "A"),
    (int, ("12",), 12),
    (functools.partial(pow, 2), (5,), 32),
    (operator.itemgetter(1), ([1, 2],), 2),
    ([3, 1, 2].count, (1,), 1),
    (builtins.sorted, ([2, 1],), [1, 2]),
    (Path.exists, (Path("/"),), True),
]


@pytest.mark.parametrize(("function", "args", "expected"), CALLABLES)
def test_callables_of_every_kind_can_be_called(
    executor: wattloom.Executor, function: Callable[..., Any], args: tuple[Any, ...], expected: Any
) -> None:
    assert executor.submit(function, *args).result(timeout=SOON_S) == expected


# -- threads and processes ---------------------------------------------------------------------------------------------


def test_several_threads_may_use_one_executor(executor: wattloom.Executor) -> None:
    found: dict[int, list[int]] = {}

    def use(thread: int) -> None:
        found[thread] = list(executor.map(double, range(thread, thread + 100)))

    threads = [threading.Thread(target=use, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=SOON_S)
    assert found == {thread: [number * 2 for number in range(thread, thread + 100)] for thread in range(8)}


def test_two_executors_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    with (
        wattloom.Executor(1, journal=tmp_path / "one.journal") as one,
        wattloom.Executor(1, journal=tmp_path / "two.journal") as two,
    ):
        futures = [executor.submit(double, number) for number in range(100) for executor in (one, two)]
        assert [future.result(timeout=SOON_S) for future in futures] == [n * 2 for n in range(100) for _ in "ab"]


def test_executors_one_after_another_on_one_journal(tmp_path: Path) -> None:
    for number in range(3):
        with wattloom.Executor(1, journal=tmp_path / "work.journal") as executor:
            assert executor.submit(double, number).result(timeout=SOON_S) == number * 2


def inside(folder: str) -> list[int]:
    with wattloom.Executor(1, journal=f"{folder}/inner.journal") as executor:
        return list(executor.map(double, range(5)))


def test_a_task_may_have_an_executor_of_its_own(executor: wattloom.Executor, tmp_path: Path) -> None:
    assert executor.submit(inside, str(tmp_path)).result(timeout=SOON_S) == [0, 2, 4, 6, 8]


def test_a_task_may_use_the_default_executor(script: MakeScript) -> None:
    here = script("""
    import wattloom

    @wattloom.function
    def leaf(number):
        return number + 1

    @wattloom.function
    def branch(number):
        return sum(leaf.map(range(number)))

    print(branch.remote(4).result())
    """)
    assert here.run() == "10\n"


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_it_works_in_children_of_multiprocessing(script: MakeScript, method: str) -> None:
    here = script(f"""
    import multiprocessing, wattloom

    def square(number):
        return number * number

    def child(answers):
        with wattloom.Executor(1) as executor:
            answers.put(executor.submit(square, 7).result())

    if __name__ == "__main__":
        context = multiprocessing.get_context({method!r})
        with wattloom.Executor(1) as executor:
            assert executor.submit(square, 2).result() == 4
            answers = context.SimpleQueue()
            process = context.Process(target=child, args=(answers,))
            process.start()
            print(answers.get())
            process.join()
            print(executor.submit(square, 3).result(), process.exitcode)
    """)
    assert here.run() == "49\n9 0\n"


def test_a_fork_of_a_program_with_a_busy_executor_does_not_hang(script: MakeScript) -> None:
    here = script("""
    import os, sys, time, wattloom

    executor = wattloom.Executor(2)
    waiting = [executor.submit(time.sleep, 0.01) for _ in range(50)]
    child = os.fork()
    if child == 0:
        try:
            executor.submit(abs, -1)
        except RuntimeError as problem:
            print("child:", "fork" in str(problem), flush=True)
        executor.sync()
        executor.shutdown()
        with wattloom.Executor(1) as own:
            print("child:", own.submit(abs, -1).result(), flush=True)
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    print("parent:", status, [future.result() for future in waiting] == [None] * 50, flush=True)
    executor.shutdown()
    """)
    said = here.run().splitlines()
    assert said == ["child: True", "child: 1", "parent: 0 True"]


@pytest.mark.parametrize("held", ["a future", "the dispatcher", "the default executor"])
def test_a_fork_while_another_thread_holds_a_lock_does_not_hang(script: MakeScript, held: str) -> None:
    """Whoever held it does not exist in the child, and would never let go."""
    locks = {
        "a future": "future.CONDITIONS[0]",
        "the dispatcher": "executor._dispatcher.lock",
        "the default executor": "decorator._LOCK",
    }
    here = script(f"""
    import os, sys, threading, time, wattloom
    from wattloom.local import decorator, future

    executor = wattloom.Executor(1, meter="off")
    waiting = executor.submit(time.sleep, 0.5)
    taken, over = threading.Event(), threading.Event()

    def hold():
        with {locks[held]}:
            taken.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    child = os.fork()
    if child == 0:
        try:
            waiting.result()
        except RuntimeError as problem:
            print("fork" in str(problem), waiting.done(), flush=True)
        executor.shutdown()
        with wattloom.Executor(1, meter="off") as own:
            print(own.submit(abs, -1).result(), wattloom.function(abs).remote(-2).result(), flush=True)
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    over.set()
    print("parent:", status, waiting.result(), flush=True)
    """)
    assert here.run().splitlines() == ["True False", "1 2", "parent: 0 None"]


def test_a_fork_waits_until_sqlite_holds_none_of_its_own_locks(script: MakeScript) -> None:
    """They are of the whole process: a child forked in the middle of a commit could not open a journal any more."""
    here = script("""
    import os, sys, threading, time, wattloom
    from wattloom.journal import sqlite_store

    executor = wattloom.Executor(1, meter="off")
    assert executor.submit(abs, -1).result() == 1
    committing, commits = threading.Event(), []
    write = sqlite_store._write

    def slowly(*whole):
        write(*whole)
        committing.set()
        time.sleep(0.5)
        commits.append(time.monotonic())

    sqlite_store._write = slowly
    executor.submit(abs, -2)
    committing.wait()
    committing.clear()
    child = os.fork()
    if child == 0:
        os._exit(0 if commits else 1)
    print(os.waitpid(child, 0)[1], flush=True)
    """)
    assert here.run() == "0\n"


def test_a_done_callback_that_forks_leaves_its_executor_to_the_parent(script: MakeScript) -> None:
    """The child's only thread is then the dispatcher's, and goes on where the callback returns."""
    here = script("""
    import os, time, wattloom

    executor = wattloom.Executor(1, meter="off")
    children = []
    first = executor.submit(time.sleep, 0.2)
    later = executor.submit(time.sleep, 0.4)
    first.add_done_callback(lambda _: children.append(os.fork()))
    later.result()
    print(executor.submit(abs, -3).result(), os.waitpid(children[0], 0)[1], flush=True)
    executor.shutdown()
    """)
    assert here.run() == "3 0\n"


def test_a_fork_may_use_the_default_executor_anew(script: MakeScript) -> None:
    here = script("""
    import os, sys, wattloom

    @wattloom.function
    def double(number):
        return number * 2

    print(double.remote(1).result(), flush=True)
    child = os.fork()
    print(double.remote(2).result(), flush=True)
    if child:
        os.waitpid(child, 0)
    """)
    assert here.run().split() == ["2", "4", "4"]


# -- what reaches a worker ---------------------------------------------------------------------------------------------


def test_the_working_folder_the_environment_and_the_path_reach_a_worker(script: MakeScript, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "found_there.py").write_text("def where():\n    return __name__\n")
    (tmp_path / "beside.py").write_text("def where():\n    return __name__\n")
    here = script(f"""
    import os, sys
    os.environ["COLOUR"] = "green"
    os.environ.pop("HOME", None)
    sys.path.append({str(elsewhere)!r})
    os.chdir({str(elsewhere)!r})
    import wattloom, beside, found_there

    with wattloom.Executor(1) as executor:
        print(executor.submit(os.getcwd).result())
        print(executor.submit(os.environ.get, "COLOUR").result(), executor.submit(os.getenv, "COLOUR").result())
        print(executor.submit(lambda: "HOME" in os.environ).result())
        print(executor.submit(beside.where).result(), executor.submit(found_there.where).result())
    """)
    assert here.run().splitlines() == [str(elsewhere), "green green", "False", "beside found_there"]


def test_what_a_call_prints_is_seen_and_kept(script: MakeScript, tmp_path: Path) -> None:
    here = script("""
    import sys, wattloom

    def speak():
        print("hello from a worker")

    with wattloom.Executor(1, journal="work.journal") as executor:
        future = executor.submit(speak)
        future.result()
    from pathlib import Path
    from wattloom.history.runs import output_of
    print(output_of(Path("work.journal"), future.task_id))
    """)
    assert here.run().splitlines() == ["hello from a worker", "b'hello from a worker\\n'"]


def test_standard_streams_of_a_program_may_be_closed(script: MakeScript, tmp_path: Path) -> None:
    here = script("""
    import os
    from pathlib import Path
    import wattloom
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    with wattloom.Executor(1) as executor:
        Path("answer").write_text(str(executor.submit(abs, -5).result()))
    """)
    program = here.start()
    program.communicate(timeout=SOON_S)
    assert (tmp_path / "answer").read_text() == "5"
