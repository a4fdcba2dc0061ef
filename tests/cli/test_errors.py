"""Errors go to stderr, name what is wrong and what to do, and set the exit code. No tracebacks."""

import json
from errno import ENOSPC
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import click
import pytest
from tests.cli.conftest import SCENARIO, Wattloom, commands

from wattloom.cli.main import main
from wattloom.errors import InvariantBroken

POLICY = """
from wattloom import RankingPolicy

class Fails(RankingPolicy):
    name = "fails"
    summary = "divides by zero"
    def cost(self, shape, site, estimate):
        return 1 / 0

class Nameless(RankingPolicy):
    def cost(self, shape, site, estimate):
        return 1.0

class Quits(RankingPolicy):
    name = "quits"
    summary = "ends the program"
    def cost(self, shape, site, estimate):
        raise SystemExit(7)

class Talks(RankingPolicy):
    name = "talks"
    summary = "prints"
    def cost(self, shape, site, estimate):
        print("hello")
        return 1.0
"""


def refused(wattloom: Wattloom, *words: object) -> str:
    result = wattloom(*words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert "\n  try: " in result.stderr
    return result.stderr


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (("count = 60", "count = 60\nfrequency = 3"), "arrivals[0]"),
        (("rate_per_s = 0.8", "rate_per_s = -1"), "arrivals[0].rate_per_s"),
        (('machine = "small"', 'machine = "smal"'), "nodes[1].machine"),
        (("functions = { f = 1 }", "functions = { g = 1 }"), "arrivals[0].functions.g"),
        (("work_s = 10", 'work_s = "ten"'), "functions"),
        (("cores = 4\nthreads", "cores = 0\nthreads"), "machines.big.cores"),
    ],
)
def test_a_wrong_scenario_field_is_named(
    change: tuple[str, str], field: str, tmp_path: Path, wattloom: Wattloom
) -> None:
    path = tmp_path / "wrong.toml"
    assert change[0] in SCENARIO
    path.write_text(SCENARIO.replace(*change))
    assert f"error: {path}: {field}" in refused(wattloom, "simulate", path)
    assert f"error: {path}: {field}" in refused(wattloom, "compare", path)


def test_an_unknown_scenario_lists_the_known_ones(wattloom: Wattloom) -> None:
    assert "hsc-cpu" in refused(wattloom, "simulate", "no-such-scenario")
    assert "hsc-cpu" in refused(wattloom, "scenarios", "show", "no-such-scenario")
    for words in (("compare", "heats-burst"), ("scenarios", "show", "heats-burst")):
        assert "did you mean `heats-bursts`?" in refused(wattloom, *words)


@pytest.mark.parametrize("content", [b"name = [", b"\xff\xfe\x00"])
def test_a_file_that_is_not_toml_is_refused(content: bytes, tmp_path: Path, wattloom: Wattloom) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    assert str(path) in refused(wattloom, "simulate", path)


def test_a_folder_is_no_scenario_and_no_log(tmp_path: Path, wattloom: Wattloom) -> None:
    refused(wattloom, "simulate", tmp_path)
    refused(wattloom, "replay", tmp_path)


def test_an_unknown_policy_or_option_is_named(scenario: Path, wattloom: Wattloom) -> None:
    assert "marginal-energy" in refused(wattloom, "simulate", scenario, "--policy", "marginal-enrgy")
    assert "guarante" in refused(wattloom, "simulate", scenario, "--policy", "marginal-energy:guarante=1")


def test_a_policy_file_that_raises_is_the_users_error(scenario: Path, tmp_path: Path, wattloom: Wattloom) -> None:
    path = tmp_path / "mine.py"
    path.write_text("raise ValueError('boom')")
    assert "boom" in refused(wattloom, "simulate", scenario, "--policy", f"{path}:Mine")
    path.write_text(POLICY)
    assert "ZeroDivisionError" in refused(wattloom, "simulate", scenario, "--policy", f"{path}:Fails")
    assert "ZeroDivisionError" in refused(wattloom, "compare", scenario, "--policies", f"fifo,{path}:Fails")
    assert "(mine.py, line 8)" in refused(wattloom, "simulate", scenario, "--policy", f"{path}:Fails")
    assert "SystemExit: 7 (mine.py, line 18)" in refused(wattloom, "simulate", scenario, "--policy", f"{path}:Quits")
    said = refused(wattloom, "simulate", scenario, "--policy", f"{path}:Nameless")
    assert "class Nameless has no name: give it a class attribute `name`" in said


