"""Java, native programs and WebAssembly through an executor; two architectures; recovery; the command line."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runtimes import builds
from tests.runtimes.builds import needs

import wattloom
from wattloom.local.errors import CannotSend, RemoteError
from wattloom.runtimes.native import arch_of
from wattloom.testing.builders import machine

SAMPLES = Path(__file__).parent / "samples"
JAVA = SAMPLES / "Samples.java"


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wattloom.Executor]:
    with wattloom.Executor(1, journal=tmp_path_factory.mktemp("journal") / "j", meter="estimate") as found:
        yield found


def failure(function: Any, *args: Any) -> BaseException:
    found = function.remote(*args).exception(60)
    assert isinstance(found, BaseException)
    return found


# -- Java --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "args", "expected"),
    [
        ("point", (3,), {"x": 3, "y": 1.5, "names": ["a", "ü"]}),
        ("total", ([[1, 2], [3.5]],), 6.5),
        ("length", ("a", "b"), 2),
        ("echo", (2**62,), 2**62),
        ("echo", (2**80,), 2**80),
    ],
)
def test_a_method_of_java_takes_what_it_declares(
    executor: wattloom.Executor, method: str, args: tuple[Any, ...], expected: object
) -> None:
    needs("javac", "openjdk-17-jdk-headless")
    assert wattloom.load(f"{JAVA}:{method}", executor=executor)(*args) == expected


def test_java_says_what_it_cannot_take_or_send(executor: wattloom.Executor) -> None:
    needs("javac", "openjdk-17-jdk-headless")
    total = wattloom.load(f"{JAVA}:total", executor=executor)
    assert "argument 1[0] is String, and double[] is wanted" in str(failure(total, ["a"]))
    assert "takes 1 arguments, not 2" in str(failure(total, 1, 2))
    assert isinstance(failure(wattloom.load(f"{JAVA}:odd", executor=executor)), CannotSend)
    problem = failure(wattloom.load(f"{JAVA}:fail", executor=executor), "no")
    assert isinstance(problem, RemoteError)
    assert (problem.type, problem.runtime) == ("java.lang.IllegalStateException", "java")
    assert "Samples.java" in problem.traceback
    assert "WattloomRunner" not in problem.traceback


def test_an_instance_and_an_archive_of_java(executor: wattloom.Executor, tmp_path: Path) -> None:
    needs("javac", "openjdk-17-jdk-headless")
    counted = wattloom.load(f"{JAVA}:counted", executor=executor)
    assert [counted(), counted()] == [1, 2]
    classes = tmp_path / "classes"
    subprocess.run(["javac", "-d", str(classes), str(JAVA)], check=True)
    subprocess.run(["jar", "cf", str(tmp_path / "app.jar"), "-C", str(classes), "."], check=True)
    archive = tmp_path / "app.jar"
    assert wattloom.load(f"{archive}:org.example.Samples.add", executor=executor)(1, 2) == 3
    assert "neither a class" in str(failure(wattloom.load(f"{archive}:org.example.Nobody.add", executor=executor)))
    assert "does not say which class" in str(failure(wattloom.load(archive, executor=executor)))
    single = classes / "org" / "example" / "Samples.class"
    assert wattloom.load(f"{single}:add", executor=executor)(1, 2) == 3


def test_java_that_does_not_compile_says_where(executor: wattloom.Executor, tmp_path: Path) -> None:
    needs("javac", "openjdk-17-jdk-headless")
    file = tmp_path / "Broken.java"
    file.write_text("public class Broken { int x = ; }")
    problem = failure(wattloom.load(file, executor=executor))
    assert isinstance(problem, RemoteError)
    assert problem.type == "CompileError"
    assert "Broken.java:1: error" in problem.said


# -- native programs ---------------------------------------------------------------------------------------------------


def test_any_program_is_a_function(executor: wattloom.Executor, tmp_path: Path) -> None:
    assert wattloom.load("/bin/cat", executor=executor)(1, "ü") == [1, "ü"]
    assert wattloom.load("/bin/cat", executor=executor)(b"raw") == b"raw"
    wc = wattloom.load("/usr/bin/wc", executor=executor, runtime_options={"result": "text", "args": ["-c"]})
    assert wc(b"12345").strip() == "5"
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho said >&2\ncat >/dev/null\necho '{\"ok\": true}'\n")
    with pytest.raises(wattloom.InputError, match="chmod"):
        wattloom.load(script)
    script.chmod(0o755)
    future = wattloom.load(script, executor=executor).remote()
    assert future.result(60) == {"ok": True}
    executor.sync()
    assert wattloom.logs(future.task_id, executor.journal)[0].output == "said\n"


def test_a_program_that_fails_says_how(executor: wattloom.Executor, tmp_path: Path) -> None:
    script = tmp_path / "failing"
    script.write_text("#!/bin/sh\necho 'out of paper' >&2\nexit 4\n")
    script.chmod(0o755)
    problem = failure(wattloom.load(script, executor=executor), "x" * 1_000_000)
    assert isinstance(problem, RemoteError)
    assert (problem.exit_code, problem.runtime) == (4, "native")
    assert "exit code 4: out of paper" in str(problem)
    assert "no JSON" in str(failure(wattloom.load("/bin/hostname", executor=executor)))


@pytest.mark.parametrize("warm", [False, True])
def test_a_program_that_crashes_has_failed(executor: wattloom.Executor, warm: bool) -> None:
    crash = wattloom.load(f"{builds.native()}:crash", executor=executor, runtime_options={"warm": warm})
    problem = failure(crash)
    assert isinstance(problem, RemoteError)
    assert problem.exit_code == 128 + signal.SIGSEGV
    assert "SIGSEGV" in str(problem)


def test_a_build_goes_with_the_node_it_is_for(tmp_path: Path) -> None:
    """Two builds, two nodes: the engine decides where, and so which; qemu-user runs the foreign one for real."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("two virtual nodes need two cores")
    nodes = [
        wattloom.VirtualNode("arm", machine("arm-box", arch="aarch64")),
        wattloom.VirtualNode("x86", machine("x86-box", arch="x86_64")),
    ]
    two = {"x86_64": f"{builds.native()}:arch", "aarch64": f"{builds.aarch64()}:arch"}
    with wattloom.Executor(nodes=nodes, journal=tmp_path / "j", policy="round-robin") as executor:
        which = wattloom.load(two, executor=executor, name="which")
        futures = [which.remote() for _ in range(6)]
        found = {future.task_id: future.result(60) for future in futures}
        only_arm = which.options(arch=("aarch64",))
        assert only_arm() == "aarch64"
    assert set(found.values()) == {"x86_64", "aarch64"}
    for task, arch in found.items():
        decision = wattloom.why(task, tmp_path / "j").explanations[-1]
        chosen = next(each for each in decision.candidates if each.first == decision.node)
        assert chosen.variant == arch


