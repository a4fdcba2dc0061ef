"""Functions of Node through an executor: as functions of Python, with joules, timeouts and a journal."""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wattloom
from wattloom.history.executions import executions
from wattloom.local.errors import CannotSend, OutcomeUnknown, RemoteError, TaskTimeout
from wattloom.local.functions import name_of
from wattloom.local.loading import LoadedFunction

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node (Debian: nodejs)")

SAMPLES = Path(__file__).parent / "samples" / "samples.js"


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wattloom.Executor]:
    with wattloom.Executor(2, journal=tmp_path_factory.mktemp("journal") / "j", meter="estimate") as found:
        yield found


def sample(executor: wattloom.Executor, name: str, **options: Any) -> LoadedFunction:
    return wattloom.load(f"{SAMPLES}:{name}", executor=executor, **options)


def failure(function: LoadedFunction, *args: Any) -> BaseException:
    found = function.remote(*args).exception(60)
    assert found is not None
    return found


def test_a_function_by_file_is_called_as_one_of_ours(executor: wattloom.Executor) -> None:
    add = sample(executor, "add")
    assert add(2, 3) == 5
    assert list(add.map([1, 2, 3], [10, 20, 30])) == [11, 22, 33]
    assert executor.submit(add, 4, 5).result(60) == 9
    assert list(executor.map(add, [1, 2], [1, 2], chunksize=2)) == [2, 4]
    assert sample(executor, "later")({"ü": [1]}) == {"ü": [1]}
    assert sample(executor, "echo")(b"\x00raw") == b"\x00raw"
    assert sample(executor, "echo")(named=1) == {"named": 1}


def test_it_is_known_by_its_file_wherever_its_name_is_asked_for(executor: wattloom.Executor) -> None:
    future = sample(executor, "add").remote(1, 2)
    assert future.result(60) == 3
    executor.sync()
    (task,) = [each for each in wattloom.tasks(executor.journal, limit=None) if each.task == future.task_id]
    assert name_of(sample(executor, "add")) == task.function


def test_the_joules_of_a_start_from_nothing_are_not_those_of_an_execution(tmp_path: Path) -> None:
    with wattloom.Executor(1, journal=tmp_path / "j", meter="estimate") as one:
        spin = wattloom.load(f"{SAMPLES}:spin", executor=one)
        joules = [spin.remote(0.1).energy for _ in range(3)]
    (found,) = executions([tmp_path / "j"])
    assert len(found.core_s) == 3
    assert found.joules == pytest.approx([each.joules for each in joules[1:] if isinstance(each, wattloom.Energy)])


def test_what_it_prints_is_its_log(executor: wattloom.Executor) -> None:
    future = sample(executor, "say").remote("spoken in a call", 2)
    assert future.result(60) is None
    executor.sync()
    (log,) = wattloom.logs(future.task_id, executor.journal)
    assert log.output == "spoken in a call\nspoken in a call\n"


def test_what_it_throws_comes_with_its_stack(executor: wattloom.Executor) -> None:
    problem = failure(sample(executor, "fail"), "no such luck")
    assert isinstance(problem, RemoteError)
    assert (problem.type, problem.said, problem.runtime) == ("RangeError", "no such luck", "node")
    assert "samples.js" in problem.traceback
    assert "samples.js" in str(problem.__cause__)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("stray", (), "TypeError: behind its back"),
        ("settled_by_nobody", (), "exit code 0 before it had answered"),
        ("end", (3,), "exit code 3"),
        ("nowhere", (), "exports no function nowhere; it exports echo, add"),
    ],
)
def test_a_call_that_cannot_answer_fails_and_says_why(
    executor: wattloom.Executor, name: str, args: tuple[Any, ...], expected: str
) -> None:
    assert expected in str(failure(sample(executor, name), *args))
    assert sample(executor, "add")(1, 1) == 2


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        (float("nan"), "argument 1 has nan, which JSON has no word for"),
        ([1, {2}], "argument 1 is or has set"),
        ({"a": b"raw"}, "argument 1 is or has bytes"),
        ({("a",): 1}, "argument 1 has a key of type tuple"),
    ],
)
def test_arguments_that_json_cannot_say_are_named(executor: wattloom.Executor, argument: object, expected: str) -> None:
    problem = failure(sample(executor, "echo"), argument)
    assert isinstance(problem, CannotSend)
    assert expected in str(problem)


def test_a_result_that_json_cannot_say_is_named(executor: wattloom.Executor) -> None:
    problem = failure(sample(executor, "nan"))
    assert isinstance(problem, CannotSend)
    assert "NaN" in str(problem)


def test_an_endless_loop_ends_with_its_timeout_and_its_process_too(executor: wattloom.Executor) -> None:
    assert isinstance(failure(sample(executor, "loop", timeout=0.5)), TaskTimeout)
    pid = sample(executor, "sleep", timeout=0.5)
    assert isinstance(failure(pid, 60), TaskTimeout)
    assert sample(executor, "add")(1, 1) == 2