def test_what_a_policy_prints_stays_out_of_the_json(scenario: Path, tmp_path: Path, wattloom: Wattloom) -> None:
    path = tmp_path / "mine.py"
    path.write_text(POLICY)
    for words in (("simulate", scenario, "--policy"), ("compare", scenario, "--policies")):
        result = wattloom(*words, f"{path}:Talks", "--json")
        assert json.loads(result.stdout)["scenario"] == "tiny"
        assert "hello" in result.stderr


def test_a_log_that_cannot_be_written_is_refused(scenario: Path, tmp_path: Path, wattloom: Wattloom) -> None:
    nowhere = tmp_path / "no" / "such" / "folder.log"
    assert str(nowhere) in refused(wattloom, "simulate", scenario, "--log", nowhere)
    refused(wattloom, "simulate", scenario, "--log", tmp_path)


def test_a_report_that_cannot_be_written_is_refused_before_the_run(
    scenario: Path, tmp_path: Path, wattloom: Wattloom
) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    assert "report" in refused(wattloom, "compare", scenario, "--report", occupied / "folder")


@pytest.mark.parametrize(("command", "option"), [("compare", "--report"), ("simulate", "--log")])
def test_a_path_must_not_be_empty(command: str, option: str, scenario: Path, wattloom: Wattloom) -> None:
    result = wattloom(command, scenario, option, "")
    assert result.exit_code == 2
    assert f"'{option}': must not be empty" in result.stderr


