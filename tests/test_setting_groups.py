"""What a plug-in writes to bring settings, and what the kit has against."""

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from wattloom import setting_groups
from wattloom.errors import InputError
from wattloom.machines.profile import MachineProfile
from wattloom.setting_groups import (
    PLUG_INS,
    Credential,
    PlugInProblem,
    Positive,
    Receiver,
    Role,
    brought,
    group_of,
    keys_with,
    settings_type,
)
from wattloom.settings import SettingsError, load_settings
from wattloom.testing.settings_conformance import check_settings

HERE = "tests.test_setting_groups"


class Sound(msgspec.Struct, frozen=True):
    address: Receiver = ""
    word: Credential = ""
    factor: Positive = 1.0
    often: bool = False


class Other(msgspec.Struct, frozen=True):
    factor: Positive = 2.0


class Ordered(msgspec.Struct, frozen=True):
    least: float = 0.0
    most: float = 1.0

    def __post_init__(self) -> None:
        if self.most < self.least:
            raise ValueError("most is below least")


def plain(profile: MachineProfile) -> object:
    return profile


def sound(profile: MachineProfile, settings: Sound) -> object:
    return profile, settings


def another(profile: MachineProfile, settings: Other) -> object:
    return profile, settings


def ordered(profile: MachineProfile, settings: Ordered) -> object:
    return profile, settings


def with_something_of_its_own(profile: "NotThere", settings: dict[str, str] | None = None) -> object:  # type: ignore[name-defined]  # noqa: F821
    return profile, settings


class ByClass:
    def __init__(self, profile: MachineProfile, settings: Sound) -> None: ...


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def put(*entries: tuple[str, str, str]) -> None:
        found = [EntryPoint(name, value, group) for group, name, value in entries]
        monkeypatch.setattr(
            setting_groups, "entry_points", lambda group: [each for each in found if each.group == group]
        )

    return put


METERS, PREDICTORS = PLUG_INS
ROLES = get_args(Role)
Install = Callable[..., None]


@pytest.mark.parametrize(("name", "group"), [("host-share", "host_share"), ("My.Board", "my_board"), ("a--b", "a_b")])
def test_a_group_has_a_name_that_can_stand_in_a_file_and_in_the_environment(name: str, group: str) -> None:
    assert group_of(name) == group


def test_settings_are_what_the_parameter_of_that_name_is() -> None:
    assert settings_type(sound) is settings_type(ByClass) is Sound
    assert settings_type(plain) is settings_type(print) is settings_type("no function") is None


def test_a_parameter_that_is_no_struct_is_a_matter_of_the_plug_in() -> None:
    def nobody_says(profile: object, settings=None) -> None:  # type: ignore[no-untyped-def]
        ...

    assert settings_type(nobody_says) is None
    with pytest.raises(PlugInProblem, match="'NotThere' is not defined"):
        settings_type(with_something_of_its_own)


def test_every_setting_has_a_default() -> None:
    class Demanding(msgspec.Struct):
        url: str

    def demanding(settings: Demanding) -> None: ...

    demanding.__annotations__["settings"] = Demanding
    with pytest.raises(PlugInProblem, match=r"Demanding\.url has no default"):
        settings_type(demanding)


def test_what_is_a_secret_and_who_is_told_are_so_by_type_or_by_name() -> None:
    assert [sorted(keys_with(role, Sound)) for role in ROLES] == [["word"], ["address"], []]
    named = msgspec.defstruct("Named", [("token", str, ""), ("url", str, ""), ("path", str, "")])
    assert [sorted(keys_with(role, named)) for role in ROLES] == [["token"], ["url"], ["path"]]


def test_a_meter_and_a_predictor_of_one_name_may_bring_the_same_and_nothing_else(
    install: Install, tmp_path: Path
) -> None:
    install((METERS, "twice", f"{HERE}:sound"), (PREDICTORS, "twice", f"{HERE}:ByClass"))
    assert brought("twice") is Sound
    install((METERS, "twice", f"{HERE}:sound"), (PREDICTORS, "twice", f"{HERE}:another"))
    with pytest.raises(SettingsError, match=r"WATTLOOM_TWICE__FACTOR: the meter .*:sound and the predictor .*:another"):
        load_settings(folder=tmp_path, environ={"WATTLOOM_TWICE__FACTOR": "3"})


def test_a_plug_in_called_local_does_not_take_our_group(install: Install, tmp_path: Path) -> None:
    install((METERS, "local", f"{HERE}:sound"))
    assert load_settings(folder=tmp_path, environ={"WATTLOOM_LOCAL__MAX_WORKERS": "3"}).local.max_workers == 3


def test_what_a_plug_in_has_against_values_together_is_an_error_of_its_group(install: Install, tmp_path: Path) -> None:
    install((METERS, "ordered", f"{HERE}:ordered"))
    with pytest.raises(SettingsError, match="settings of ordered: most is below least"):
        load_settings(folder=tmp_path, environ={"WATTLOOM_ORDERED__MOST": "-1"})


def test_a_plug_in_is_loaded_only_if_its_group_is_named(install: Install, tmp_path: Path) -> None:
    install((METERS, "missing", "there.is.no.such.module:for_machine"), (METERS, "sound", f"{HERE}:sound"))
    settings = load_settings({"local": {"max_workers": 2}}, folder=tmp_path, environ={"WATTLOOM_SOUND__FACTOR": "3"})
    assert settings.of("sound", Sound) == Sound(factor=3.0)
    assert not settings.are_given("missing")


def test_the_program_may_give_settings_of_a_plug_in_too(install: Install, tmp_path: Path) -> None:
    install((METERS, "sound", f"{HERE}:sound"))
    assert load_settings({"sound": {"factor": 4.0}}, folder=tmp_path, environ={}).of("sound", Sound).factor == 4.0
    with pytest.raises(InputError, match="factor: must be above 0"):
        load_settings({"sound": {"factor": 0.0}}, folder=tmp_path, environ={})


# -- the kit -------------------------------------------------------------------------------------------------------


OURS = [entry for group in PLUG_INS for entry in entry_points(group=group) if entry.value.startswith("wattloom.")]


@pytest.mark.parametrize("entry", OURS, ids=lambda entry: entry.name)
def test_our_own_settings_conform(entry: EntryPoint) -> None:
    check_settings(entry.load())


def test_sound_settings_conform_and_so_does_whoever_brings_none() -> None:
    check_settings(sound)
    check_settings(plain)


ODD: list[tuple[str, list[tuple[str, Any, Any]], bool, str]] = [
    ("Changing", [("factor", float, 1.0)], False, "is not frozen"),
    ("Loud", [("Factor", float, 1.0)], True, "Factor has capitals"),
    ("Listed", [("nodes", tuple[str, ...], ())], True, "nodes: its default"),
    ("Beyond", [("factor", Positive, 0.0)], True, r"factor: its default must be above 0"),
    ("Telling", [("api_key", str, ""), ("url", str, "")], True, "api_key looks like a secret"),
    ("Nowhere", [("password", str, "")], True, "nothing that says to whom that goes"),
]


@pytest.mark.parametrize(("name", "fields", "frozen", "problem"), ODD, ids=[each[0] for each in ODD])
def test_odd_settings_do_not(name: str, fields: list[tuple[str, Any, Any]], frozen: bool, problem: str) -> None:
    def plug_in(settings: object) -> None: ...

    plug_in.__annotations__["settings"] = msgspec.defstruct(name, fields, frozen=frozen)
    with pytest.raises(AssertionError, match=problem):
        check_settings(plug_in)
