"""`wattloom meter`: what there is, whether it works, and what it says."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Wattloom
from tests.metering.trees import RaplTree

from wattloom import api
from wattloom.machines.curves import match_of
from wattloom.machines.this_machine import this_machine
from wattloom.metering import choosing, powercap


def listed(wattloom: Wattloom, *words: str) -> dict[str, dict[str, Any]]:
    done = wattloom(*words, "--json")
    assert done.exit_code == 0, done.output
    return {each["name"]: each for each in json.loads(done.stdout)}


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def rapl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RaplTree:
    """A machine with counters, as the installed meter finds it."""
    tree = RaplTree(tmp_path / "powercap")
    tree.zone("intel-rapl:0", "package-0")
    monkeypatch.setattr(powercap, "for_machine", lambda profile: powercap.Powercap(tree.root))
    return tree


def test_the_list_says_which_is_used_and_what_the_others_lack(wattloom: Wattloom) -> None:
    found = listed(wattloom, "meter", "list")
    assert {"estimate", "powercap", "battery", "recording"} <= set(found)
    (used,) = [each for each in found.values() if each["used"]]
    assert used["problem"] == ""
    assert found["recording"]["only_named"]
    assert all(each["summary"] and each["quantity"] for each in found.values())


def test_the_old_name_works_on_and_is_not_listed(wattloom: Wattloom) -> None:
    assert set(listed(wattloom, "meters")) == {info.name for info in api.meters()}
    commands = wattloom("--help").stdout
    assert "\n  meter " in commands
    assert "\n  meters " not in commands


def test_the_list_is_legible_on_a_narrow_terminal_with_hints_below(wattloom: Wattloom, narrow: None) -> None:
    shown = wattloom("meter", "list").stdout
    above, _, below = shown.partition("\n(1) ")
    assert max(map(len, above.splitlines())) <= 80
    assert "no (1)" in above
    assert "yes, and is used" in above
    numbers = above.count("no (")
    assert numbers == sum(bool(info.problem) for info in api.meters())
    assert f"({numbers}) " in below
    assert "no recording is named" in below
    assert "- in wattloom.toml, under [recording]: path = " in below


def test_what_is_to_be_copied_stands_in_one_line(
    wattloom: Wattloom, narrow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wattloom.metering.setup_hints import files_for_group, missing, split

    how = files_for_group(
        "powercap", 'KERNEL=="intel-rapl:*"', "energy_uj", "/sys/class/powercap/intel-rapl:*/energy_uj"
    )
    info = choosing.MeterInfo("rapl", "counters", "measured", "package", *split(missing("locked", *how)))
    monkeypatch.setattr(choosing, "meters", lambda profile: [info])
    lines = wattloom("meter", "list").stdout.splitlines()
    (rule,) = [line for line in lines if "SUBSYSTEM" in line]
    assert rule.strip().endswith("&& chmod g+r energy_uj'\"")
    assert "(1) rapl: locked" in lines


def test_a_meter_is_read_live(wattloom: Wattloom, rapl: RaplTree, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    def sleep(seconds: float) -> None:
        rapl.add("intel-rapl:0", 5_000_000)

    monkeypatch.setattr(time, "sleep", sleep)
    done = wattloom("meter", "read", "powercap", "--interval", "0.05", "--count", "3")
    assert done.exit_code == 0, done.output
    head, first, *rest = done.stdout.splitlines()
    assert head == "powercap: the processor's own energy counters (RAPL); measured, of the processors with their memory"
    assert "counting from here" in first
    assert len(rest) == 2


def test_live_readings_as_json_are_a_line_each(wattloom: Wattloom) -> None:
    done = wattloom("meter", "read", "estimate", "--interval", "0.1", "--count", "3", "--json")
    first, *rest = [json.loads(line) for line in done.stdout.splitlines()]
    assert first["watts"] is None
    assert len(rest) == 2
    for each in rest:
        assert each["watts"] > 0.0
        assert each["meter"] == "estimate"
        assert each["problem"] == ""


def test_without_a_name_the_one_that_is_used_is_read(wattloom: Wattloom) -> None:
    (used,) = [info for info in api.meters() if info.used]
    assert wattloom("meter", "read", "--count", "1").stdout.startswith(f"{used.name}: ")


def test_a_meter_that_does_not_work_says_what_is_missing(wattloom: Wattloom) -> None:
    done = wattloom("meter", "read", "recording", "--count", "1")
    assert done.exit_code == 2
    assert "recording does not work here: no recording is named" in done.stderr
    assert "[recording]" in done.stderr
    assert "'nosuch' is not known" in wattloom("meter", "read", "nosuch").stderr


def test_wrong_settings_end_the_command_and_are_said_once(
    wattloom: Wattloom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wattloom.toml").write_text("[recording]\npth = 'x'\n")
    address = ("exporter", "--listen", "127.0.0.1:0")
    for words in (("meter", "list"), ("meter", "read"), ("measure", "--", "true"), ("top", "--once"), address):
        done = wattloom(*words)
        assert done.exit_code == 2, words
        assert done.output.count("wattloom.toml: recording.pth: no such setting (did you mean path?)") == 1


def test_a_meter_that_is_set_up_and_not_there_is_warned_of_on_stderr(
    wattloom: Wattloom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WATTLOOM_REDFISH__URL", "http://127.0.0.1:1")
    choosing._warn_once.cache_clear()
    done = wattloom("measure", "--repeat", "2", "--", "true")
    assert done.exit_code == 0, done.output
    assert done.stderr.count("warning: the meter redfish is set up but does not work here: ") == 1
    (warning,) = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert warning.endswith(" is used")


def test_the_spread_of_an_estimate_holds_the_error_of_its_curve(wattloom: Wattloom) -> None:
    done = wattloom("meter", "read", "estimate", "--interval", "0.2", "--count", "2", "--json")
    reading = json.loads(done.stdout.splitlines()[-1])
    known = match_of(this_machine()).spread
    assert reading["spread_w"] >= 0.99 * known * reading["watts"]


def test_an_export_that_cannot_begin_does_not_say_that_it_has(tmp_path: Path, wattloom: Wattloom) -> None:
    (tmp_path / "file").touch()
    for words, said in (
        (("--vms", tmp_path / "vms", "--meter", "nah"), "'nah' is not known"),
        (("--vms", tmp_path / "file" / "vms", "--meter", "estimate"), "cannot be used"),
    ):
        done = wattloom("meter", "export", *words)
        assert done.exit_code == 2
        assert said in done.stderr
        assert "writing shares" not in done.stderr