def test_a_report_that_finds_no_room_is_refused(
    scenario: Path, tmp_path: Path, wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr("wattloom.report._put", full)
    said = refused(wattloom, "compare", scenario, "--policies", "fifo", "--report", tmp_path)
    assert "cannot be written: No space left on device" in said


def test_a_policy_given_twice_is_refused(scenario: Path, wattloom: Wattloom) -> None:
    assert "fifo is given twice" in refused(wattloom, "compare", scenario, "--policies", "fifo,fifo")


def test_a_reference_that_is_not_compared_is_refused(scenario: Path, wattloom: Wattloom) -> None:
    refused(wattloom, "compare", scenario, "--policies", "fifo,pack", "--reference", "spread")


def test_a_file_that_is_no_log_is_refused(scenario: Path, wattloom: Wattloom) -> None:
    assert "not a Wattloom log" in refused(wattloom, "replay", scenario)


def test_a_task_that_is_not_in_the_log_is_refused(log: Path, wattloom: Wattloom) -> None:
    assert f"t9999 is not in {log}: it has t1 ... t60" in refused(wattloom, "why", "t9999", "--log", log)


def test_a_mistyped_command_gets_a_suggestion(wattloom: Wattloom) -> None:
    result = wattloom("simulat")
    assert result.exit_code == 2
    assert "simulate" in result.stderr


def test_what_is_not_the_users_fault_exits_with_1(
    scenario: Path, wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise InvariantBroken("two and two make five")

    monkeypatch.setattr("wattloom.api.simulate", broken)
    result = wattloom("simulate", scenario)
    assert result.exit_code == 1
    assert result.stderr == "error: two and two make five\n"


def test_ctrl_c_is_quiet(scenario: Path, wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("wattloom.api.simulate", interrupted)
    result = wattloom("simulate", scenario)
    assert (result.exit_code, result.output) == (130, "")


def number_options(*kinds: type[Any]) -> list[tuple[str, ...]]:
    """Every option of every command that takes a number: the words that name it."""
    return [
        (*path, option.opts[-1])
        for path, command in commands()
        for option in command.params
        if isinstance(option, click.Option) and isinstance(option.type, kinds)
    ]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-nan"])
@pytest.mark.parametrize("words", number_options(click.FloatRange, click.types.FloatParamType), ids=" ".join)
def test_no_option_takes_a_number_that_cannot_be_counted_with(
    words: tuple[str, ...], value: str, wattloom: Wattloom
) -> None:
    result = wattloom(*words, value)
    assert result.exit_code == 2, result.output
    assert f"Invalid value for '{words[-1]}'" in result.stderr


@pytest.mark.parametrize(
    ("kinds", "wanted"),
    [((click.FloatRange, click.types.FloatParamType), "must be a number, not 'x'"),
     ((click.IntRange, click.types.IntParamType), "must be a whole number from ")],
)  # fmt: skip
def test_every_number_is_asked_for_in_plain_words(
    kinds: tuple[type[Any], ...], wanted: str, wattloom: Wattloom
) -> None:
    for words in number_options(*kinds):
        assert wanted in wattloom(*words, "x").stderr, words


@pytest.mark.parametrize("text", ["[local", "[local]\njurnal = 1", "[local]\nmax_workers = 'many'", "[lokal]\nx = 1"])
def test_what_is_wrong_in_a_file_of_settings_is_not_said_to_be_in_an_option(
    text: str, tmp_path: Path, wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wattloom.toml").write_text(text)
    said = refused(wattloom, "tasks")
    assert said.startswith("error: wattloom.toml")
    assert "--help" not in said
    assert "reference/settings" in said


@pytest.mark.parametrize("value", [f"{10**30}", "9" * 5000, f"-{10**30}"])
@pytest.mark.parametrize("words", number_options(click.IntRange, click.types.IntParamType), ids=" ".join)
def test_every_whole_number_has_an_end(words: tuple[str, ...], value: str, wattloom: Wattloom) -> None:
    result = wattloom(*words, value)
    assert result.exit_code == 2, result.output[:300]
    assert f"'{words[-1]}'" in result.stderr


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full"])
@pytest.mark.parametrize(
    "words",
    ["simulate {}", "replay {}", "profile show {}", "profile diff {} {}", "machines curve --samples {}",
     "attribute --power {} --runs {}", "exporter --token-file {}", "tasks --journal {}"],
)  # fmt: skip
def test_a_device_without_an_end_is_not_read_for_ever(words: str, device: str, wattloom: Wattloom) -> None:
    result = wattloom(*words.format(device, device).split())
    assert result.exit_code == 2, result.output[:300]
    assert device in result.stderr


def test_a_trace_and_a_recording_are_not_read_for_ever(
    tmp_path: Path, wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = tmp_path / "endless.toml"
    arrivals = '[[arrivals]]\nkind = "trace"\nfile = "/dev/zero"\n'
    scenario.write_text(SCENARIO[: SCENARIO.index("[[arrivals]]")] + arrivals)
    assert "/dev/zero" in refused(wattloom, "simulate", scenario)
    monkeypatch.setenv("WATTLOOM_RECORDING__PATH", "/dev/zero")
    assert "/dev/zero" in wattloom("meter", "read", "recording", "--count", "1").output


@pytest.mark.parametrize("name", ["profile.json", "scenario.toml", "run.log"])
def test_what_is_nested_without_end_is_refused(name: str, tmp_path: Path, wattloom: Wattloom) -> None:
    path = tmp_path / name
    path.write_text("a = " * name.endswith("toml") + "[" * 100_000)
    command = {"profile.json": ("profile", "show"), "scenario.toml": ("simulate",), "run.log": ("replay",)}[name]
    assert name in refused(wattloom, *command, path)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_every_terminal_gets_something_to_read(
    encoding: str, scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (["compare", str(scenario), "--policies", "fifo,pack", "--seeds", "2"], ["replay", "\udcff.log"]):
        out, err = (TextIOWrapper(BytesIO(), encoding, "strict", write_through=True) for _ in range(2))
        monkeypatch.setattr("sys.argv", ["wattloom", *words])
        monkeypatch.setattr("sys.stdout", out)
        monkeypatch.setattr("sys.stderr", err)
        with pytest.raises(SystemExit) as ended:
            main()
        said = b"".join(stream.buffer.getvalue() for stream in (out, err))
        assert ended.value.code == (0 if words[0] == "compare" else 2)
        assert b"fifo" in said or b".log: No such file" in said


@pytest.mark.parametrize("lag", ["1e308", "-1e300", "1e6"])
def test_a_lag_beyond_the_recording_is_refused(lag: str, tmp_path: Path, wattloom: Wattloom) -> None:
    power, runs = tmp_path / "p.csv", tmp_path / "r.csv"
    power.write_text("time_s,watts\n" + "".join(f"{at},{60 + 20 * (at % 4 > 1)}\n" for at in range(40)))
    runs.write_text("start_s,end_s,function\n" + "".join(f"{at},{at + 2},f\n" for at in range(2, 40, 4)))
    assert "lag_s: " in refused(wattloom, "attribute", "--power", power, "--runs", runs, "--lag", lag)


@pytest.mark.parametrize("ends", [("1e-320", "1e12"), ("1e-5", "100"), ("1", "1e300")])
def test_watts_that_no_machine_draws_have_no_curve(ends: tuple[str, str], wattloom: Wattloom) -> None:
    result = wattloom("machines", "curve", "--idle", ends[0], "--max", ends[1])
    assert result.exit_code == 2
    assert "idle" in result.stderr or "max" in result.stderr


TOO_MANY = {
    "a rate without end": ("count = 60", "duration_s = 1e11", "rate_per_s = 0.8", "rate_per_s = 1e11"),
    "a count without end": ("count = 60", "count = 1_000_000_000", "", ""),
    "bursts without end": (
        'kind = "poisson"\nrate_per_s = 0.8\ncount = 60',
        'kind = "bursts"\nbursts = 1_000_000\nevery_s = 1\ncount = 1_000_000',
        "",
        "",
    ),
    "nodes without end": ('machine = "big"\ncount = 2', 'machine = "big"\ncount = 1_000_000', "", ""),
}


@pytest.mark.parametrize("change", TOO_MANY.values(), ids=TOO_MANY)
def test_a_simulation_that_could_never_end_is_not_begun(
    change: tuple[str, str, str, str], tmp_path: Path, wattloom: Wattloom
) -> None:
    path = tmp_path / "endless.toml"
    path.write_text(SCENARIO.replace(*change[:2]).replace(*change[2:]))
    said = refused(wattloom, "simulate", path)
    assert "a simulation takes at most 1" in said
    assert str(path) in said


def test_a_trace_that_could_never_end_is_not_begun(tmp_path: Path, wattloom: Wattloom) -> None:
    (tmp_path / "trace.csv").write_text("time_s,function,count\n1,f,5\n2,f,1e15\n")
    path = tmp_path / "endless.toml"
    path.write_text(SCENARIO[: SCENARIO.index("[[arrivals]]")] + '[[arrivals]]\nkind = "trace"\nfile = "trace.csv"\n')
    assert "trace.csv:3: count: would make 1,000,000,000,000,005 tasks" in refused(wattloom, "simulate", path)


@pytest.mark.parametrize("seconds", ["5e-324", "1e-200", "1e12"])
def test_run_times_that_make_endless_slowdowns_are_refused(seconds: str, tmp_path: Path, wattloom: Wattloom) -> None:
    path = tmp_path / "short.toml"
    path.write_text(SCENARIO.replace("work_s = 10", f"work_s = {seconds}"))
    assert "functions.f.seconds.big" in refused(wattloom, "compare", path)


def test_a_defect_of_ours_is_a_sentence_with_an_exit_code_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.delenv("WATTLOOM_TRACEBACK", raising=False)
    monkeypatch.setattr("wattloom.cli.printing.console", broken)
    for words, shown in ((["policies"], False), (["--traceback", "policies"], True)):
        monkeypatch.setattr("sys.argv", ["wattloom", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr().err
        assert ended.value.code == 70
        assert "error: this is a defect of Wattloom: ZeroDivisionError: division by zero\n  try: " in said
        assert ("Traceback" in said) is shown
    monkeypatch.delenv("WATTLOOM_TRACEBACK")


@pytest.mark.parametrize("address", ["http://[", "http://:x", "http://127.0.0.1:1"])
def test_an_address_of_a_scheduler_that_is_none_is_named(address: str, wattloom: Wattloom) -> None:
    assert address in refused(wattloom, "why", "default/p", "--scheduler", address)


def test_a_package_that_cuts_the_power_short_is_named(tmp_path: Path, wattloom: Wattloom) -> None:
    for name, until in (("p.csv", 60), ("package.csv", 12)):
        (tmp_path / name).write_text("time_s,watts\n" + "".join(f"{at},{60 + at % 4}\n" for at in range(until)))
    (tmp_path / "r.csv").write_text("start_s,end_s,function\n30,40,f\n")
    files = [word for name in ("power p", "runs r", "package package") for word in _option(name, tmp_path)]
    assert "as far as " + str(tmp_path / "package.csv") in refused(wattloom, "attribute", *files)


def _option(words: str, folder: Path) -> tuple[str, Path]:
    option, name = words.split()
    return f"--{option}", folder / f"{name}.csv"
