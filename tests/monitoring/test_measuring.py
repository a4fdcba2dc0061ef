"""Blocks of code and commands on this machine, with the meter that works here."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event
from time import monotonic, process_time, sleep

import pytest
from tests.metering.scripted import Scripted

import wattloom
from wattloom.energy.forecast import Unknown
from wattloom.energy.measured import Energy
from wattloom.errors import InputError
from wattloom.monitoring import measuring
from wattloom.monitoring.measuring import CommandCannotRun, measure_command

BURN = "import time\nwhile time.process_time() < 0.4: pass"


def burn(seconds: float) -> None:
    end = process_time() + seconds
    while process_time() < end:
        pass


def test_a_block_that_works_costs_more_than_one_that_sleeps() -> None:
    with wattloom.measure("estimate") as working:
        burn(0.6)
    with wattloom.measure("estimate") as sleeping:
        sleep(0.6)
    assert isinstance(working.energy, Energy)
    assert isinstance(sleeping.energy, Energy)
    assert working.energy.joules > 3 * sleeping.energy.joules
    assert working.result.cpu_s == pytest.approx(0.6, abs=0.1)
    assert sleeping.seconds >= 0.6


def test_children_of_a_block_are_counted() -> None:
    with wattloom.measure("estimate") as measured:
        subprocess.run([sys.executable, "-c", BURN], check=True)
    assert measured.result.cpu_s >= 0.35
    assert measured.joules is not None
    assert measured.joules > 0.0


def test_a_block_that_raises_is_measured_and_still_raises() -> None:
    measured = wattloom.measure("estimate")
    with pytest.raises(KeyError), measured:
        raise KeyError
    assert isinstance(measured.energy, Energy)


def test_asking_before_the_end_says_so() -> None:
    with wattloom.measure("estimate") as measured, pytest.raises(InputError, match="not over yet"):
        _ = measured.energy


def test_a_meter_that_hangs_does_not_hang_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "HANGS_S", 0.05)
    go, meter = Event(), Scripted()
    with wattloom.measure(meter) as measured:
        monkeypatch.setattr(meter, "read", lambda now: go.wait(60))
    go.set()
    assert isinstance(measured.energy, Unknown)
    assert "did not answer" in measured.energy.reason or "has not answered" in measured.energy.reason


def test_an_unknown_meter_is_an_error_that_names_the_others() -> None:
    with pytest.raises(InputError, match="estimate"), wattloom.measure("nonesuch"):
        pass


def test_a_command_has_its_exit_code_and_the_cpu_time_of_all_its_children() -> None:
    inner = f"{sys.executable} -c '{BURN}' & {sys.executable} -c '{BURN}'; wait; exit 3"
    done = measure_command(["sh", "-c", inner], meter="estimate")
    assert done.exit_code == 3
    assert done.measured.cpu_s >= 0.75
    assert isinstance(done.measured.energy, Energy)


def test_a_command_that_is_killed_has_the_signals_number() -> None:
    assert measure_command(["sh", "-c", "kill -9 $$"], meter="estimate").exit_code == 128 + signal.SIGKILL


@pytest.mark.parametrize(("command", "code"), [("nonesuch-command", 127), ("/", 126)])
def test_a_command_that_cannot_run_is_named(command: str, code: int) -> None:
    with pytest.raises(CommandCannotRun, match=command) as caught:
        measure_command([command], meter="estimate")
    assert caught.value.code == code


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "wattloom.cli.main", "measure", *words], capture_output=True, text=True, check=False
    )


def test_the_command_prints_figures_to_stderr_and_leaves_stdout_alone() -> None:
    done = run("--", "sh", "-c", "echo out; exit 4")
    assert done.returncode == 4
    assert done.stdout == "out\n"
    assert "above idle" in done.stderr
    assert "the command ended with 4" in done.stderr


def test_json_has_the_runs_and_stdout_to_itself() -> None:
    done = run("--json", "--repeat", "3", "--", "echo", "out")
    found = json.loads(done.stdout)
    assert len(found["runs"]) == 3
    assert found["exit_code"] == 0
    assert {"joules", "spread", "provenance", "machine_j", "idle_j", "others_j"} <= set(found["runs"][0])
    assert all(each["too_short"] == (each["spread"] > each["joules"]) for each in found["runs"])
    assert done.stderr.count("out") == 3


def test_a_command_that_fails_is_not_repeated() -> None:
    found = json.loads(run("--json", "--repeat", "5", "--", "false").stdout)
    assert found["exit_code"] == 1
    assert len(found["runs"]) == 1


def test_figures_can_go_into_a_file(tmp_path: Path) -> None:
    target = tmp_path / "figures.txt"
    done = run("-o", str(target), "--", "true")
    assert done.stderr == ""
    assert "above idle" in target.read_text()


def test_ctrl_c_goes_to_the_command_and_figures_are_still_printed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    inner = f"trap 'exit 7' INT; touch {ready}; while true; do sleep 0.05; done"
    process = subprocess.Popen(
        [sys.executable, "-m", "wattloom.cli.main", "measure", "--", "sh", "-c", inner],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(ready)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 7
    assert "above idle" in said


def wait_for(path: Path) -> None:
    end = monotonic() + 20.0
    while not path.exists():
        assert monotonic() < end, f"{path} did not appear"
        sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_us_ends_the_command_and_figures_are_still_printed(tmp_path: Path, number: signal.Signals) -> None:
    ready = tmp_path / "ready"
    process = subprocess.Popen(
        [sys.executable, "-m", "wattloom.cli.main", "measure", "--", "sh", "-c", f"echo $$ > {ready}; exec sleep 60"],
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(ready)
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert "above idle" in said
    assert not Path(f"/proc/{ready.read_text().strip()}").exists()


def test_a_place_for_figures_that_cannot_be_is_said_before_the_command_runs(tmp_path: Path) -> None:
    done = run("-o", str(tmp_path / "none" / "figures"), "--", "touch", str(tmp_path / "ran"))
    assert done.returncode == 2
    assert "No such file or directory" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_run_that_failed_is_not_in_the_mean_and_the_form_is_the_same(tmp_path: Path) -> None:
    flag = tmp_path / "second"
    found = json.loads(run("--json", "--repeat", "3", "--", "sh", "-c", f"[ ! -e {flag} ] && touch {flag}").stdout)
    assert [each["exit_code"] for each in found["runs"]] == [0, 1]
    assert found["mean_j"] == found["runs"][0]["joules"]
    assert json.loads(run("--json", "--repeat", "3", "--", "false").stdout)["mean_j"] is None


def test_a_meter_that_ends_before_the_command_is_waited_for_shortly_and_said_rightly(tmp_path: Path) -> None:
    recording = tmp_path / "short.csv"
    recording.write_text("time_s,watts\n0,60\n0.5,60\n1,60\n")
    began = monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "wattloom.cli.main", "measure", "--meter", "recording", "--", "sleep", "2"],
        env=os.environ | {"WATTLOOM_RECORDING__PATH": str(recording)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "unknown" in done.stderr
    assert "went backwards" not in done.stderr
    assert "the recording is over" in done.stderr
    assert monotonic() - began < 9.0
