"""Where processes of ours import from: never from the working folder, unless the program itself does."""

import ast
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import wattloom
from wattloom.interpreter import own_environment, own_module

SOURCE: Final = Path(wattloom.__file__).parent
COMMAND: Final = Path(sys.executable).with_name("wattloom")
TRAP: Final = """
import os
open(os.environ["SPRUNG"], "a").write(__name__ + "\\n")
"""
PROGRAM: Final = """
import sys
import wattloom
from beside import double

def path():
    import sys
    return sys.path

if __name__ == "__main__":
    with wattloom.Executor(1, meter="off") as executor:
        print(executor.submit(double, 21).result(), executor.submit(path).result() == sys.path)
"""


@pytest.fixture
def traps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder in which somebody has left a module of every name that an interpreter of ours may ask for. In
    the end none of them has been imported."""
    folder, sprung = tmp_path / "shared", tmp_path / "sprung"
    folder.mkdir()
    for name in {each.partition(".")[0] for each in (*sys.modules, *sys.stdlib_module_names)} - {"__main__"}:
        (folder / f"{name}.py").write_text(TRAP)
    monkeypatch.setenv("SPRUNG", str(sprung))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.chdir(folder)
    yield folder
    assert not sprung.exists(), sprung.read_text()


def said(*words: str | Path, **more: str) -> str:
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=120, check=False, env=dict(os.environ) | more, cwd=os.getcwd()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for file in sorted(SOURCE.rglob("*.py")):
        text = file.read_text()
        if "sys.executable" in text or "own_module" in text:
            yield file, ast.parse(text)


def interpreter_starts(tree: ast.Module) -> Iterator[list[ast.expr]]:
    """Lists and tuples, and arguments of calls, that begin with our interpreter: commands."""
    for node in ast.walk(tree):
        words = node.elts if isinstance(node, ast.List | ast.Tuple) else node.args if isinstance(node, ast.Call) else []
        if len(words) > 1 and ast.unparse(words[0]) == "sys.executable":
            yield words


def own_modules() -> list[str]:
    """Every module of ours that is started as a program."""
    return sorted(
        str(node.args[0].value)
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "own_module"
        if isinstance(node.args[0], ast.Constant)
    )


def test_no_interpreter_is_started_with_the_working_folder_on_its_path() -> None:
    starts = {(file.name, ast.unparse(words[1])) for file, tree in trees() for words in interpreter_starts(tree)}
    assert ("interpreter.py", "'-P'") in starts
    assert {first for _, first in starts} <= {"'-P'", "'-I'"}, starts


@pytest.mark.parametrize("module", own_modules())
def test_a_module_of_ours_that_is_started_imports_nothing_from_the_working_folder(traps: Path, module: str) -> None:
    words = own_module(module, "not", "what", "it", "expects")
    subprocess.run(words, env=own_environment(), input=b"", capture_output=True, timeout=60, check=False)


def test_workers_of_a_program_import_what_it_imports_and_nothing_from_the_working_folder(
    traps: Path, tmp_path: Path
) -> None:
    app = tmp_path / "app"
    app.mkdir()
    (app / "program.py").write_text(PROGRAM)
    (app / "beside.py").write_text("def double(x):\n    return 2 * x\n")
    assert said(sys.executable, app / "program.py") == "42 True\n"


def test_a_command_is_run_without_a_look_into_the_working_folder(traps: Path) -> None:
    said(COMMAND, "run", "--meter", "off", "--", "true")


def test_a_function_of_the_working_folder_is_found_there_but_nothing_that_is_installed(traps: Path) -> None:
    (traps / "app_of_mine.py").write_text("import json\ndef double(x):\n    return json.loads(f'{2 * x}')\n")
    assert said(COMMAND, "run", "--meter", "off", "-q", "app_of_mine:double", "--args", "[21]") == "42\n"


def test_a_function_that_something_installed_hides_is_told_of(traps: Path) -> None:
    done = subprocess.run([COMMAND, "run", "json:double"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert f"which goes before {traps / 'json.py'}: give that another name" in done.stderr


def test_a_function_that_was_cut_off_is_called_again_by_a_command_that_was_typed_elsewhere(
    traps: Path, tmp_path: Path
) -> None:
    app = tmp_path / "app"
    app.mkdir()
    (app / "app_of_mine.py").write_text(
        "import os, time\n"
        "def f():\n"
        "    first = not os.path.exists(__file__ + '.begun')\n"
        "    open(__file__ + '.begun', 'a').write('x')\n"
        "    if first: time.sleep(300)\n"
    )
    command = [str(COMMAND), "run", "--meter", "off", "--idempotent", "app_of_mine:f"]
    process = subprocess.Popen(command, cwd=app, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    begun, end = app / "app_of_mine.py.begun", time.monotonic() + 60
    while not begun.exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.kill()
    process.wait()
    said(COMMAND, "run", "--meter", "off", "--", "true")
    assert begun.read_text() == "xx"


def test_simulations_side_by_side_import_nothing_from_the_working_folder(traps: Path, tmp_path: Path) -> None:
    """Where other threads run, a new interpreter is begun for each."""
    script = tmp_path / "compared.py"
    script.write_text(
        "import threading, wattloom\n"
        "from wattloom.simulation import parallel_runs\n"
        "parallel_runs.WORTH_A_PROCESS = 0\n"
        "if __name__ == '__main__':\n"
        "    stop = threading.Event(); thread = threading.Thread(target=stop.wait); thread.start()\n"
        "    print(len(wattloom.compare('hsc-cpu', ['fifo', 'pack'], processes=2).rows))\n"
        "    stop.set(); thread.join()\n"
    )
    assert said(sys.executable, script) == "2\n"


def test_what_a_module_run_by_its_name_or_typed_code_may_import_its_workers_may_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    package = tmp_path / "package"
    package.mkdir()
    (tmp_path / "beside.py").write_text("def double(x):\n    return 2 * x\n")
    (package / "program.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    assert said(sys.executable, "-m", "package.program") == "42 True\n"
    typed = (
        "import wattloom, beside\n"
        "with wattloom.Executor(1, meter='off') as executor: print(executor.submit(beside.double, 21).result())"
    )
    assert said(sys.executable, "-c", typed) == "42\n"


def test_an_interpreter_that_ignores_its_environment_has_workers_that_do(tmp_path: Path, traps: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import wattloom\n"
        "if __name__ == '__main__':\n"
        "    with wattloom.Executor(1, meter='off') as executor: print(executor.submit(abs, -1).result())\n"
    )
    assert said(sys.executable, "-E", program, PYTHONPATH=str(traps)) == "1\n"


def test_a_variable_that_was_set_for_a_moment_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    from wattloom.interpreter import SAFE_PATH, without_the_working_folder

    for before in (None, "", "1"):
        monkeypatch.delenv(SAFE_PATH, raising=False)
        if before is not None:
            monkeypatch.setenv(SAFE_PATH, before)
        with without_the_working_folder():
            assert os.environ[SAFE_PATH] == "1"
        assert os.environ.get(SAFE_PATH) == before