def test_a_build_that_is_for_something_else_is_refused() -> None:
    program = builds.native()
    here = arch_of(program)
    with pytest.raises(wattloom.InputError, match=f"is named as a build for s390x, and is one for {here}"):
        wattloom.load({"s390x": str(program)})
    alias = {"x86_64": "amd64", "aarch64": "arm64"}.get(here, here)
    with pytest.raises(wattloom.InputError, match="the same name"):
        wattloom.load({alias: str(program), here: str(program)})


# -- WebAssembly -------------------------------------------------------------------------------------------------------

MODULE = """
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
__attribute__((export_name("wattloom_alloc"))) int32_t alloc(int32_t n) { return (int32_t)(uintptr_t)malloc(n); }
__attribute__((export_name("twice"))) int64_t twice(int32_t at, int32_t n) {
    char *out = malloc(2 * n);
    memcpy(out, (char *)(uintptr_t)at, n), memcpy(out + n, (char *)(uintptr_t)at, n);
    return (int64_t)(uintptr_t)out << 32 | (2 * n);
}
__attribute__((export_name("half"))) double half(double x) { return x / 2; }
__attribute__((export_name("root"))) double root(double x) { return __builtin_sqrt(x); }
__attribute__((export_name("loop"))) void loop(void) { for (volatile int i = 0;; i++); }
__attribute__((export_name("trap"))) void trap(void) { __builtin_trap(); }
__attribute__((export_name("eat"))) int32_t eat(int32_t n) { char *volatile got = malloc(n); return got != 0; }
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    builds.wasm()  # or it is skipped
    folder = tmp_path_factory.mktemp("wasm")
    source, made = folder / "module.c", folder / "module.wasm"
    source.write_text(MODULE)
    words = ["clang", "--target=wasm32-wasi", "--sysroot=/usr", "-O1", "-mexec-model=reactor", "-o", str(made)]
    subprocess.run([*words, str(source)], check=True)
    return made


def test_what_a_module_exports_is_a_function(executor: wattloom.Executor, module: Path) -> None:
    assert wattloom.load(f"{module}:half", executor=executor)(3) == 1.5
    assert wattloom.load(f"{module}:twice", executor=executor)(b"ab") == b"abab"
    assert "takes numbers (f64)" in str(failure(wattloom.load(f"{module}:half", executor=executor), "3"))
    assert isinstance(failure(wattloom.load(f"{module}:root", executor=executor), -1), CannotSend)
    assert "it exports twice, half" in str(failure(wattloom.load(f"{module}:nowhere", executor=executor)))


def test_a_module_is_kept_within_its_limits(executor: wattloom.Executor, module: Path) -> None:
    loop = wattloom.load(f"{module}:loop", executor=executor, runtime_options={"fuel": 1_000_000})
    assert "fuel" in str(failure(loop))
    assert "unreachable" in str(failure(wattloom.load(f"{module}:trap", executor=executor)))
    eat = wattloom.load(f"{module}:eat", executor=executor, runtime_options={"memory": 4 << 20})
    assert [eat(1 << 20), eat(1 << 26)] == [1, 0]
    slow = wattloom.load(f"{module}:loop", executor=executor, timeout=0.3)
    assert isinstance(failure(slow), wattloom.TaskTimeout)
    assert wattloom.load(f"{module}:half", executor=executor)(3) == 1.5


def test_a_file_that_is_no_module_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.wasm").write_text("(module)")
    with pytest.raises(wattloom.InputError, match="is no WebAssembly"):
        wattloom.load(tmp_path / "text.wasm")


# -- cold starts, recovery, the command line ---------------------------------------------------------------------------


def test_a_cold_start_is_kept_apart(tmp_path: Path) -> None:
    needs("node", "nodejs")
    with wattloom.Executor(1, journal=tmp_path / "j", meter="off") as executor:
        add = wattloom.load(f"{SAMPLES / 'samples.js'}:add", executor=executor)
        assert [add(1, 1), add(1, 1), add(1, 1)] == [2, 2, 2]
    (cost,) = wattloom.functions(tmp_path / "j")
    assert (cost.cold_starts, cost.calls) == (1, 3)
    assert cost.cold_start_s is not None
    assert cost.mean_s is not None
    assert cost.cold_start_s > 3 * cost.mean_s


SLEEPS = """
const fs = require('fs')
exports.sleep = (seconds) => {
  fs.writeFileSync('here', '')
  return new Promise((resolve) => setTimeout(resolve, fs.existsSync('again') ? 0 : seconds * 1000, 'slept'))
}
"""
PROGRAM = """
import sys, wattloom
executor = wattloom.Executor(1, journal=sys.argv[2], meter="off")
for future in executor.recovered:
    print(future.exception() or future.result())
