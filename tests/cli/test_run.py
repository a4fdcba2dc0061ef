"""`wattloom run`, in processes of its own: streams, exit codes, signals, and what is told at the end."""

import json
import os
import pty
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from wattloom.local.stdio_passing import StdioServer, receive_stdio

COMMAND = [sys.executable, "-W", "error", "-m", "wattloom.cli.main", "run"]
COST = re.compile(r"\[wattloom\] (?:.+; )?[\d.]+ ± <?[\d.]+ [mµk]?J \((measured|modelled|estimated)\).*, task \d+-1\n")

APP = """
import os, time

import wattloom


def add(a, b=1):
    print("adding", a, b)
    return a + b


def odd():
    return {1, 2}


def fails(what):
    raise ValueError(f"no {what}")


def dies():
    os._exit(5)


def nap(seconds):
    open("begun", "w").close()
    time.sleep(seconds)


@wattloom.function(retries=2)
def second_time(path):
    if not os.path.exists(path):
        open(path, "w").close()
        raise RuntimeError("not yet")
    return "done"


number = 3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a module, and a state folder of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "app.py").write_text(APP)
    return work


def run(*words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *words], input=stdin, capture_output=True, text=True, timeout=60, check=False, errors="replace"
    )


def wattloom(*words: str) -> str:
    command = [*COMMAND[:-1], *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def begin(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_until(condition: Callable[[], bool], patience_s: float = 30.0) -> None:
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# -- commands ----------------------------------------------------------------------------------------------------------


def test_output_goes_where_the_command_sent_it_and_the_joules_to_stderr() -> None:
    done = run("--", "sh", "-c", "echo out; echo err >&2")
    assert (done.returncode, done.stdout) == (0, "out\n")
    said, cost = done.stderr.splitlines(keepends=True)
    assert said == "err\n"
    assert COST.fullmatch(cost), cost


def test_quiet_says_nothing_about_joules() -> None:
    done = run("--quiet", "--", "echo", "--json")
    assert (done.stdout, done.stderr) == ("--json\n", "")


def test_input_is_the_commands_own() -> None:
    assert run("-q", "--", "tr", "a-z", "A-Z", stdin="from a pipe").stdout == "FROM A PIPE"


def test_a_file_as_input_is_read_on_from_where_it_stood(folder: Path) -> None:
    (folder / "lines").write_text("first\nsecond\nthird\n")
    script = f'read line; {" ".join(COMMAND)} -q -- sh -c "read line; echo got \\$line"; echo left $(cat)'
    with (folder / "lines").open() as file:
        done = subprocess.run(["sh", "-c", script], stdin=file, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "got second\nleft third\n"


def test_output_comes_as_it_is_written() -> None:
    process = begin("--", "sh", "-c", "printf 1%%; read never")
    assert process.stdout is not None
    try:
        assert select.select([process.stdout], [], [], 30)[0]
        assert os.read(process.stdout.fileno(), 100) == b"1%"
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def test_every_byte_of_much_output_arrives() -> None:
    command = [
        *COMMAND,
        "-q",
        "--",
        sys.executable,
        "-c",
        "import sys; sys.stdout.buffer.write(bytes(range(256)) * 40000)",
    ]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    assert done.stdout == bytes(range(256)) * 40000


def test_what_goes_to_one_file_keeps_its_order(folder: Path) -> None:
    with (folder / "both").open("wb") as both:
        words = ["-q", "--", "sh", "-c", "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done"]
        subprocess.run([*COMMAND, *words], stdout=both, stderr=both, timeout=60, check=True)
    assert (folder / "both").read_text().split() == [f"{kind}{i}" for i in range(1, 6) for kind in "oe"]


def test_at_a_terminal_the_command_sees_a_terminal_as_wide() -> None:
    ours, theirs = pty.openpty()
    import fcntl
    import struct
    import termios

    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 31, 77, 0, 0))
    code = "import os, sys; print(os.isatty(0), os.isatty(2), os.get_terminal_size().columns)"
    words = [*COMMAND, "-q", "--", sys.executable, "-c", code]
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    try:
        while chunk := os.read(ours, 1000):
            said += chunk
    except OSError:  # the terminal's other end is closed
        pass
    os.close(ours)
    assert process.wait(timeout=30) == 0
    assert said == b"True True 77\r\n"


def test_a_reader_that_stops_early_ends_the_command() -> None:
    script = f"{' '.join(COMMAND)} -q -- yes | head -n 1"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("y\n", "")


@pytest.mark.parametrize(
    ("script", "code", "told"),
    [("exit 3", 3, "exit code 3; "), ("kill -9 $$", 137, "killed by SIGKILL; "), ("exit 255", 255, "exit code 255; ")],
)
def test_the_exit_code_is_the_commands(script: str, code: int, told: str) -> None:
    done = run("--", "sh", "-c", script)
    assert done.returncode == code
    assert f"[wattloom] {told}" in done.stderr
    assert json.loads(wattloom("tasks", "--json"))[0]["state"] == "failed"


def test_a_command_that_is_not_there_or_may_not_run_is_told_before_anything_is_begun(folder: Path) -> None:
    (folder / "plain").write_text("echo no\n")
    missing, plain = run("--", "no-such-command"), run("--", "./plain")
    assert (missing.returncode, missing.stderr) == (127, "error: no-such-command: command not found\n")
    assert (plain.returncode, plain.stderr) == (126, "error: ./plain: may not be executed (chmod +x)\n")
    assert json.loads(wattloom("tasks", "--json")) == []


def test_a_timeout_ends_it_and_keeps_what_it_printed() -> None:
    done = run("--timeout", "0.5", "--", "sh", "-c", "echo so far; sleep 300")
    assert (done.returncode, done.stdout) == (124, "so far\n")
    assert "ran longer than its timeout of 0.5 s" in done.stderr
    assert wattloom("logs", "1-1") == "so far\n"


def test_a_command_that_fails_is_run_again_as_often_as_was_said(folder: Path) -> None:
    done = run("--retries", "2", "--", "sh", "-c", "echo x >> tries; test $(wc -l < tries) = 3")
    assert done.returncode == 0
    assert (folder / "tries").read_text() == "x\n" * 3


def test_what_it_leaves_in_the_background_ends_with_it_and_is_not_waited_for(folder: Path) -> None:
    began = time.monotonic()
    done = run("-q", "--", "sh", "-c", "sleep 300 & echo $! > pid; echo begun")
    assert (done.returncode, done.stdout) == (0, "begun\n")
    assert time.monotonic() - began < 30
    wait_until(lambda: not is_running(int((folder / "pid").read_text())))


def test_json_of_a_command_is_the_last_line_of_stderr() -> None:
    done = run("--json", "--", "sh", "-c", "echo out; echo err >&2; exit 4")
    assert done.stdout == "out\n"
    found = json.loads(done.stderr.splitlines()[-1])
    assert (found["exit_code"], found["what"]) == (4, "sh -c 'echo out; echo err >&2; exit 4'")
    (call,) = found["calls"]
    assert (call["task"], call["state"], call["message"]) == ("1-1", "failed", "CommandFailed: exit code 4")
    assert call["spread_j"] > 0.0


def test_programs_have_figures_of_their_own_and_scripts_too(folder: Path) -> None:
    (folder / "train.py").write_text("")
    run("-q", "--", "true")
    run("-q", "--", sys.executable, "train.py")
    names = {each["function"] for each in json.loads(wattloom("functions", "--json"))}
    assert names == {"command.true", f"command.{Path(sys.executable).name} train.py"}


def test_a_command_can_be_repeated_more_often_than_there_are_descriptors() -> None:
    def few_descriptors() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    done = subprocess.run(
        [*COMMAND, "--json", "--repeat", "80", "--", "echo", "x"],
        capture_output=True, text=True, timeout=60, check=False, preexec_fn=few_descriptors,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "x\n" * 80
    calls = json.loads(done.stderr)["calls"]
    assert len(calls) == 80
    assert max(call["seconds"] for call in calls) < 5.0  # none waited in vain for its streams


def test_a_worker_waits_at_the_door_while_there_are_no_descriptors() -> None:
    stdio = StdioServer()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as worker:
            worker.settimeout(10.0)
            resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
            worker.connect(f"\0{stdio.name}")
            time.sleep(0.2)
            assert not stdio.begun
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            first, descriptors, _, _ = socket.recv_fds(worker, 1, 3)
            taken += descriptors
            assert (first, len(descriptors)) == (b"\0", 3)
            assert stdio.begun
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)
        stdio.close()


def test_a_door_can_be_closed_while_there_are_no_descriptors() -> None:
    stdio = StdioServer()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as worker:
            resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
            worker.connect(f"\0{stdio.name}")
            time.sleep(0.1)
            closing = threading.Thread(target=stdio.close, daemon=True)
            closing.start()
            closing.join(5.0)
            assert not closing.is_alive()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# -- signals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_command_and_all_it_started(number: signal.Signals) -> None:
    process = begin("--", "sh", "-c", "sleep 300 & echo $! $$; wait; echo not reached")
    assert process.stdout is not None
    pids = [int(word) for word in process.stdout.readline().split()]
    process.send_signal(number)
    out, said = process.communicate(timeout=30)
    assert (process.returncode, out) == (128 + number, "")
    assert f"killed by {number.name}" in said
    wait_until(lambda: not any(map(is_running, pids)))


def test_a_command_may_have_its_own_way_with_ctrl_c() -> None:
    process = begin("-q", "--", "sh", "-c", "trap 'echo bye; exit 7' INT; echo ready; sleep 300 & wait")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[0] == "bye\n"
    assert process.returncode == 7


def test_a_second_ctrl_c_kills_a_command_that_takes_no_notice() -> None:
    process = begin("--", "sh", "-c", "trap '' INT; echo $$; while true; do sleep 1; done")
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "killed, since it did not end by itself" in said
    wait_until(lambda: not is_running(pid))


def test_after_ctrl_c_it_is_not_run_again() -> None:
    process = begin("-q", "--retries", "3", "--", "sh", "-c", "echo ready; sleep 300")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[0] == ""
    assert process.returncode == 130


def test_killed_with_9_it_leaves_no_orphan_and_the_next_run_says_what_was_left() -> None:
    process = begin("--", "sh", "-c", "echo $$; sleep 300")
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.kill()
    process.communicate(timeout=30)
    wait_until(lambda: not is_running(pid))
    assert "left by an earlier run: 1-1" in run("--", "true").stderr
    (left,) = [task for task in json.loads(wattloom("tasks", "--json")) if task["task"] == "1-1"]
    assert left["state"] == "unknown"


def test_an_idempotent_command_is_run_again_by_the_next_run_where_it_was_typed(folder: Path) -> None:
    script = "echo x >> tries; test $(wc -l < tries) = 2 || sleep 300; echo again"
    process = begin("--idempotent", "--", "sh", "-c", script)
    wait_until((folder / "tries").exists)
    process.kill()
    process.communicate(timeout=30)
    (folder / "elsewhere").mkdir()
    os.chdir(folder / "elsewhere")
    done = run("-q", "--", "echo", "next")
    assert (done.returncode, done.stdout) == (0, "next\n")
    assert (folder / "tries").read_text() == "x\nx\n"
    assert wattloom("logs", "1-1") == "again\n"


def test_ctrl_c_ends_a_command_that_still_waits_for_a_core(folder: Path) -> None:
    cores = str(len(os.sched_getaffinity(0)))
    process = begin("--idempotent", "--cpu", cores, "--", "sh", "-c", "echo $$ >> pids; sleep 300")
    wait_until((folder / "pids").exists)
    process.kill()
    process.communicate(timeout=30)
    process = begin("--", "echo", "never")
    wait_until(lambda: len((folder / "pids").read_text().split()) == 2)  # what was left runs again, and takes all cores
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=8)
    assert (process.returncode, out) == (130, "")
    assert "it was to end before it had begun" in said
    wait_until(lambda: not any(is_running(int(pid)) for pid in (folder / "pids").read_text().split()))


def test_ctrl_c_ends_a_function(folder: Path) -> None:
    process = begin("app:nap", "--args", "[300]")
    wait_until((folder / "begun").exists)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=30)
    assert (process.returncode, out, said) == (130, "", "")


# -- functions ---------------------------------------------------------------------------------------------------------


def test_a_function_of_the_working_folder_is_called_and_its_result_printed() -> None:
    done = run("app:add", "--args", "[3]", "--kwargs", '{"b": 4}')
    assert (done.returncode, done.stdout) == (0, "adding 3 4\n7\n")
    assert COST.fullmatch(done.stderr), done.stderr


def test_a_result_that_json_cannot_hold_is_written_as_python_does() -> None:
    assert run("-q", "app:odd").stdout == "{1, 2}\n"


def test_json_of_a_function_is_all_there_is_on_stdout() -> None:
    done = run("app:add", "--args", "[3]", "--json")
    found = json.loads(done.stdout)
    assert (found["result"], found["exit_code"], found["calls"][0]["state"]) == (4, 0, "finished")
    assert done.stderr == "adding 3 1\n"


def test_an_exception_prints_the_traceback_of_the_worker() -> None:
    done = run("app:fails", "--args", '["luck"]')
    assert (done.returncode, done.stdout) == (1, "")
    assert 'app.py", line ' in done.stderr
    assert "in fails" in done.stderr
    assert "ValueError: no luck" in done.stderr
    assert "wattloom/local" not in done.stderr


def test_a_worker_that_dies_is_told_in_words() -> None:
    done = run("app:dies")
    assert done.returncode == 1
    assert "its worker ended with exit code 5" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_decorated_function_keeps_its_options() -> None:
    assert run("-q", "app:second_time", "--args", '["was-here"]').stdout == '"done"\n'


def test_repeat_tells_of_every_call_and_the_mean() -> None:
    done = run("math:factorial", "--args", "[5]", "--repeat", "3")
    *calls, mean = done.stderr.splitlines()
    assert (done.stdout, len(calls)) == ("120\n", 3)
    assert mean.startswith("[wattloom] mean of 3: ")


def test_repeating_ends_with_the_first_failure(folder: Path) -> None:
    done = run("--repeat", "5", "--", "sh", "-c", "echo x >> tries; test $(wc -l < tries) -lt 2")
    assert done.returncode == 1
    assert (folder / "tries").read_text() == "x\nx\n"
    assert "exit code 1; not run again" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("app:ad",), "app has no ad; did you mean add?"),
        (("app:number",), "number cannot be called: it is int"),
        (("no_such_module:f",), "there is no module no_such_module"),
        (("app:add", "--args", "3"), "must be a JSON list, as in '[3]'"),
        (("app:add", "--args", "[3"), "is not JSON"),
        (("app:add", "--kwargs", "[3]"), "must be a JSON object"),
        (("ls",), "wattloom run -- ls"),
        (("ls", "-l"), "wattloom run -- COMMAND"),
        ((), "module:function"),
        (("--",), "There is no command behind --"),
        (("app:add", "--", "ls"), "only options may"),
        (("--args", "[1]", "--", "ls"), "are for functions"),
        (("--memory", "3X", "--", "ls"), "is no size"),
        (("--energy-weight", "3", "--", "ls"), "energy_weight: must be between 0 and 1"),
        (("--meter", "no-such", "--", "ls"), "'no-such' is not known"),
    ],
)
def test_what_was_typed_wrongly_is_told_with_code_2(words: tuple[str, ...], told: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_a_module_that_fails_to_import_is_told_with_its_line(folder: Path) -> None:
    (folder / "broken.py").write_text("import os\n\n1 / 0\n")
    done = run("broken:f")
    assert done.returncode == 2
    assert "cannot be imported: ZeroDivisionError" in done.stderr
    assert f"{folder / 'broken.py'}, line 3" in done.stderr


# -- who is at the other end -------------------------------------------------------------------------------------------


def play(user: int, act: Callable[[], None]) -> int:
    """Do it as another user, in a process of its own; its number."""
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            act()
        os._exit(0)
    return child


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can play two users")
def test_nobody_else_hands_a_worker_its_streams() -> None:
    """He may have taken the name of a program that is gone."""
    name = f"wattloom-1-squatted-{os.getpid()}"
    ready, tell = os.pipe()

    def squat() -> None:
        door = socket.socket(socket.AF_UNIX)
        door.bind(f"\0{name}")
        door.listen()
        os.write(tell, b".")
        worker, _ = door.accept()
        socket.send_fds(worker, [b"\0"], [0, 1, 2])
        worker.recv(1)

    squatter = play(54322, squat)
    os.read(ready, 1)
    with receive_stdio(name) as stdio:
        assert (stdio.control, stdio.descriptors, stdio.stdin) == (None, [], subprocess.DEVNULL)
    os.waitpid(squatter, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can play two users")
def test_streams_are_handed_to_nobody_else() -> None:
    stdio = StdioServer()
    got, tell = os.pipe()

    def ask() -> None:
        worker = socket.socket(socket.AF_UNIX)
        worker.connect(f"\0{stdio.name}")
        _, descriptors, _, _ = socket.recv_fds(worker, 1, 3)
        os.write(tell, str(len(descriptors)).encode())

    try:
        os.waitpid(play(54322, ask), 0)
        assert os.read(got, 10) == b"0"
        assert not stdio.begun
        with receive_stdio(stdio.name) as passed:
            assert len(passed.descriptors) == 3
    finally:
        stdio.close()
