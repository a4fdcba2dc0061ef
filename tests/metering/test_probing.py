"""What is not loaded when a meter is chosen: only what cannot be the best one here."""

import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest
from tests.metering.trees import machine

from wattloom.metering import battery, choosing, kernel_files, probing, rapl_zones
from wattloom.metering.choosing import GROUP, meters
from wattloom.metering.host_share import OURS, SCAPHANDRES
from wattloom.setting_groups import group_of, groups
from wattloom.settings import SettingsError

INSTALLED = {entry.name: entry for entry in entry_points(group=GROUP)}
BY_SETTING = {
    "prometheus": "url",
    "scaphandre": "url",
    "kepler": "url",
    "powerapi": "reports",
    "pcp": "url",
    "ipmi": "enabled",
    "redfish": "url",
    "pdu": "url",
    "host-share": "path",
}


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine that shows nothing, in a folder without settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCAPHANDRE_POWERCAP_PATH", raising=False)
    folders = {name: (str(tmp_path / name),) for name in probing.FOLDERS}
    monkeypatch.setattr(probing, "FOLDERS", folders)
    return tmp_path


def test_every_name_is_that_of_a_meter_of_ours() -> None:
    names = {*probing.FOLDERS, *probing.ASKED_FOR, *probing.VARIABLES, *probing.NEVER}
    assert names <= INSTALLED.keys()
    assert {name for name in INSTALLED if INSTALLED[name].value.startswith(probing.OURS)} - names == {"estimate"}


def test_the_folders_are_those_that_the_meters_read() -> None:
    assert probing.FOLDERS["powercap"] == (str(rapl_zones.ROOT),)
    assert probing.FOLDERS["amd_energy"] == probing.FOLDERS["smpro"] == (str(kernel_files.HWMON),)
    assert probing.FOLDERS["battery"] == (str(battery.ROOT),)
    assert probing.FOLDERS["host-share"] == (str(OURS), str(SCAPHANDRES))


def test_those_that_must_be_asked_for_are_those_that_have_settings() -> None:
    assert set(probing.ASKED_FOR) == set(BY_SETTING)
    asked_for = {group_of(name) for name in (*probing.ASKED_FOR, "recording")}  # which is never chosen by itself
    assert asked_for == {group for group, kind in groups().items() if kind.__module__.startswith(probing.OURS)}


@pytest.mark.parametrize("name", sorted(BY_SETTING))
def test_a_meter_that_is_set_up_is_loaded_and_one_that_is_not_is_not(
    name: str, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not probing.may_be_chosen(INSTALLED[name])
    group, key = group_of(name), BY_SETTING[name]
    kind = type(getattr(groups()[group](), key))
    monkeypatch.setenv(f"WATTLOOM_{group.upper()}__{key.upper()}", "true" if kind is bool else "http://localhost:1")
    assert probing.may_be_chosen(INSTALLED[name])


@pytest.mark.parametrize("name", sorted(probing.FOLDERS))
def test_a_meter_whose_folder_holds_something_is_loaded(name: str, bare: Path) -> None:
    (bare / name).mkdir()
    assert not probing.may_be_chosen(INSTALLED[name])
    (bare / name / "something").touch()
    assert probing.may_be_chosen(INSTALLED[name])


def test_settings_that_are_wrong_are_not_taken_for_none(bare: Path) -> None:
    (bare / "wattloom.toml").write_text("[pdu]\nurl = 3\n")
    with pytest.raises(SettingsError, match=r"wattloom.toml: pdu.url: must be text"):
        probing.may_be_chosen(INSTALLED["pdu"])


def test_meters_of_others_are_always_loaded_whatever_they_are_called() -> None:
    assert probing.may_be_chosen(EntryPoint("nvml", "somebody.elses:meter", GROUP))
    assert probing.may_be_chosen(EntryPoint("new", "wattloom.metering.new:for_machine", GROUP))


def test_no_meter_that_works_here_and_may_be_used_is_left_out() -> None:
    work = [each for each in meters(machine()) if not each.problem and not each.only_named]
    work = [each for each in work if each.quantity != "device"]
    assert all(probing.may_be_chosen(INSTALLED[each.name]) for each in work)


def test_to_choose_where_nothing_is_set_up_loads_no_meter_of_a_network_or_a_device(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom wattloom.metering.choosing import choose_meter\n"
        "from wattloom.machines.this_machine import this_machine\nchoose_meter(this_machine())\nprint(*sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = set(told.stdout.split())
    assert choosing.__name__ in loaded
    beside = ("nvml", "amdsmi", "polled", "web", "redfish", "pdu", "prometheus")
    assert not loaded & {f"wattloom.metering.{name}" for name in beside}
    assert not loaded & {"ssl", "http.client", "prometheus_client", "numpy"}