def test_a_call_that_runs_can_be_cut_off(tmp_path: Path) -> None:
    executor = wattloom.Executor(1, journal=tmp_path / "j", meter="off")
    pid = sample(executor, "pid")()
    future = sample(executor, "loop").remote()
    while not future.running():
        time.sleep(0.01)
    executor.kill_workers()
    assert future.exception(60) is not None
    deadline = time.monotonic() + 10
    while _lives(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _lives(pid)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_a_killed_process_is_run_again_only_if_it_may_be(executor: wattloom.Executor, tmp_path: Path) -> None:
    once = sample(executor, "dieOnce")
    assert isinstance(failure(once, str(tmp_path / "first")), OutcomeUnknown)
    assert once.options(idempotent=True)(str(tmp_path / "second")) == "second time"


def test_somebody_kills_the_process_of_an_idempotent_call(executor: wattloom.Executor) -> None:
    pids = set()
    for _ in range(2):  # both workers have one then
        futures = [sample(executor, "sleep").remote(0.2) for _ in range(2)]
        pids |= {future.result(60) for future in futures}
    future = sample(executor, "sleep", idempotent=True).remote(0.6)
    while not future.running():
        time.sleep(0.01)
    time.sleep(0.2)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert future.result(60) not in pids


def test_retries_are_for_its_own_failures(executor: wattloom.Executor, tmp_path: Path) -> None:
    file = tmp_path / "flaky.js"
    file.write_text(
        "const fs = require('fs'); exports.handler = (path) => { fs.appendFileSync(path, 'x');"
        " if (fs.readFileSync(path).length < 3) throw new Error('not yet'); return 'now' }"
    )
    assert wattloom.load(file, executor=executor, retries=2)(str(tmp_path / "counted")) == "now"


def test_a_call_with_a_key_is_made_once(executor: wattloom.Executor) -> None:
    count = sample(executor, "pid", key="node-once")
    assert count() == count()


def test_modules_of_both_kinds_and_what_is_called_without_a_name(executor: wattloom.Executor, tmp_path: Path) -> None:
    sources = {
        "a.mjs": "export default (x) => x + 1",
        "b.mjs": "export const tools = { twice: async (x) => 2 * x }",
        "c.cjs": "module.exports = (x) => x - 1",
        "d/d.js": "import { sep } from 'node:path'; export function handler(x) { return sep + x }",
        "d/package.json": '{"type": "module"}',
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    calls = {"a.mjs": 4, "b.mjs:tools.twice": 6, "c.cjs": 2, "d/d.js": "/3"}
    for spec, expected in calls.items():
        assert wattloom.load(f"{tmp_path}/{spec}", executor=executor)(3) == expected


def test_a_module_that_throws_when_loaded_says_so(executor: wattloom.Executor, tmp_path: Path) -> None:
    file = tmp_path / "broken.js"
    file.write_text("throw new Error('not today')")
    assert "not today" in str(failure(wattloom.load(file, executor=executor)))


def test_a_file_that_changes_is_another_function(executor: wattloom.Executor, tmp_path: Path) -> None:
    file = tmp_path / "f.js"
    file.write_text("exports.handler = () => 1")
    first = wattloom.load(file, executor=executor)
    assert first() == 1
    file.write_text("exports.handler = () => 2")
    for _ in range(4):  # whichever worker: those that are warm have the old one
        assert "has changed since the call was made" in str(failure(first))
    second = wattloom.load(file, executor=executor)
    assert {second() for _ in range(4)} == {2}
    file.write_text("exports.handler = () => 3")
    with wattloom.Executor(1, journal=tmp_path / "j", meter="off") as another:
        problem = failure(second.options(executor=another))
        assert "has changed since the call was made" in str(problem)
        file.unlink()
        assert "cannot be read" in str(failure(second.options(executor=another)))


def test_the_environment_of_strangers_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_OPTIONS", "--max-old-space-size=200")
    monkeypatch.setenv("WATTLOOM_REQUESTS", "0")
    monkeypatch.setenv("WATTLOOM_REPLIES", "1")
    monkeypatch.setenv("ODD", "ü\n=")
    monkeypatch.delenv("HOME", raising=False)
    with wattloom.Executor(1, journal=tmp_path / "j", meter="off") as executor:
        env = sample(executor, "env")
        assert (env("ODD"), env("WATTLOOM_REQUESTS")) == ("ü\n=", None)


def test_without_node_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(wattloom.InputError, match="apt-get install nodejs"):
        wattloom.load(SAMPLES)


@pytest.mark.parametrize(
    ("spec", "options", "expected"),
    [
        ("nowhere.js:f", {}, "nowhere.js: cannot be read: No such file"),
        (str(SAMPLES), {"runtime": "cobol"}, "there is no cobol; those installed are"),
        (str(SAMPLES), {"runtime_options": {"flag": 1}}, "runtime_options.flag: is no option of the runtime node"),
        (str(SAMPLES), {"runtime_options": {"flags": "x"}}, "runtime_options.flags: Expected `array`"),
        (str(SAMPLES), {"retry": 1}, "retry: is no option of a function"),
        (str(SAMPLES.parent), {}, "is a folder"),
        ({}, {}, "name at least one file"),
    ],
)
def test_what_cannot_be_loaded_is_said_at_once(spec: Any, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(wattloom.InputError, match=expected):
        wattloom.load(spec, **options)


def test_its_joules_are_those_of_its_processor_time(tmp_path: Path) -> None:
    """The meter is the estimate, so joules go by CPU time: as much of it in Node as in Python costs as much."""
    energies = []
    with wattloom.Executor(1, journal=tmp_path / "j", meter="estimate") as one:  # one worker: Node runs there already
        sample(one, "add")(1, 1)
        for future in (sample(one, "spin").remote(0.5), one.submit(_spin, 0.5)):
            future.result(60)
            energy = future.energy
            assert isinstance(energy, wattloom.Energy)
            energies.append(energy.joules)
    assert energies[0] == pytest.approx(energies[1], rel=0.35)


def _spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        for _ in range(10_000):
            pass