if not executor.recovered:
    wattloom.load(sys.argv[1] + ":sleep", executor=executor, idempotent=True).remote(60).result()
executor.shutdown()
"""


@pytest.mark.parametrize("changed", [False, True])
def test_an_idempotent_call_is_made_again_by_the_next_run(tmp_path: Path, changed: bool) -> None:
    needs("node", "nodejs")
    file = tmp_path / "own.js"
    file.write_text(SLEEPS)
    command = [sys.executable, "-c", PROGRAM, str(file), str(tmp_path / "j")]
    with subprocess.Popen(command, cwd=tmp_path) as first:
        deadline = time.monotonic() + 50
        while not (tmp_path / "here").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        first.kill()
    (tmp_path / "again").write_text("")
    if changed:
        file.write_text("exports.sleep = () => 'another'")
    second = subprocess.run(command, capture_output=True, cwd=tmp_path, text=True, timeout=50, check=False)
    expected = "has changed since the call was made" if changed else "slept"
    assert expected in second.stdout, second.stderr


def test_the_command_line_runs_files(tmp_path: Path) -> None:
    needs("node", "nodejs")
    command_line = [
        sys.executable,
        "-m",
        "wattloom.cli.main",
        "run",
        "--journal",
        str(tmp_path / "j"),
        "--meter",
        "off",
    ]
    words = [*command_line, f"{SAMPLES / 'samples.js'}:add", "--args", "[1, 2]", "--json"]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert json.loads(ran.stdout)["result"] == 3, ran.stderr
    failed = subprocess.run(
        [*command_line, f"{SAMPLES / 'samples.js'}:fail", "--args", '["no luck"]'],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert failed.returncode == 1
    assert "RangeError: no luck" in failed.stderr
    gone = subprocess.run([*command_line, "gone.js"], capture_output=True, text=True, timeout=120, check=False)
    assert (gone.returncode, "gone.js: cannot be read" in gone.stderr) == (2, True)


def test_a_class_beside_a_java_function_that_changes_is_compiled_again(tmp_path: Path) -> None:
    needs("javac", "openjdk-17-jdk-headless")
    (tmp_path / "Main1.java").write_text("public class Main1 { public static int run() { return Helper.v(); } }")
    for value in (1, 2):
        (tmp_path / "Helper.java").write_text(f"class Helper {{ static int v() {{ return {value}; }} }}")
        with wattloom.Executor(1, journal=tmp_path / f"j{value}", meter="off") as executor:
            assert wattloom.load(f"{tmp_path / 'Main1.java'}:run", executor=executor)() == value


def test_what_a_program_says_can_be_anything_and_its_worker_lives_on(tmp_path: Path) -> None:
    program = tmp_path / "nested"
    program.write_text("#!/bin/sh\nhead -c 200000 /dev/zero | tr '\\0' '['\n")
    program.chmod(0o755)
    with wattloom.Executor(1, journal=tmp_path / "j", meter="off") as executor:
        problem = wattloom.load(program, executor=executor).remote().exception(60)
        assert problem is not None
        assert not isinstance(problem, wattloom.OutcomeUnknown | wattloom.WorkerLost)


def test_arguments_of_any_size_can_be_sent(tmp_path: Path) -> None:
    with wattloom.Executor(1, journal=tmp_path / "j", meter="off") as executor:
        assert executor.submit(int.bit_length, 1 << 2047).result(60) == 2048
