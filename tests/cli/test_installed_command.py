"""The command as it is installed, in processes of its own."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import SCENARIO

from wattloom.history.log import Log

COMMAND = [sys.executable, "-W", "error", "-m", "wattloom.cli.main"]


def run(*words: object, **settings: str) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | settings
    command = [*COMMAND, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)


def test_help_answers_in_under_0_3_seconds() -> None:
    def seconds() -> float:
        """Of CPU time: what else the machine does is not its fault."""
        began = os.times()
        run("--help")
        ended = os.times()
        return ended.children_user + ended.children_system - began.children_user - began.children_system

    assert min(seconds() for _ in range(5)) < 0.3


def test_help_loads_neither_rich_nor_the_engine() -> None:
    code = (
        "import sys; from wattloom.cli.main import cli\n"
        "cli(['--help'], standalone_mode=False)\n"
        "heavy = {'rich', 'msgspec', 'matplotlib', 'wattloom.api'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_the_package_loads_nothing_else_but_the_table_of_former_names() -> None:
    code = "import sys, wattloom; print([name for name in sys.modules if name.startswith('wattloom.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "['wattloom.moved']"


def test_version_is_the_packages() -> None:
    from importlib.metadata import version

    assert run("--version").stdout.strip() == f"wattloom {version('wattloom')}"


def test_two_processes_print_the_same_bytes(scenario: Path) -> None:
    words = ("compare", scenario, "--policies", "random,pack,least-joules", "--json")
    first, second = (run(*words, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout


def test_bad_input_exits_with_2_and_keeps_stdout_clean() -> None:
    done = run("simulate", "no-such-scenario", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no-such-scenario: ")


def test_a_reader_that_stops_early_is_no_error(scenario: Path) -> None:
    done = subprocess.run(
        f"{' '.join(COMMAND)} machines | head -n 1", shell=True, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [("scenarios",), ("scenarios", "--json"), ("--help",)])
def test_a_closed_pipe_ends_it_quietly(words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nobody:
        done = subprocess.run([*COMMAND, *words], stdout=nobody, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.stderr == b""


FULL = Path("/dev/full")
needs_a_full_disk = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")


@needs_a_full_disk
@pytest.mark.parametrize("words", [("simulate", "{}", "--json"), ("simulate", "{}"), ("--help",), ("machines",)])
def test_output_that_finds_no_room_is_an_error_in_words(words: tuple[str, ...], scenario: Path) -> None:
    command = [*COMMAND, *(word.format(scenario) for word in words)]
    with FULL.open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.stderr == "error: the output: cannot be written: No space left on device\n"
    assert done.returncode == 1


@needs_a_full_disk
@pytest.mark.parametrize("tasks", [1, 2000])
def test_a_log_that_finds_no_room_is_an_error_in_words(tasks: int, tmp_path: Path) -> None:
    path = tmp_path / "some.toml"
    path.write_text(SCENARIO.replace("count = 60", f"count = {tasks}"))
    done = run("simulate", path, "--log", FULL)
    assert done.stderr.startswith("error: log /dev/full: cannot be written: No space left on device\n  try: ")
    assert (done.returncode, done.stdout) == (2, "")


@pytest.fixture
def long_scenario(tmp_path: Path) -> Path:
    path = tmp_path / "long.toml"
    path.write_text(SCENARIO.replace("count = 60", "count = 200000"))
    return path


@pytest.mark.slow
def test_ctrl_c_leaves_a_log_that_can_be_read(long_scenario: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    process = subprocess.Popen([*COMMAND, "simulate", str(long_scenario), "--log", str(log)], stderr=subprocess.PIPE)
    _wait_until(lambda: log.exists() and log.stat().st_size > 100_000)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, b"")
    assert sum(1 for _ in Log(log).events()) > 100


@pytest.mark.slow
def test_ctrl_c_ends_all_processes_of_a_comparison(long_scenario: Path) -> None:
    words = ["compare", str(long_scenario), "--policies", "fifo,pack"]
    process = subprocess.Popen([*COMMAND, *words], stderr=subprocess.PIPE, start_new_session=True)
    _wait_until(lambda: len(_children(process.pid)) >= 2 or process.poll() is not None)
    children = _children(process.pid)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, b"")
    _wait_until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


@pytest.mark.slow
def test_a_person_at_a_terminal_sees_a_bar_after_two_seconds(long_scenario: Path) -> None:
    ours, theirs = pty.openpty()
    words = ["simulate", str(long_scenario), "--policy", "fifo", "--json"]
    process = subprocess.Popen([*COMMAND, *words], stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    try:
        said = _read_until(ours, b"tasks")
    finally:
        process.kill()
        process.wait(timeout=30)
        os.close(ours)
    assert b"fifo on long.toml" in said


def _read_until(file: int, wanted: bytes, patience_s: float = 60.0) -> bytes:
    said = b""
    end = time.monotonic() + patience_s
    while wanted not in said:
        assert time.monotonic() < end, said
        if select.select([file], [], [], 0.2)[0]:
            said += os.read(file, 4096)
    return said


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _wait_until(condition: "object", patience_s: float = 40.0) -> None:
    assert callable(condition)
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_json_output_is_not_coloured(scenario: Path) -> None:
    done = run("simulate", scenario, "--json", FORCE_COLOR="1")
    json.loads(done.stdout)


def test_no_color_is_honoured(scenario: Path) -> None:
    done = run("compare", scenario, "--policies", "fifo,pack", FORCE_COLOR="1", NO_COLOR="1")
    assert "\x1b[3" not in done.stdout
    assert "\x1b[9" not in done.stdout
